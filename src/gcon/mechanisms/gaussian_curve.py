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
    if distance <= 0 or epsilon == math.inf:
        return -math.inf
    if distance == math.inf:
        return 0.0
    first = float(log_ndtr(distance / 2 - epsilon / distance))
    if first == -math.inf:  # delta is smaller still
        return -math.inf
    second = epsilon + float(log_ndtr(-distance / 2 - epsilon / distance))
    # The two logarithms are rounded, and so is the sum with epsilon; the allowance keeps the result on the private side.
    gap = min(second - first - 1e-13 * (1 + abs(first)) - 2e-15 * epsilon, -1e-16)
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
