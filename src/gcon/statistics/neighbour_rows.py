"""Sums of public rows over every node's neighbours, A B: one noisy row a node (docs/proofs/edge-moments.md, 3)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import final

import torch
from torch import Tensor

from gcon.graphs.edges import EdgeList
from gcon.statistics.blocks import neighbour_sum_blocks
from gcon.statistics.rows import check_nodes, checked_rows, fixed_point, longest_rows
from gcon.statistics.statistic import Statistic

_BITS = 52  # of a column's sum, in fixed point


@final
class NeighbourRows(Statistic):
    """The n x d matrix A B; row i is the sum of the rows of i's neighbours, exactly: the rows are rounded to fixed point.

    Args:
        rows: B, n x d: public, or computed from what was released before.

    Example:
        >>> round(NeighbourRows(torch.eye(3)).sensitivity, 6)
        1.414214

    Privacy:
        One edge {u, v} moves row u by b_v and row v by b_u, together sqrt(|b_u|^2 + |b_v|^2): at most the root of the sum
        of squares of the two longest rows, attained by an edge between them.
    """

    def __init__(self, rows: Tensor) -> None:
        whole, units = fixed_point(checked_rows("rows", rows), _BITS)
        self._rows = whole * units
        # A single node has no edge: nothing can change.
        self._sensitivity = math.hypot(*longest_rows(self._rows)) * (1 + 1e-15) if len(self._rows) > 1 else 0.0

    @property
    def name(self) -> str:
        """What it is."""
        return "neighbour rows"

    @property
    def sensitivity(self) -> float:
        """sqrt(r_1^2 + r_2^2) for the two longest rows, at most sqrt(2) r."""
        return self._sensitivity

    @property
    def rounding(self) -> float:
        """None: sums of fixed-point numbers are exact."""
        return 0.0

    def public_record(self) -> Mapping[str, object]:
        """The number of columns, and the bits of their sums in fixed point."""
        return {"columns": self._rows.shape[1], "bits": _BITS}

    def of(self, edges: EdgeList) -> Tensor:
        """A B."""
        check_nodes(edges, self._rows)
        everything = torch.empty_like(self._rows)
        for nodes, sums in neighbour_sum_blocks(edges, self._rows):
            everything[nodes] = sums
        return everything
