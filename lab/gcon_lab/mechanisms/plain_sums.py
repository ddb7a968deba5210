"""Plain sums over neighbours, A x: no self-loop and no normalisation."""

from __future__ import annotations

import torch
from torch import Tensor

from gcon.edges.edge_list import EdgeList
from gcon.edges.kernels.multiply_torch import adjacency


def neighbour_sums(edges: EdgeList, rows: Tensor) -> Tensor:
    """Row i is the sum of the rows of i's neighbours.

    One edge {u, v} adds row v to the sum of u and row u to the sum of v, and changes nothing else.
    """
    (block,) = edges.blocks(torch.device("cpu"))
    sums: Tensor = adjacency(block) @ rows.to(torch.float64)
    return sums
