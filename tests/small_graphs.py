"""Small graphs of every kind."""

from __future__ import annotations

import networkx
import pytest
import torch

from gcon.edges.edge_list import EdgeList, public_edges

GRAPHS = {
    "empty": networkx.empty_graph(12),
    "one node": networkx.empty_graph(1),
    "one edge": networkx.path_graph(2),
    "path": networkx.path_graph(9),
    "star": networkx.star_graph(11),
    "complete": networkx.complete_graph(10),
    "random": networkx.gnm_random_graph(40, 90, seed=1),
    "with isolated nodes": networkx.gnm_random_graph(40, 15, seed=2),
    "two parts": networkx.disjoint_union(networkx.complete_graph(5), networkx.cycle_graph(6)),
}


def as_edges(graph: networkx.Graph) -> EdgeList:
    pairs = torch.tensor(list(graph.edges()), dtype=torch.int64).reshape(-1, 2).T
    return public_edges(pairs, graph.number_of_nodes())


@pytest.fixture(params=GRAPHS)
def edges(request) -> EdgeList:
    return as_edges(GRAPHS[request.param])


@pytest.fixture
def features(edges) -> torch.Tensor:
    return torch.randn(edges.num_nodes, 5, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
