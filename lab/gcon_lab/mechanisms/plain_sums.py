"""Plain sums over neighbours, A x: no self-loop and no normalisation."""

from __future__ import annotations

import torch
from torch import Tensor

from gcon.edges.edge_list import in_memory
from gcon.edges.kernels.multiply_torch import adjacency
from gcon.edges.source import Edges


def neighbour_sums(edges: Edges, rows: Tensor) -> Tensor:
    """Row i is the sum of the rows of i's neighbours.

    One edge {u, v} adds row v to the sum of u and row u to the sum of v, and changes nothing else.
    """
    (block,) = in_memory(edges).blocks(torch.device("cpu"))
    sums: Tensor = adjacency(block) @ rows.to(torch.float64)
    return sums
