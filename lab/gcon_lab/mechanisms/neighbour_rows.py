"""Sums of public rows over every node's neighbours, A B: one noisy row per node (docs/proofs/edge-moments.md, 3)."""

from __future__ import annotations

import math
from typing import final

import torch
from torch import Tensor

from gcon.edges.kernels import multiply
from gcon.edges.source import Edges, RowBlock
from gcon.mechanisms.statistic import Precise, Statistic, longest_rows
from gcon.privacy.plan import proven
from gcon_lab.mechanisms.checked_rows import check_nodes, checked_rows

_BITS = 52  # of a column's sum, in fixed point
_SMALLEST_COLUMN = 200  # its sum is at least 2^-200 of the largest, or counts as that


@proven("edge-moments")
@final
class NeighbourRows(Statistic):
    """The n x d matrix A B; row i is the sum of the rows of i's neighbours, exactly: the rows are rounded to fixed point.

    Args:
        rows: B, n x d: public, or computed from what was released before.
        device: where to add.

    Example:
        >>> round(NeighbourRows(torch.eye(3)).sensitivity, 6)
        1.414214

    Privacy:
        One edge {u, v} moves row u by b_v and row v by b_u, together sqrt(|b_u|^2 + |b_v|^2): at most the root of the sum
        of squares of the two longest rows, attained by an edge between them. Sums of fixed-point numbers do not round.
    """

    name, rounding = "neighbour rows", 0.0

    def __init__(self, rows: Tensor, *, device: str = "cpu") -> None:
        whole, self._units = fixed_point(checked_rows("rows", rows), _BITS)
        self._whole, self._device = whole.to(torch.int64).contiguous(), device
        self.settings = {"columns": whole.shape[1], "bits": _BITS}  # bits: of sums in fixed point
        # A single node has no edge: nothing can change.
        self.sensitivity = math.hypot(*longest_rows(whole * self._units)) * (1 + 1e-15) if len(whole) > 1 else 0.0

    def precisely(self, edges: Edges) -> Precise:
        """A B, exactly."""
        check_nodes(edges, self._whole)
        whole = self._whole.to(self._device)
        sums = torch.empty(whole.shape, dtype=torch.float64, device=whole.device)
        edges.fill(sums, _sums, whole)
        return in_float64(sums.cpu() * self._units)


def _sums(block: RowBlock, whole: Tensor, *, out: Tensor) -> None:
    out.copy_(multiply.kernel_for(whole).neighbour_totals(block, whole))


def fixed_point(rows: Tensor, bits: int) -> tuple[Tensor, Tensor]:
    """Every column as whole multiples of its unit, and the units: powers of two for which column sums are below 2^bits.

    Sums of such whole numbers, with weights 0 and 1 in any order, are whole numbers; with at most 52 bits float64 holds
    them all, and nothing is rounded. Rounding to the nearest unit can lengthen a column by half a unit per row.

    Args:
        rows: n x d, checked.
        bits: at most 52.

    Example:
        >>> fixed_point(torch.tensor([[1.0], [0.3]], dtype=torch.float64), 4)
        (tensor([[8.],
                [2.]], dtype=torch.float64), tensor([0.1250], dtype=torch.float64))
    """
    if not rows.numel():
        return rows, rows.new_ones(rows.shape[1])
    _, exponents = torch.frexp(rows.abs().sum(dim=0))  # sums are below 2^exponent
    # Columns that are so much smaller than the largest vanish: products of their units must stay far from the end of float64.
    exponents = exponents.clamp(min=int(exponents.max()) - _SMALLEST_COLUMN)
    units = torch.ldexp(torch.ones_like(exponents, dtype=torch.float64), exponents - bits)
    return (rows / units).round_(), units


def in_float64(value: Tensor) -> Precise:
    """A matrix that float64 holds as it is."""
    return Precise(value, torch.zeros((), dtype=torch.float64).expand(value.shape))
