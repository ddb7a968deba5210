"""The exact privacy curve of Gaussian releases together with randomised responses (docs/proofs/neighbour-counts.md, 2).

A randomised response of rate a has the privacy loss a with probability 1/(1 + e^-a), and -a otherwise. A noisy count that one
edge changes by 1 is one of rate a; every mechanism of pure epsilon is dominated by one of rate epsilon. With Gaussian releases
of distance mu before them, delta(eps) is the mean of G(eps - loss) over their total loss, G being the Gaussian's own curve.

Computed with 50 digits: differences of nearly equal numbers then lose nothing that float64 could show.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from mpmath.ctx_mp import MPContext

Responses = Sequence[tuple[float, int]]  # rates, and how many responses have each
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
    return _mixed_delta(epsilon, distance, tuple((rate, number) for rate, number in responses))


@lru_cache(maxsize=4096)  # a plan asks for the same costs whenever it is checked
def _mixed_delta(epsilon: float, distance: float, responses: tuple[tuple[float, int], ...]) -> float:
    losses = [(_digits.mpf(1), _digits.mpf(0))]
    for rate, number in responses:
        wide = _digits.mpf(rate)
        up = 1 / (1 + _digits.exp(-wide))
        steps = [
            (math.comb(number, ups) * up**ups * (1 - up) ** (number - ups), 2 * ups - number)
            for ups in range(number + 1)
        ]
        losses = [(chance * other, loss + step * wide) for chance, loss in losses for other, step in steps]
    delta = sum(chance * _gaussian(_digits.mpf(epsilon) - loss, _digits.mpf(distance)) for chance, loss in losses)
    return min(1.0, math.nextafter(float(delta), math.inf))


def _gaussian(epsilon: Any, distance: Any) -> Any:
    """Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu), at any real epsilon."""
    if distance == 0:
        return max(_digits.mpf(0), 1 - _digits.exp(epsilon))
    middle = epsilon / distance
    return _digits.ncdf(distance / 2 - middle) - _digits.exp(epsilon) * _digits.ncdf(-distance / 2 - middle)


def largest_distance(epsilon: float, delta: float, responses: Responses = ()) -> float:
    """The largest mu of Gaussian releases beside these responses; 0 if they leave no room."""
    return _largest(lambda distance: mixed_delta(epsilon, distance, responses) <= delta)


def largest_rate(epsilon: float, delta: float, distance: float, number: int, others: Responses = ()) -> float:
    """The largest rate of so many equal responses beside Gaussian releases and other responses; 0 if there is no room."""
    return _largest(lambda rate: mixed_delta(epsilon, distance, [(rate, number), *others]) <= delta)


def _largest(fits: Callable[[float], bool]) -> float:
    """By bisection: the lower end, which fits; private noise errs on that side."""
    low, high = 0.0, _MOST
    while high > LEAST and high - low > 1e-14 * high and low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
