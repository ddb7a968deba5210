"""The exact privacy curve of Gaussian releases together with randomised responses (docs/proofs/neighbour-counts.md, 2).

A randomised response of rate a has the privacy loss a with probability 1/(1 + e^-a), and -a otherwise. A noisy count that one
edge changes by 1 is one of rate a; every mechanism of pure epsilon is dominated by one of rate epsilon. With Gaussian releases
of distance mu before them, delta(eps) is the mean of G(eps - loss) over their total loss, G being the Gaussian's own curve.

Computed with 50 digits: differences of nearly equal numbers then lose nothing that float64 could show.

For several edges that change together (docs/proofs/several-edges.md): k edges move Gaussian releases k times as far. In a table
of counts, a node with m of these edges has counts that change by m in all: a response of m times the rate. How the edges lie is
not known, so the worst of all ways counts. A response of rate a + b is worse than two of rates a and b: so of all degrees that k
edges can have, only those count that are no splitting of others. There are few of them; a test finds them again.
"""

from __future__ import annotations

import math
from collections import Counter
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

Degrees = tuple[int, ...]  # largest first

_LISTS = """
    11
    211
    3111 222
    41111 3221 2222
    511111 42211 3322 22222
    6111111 522111 43221 42222 3333 33222
    71111111 6221111 532211 522221 44222 43331 43322 33332
    811111111 72211111 6322111 6222211 542221 533311 533221 532222 44332 442222 43333
    9111111111 822111111 73221111 72222111 6422211 6333111 6332211 6322221 6222222 552222 543321 543222 533331
    533322 44433 444222 433332 333333
    a1111111111 9221111111 832211111 822221111 74222111 73331111 73322111 73222211 72222221 6522221 6433211 6432221
    6422222 6333311 6333221 6332222 553322 5522222 544331 544322 543332 533333 44444 444332 443333
"""  # one digit per node, a for 10

_degrees = [tuple(int(digit, 16) for digit in word) for word in _LISTS.split()]
WORST_DEGREES: dict[int, tuple[Degrees, ...]] = {
    edges: tuple(degrees for degrees in _degrees if sum(degrees) == 2 * edges) for edges in range(1, 11)
}
"""The degrees of simple graphs with so many edges that are no splitting of others; the star's come first."""


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


def responses(
    answer_epsilon: float, edges: int, *, rate: float = 0.0, rounds: int = 0, degrees: Degrees = ()
) -> Responses:
    """Of so many tables of counts, where the nodes have these degrees among the changed edges, and of the count of answers.

    That one draws its noise for the decimal that epsilon prints as, which may be larger than the float.
    """
    exact = Fraction(rate)
    counts = [(degree * exact, number * rounds) for degree, number in Counter(degrees).items()]
    return [*counts, (Fraction(math.nextafter(answer_epsilon, math.inf)) * edges, 1)]


def largest_count_rate(
    epsilon: float, delta: float, *, first: float, rounds: int, answer_epsilon: float, edges: int
) -> float:
    """The largest rate of so many tables of counts after Gaussian releases of this distance; 0 if there is no room.

    Found for edges among few nodes, which are mostly the worst; if others cost more at that rate, for those, and so on.
    """
    every = WORST_DEGREES[edges]

    def cost(rate: float, degrees: Degrees) -> float:
        beside = responses(answer_epsilon, edges, rate=rate, rounds=rounds, degrees=degrees)
        return mixed_delta(epsilon, edges * first, beside)

    worst = min(every, key=lambda degrees: (len(degrees), degrees[0]))
    while True:
        rate = largest(lambda rate, degrees=worst: cost(rate, degrees) <= delta)  # type: ignore[misc]
        worst = max(every, key=lambda degrees: cost(rate, degrees))
        if rate == 0 or cost(rate, worst) <= delta:
            return rate
