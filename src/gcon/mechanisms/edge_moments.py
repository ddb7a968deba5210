"""Edge moments, F' A F: which directions of public features neighbours agree in (docs/proofs/edge-moments.md)."""

from __future__ import annotations

from typing import final

from torch import Tensor

from gcon.edges.kernels.multiply import kernel_for
from gcon.edges.source import Edges, HoldsRows, RowBlock
from gcon.errors import InputError, PlanMismatchError
from gcon.mechanisms.statistic import (
    LEFT_BITS,
    MOST_NODES,
    Precise,
    Statistic,
    check_rows,
    exact_products,
    exact_total,
    left_numbers,
    longest_rows,
)
from gcon.nodes import row_slices
from gcon.privacy.plan import proven

# Of an entry: two float64 numbers hold it up to 2^-106, and products of float64 numbers are below.
_LAST_ROUNDING = 2.0**-105


@proven("edge-moments")
@final
class EdgeMoments(HoldsRows, Statistic):
    """The symmetric d x d matrix F' A F, the sum over edges {u, v} of f_u f_v' + f_v f_u'.

    The rows are rounded to fixed point, 22 bits per entry, and summed as whole numbers: exactly, in any order.
    A constant column of F has the entry constant^2 * 2|E|: a count of edges as part of the moments.

    Args:
        rows: F, n x d: public, or computed from what was released before.
        device: where to multiply.

    Example:
        >>> import torch
        >>> from gcon.edges.edge_list import public_edges
        >>> path = public_edges(torch.tensor([[0, 1], [1, 2]]), 3)
        >>> EdgeMoments(torch.ones(3, 1)).of(path)
        tensor([[4.]], dtype=torch.float64)

    Privacy:
        One edge moves it by sqrt(2 |f_u|^2 |f_v|^2 + 2 (f_u' f_v)^2) <= 2 |f_u| |f_v|, at most twice the product of the
        lengths of the two longest rows: attained if these are parallel. The last step rounds: the exact sums, whole numbers
        of any size, become two float64 numbers each.
    """

    name, symmetric, row_fields = "edge moments", True, ("_whole",)

    def __init__(self, rows: Tensor, *, device: str = "cpu") -> None:
        given = rows.detach()
        check_rows("rows", given)
        if len(given) > MOST_NODES:
            raise InputError(
                "rows",
                rule=f"must be at most {MOST_NODES:,}: sums over so many nodes are exact",
                got=f"{len(given):,} rows",
                fix="Take a sample of the nodes.",
            )
        self._device = device
        self._whole, self._units = left_numbers(given)
        self.settings = {"columns": self._whole.shape[1], "bits": LEFT_BITS}  # bits: of an entry in fixed point
        first, second = longest_rows(self._whole, self._units)
        if second == 0 and longest_rows(given)[1] > 0:
            raise InputError(
                "rows",
                rule="must hold two rows of comparable length, or one row only",
                got="rows that vanish in fixed point beside the longest",
                fix="Scale the rows, or set tiny ones to 0.",
            )
        # Of the size of the whole matrix either bound holds on all graphs.
        totals = (self._whole[part].abs().sum(dim=0) for part in row_slices(len(given)))  # none without a row
        sums, pairs = sum(totals) * self._units, len(given) * (len(given) - 1)
        self.rounding = _LAST_ROUNDING * min(float(sums @ sums), pairs * first * second)
        self.sensitivity = 2 * first * second + 2 * self.rounding

    def precisely(self, edges: Edges) -> Precise:
        """F' A F, one pass over the edges."""
        if edges.num_nodes != len(self._whole):  # public, both of them
            raise PlanMismatchError("A statistic needs one row for every node of the graph.")
        return exact_total(edges.map_blocks(_moments, self._whole.to(self._device)), self._units, self._units)


def _moments(block: RowBlock, whole: Tensor) -> list[Tensor]:
    """What the nodes of a block add to F' A F."""
    bits = (
        LEFT_BITS + len(whole).bit_length()
    )  # of a sum over neighbours, of which nobody has as many as there are nodes
    return exact_products(whole[block.nodes], kernel_for(whole).neighbour_totals(block, whole), right_bits=bits)
