"""The graph that canary edges are put into: made up, or a published one."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gcon.edges.edge_list import EdgeList, public_edges
from gcon.files.datasets import load, social_circles_parts
from gcon.privacy.gates import declassify
from gcon.privacy.ledger import MemoryLedger

MADE_UP = "made-up"
_COLUMNS = 4
_NODES = 2_400


@dataclass(frozen=True, eq=False)
class LargerGraph:
    """A public graph with one unit row and one class per node.

    Attributes:
        name: what it is called.
        edges: everybody may know them.
        rows: n x 4, each of length 1.
        classes: n numbers.
        num_classes: how many there are.
    """

    name: str
    edges: EdgeList
    rows: Tensor
    classes: Tensor
    num_classes: int


def larger_graph(name: str = MADE_UP) -> LargerGraph:
    """The made-up graph, or a published one of this name (needs GCON_DATA)."""
    if name == MADE_UP:
        nodes, edge_index = social_circles_parts(_NODES, mean_degree=6.0, num_features=16, seed=1)
        edges = public_edges(edge_index, _NODES)
    else:
        graph = load(name)
        nodes = graph.nodes
        edges = declassify(graph.edges, reason="audit on a published graph", ledger=MemoryLedger(data_set=name))
    features = nodes.features.to(torch.float64)
    generator = torch.Generator().manual_seed(2)
    directions = torch.randn(features.shape[1], _COLUMNS, generator=generator, dtype=torch.float64)
    rows = (features - features.mean(dim=0)) @ directions
    rows = rows / torch.linalg.vector_norm(rows, dim=1, keepdim=True).clamp(min=1e-12)
    return LargerGraph(name, edges, rows, nodes.labels, nodes.num_classes)
