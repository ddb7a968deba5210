"""The exact privacy curve of Gaussian noise (Balle and Wang 2018), and its inverse."""

from __future__ import annotations

import math

from scipy.special import log_ndtr

from gcon.errors import InputError


def gaussian_delta(epsilon: float, distance: float) -> float:
    """The smallest delta at this epsilon for two Gaussians of unit variance at this distance."""
    return math.exp(gaussian_log_delta(epsilon, distance))


def gaussian_log_delta(epsilon: float, distance: float) -> float:
    """The logarithm of that delta, which exists long after delta itself is too small for a float.

    delta = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu) with mu the distance (sensitivity over standard deviation),
    evaluated in logarithms.

    Args:
        epsilon: at least 0.
        distance: mu > 0.
    """
    if distance <= 0:
        return -math.inf
    first = float(log_ndtr(distance / 2 - epsilon / distance))
    second = epsilon + float(log_ndtr(-distance / 2 - epsilon / distance))
    # The two logarithms are rounded; the allowance keeps the result on the private side.
    gap = min(second - first - 1e-13 * (1 + abs(first)), -1e-16)
    return min(0.0, first + math.log(-math.expm1(gap)))


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

    Example:
        >>> round(gaussian_epsilon(1 / 3.730632, 1e-5), 6)
        1.0
    """
    if distance <= 0 or gaussian_delta(0.0, distance) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while gaussian_delta(high, distance) > delta:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(middle, distance) > delta else (low, middle)
    return high
