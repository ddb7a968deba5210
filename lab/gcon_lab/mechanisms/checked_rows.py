"""Public rows that the laboratory's statistics are made of: checked and copied."""

from __future__ import annotations

import torch
from torch import Tensor

from gcon.edges.source import Edges
from gcon.errors import PlanMismatchError
from gcon.mechanisms.statistic import check_rows


def checked_rows(parameter: str, rows: Tensor, *, as_they_are: bool = False) -> Tensor:
    """A float64 copy of an n x d matrix of finite numbers of sensible size; everything else raises.

    Args:
        parameter: the name for errors.
        rows: the matrix.
        as_they_are: copy single precision as such, and where they are: for matrices as large as memory allows.

    Privacy:
        Reads public rows only.
    """
    check_rows(parameter, rows)
    keep = as_they_are and rows.dtype in (torch.float32, torch.float64)
    return rows.detach().clone() if keep else rows.detach().to("cpu", torch.float64, copy=True)


def check_nodes(edges: Edges, rows: Tensor) -> None:
    """Refuse a graph on another node set (the number of nodes is public)."""
    if edges.num_nodes != len(rows):
        raise PlanMismatchError("A statistic needs one row for every node of the graph.")
