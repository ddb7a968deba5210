"""Edge moments, F' A F: which directions of public features neighbours agree in (docs/proofs/edge-moments.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from torch import Tensor

from gcon.graphs.edges import EdgeList
from gcon.statistics.blocks import neighbour_sum_blocks
from gcon.statistics.rows import check_nodes, checked_rows, longest_rows
from gcon.statistics.statistic import Statistic


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
        self._sensitivity = 2 * first * second

    @property
    def name(self) -> str:
        """What it is."""
        return "edge moments"

    @property
    def sensitivity(self) -> float:
        """Twice the product of the lengths of the two longest rows."""
        return self._sensitivity

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
