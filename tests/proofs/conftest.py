"""All graphs of up to six nodes and all their edges, laid side by side so that one propagation covers them all.

Propagation never crosses between components, so the disjoint union of many small graphs is propagated at once. A graph
with fewer nodes is the same graph with isolated nodes added, so the 156 graphs of exactly six nodes cover them all.
"""

from __future__ import annotations

from dataclasses import dataclass

import networkx
import numpy as np
import pytest
import torch
from torch import Tensor

from gcon.edges.edge_list import EdgeList, public_edges

SIZE = 6


@dataclass(frozen=True, eq=False)
class SmallGraphs:
    """`graphs`: every graph once. `before`, `after`: for every edge of every graph, the graph with and without it."""

    graphs: EdgeList
    before: EdgeList
    after: EdgeList
    first_degree: np.ndarray
    second_degree: np.ndarray

    @property
    def num_cases(self) -> int:
        return self.first_degree.size

    def tiled(self, pattern: Tensor, edges: EdgeList) -> Tensor:
        """The same six rows of features for every small graph of a union."""
        return pattern.repeat(edges.num_nodes // SIZE, 1)

    def changes(self, before: Tensor, after: Tensor) -> Tensor:
        """Row changes as (case, node, column)."""
        return (after - before).reshape(self.num_cases, SIZE, -1)


def _union(graphs: list[list[tuple[int, int]]]) -> EdgeList:
    pairs = [(SIZE * place + u, SIZE * place + v) for place, graph in enumerate(graphs) for u, v in graph]
    return public_edges(torch.tensor(pairs, dtype=torch.int64).T.reshape(2, -1), SIZE * len(graphs))


@pytest.fixture(scope="session")
def small_graphs() -> SmallGraphs:
    graphs = [sorted(graph.edges()) for graph in networkx.graph_atlas_g() if graph.number_of_nodes() == SIZE]
    assert len(graphs) == 156
    before, after, first, second = [], [], [], []
    for graph in graphs:
        degrees = np.bincount(np.array(graph, dtype=int).ravel(), minlength=SIZE)
        for edge in graph:
            before.append(graph)
            after.append([other for other in graph if other != edge])
            first.append(degrees[edge[0]])
            second.append(degrees[edge[1]])
    assert len(before) == 1170
    return SmallGraphs(_union(graphs), _union(before), _union(after), np.array(first), np.array(second))


@pytest.fixture(scope="session")
def sign_patterns() -> Tensor:
    """All features in {-1, +1} up to a common sign: six rows, one column a pattern."""
    bits = (torch.arange(2 ** (SIZE - 1))[None, :] >> torch.arange(SIZE)[:, None]) & 1
    return (2 * bits - 1).to(torch.float64)
