"""The exact privacy curves of Gaussian noise: alone (Balle and Wang 2018), and with randomised responses beside it.

A randomised response of rate a has the privacy loss a with probability 1/(1 + e^-a), and -a otherwise. A noisy count that one
edge changes by 1 is one of rate a; every mechanism of pure epsilon is dominated by one of rate epsilon. With Gaussian releases
of distance mu before them, delta(eps) is the mean of G(eps - loss) over their total loss, G being the Gaussian's own curve
(docs/proofs/neighbour-counts.md, 2).

That is computed with 50 digits: differences of nearly equal numbers then lose nothing that float64 could show.

For several edges that change together (docs/proofs/several-edges.md): k edges move Gaussian releases k times as far. In a table
of counts, a node with m of these edges has counts that change by m in all: a response of m times the rate. How the edges lie is
not known, so the worst of all ways counts. A response of rate a + b is worse than two of rates a and b: so of all degrees that k
edges can have, only those count that are no splitting of others. There are few of them; a test finds them again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from mpmath.ctx_mp import MPContext
from numpy.typing import NDArray
from scipy.special import expit, log_ndtr, ndtri

from gcon.errors import InputError

_SMALL_EPSILON, LARGE_EPSILON = (
    0.01,
    700.0,
)  # between them the quantile is exact to far better than the factor 1 + 1e-12
# Rates, and how many responses have each. Multiples of one rate are exact as fractions: then equal losses are one.
Responses = Sequence[tuple[float | Fraction, int]]
_digits = MPContext()
_digits.dps = 50
LEAST, MOST = 1e-12, 1e3  # of distances and rates; for smaller ones 50 digits might not be enough

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


def gaussian_delta(epsilon: float, distance: float, *, logarithm: bool = False) -> float:
    """The smallest delta at this epsilon for two Gaussians of unit variance at this distance.

    delta = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu) with mu the distance (sensitivity over standard deviation),
    evaluated in logarithms.

    Args:
        epsilon: at least 0.
        distance: mu > 0.
        logarithm: give that of delta, which exists long after delta itself is too small for a float.
    """
    if distance <= 0 or epsilon == math.inf:
        found = -math.inf
    elif distance == math.inf:
        found = 0.0
    else:
        found = float(log_ndtr(distance / 2 - epsilon / distance))
        if found != -math.inf:  # else delta is smaller still
            second = epsilon + float(log_ndtr(-distance / 2 - epsilon / distance))
            # The two logarithms are rounded, and so is the sum with epsilon; the allowance keeps the result on the private side.
            gap = min(second - found - 1e-13 * (1 + abs(found)) - 2e-15 * epsilon, -1e-16)
            found = min(0.0, found + math.log(-math.expm1(gap)))
    return found if logarithm else math.exp(found)


def gaussian_multiplier(epsilon: float, delta: float) -> float:
    """The noise multiplier g(epsilon, delta): sigma = g * sensitivity makes a release exactly (epsilon, delta)-DP.

    Bisection on log g; the result is the upper end, so the noise errs on the private side.

    Example:
        >>> round(gaussian_multiplier(1.0, 1e-5), 6)
        3.730632
    """
    low, high = math.log(1e-6), 0.0
    while gaussian_delta(epsilon, math.exp(-high)) > delta:
        high += 10.0
        if high > 700:
            raise InputError("delta", rule="is too small for any noise", got=delta, fix="Use at least 1e-200.")
    for _ in range(200):
        middle = (low + high) / 2
        if gaussian_delta(epsilon, math.exp(-middle)) > delta:
            low = middle
        else:
            high = middle
        if high - low < 1e-15 * max(1.0, abs(high)):
            break
    return math.exp(high)


def gaussian_epsilon(distance: float, delta: float) -> float:
    """The smallest epsilon at this delta for two Gaussians of unit variance at this distance (upper end of bisection).

    Infinite where no float is large enough: for an infinite distance, and for delta 0.

    Example:
        >>> round(gaussian_epsilon(1 / 3.730632, 1e-5), 6)
        1.0
    """
    if distance <= 0:
        return 0.0
    if not distance < math.inf or not delta > 0:
        return math.inf
    if gaussian_delta(0.0, distance) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while gaussian_delta(high, distance) > delta:  # at most 1024 times: then high is infinite, where delta is 0
        low, high = high, 2 * high
    # Ends: every step at least halves `high` or the gap, and neighbouring floats have none between them.
    while high < math.inf and high - low > 1e-12 * high and low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if gaussian_delta(middle, distance) > delta else (low, middle)
    return high


def pure_as_gaussian(epsilon: float) -> float:
    """The distance of two unit Gaussians that are at least as easy to tell apart as any (epsilon, 0)-DP pair.

    mu = 2 Phi^-1(e^eps / (1 + e^eps)), never rounded down; for small and for large epsilon a bound above it, where the
    quantile would lose its digits (docs/proofs/composition.md).

    Example:
        >>> round(pure_as_gaussian(1.0), 6)
        1.232035
    """
    if epsilon <= 0:
        return 0.0
    if epsilon < _SMALL_EPSILON:
        # mu <= sqrt(pi/2) eps: the slopes in eps of Phi(sqrt(pi/8) eps) and of e^eps/(1 + e^eps) are e^(-pi eps^2/16)/4 and
        # 1/(4 cosh(eps/2)^2). Both start at 1/4 and log(cosh x)/x^2 falls, so the first is larger up to one point and
        # smaller after it; both functions go from 1/2 to 1, so the first function is never below the second.
        mu = math.sqrt(math.pi / 2) * epsilon
    elif epsilon <= LARGE_EPSILON:
        # Phi^-1(1 - p) = -Phi^-1(p): accurate where e^eps / (1 + e^eps) would round to 1.
        mu = -2 * float(ndtri(expit(-epsilon)))
    else:
        # mu <= sqrt(8 eps): Phi(-x) <= e^(-x^2/2)/2, so Phi(-sqrt(2 eps)) <= e^-eps/2 <= 1/(1 + e^eps).
        mu = math.sqrt(8) * math.sqrt(epsilon)
    return math.nextafter(mu * (1 + 1e-12), math.inf)


def mixed_delta(epsilon: float, distance: float, *ways: Responses, in_float64: bool = False) -> float:
    """The smallest delta at this epsilon, rounded up.

    Args:
        epsilon: at least 0.
        distance: mu of all Gaussian releases together; 0 for none.
        ways: the randomised responses beside them; several if it is not known which they are: the worst counts.
        in_float64: about the same, far sooner: to find a place where the exact one is then asked; never what is promised.

    Example:
        >>> round(mixed_delta(1.0, 0.05, [(0.4, 2)]), 12)
        1.4148e-07
    """
    wide, far = _digits.mpf(epsilon), _digits.mpf(distance)
    gaussian: dict[Any, Any] = {}  # G(eps - loss): however edges lie, their losses are mostly the same
    deltas = []
    for responses in ways or ((),):
        losses, about, chances = _losses(tuple(responses))
        if in_float64:
            rests = epsilon - about
            first = log_ndtr(distance / 2 - rests / distance)
            gaps = np.minimum(rests + log_ndtr(-distance / 2 - rests / distance) - first, 0.0)
            deltas.append(float(chances @ (np.exp(first) * -np.expm1(gaps))))
            continue
        for loss in losses.keys() - gaussian.keys():
            rest = wide - loss
            if far == 0:
                gaussian[loss] = max(_digits.mpf(0), 1 - _digits.exp(rest))
            else:
                middle = rest / far
                second = _digits.exp(rest) * _digits.ncdf(-far / 2 - middle)
                gaussian[loss] = _digits.ncdf(far / 2 - middle) - second
        delta = sum(chance * gaussian[loss] for loss, chance in losses.items())
        deltas.append(min(1.0, math.nextafter(float(delta), math.inf)))
    return max(deltas)


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
