"""The verifier's own arithmetic: sixty digits, fractions, and nothing that the noise was computed with.

Floats are taken as the exact numbers that they are. What is a condition of the promise is compared on the private side,
with `ROUNDING` for the last digits of float64; `agrees` is for numbers that must be those of the plan, neither more nor less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from mpmath.ctx_mp import MPContext
from torch import Tensor

from gcon.verify.steps import UnfitError

digits = MPContext()
digits.dps = 60

ROUNDING = digits.mpf(10) ** -12  # relative; what the last digits of float64 may do to a sum of a plan
_MARGIN = digits.mpf(10) ** -30  # relative; far more than the rounding of sixty digits


def finite(record: Any, name: str, *, least: float = 0.0, above: bool = True) -> Any:
    """A number of a record with sixty digits; `UnfitError` if it is missing, no number, or out of range."""
    value = record.get(name) if isinstance(record, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UnfitError(f"'{name}' must be a number")
    if isinstance(value, float) and not math.isfinite(value):
        raise UnfitError(f"'{name}' must be finite")
    if value < least or (above and value == least):
        raise UnfitError(f"'{name}' must be {'above' if above else 'at least'} {least:g}")
    return digits.mpf(value)


def whole(record: Any, name: str) -> int:
    """A whole number from 1; `UnfitError` if it is none."""
    value = record.get(name) if isinstance(record, dict) else None
    if type(value) is not int or value < 1:
        raise UnfitError(f"'{name}' must be a whole number from 1")
    return value


def agrees(stated: Any, computed: Any, relative: float = 1e-9) -> bool:
    """Whether a stated number is the computed one, up to a relative difference."""
    return bool(abs(stated - computed) <= relative * abs(computed))


def gaussian_delta(epsilon: Any, distance: Any) -> Any:
    """Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu), a little more: the smallest delta of a Gaussian release.

    Example:
        >>> print(digits.nstr(gaussian_delta(1, 0.268051), 3))
        1.0e-5
    """
    half, slope = distance / 2, epsilon / distance
    first = digits.ncdf(half - slope)
    return first - digits.exp(epsilon) * digits.ncdf(-half - slope) + _MARGIN * first


def mixed_delta(epsilon: Any, distance: Any, rates: Sequence[Any]) -> Any:
    """The smallest delta of Gaussian releases at this distance together with randomised responses, a little more.

    A response of rate a tells the truth e^a times as often as not. Every row of answers has one probability if the edge is
    there and another if it is not; beside it lie two unit Gaussians at the distance mu. Added up over all 2^k rows is how much
    the first world exceeds e^eps times the second, where it does: from the place on at which both are equally likely.

    Args:
        epsilon: of everything together.
        distance: above 0.
        rates: one per response.

    Example:
        >>> print(digits.nstr(mixed_delta(digits.mpf(1), digits.mpf("0.05"), [digits.mpf("0.4")] * 2), 12))
        1.41479822976e-7
    """
    factor, worlds = digits.exp(epsilon), [(1 / (1 + digits.exp(-rate)), 1 / (1 + digits.exp(rate))) for rate in rates]
    excess = size = digits.mpf(0)
    for row in product((0, 1), repeat=len(rates)):
        there = digits.fprod(world[answer] for world, answer in zip(worlds, row, strict=True))
        absent = digits.fprod(world[1 - answer] for world, answer in zip(worlds, row, strict=True))
        place = digits.log(factor * absent / there) / distance + distance / 2  # of the first Gaussian's mean at mu
        first = there * digits.ncdf(distance - place)
        excess += first - factor * absent * digits.ncdf(-place)
        size += first
    return excess + _MARGIN * size


def geometric_deviation(rate: Any) -> Any:
    """The standard deviation of two-sided geometric noise, sqrt(2 q)/(1 - q) with q = e^-rate.

    Example:
        >>> print(digits.nstr(geometric_deviation(digits.log(2)), 6))
        2.0
    """
    decay = digits.exp(-rate)
    return digits.sqrt(2 * decay) / (1 - decay)


def erlang_tail(order: int, place: Any) -> Any:
    """The probability that a sum of `order` exponential numbers exceeds this place: e^-x sum of x^k/k! below the order.

    Example:
        >>> print(digits.nstr(erlang_tail(1, digits.log(4)), 6))
        0.25
    """
    if place <= 0:
        return digits.mpf(1)
    term = total = digits.exp(-place)
    for count in range(1, order):
        term = term * place / count
        total += term
    return total * (1 + _MARGIN)


def erlang_quantile(order: int, tail: Any) -> Any:
    """A place that is exceeded with at most this probability, and hardly more than the smallest one."""
    low, high = digits.mpf(0), digits.mpf(order + 1)
    while erlang_tail(order, high) > tail:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if erlang_tail(order, middle) > tail else (low, middle)
    return high


def lattice_of(scale: Any) -> float:
    """The largest power of two that is at most scale/4096; one half of it where the last digits of the scale decide.

    Example:
        >>> lattice_of(8191)
        1.0
    """
    return math.ldexp(1.0, int(digits.floor(digits.log(scale * (1 - ROUNDING) / 4096, 2))))


def is_lattice_of(spacing: Any, scale: Any) -> bool:
    """Whether a stated spacing is the largest power of two that is at most scale/4096, up to last digits."""
    exact = float(spacing)
    power = exact > 0 and math.frexp(exact)[0] == 0.5
    return power and bool(4096 * spacing <= scale * (1 + ROUNDING) and 8192 * spacing > scale * (1 - ROUNDING))


def on_lattice(values: Tensor, spacing: float) -> bool:
    """Whether every number is a multiple of the spacing, a power of two: division by it does not round."""
    with np.errstate(over="ignore", invalid="ignore"):
        multiples = values.numpy() / spacing
        return bool(np.isfinite(multiples).all() and (multiples == np.rint(multiples)).all())


def shown(number: Any) -> str:
    """For people: eight digits; also of numbers that are too small for a float."""
    near = float(number)
    return f"{near:.8g}" if near or not number else str(digits.nstr(number, 8))
