"""Plain sums over neighbours, A x: no self-loop and no normalisation."""

from __future__ import annotations

import torch
from torch import Tensor

from gcon.edges.edge_list import EdgeList
from gcon.edges.kernels.multiply_torch import adjacency
from gcon.edges.source import Edges
from gcon.errors import InputError


def neighbour_sums(edges: Edges, rows: Tensor) -> Tensor:
    """Row i is the sum of the rows of i's neighbours.

    One edge {u, v} adds row v to the sum of u and row u to the sum of v, and changes nothing else.
    """
    (block,) = in_memory(edges).blocks(torch.device("cpu"))
    sums: Tensor = adjacency(block) @ rows.to(torch.float64)
    return sums


def in_memory(edges: Edges) -> EdgeList:
    """The edges as a list, for computations that need all of them at hand."""
    if not isinstance(edges, EdgeList):
        rule, fix = "must be in memory for this", "Read them without a store or a cluster."
        raise InputError("edges", rule=rule, got="edges elsewhere", fix=fix)
    return edges
