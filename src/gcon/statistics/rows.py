"""Public rows that statistics are made of: checked, copied, and measured without rounding down."""

from __future__ import annotations

import torch
from torch import Tensor

from gcon.errors import InputError, PlanMismatchError
from gcon.graphs.edges import EdgeList

ALLOWANCE = 1e-9  # relative; covers the rounding of lengths and of the sums themselves
_SMALLEST, _LARGEST = 1e-50, 1e50  # squares and products of entries in between stay far from the ends of float64


def checked_rows(parameter: str, rows: Tensor) -> Tensor:
    """A float64 copy of an n x d matrix of finite numbers of sensible size; everything else raises.

    Privacy:
        Reads public rows only.
    """
    if rows.dim() != 2 or rows.is_complex():
        raise InputError(
            parameter,
            rule="must be a real matrix, one row a node",
            got="another shape or type",
            fix="Pass n x d numbers.",
        )
    copy = rows.detach().to("cpu", torch.float64, copy=True)
    size = float(copy.abs().max()) if copy.numel() else 0.0
    if not (size == 0 or _SMALLEST <= size <= _LARGEST):
        raise InputError(
            parameter,
            rule=f"must hold finite numbers, the largest between {_SMALLEST:g} and {_LARGEST:g}",
            got="others",
            fix="Replace missing values, and scale the rows.",
        )
    return copy


def longest_rows(rows: Tensor) -> tuple[float, float]:
    """The lengths of the longest and the second longest row, never rounded down; 0 where there is no such row.

    An edge joins two *different* nodes, so products of two rows are bounded by these two lengths.

    Example:
        >>> longest_rows(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
        (5.000000005, 0.0)
    """
    size = float(rows.abs().max()) if rows.numel() else 0.0
    if size == 0:
        return 0.0, 0.0
    lengths = torch.linalg.vector_norm(rows.to(torch.float64) / size, dim=1)
    longest = [float(length) * size * (1 + ALLOWANCE) for length in lengths.topk(min(2, len(lengths))).values]
    return (longest[0], longest[1]) if len(longest) == 2 else (longest[0], 0.0)


def check_nodes(edges: EdgeList, rows: Tensor) -> None:
    """Refuse a graph on another node set (the number of nodes is public)."""
    if edges.num_nodes != len(rows):
        raise PlanMismatchError("A statistic needs one row for every node of the graph.")
