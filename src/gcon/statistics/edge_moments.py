"""Edge moments, F' A F: which directions of public features neighbours agree in (docs/proofs/edge-moments.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import torch
from torch import Tensor

from gcon.errors import InputError
from gcon.graphs.edges import EdgeList
from gcon.statistics.blocks import neighbour_sum_blocks
from gcon.statistics.rows import check_nodes, checked_rows, fixed_point, longest_rows
from gcon.statistics.statistic import Statistic

_BITS = 31  # of a column's sum, in fixed point: a product of two sums has 62, and whole numbers of 64 bits hold it
_LOW_BITS = 22  # of sums over neighbours: such numbers times a column have 31 + 21 bits, and float64 holds their sum
_MOST_NODES = 2**28  # half a unit a node more in a column leaves room in both


@final
class EdgeMoments(Statistic):
    """The symmetric d x d matrix F' A F, the sum over edges {u, v} of f_u f_v' + f_v f_u'.

    The rows are rounded to fixed point and summed as whole numbers: exactly, in any order.
    A constant column of F has the entry constant^2 * 2|E|: a count of edges as part of the moments.

    Args:
        rows: F, n x d: public, or computed from what was released before.

    Example:
        >>> from gcon.graphs.edges import public_edges
        >>> path = public_edges(torch.tensor([[0, 1], [1, 2]]), 3)
        >>> EdgeMoments(torch.ones(3, 1)).of(path)
        tensor([[4.]], dtype=torch.float64)

    Privacy:
        One edge moves it by sqrt(2 |f_u|^2 |f_v|^2 + 2 (f_u' f_v)^2) <= 2 |f_u| |f_v|, at most twice the product of the
        lengths of the two longest rows: attained if these are parallel.
    """

    def __init__(self, rows: Tensor) -> None:
        given = checked_rows("rows", rows)
        if len(given) > _MOST_NODES:
            raise InputError(
                "rows",
                rule=f"must be at most {_MOST_NODES:,}: sums of products over so many nodes are exact",
                got=f"{len(given):,} rows",
                fix="Take neighbour rows or bilinear sums.",
            )
        self._whole, self._units = fixed_point(given, _BITS)
        first, second = longest_rows(self._whole * self._units)
        if second == 0 and longest_rows(given)[1] > 0:
            raise InputError(
                "rows",
                rule="must hold two rows of comparable length, or one row only",
                got="rows that vanish in fixed point beside the longest",
                fix="Scale the rows, or set tiny ones to 0.",
            )
        # Every entry is rounded once, by 2^-53 of its size; of the matrix as a whole either bound holds on all graphs.
        sums, pairs = self._whole.abs().sum(dim=0) * self._units, len(given) * (len(given) - 1)
        self._rounding = 1.01 * 2.0**-53 * min(float(sums @ sums), pairs * first * second)
        self._sensitivity = 2 * first * second + 2 * self._rounding

    @property
    def name(self) -> str:
        """What it is."""
        return "edge moments"

    @property
    def sensitivity(self) -> float:
        """Twice the product of the lengths of the two longest rows, and the last rounding on both sides."""
        return self._sensitivity

    @property
    def rounding(self) -> float:
        """Of one step alone: the exact sums, whole numbers of up to 62 bits, become float64."""
        return self._rounding

    @property
    def symmetric(self) -> bool:
        """The moments are symmetric."""
        return True

    def public_record(self) -> Mapping[str, object]:
        """The number of columns, and the bits of their sums in fixed point."""
        return {"columns": self._whole.shape[1], "bits": _BITS}

    def of(self, edges: EdgeList) -> Tensor:
        """F' A F, one pass over the edges; memory n x d at most."""
        check_nodes(edges, self._whole)
        width = self._whole.shape[1]
        moments = torch.zeros(width, width, dtype=torch.int64)
        for nodes, sums in neighbour_sum_blocks(edges, self._whole):
            columns, high = self._whole[nodes].T, (sums * 2.0**-_LOW_BITS).round()
            low = sums - high * 2.0**_LOW_BITS
            # Both products are whole numbers that float64 holds exactly, whatever the order of their sums.
            moments += ((columns @ high).to(torch.int64) << _LOW_BITS) + (columns @ low).to(torch.int64)
        return moments.to(torch.float64) * (self._units[:, None] * self._units)
