"""The exact privacy curve of Gaussian releases together with randomised responses (docs/proofs/neighbour-counts.md, 2).

A randomised response of rate a has the privacy loss a with probability 1/(1 + e^-a), and -a otherwise. A noisy count that one
edge changes by 1 is one of rate a; every mechanism of pure epsilon is dominated by one of rate epsilon. With Gaussian releases
of distance mu before them, delta(eps) is the mean of G(eps - loss) over their total loss, G being the Gaussian's own curve.

Computed with 50 digits: differences of nearly equal numbers then lose nothing that float64 could show.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from mpmath.ctx_mp import MPContext
from numpy.typing import NDArray
from scipy.special import log_ndtr

# Rates, and how many responses have each. Multiples of one rate are exact as fractions: then equal losses are one.
Responses = Sequence[tuple[float | Fraction, int]]
_digits = MPContext()
_digits.dps = 50
LEAST, _MOST = 1e-12, 1e3  # of distances and rates; for smaller ones 50 digits might not be enough


def mixed_delta(epsilon: float, distance: float, responses: Responses = ()) -> float:
    """The smallest delta at this epsilon, rounded up.

    Args:
        epsilon: at least 0.
        distance: mu of all Gaussian releases together; 0 for none.
        responses: the randomised responses beside them.

    Example:
        >>> round(mixed_delta(1.0, 0.05, [(0.4, 2)]), 12)
        1.4148e-07
    """
    wide, far = _digits.mpf(epsilon), _digits.mpf(distance)
    losses, _, _ = _losses(tuple(responses))
    delta = sum(chance * _gaussian(wide - loss, far) for loss, chance in losses.items())
    return min(1.0, math.nextafter(float(delta), math.inf))


@lru_cache(maxsize=512)
def _losses(responses: tuple[tuple[float | Fraction, int], ...]) -> tuple[dict[Any, Any], NDArray[Any], NDArray[Any]]:
    """The total loss of all responses with the chance of each value; and both once more, about the same, in float64."""
    losses = {_digits.mpf(0): _digits.mpf(1)}
    for rate, number in responses:
        # Exactly: a float and small multiples of one have far fewer digits.
        wide = _digits.mpf(rate.numerator) / rate.denominator if isinstance(rate, Fraction) else _digits.mpf(rate)
        up = 1 / (1 + _digits.exp(-wide))
        steps = [
            (math.comb(number, ups) * up**ups * (1 - up) ** (number - ups), 2 * ups - number)
            for ups in range(number + 1)
        ]
        before, losses = losses, {}
        for loss, chance in before.items():
            for other, step in steps:
                total = loss + step * wide
                losses[total] = losses.get(total, 0) + chance * other
    return losses, np.array([float(loss) for loss in losses]), np.array([float(each) for each in losses.values()])


@lru_cache(maxsize=4096)  # of several edges, however they lie, the losses are the same; and plans are checked again
def _gaussian(epsilon: Any, distance: Any) -> Any:
    """Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu), at any real epsilon."""
    if distance == 0:
        return max(_digits.mpf(0), 1 - _digits.exp(epsilon))
    middle = epsilon / distance
    return _digits.ncdf(distance / 2 - middle) - _digits.exp(epsilon) * _digits.ncdf(-distance / 2 - middle)


def nearly_mixed_delta(epsilon: float, distance: float, responses: Responses) -> float:
    """About the same in float64, far sooner: to find a place where the exact one is then asked; never what is promised."""
    _, losses, chances = _losses(tuple(responses))
    rests = epsilon - losses
    first = log_ndtr(distance / 2 - rests / distance)
    gaps = np.minimum(rests + log_ndtr(-distance / 2 - rests / distance) - first, 0.0)
    return float(chances @ (np.exp(first) * -np.expm1(gaps)))


def largest(fits: Callable[[float], bool]) -> float:
    """The largest number that fits, by bisection: the lower end, which fits; private noise errs on that side."""
    low, high = 0.0, _MOST
    while high > LEAST and high - low > 1e-14 * high and low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
