"""Walks in whole numbers: the same bits on every device and in every order (docs/proofs/fixed-point-walks.md).

A column is stored as whole multiples of its unit, a power of two for which entries stay below 2^49. Sums over neighbours are sums
of whole numbers: exact in any order. A step rounds once per row, by the same float64 operations everywhere:

    k = neighbours,  w = min(1/(k + self_weight), clip),  own = 1 - k w,  keep = 1 - restart
    next = rint(((w keep) s + (own keep) x) + restart o)

with s the sum over neighbours, x the node's own entry and o where the walk restarts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from gcon.errors import InputError

ENTRY_BITS = 49  # of a feature
STATE_BITS = 50  # of a walk: averages of features, and what rounding adds to them in thousands of steps
STEP_ERROR = 4  # units by which an entry can be off after one step on exact entries, at most: twice what is proven
CHUNK = 2**12  # entries below 2^50 whose sum fits into 63 bits
_ROWS_AT_ONCE = 2**20
HIGH = 2.0**32  # sums of more entries are kept in two parts
MOST_NODES = 2**32  # 2^20 chunks: the sums of both parts are then below 2^53, so that float64 holds them
# Columns below 2^-200 of the largest count as that: products of units stay far from the end of float64.
_SMALLEST_COLUMN = 200
_SMALLEST_EXPONENT = -900  # the same for all columns together


@dataclass(frozen=True)
class Walk:
    """How a step mixes: public numbers.

    Attributes:
        restart: weight of the origin.
        clip: the largest weight of a neighbour.
        self_weight: a node's own weight, where a neighbour has 1; at least 1.
    """

    restart: float = 0.0
    clip: float = 0.5
    self_weight: float = 1.0

    @property
    def keep(self) -> float:
        return 1 - self.restart


class WholeRows(NamedTuple):
    """A matrix in fixed point: whole numbers, and the unit of every column (a power of two, float64)."""

    numbers: Tensor
    units: Tensor


def column_units(rows: Tensor, bits: int = ENTRY_BITS) -> Tensor:
    """The unit of every column: the power of two for which its entries are below 2^bits units; float64, on the processor.

    Once they are rounded they are at most that.

    Raises:
        InputError: entries that are not finite: no whole number stands for them.

    Example:
        >>> column_units(torch.tensor([[0.0, -3.0], [0.0, 4.0]]), 3)[1]
        tensor(1., dtype=torch.float64)

    Privacy:
        Reads public rows.
    """
    if not rows.numel():
        return torch.ones(rows.shape[1], dtype=torch.float64)
    # In float64 before the sign is changed: the smallest number of a short integer type has no opposite there.
    most, least = (ends.to("cpu", torch.float64) for ends in (rows.amax(dim=0), rows.amin(dim=0)))
    largest = torch.maximum(most, -least)
    if not bool(largest.isfinite().all()):
        raise InputError("features", rule="must hold finite numbers", got="others", fix="Replace missing values.")
    _, exponents = torch.frexp(largest)  # entries are below 2^exponent
    top = int(exponents[largest > 0].max()) if bool((largest > 0).any()) else 0
    smallest = max(top - _SMALLEST_COLUMN, _SMALLEST_EXPONENT)
    # Columns of zeros count as the smallest: rounding costs them nothing.
    exponents = torch.where(largest > 0, exponents, smallest).clamp(min=smallest)
    return torch.ldexp(torch.ones_like(largest), exponents - bits)


def whole_numbers(features: Tensor, units: Tensor) -> Tensor:
    """Entries as multiples of their column's unit, int64; in little memory beside the result."""
    whole = torch.empty(features.shape, dtype=torch.int64, device=features.device)
    units = units.to(features.device)
    for rows in _row_blocks(len(features)):
        whole[rows] = (features[rows].to(torch.float64) / units).round_().to(torch.int64)
    return whole


def real_numbers(state: Tensor, units: Tensor) -> Tensor:
    """Multiples of units as float64: exact, they have at most 50 bits."""
    return state.to(torch.float64).mul_(units.to(state.device))


def real_numbers_in_place(state: Tensor, units: Tensor) -> Tensor:
    """The same in the memory of the whole numbers (int64), which are gone."""
    real, units = state.view(torch.float64), units.to(state.device)
    for rows in _row_blocks(len(state)):
        real[rows] = state[rows].to(torch.float64).mul_(units)
    return real


def _row_blocks(count: int) -> Iterator[slice]:
    return (slice(start, start + _ROWS_AT_ONCE) for start in range(0, count, _ROWS_AT_ONCE))
