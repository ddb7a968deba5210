"""Sums of products of whole numbers, L' R over all nodes, without rounding (docs/proofs/fixed-point-walks.md, 4).

The right numbers are cut into pieces so short that float64 holds every partial sum of a product with them; those products run on
any device and in any order. Their sums are kept as whole numbers of any size.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch
from torch import Tensor

from gcon.edges.fixed_point import WholeRows, units_below
from gcon.nodes import row_slices

LEFT_BITS = 22  # of the left numbers
_ROW_BITS = 13  # so many rows are multiplied at a time
_PIECE_BITS = 52 - LEFT_BITS - _ROW_BITS
ROWS_AT_ONCE = 2**20
_LOW_BITS = 32
_BEFORE_OVERFLOW = 2**10  # sums of at most 2^51 that whole numbers of 64 bits hold for certain


@dataclass(frozen=True, eq=False)
class Precise:
    """A matrix of numbers with more digits than float64 has: value + rest, value being the nearest float64."""

    value: Tensor
    rest: Tensor


def exact_products(left: Tensor, right: Tensor, *, right_bits: int) -> list[Tensor]:
    """L' R in pieces: one int64 matrix a piece of R, the lowest first; piece p counts 2^(17 p).

    Args:
        left: r x a whole numbers up to 2^22, any type; at most 2^20 rows.
        right: r x b whole numbers up to 2^right_bits, any type.
        right_bits: at most 53, as float64 holds; public, so that the number of pieces tells nothing.
    """
    if len(left) > ROWS_AT_ONCE or right_bits > 53:
        raise ValueError("Products are exact for at most 2^20 rows at a time, of at most 53 bits.")
    num_pieces = -(-(right_bits + 1) // _PIECE_BITS)  # the last is then at most 2^16, like what the others leave
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
            piece = piece - rest * 2.0**_PIECE_BITS
        total = torch.bmm(ones, piece[:whole].reshape(-1, stretch, piece.shape[1])).to(torch.int64).sum(dim=0)
        products.append((total + (one[whole:].T @ piece[whole:]).to(torch.int64)).cpu())
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


def left_numbers(rows: Tensor) -> WholeRows:
    """Every column as whole multiples of its unit, up to 2^22 (int32), and the units: powers of two.

    Columns so much smaller than the largest that products of their units would approach the end of float64 vanish.

    Example:
        >>> left_numbers(torch.tensor([[1.0], [0.25]], dtype=torch.float64)).numbers
        tensor([[2097152],
                [ 524288]], dtype=torch.int32)
    """
    units, whole = units_below(rows, LEFT_BITS), torch.empty(rows.shape, dtype=torch.int32)
    for part in row_slices(len(rows)):
        whole[part] = (rows[part].to("cpu", torch.float64) / units).round_().to(torch.int32)
    return WholeRows(whole, units)
