"""A statistic: a named matrix computed from private edges, with the proven bound on what one edge can change in it.

A statistic alone releases nothing: `gcon.mechanisms.gaussian_release` adds the noise that its sensitivity asks for, and an
account (`gcon.privacy.account`) pays for it. The public rows that it is made of are checked and measured here.

So are sums of products of whole numbers, L' R over all nodes, without rounding (docs/proofs/fixed-point-walks.md, 4). The right
numbers are cut into pieces so short that float64 holds every partial sum of a product with them; those products run on any
device and in any order. Their sums are kept as whole numbers of any size.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch
from torch import Tensor

from gcon.edges.fixed_point import WholeRows, column_units
from gcon.edges.source import Edges
from gcon.errors import InputError
from gcon.nodes import row_slices

ALLOWANCE = 1e-9  # relative; covers the rounding of lengths
NODE_BITS = 28
MOST_NODES = 2**NODE_BITS  # a sum of so many entries of 22 bits has 50
_SMALLEST, _LARGEST = 1e-50, 1e50  # squares and products of entries in between stay far from the ends of float64
_SHORT = 1e-100  # rows that are shorter, relative to the longest, are measured at their own scale
LEFT_BITS = 22  # of the left numbers of products
_ROW_BITS = 10  # so many rows are multiplied at a time: with more, pieces are shorter, and more of them
_PIECE_BITS = 52 - LEFT_BITS - _ROW_BITS
_STRETCHES = 2**7  # at a time: each makes a product of its own
ROWS_AT_ONCE = 2**20
_LOW_BITS = 32
_BEFORE_OVERFLOW = 2**10  # sums of at most 2^51 that whole numbers of 64 bits hold for certain


@dataclass(frozen=True, eq=False)
class Precise:
    """A matrix of numbers with more digits than float64 has: value + rest, value being the nearest float64."""

    value: Tensor
    rest: Tensor


class Statistic(ABC):
    """One private matrix.

    The public parts (features, targets, settings) are given at construction, copied, and fixed from then on; so is the
    sensitivity. The edges are an argument of `precisely` and `of` alone.

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


def left_numbers(rows: Tensor) -> WholeRows:
    """Every column as whole multiples of its unit, up to 2^22 (int32), and the units: powers of two.

    Columns so much smaller than the largest that products of their units would approach the end of float64 vanish.

    Example:
        >>> left_numbers(torch.tensor([[1.0], [0.25]], dtype=torch.float64)).numbers
        tensor([[2097152],
                [ 524288]], dtype=torch.int32)
    """
    units, whole = column_units(rows, LEFT_BITS), torch.empty(rows.shape, dtype=torch.int32)
    for part in row_slices(len(rows)):
        whole[part] = (rows[part].to("cpu", torch.float64) / units).round_().to(torch.int32)
    return WholeRows(whole, units)


def exact_products(left: Tensor, right: Tensor, *, right_bits: int) -> list[Tensor]:
    """L' R in pieces: one int64 matrix a piece of R, the lowest first; piece p counts 2^(20 p).

    Args:
        left: r x a whole numbers up to 2^22, any type; at most 2^20 rows.
        right: r x b whole numbers up to 2^right_bits, any type.
        right_bits: at most 53, as float64 holds; public, so that the number of pieces tells nothing.
    """
    if len(left) > ROWS_AT_ONCE or right_bits > 53:
        raise ValueError("Products are exact for at most 2^20 rows at a time, of at most 53 bits.")
    num_pieces = -(-(right_bits + 1) // _PIECE_BITS)  # the last is then at most 2^19, like what the others leave
    one, rest = left.to(torch.float64), right.to(torch.float64)
    # Short stretches of rows are multiplied in float64, where nothing rounds, and added as whole numbers.
    stretch = 2**_ROW_BITS
    whole = len(left) // stretch * stretch
    ones = one[:whole].reshape(-1, stretch, one.shape[1]).transpose(1, 2)
    products = []
    for place in range(num_pieces):
        piece = rest
        if place < num_pieces - 1:
            rest = (piece * 2.0**-_PIECE_BITS).round_()
            piece = piece.sub(rest, alpha=2.0**_PIECE_BITS)
        total = (one[whole:].T @ piece[whole:]).to(torch.int64)
        stretches = piece[:whole].reshape(-1, stretch, piece.shape[1])
        for some in zip(ones.split(_STRETCHES), stretches.split(_STRETCHES), strict=True):
            total += torch.bmm(*some).to(torch.int64).sum(dim=0)
        products.append(total.cpu())
    return products


def exact_total(
    products: Iterable[list[Tensor]], left_units: Tensor, right_units: Tensor, *, parts: int = 1
) -> Precise:
    """The sum of many such products times the units of both sides, over a number of parts: both numbers rounded to nearest.

    Args:
        products: of at most 2^20 rows each, as `exact_products` gives them.
        left_units: of the left columns, powers of two.
        right_units: of the right columns.
        parts: what the sum is divided by.
    """
    shape, blocks = (len(left_units), len(right_units)), iter(products)
    total = np.zeros(shape, dtype=object)  # of Python's whole numbers
    while some := list(itertools.islice(blocks, _BEFORE_OVERFLOW // (ROWS_AT_ONCE >> _ROW_BITS))):
        for place, pieces in enumerate(zip(*some, strict=True)):
            total = total + (torch.stack(pieces).sum(dim=0).numpy().astype(object) << (_PIECE_BITS * place))
    high = total >> _LOW_BITS
    if parts == 1 and abs(high).max(initial=0) < 2**53:  # all but sums over more than 2^41 edges; far faster
        low = (total - (high << _LOW_BITS)).astype(np.float64)
        most = high.astype(np.float64) * 2.0**_LOW_BITS
        value = most + low  # rounds once, and float64 holds what is missing: |most| >= low, or most is 0
        rest = low - (value - most)
    else:
        value = np.array([number / parts for number in total.flat], dtype=np.float64).reshape(shape)
        pairs = zip(total.flat, value.flat, strict=True)
        missing = [float(Fraction(number, parts) - Fraction(near)) for number, near in pairs]
        rest = np.array(missing, dtype=np.float64).reshape(shape)
    units = left_units[:, None] * right_units
    return Precise(torch.from_numpy(value) * units, torch.from_numpy(rest) * units)
