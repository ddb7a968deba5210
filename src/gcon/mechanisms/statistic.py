"""A statistic: a named matrix computed from private edges, with the proven bound on what one edge can change in it.

A statistic alone releases nothing: `gcon.mechanisms.gaussian_release` adds the noise that its sensitivity asks for, and an
account (`gcon.privacy.account`) pays for it. The public rows that it is made of are checked and measured here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from gcon.edges.source import Edges
from gcon.errors import InputError, PlanMismatchError
from gcon.mechanisms.exact_products import Precise
from gcon.nodes import row_slices

ALLOWANCE = 1e-9  # relative; covers the rounding of lengths
NODE_BITS = 28
MOST_NODES = 2**NODE_BITS  # a sum of so many entries of 22 bits has 50
_SMALLEST, _LARGEST = 1e-50, 1e50  # squares and products of entries in between stay far from the ends of float64
_SHORT = 1e-100  # rows that are shorter, relative to the longest, are measured at their own scale


class Statistic(ABC):
    """One private matrix.

    The public parts (features, targets, settings) are given at construction, copied, and fixed from then on; so is the
    sensitivity. The edges are an argument of `of` alone.

    Attributes:
        name: what it is, for ledger and receipt.
        sensitivity: the Frobenius norm of the change that one undirected edge can cause in what `precisely` returns, at most.
            From public numbers alone: a bound for real numbers, plus `rounding` on both sides. Exactly 0 only if no edge is
            read or rows are identically zero, never because a product of small numbers vanished.
        rounding: the Frobenius distance of what `precisely` returns from the real-number value, at most, whatever the edges
            are. From public numbers alone (docs/proofs/exact-noise.md, 3). 0: arithmetic is exact, in any order.
        settings: public numbers and words, for ledger and receipt.
        symmetric: whether the matrix is symmetric; its noise is then too.
        edge_free: true where an entry cannot depend on any edge (broadcasts to the value); None: nowhere. It gets no noise.

    Privacy:
        Only classes registered with `@proven` may be released: a sensitivity without a proof is refused.
    """

    name: str
    sensitivity: float
    rounding: float
    settings: Mapping[str, object]
    symmetric: bool = False
    edge_free: Tensor | None = None

    @abstractmethod
    def precisely(self, edges: Edges) -> Precise:
        """The value with all its digits. Called inside a gate only: the result is as private as the edges."""

    def of(self, edges: Edges) -> Tensor:
        """The value, float64: as private as the edges."""
        return self.precisely(edges).value


def check_rows(parameter: str, rows: Tensor) -> None:
    """Refuse what is not an n x d matrix of finite numbers of sensible size."""
    if rows.dim() != 2 or rows.is_complex():
        raise InputError(
            parameter,
            rule="must be a real matrix, one row per node",
            got="another shape or type",
            fix="Pass n x d numbers.",
        )
    # In float64 before the sign is changed: the smallest number of a short integer type has no opposite there.
    size = max(float(rows.max()), -float(rows.min())) if rows.numel() else 0.0
    if not (size == 0 or _SMALLEST <= size <= _LARGEST):
        raise InputError(
            parameter,
            rule=f"must hold finite numbers, the largest between {_SMALLEST:g} and {_LARGEST:g}",
            got="others",
            fix="Replace missing values, and scale the rows.",
        )


def longest_rows(rows: Tensor, units: Tensor | None = None) -> tuple[float, float]:
    """The lengths of the longest and the second longest row, never rounded down; 0 for rows of zeros, or without a row.

    An edge joins two *different* nodes, so products of two rows are bounded by these two lengths. A length of 0 means
    that no edge matters: squares of a short row beside a long one must not vanish.

    Args:
        rows: one per node, as they are or in fixed point.
        units: of the columns, where rows are in fixed point.

    Example:
        >>> longest_rows(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
        (5.000000005, 0.0)
    """
    units = torch.ones((), dtype=torch.float64) if units is None else units

    def parts() -> Iterator[Tensor]:  # float64 numbers of all rows may be too many
        return (rows[part].to("cpu", torch.float64) * units for part in row_slices(len(rows)))

    size = max((float(part.abs().amax()) for part in parts() if part.numel()), default=0.0)
    if size == 0:
        return 0.0, 0.0
    longest = []
    for part in parts():
        largest = part.abs().amax(dim=1)
        scales = torch.where((largest > 0) & (largest < _SHORT * size), largest, size)
        lengths = torch.linalg.vector_norm(part / scales[:, None], dim=1) * scales
        longest += [float(length) * (1 + ALLOWANCE) for length in lengths.topk(min(2, len(lengths))).values]
    first, second = sorted([*longest, 0.0], reverse=True)[:2]
    return first, second


def check_nodes(edges: Edges, rows: Tensor) -> None:
    """Refuse a graph on another node set (the number of nodes is public)."""
    if edges.num_nodes != len(rows):
        raise PlanMismatchError("A statistic needs one row for every node of the graph.")
