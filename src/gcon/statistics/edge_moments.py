"""Edge moments, F' A F: which directions of public features neighbours agree in (docs/proofs/edge-moments.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from torch import Tensor

from gcon.errors import InputError
from gcon.graphs.edges import EdgeList
from gcon.statistics.blocks import neighbour_sum_blocks
from gcon.statistics.rows import check_nodes, checked_rows, largest_column_sum, longest_rows
from gcon.statistics.statistic import Statistic

_SMALLEST_PRODUCT = 1e-160  # of the two longest rows; less would approach the end of float64


@final
class EdgeMoments(Statistic):
    """The symmetric d x d matrix F' A F, the sum over edges {u, v} of f_u f_v' + f_v f_u'.

    A constant column of F has the entry constant^2 * 2|E|: a count of edges as part of the moments.

    Args:
        rows: F, n x d: public, or computed from what was released before.

    Example:
        >>> import torch
        >>> from gcon.graphs.edges import public_edges
        >>> path = public_edges(torch.tensor([[0, 1], [1, 2]]), 3)
        >>> EdgeMoments(torch.ones(3, 1)).of(path)
        tensor([[4.]], dtype=torch.float64)

    Privacy:
        One edge moves it by sqrt(2 |f_u|^2 |f_v|^2 + 2 (f_u' f_v)^2) <= 2 |f_u| |f_v|, at most twice the product of the
        lengths of the two longest rows: attained if these are parallel.
    """

    def __init__(self, rows: Tensor) -> None:
        self._rows = checked_rows("rows", rows)
        first, second = longest_rows(self._rows)
        if second > 0 and not first * second >= _SMALLEST_PRODUCT:
            raise InputError(
                "rows",
                rule=f"must hold two rows whose lengths have a product of at least {_SMALLEST_PRODUCT:g}, or one row only",
                got="a smaller product",
                fix="Scale the rows, or set tiny ones to 0.",
            )
        self._sensitivity = 2 * first * second
        pairs = len(self._rows) * (len(self._rows) - 1)
        self._largest_value = min(largest_column_sum(self._rows) ** 2, pairs * first * second)

    @property
    def name(self) -> str:
        """What it is."""
        return "edge moments"

    @property
    def sensitivity(self) -> float:
        """Twice the product of the lengths of the two longest rows."""
        return self._sensitivity

    @property
    def largest_value(self) -> float:
        """The square of the largest column sum; at most n (n - 1) products of the two longest rows."""
        return self._largest_value

    @property
    def symmetric(self) -> bool:
        """The moments are symmetric."""
        return True

    def public_record(self) -> Mapping[str, object]:
        """The number of columns."""
        return {"columns": self._rows.shape[1]}

    def of(self, edges: EdgeList) -> Tensor:
        """F' A F, one pass over the edges; memory n x d at most."""
        check_nodes(edges, self._rows)
        moments = self._rows.new_zeros(self._rows.shape[1], self._rows.shape[1])
        for nodes, sums in neighbour_sum_blocks(edges, self._rows):
            moments.addmm_(self._rows[nodes].T, sums)
        return (moments + moments.T) / 2  # exactly symmetric in spite of rounding
