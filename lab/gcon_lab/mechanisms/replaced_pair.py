"""The privacy accountant of noisy clipped gradient sums with Poisson sampling, where one edge replaces two records.

One step releases the sum of the sampled nodes' gradients, each clipped to length tau, plus normal noise of standard
deviation sigma. One edge changes the gradients of its two ends and nothing else. Whatever these gradients are, the step
is at least as private as the pair (docs/proofs/dp-sgd.md, Theorem 1)

    P = sum_k Binomial(2, q)(k) N(-k tau, sigma^2)    against    Q = sum_k Binomial(2, q)(k) N(+k tau, sigma^2),

and `steps` steps, each chosen after the ones before, are at least as private as `steps` independent copies of it. This
module composes the law of the loss ln(P/Q). Every approximation errs on the private side:

1. The line is cut into cells; a cell gets the largest loss in it (its left end). What lies left of all cells has
   infinite loss.
2. Losses move to a grid: a mass between two points is shared between them so that P and Q keep their totals. That
   spreads P/Q without moving its mean, and so can only make the two laws easier to tell apart.
3. The composition is a power of a Fourier transform, of masses tilted towards the wanted epsilon so that the tail is
   resolved. What lies beyond the window on either side, bounded by Chernoff, is added in full, and so is a bound on
   the transform's rounding errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from gcon.errors import InputError, check_number
from gcon.mechanisms.gaussian_curve import gaussian_delta, gaussian_epsilon, gaussian_multiplier

Floats = NDArray[np.float64]

MOST_STEPS = 100_000
_REACH = 9.5  # cells cover so many standard deviations beyond the outermost mean
_FINE, _COARSE = 2**18, 2**13  # cells
_POINTS_PER_DEVIATION = 40  # grid points a standard deviation of one step's loss
_MOST_POINTS = 2**20
_MASS_SLACK = 1e-10  # relative error of a cell's mass
_LOSS_SLACK = 1e-13  # error of a loss, relative to 1 + its size
LEAST_NOISE = 0.1  # smaller multipliers are never planned with sampling
_TAIL = 60.0  # windows leave out at most e^-60 of the tilted mass on either side
_UNIT = 2.0**-53


def replaced_pair_delta(sampling: float, noise_multiplier: float, steps: int, epsilon: float) -> float:
    """An upper bound on the smallest delta at this epsilon; at sampling 1 the exact value.

    Args:
        sampling: q in (0, 1], the probability with which each node enters a step.
        noise_multiplier: sigma / tau > 0.
        steps: how many steps.
        epsilon: at least 0.

    Example:
        >>> replaced_pair_delta(0.1, 10.0, 100, 1.56) < 1e-5
        True
    """
    _check(sampling, noise_multiplier, steps)
    check_number(
        "epsilon",
        epsilon,
        allowed=lambda number: 0 <= number < math.inf,
        rule="must be at least 0",
        fix="Usual: 0.5 to 4.",
    )
    if sampling == 1:
        return gaussian_delta(epsilon, _distance(noise_multiplier, steps))
    return _composed_delta(_pair_losses(sampling, noise_multiplier, _FINE), steps, epsilon)


def replaced_pair_epsilon(sampling: float, noise_multiplier: float, steps: int, delta: float) -> float:
    """An upper bound on the smallest epsilon at this delta; at sampling 1 the exact value.

    Args:
        sampling: q in (0, 1].
        noise_multiplier: sigma / tau > 0.
        steps: how many steps.
        delta: in (0, 1).

    Example:
        >>> round(replaced_pair_epsilon(0.1, 10.0, 100, 1e-5), 2)
        1.55
    """
    _check(sampling, noise_multiplier, steps)
    _check_delta(delta)
    if sampling == 1:
        return gaussian_epsilon(_distance(noise_multiplier, steps), delta)
    return _composed_epsilon(_pair_losses(sampling, noise_multiplier, _FINE), steps, delta)


@lru_cache(maxsize=1024)
def noise_for(sampling: float, steps: int, epsilon: float, delta: float) -> float:
    """The noise multiplier sigma / tau that makes `steps` steps (epsilon, delta)-DP: the upper end of a bisection.

    Args:
        sampling: q in (0, 1].
        steps: how many steps.
        epsilon: positive and finite.
        delta: in (0, 1).

    Example:
        >>> round(noise_for(0.1, 100, 1.0, 1 / 16316), 1)
        13.2
    """
    _check(sampling, 1.0, steps)
    _check_delta(delta)
    check_number(
        "epsilon",
        epsilon,
        allowed=lambda number: 0 < number < math.inf,
        rule="must be positive",
        fix="Usual: 0.5 to 4.",
    )
    full = 4 * math.sqrt(steps) * gaussian_multiplier(epsilon, delta)
    if sampling == 1:
        return full
    if not delta > 2 * _infinite(float(ndtr(-_REACH)), steps):  # counted whatever the noise
        raise _delta_too_small(delta)

    def enough(noise: float, cells: int) -> bool:
        return _composed_delta(_pair_losses(sampling, noise, cells), steps, epsilon) <= delta

    high = max(full, LEAST_NOISE)
    for cells, first, precision in ((_COARSE, 0.5, 1e-3), (_FINE, 0.97, 1e-5)):
        found = _smallest(lambda noise, cells=cells: enough(noise, cells), high, first=first, precision=precision)  # type: ignore[misc]
        if found is None:
            raise _delta_too_small(delta)
        high = found
    return high


@dataclass(frozen=True, eq=False)
class _Law:
    """One step's loss under P, on a grid: `masses[j]` at loss `(first + j) spacing`, `infinite` at infinity."""

    spacing: float
    first: int
    masses: Floats
    infinite: float


@lru_cache(maxsize=4)
def _pair_losses(sampling: float, noise_multiplier: float, cells: int) -> _Law:
    """The loss of the pair. In units of sigma the means are k r, r = tau / sigma; the loss falls along the line."""
    shifts = np.arange(3) / noise_multiplier
    weights = _binomial(sampling)
    half = np.linspace(0.0, float(shifts[2]) + _REACH, cells // 2 + 1)
    # l(y) = ln (w_0 + w_1 e + w_2 e^2) - ln (w_0 e^2 + w_1 e + w_2) - 2 r y with e = exp(-r y) <= 1; l(-y) = -l(y).
    none, one, both = weights * np.exp(-(shifts**2) / 2)
    powers = np.exp(-shifts[1] * half)
    falling = np.log(none + powers * (one + powers * both)) - np.log(both + powers * (one + powers * none))
    falling -= shifts[2] * half
    edges = np.concatenate([-half[:0:-1], half])
    losses = np.concatenate([-falling[:0:-1], falling[:-1]])  # at the left ends
    return _law(losses, _masses(edges, shifts, weights), float(ndtr(-_REACH)))


def _masses(edges: Floats, shifts: Floats, weights: Floats) -> Floats:
    """P's mass of every cell, P = sum_k w_k N(-shift_k, 1); the last cell takes all that lies right of it."""
    total = np.zeros(len(edges) - 1)
    for shift, weight in zip(shifts, weights, strict=True):
        ends = edges + shift
        tails = ndtr(-np.abs(ends))  # beyond an end, on its side of the mean: 1 - Phi would lose the right tail
        parts = np.abs(np.diff(tails))
        middle = int(np.searchsorted(ends, 0.0, side="right")) - 1  # the cell that holds the mean
        parts[middle] = 1 - tails[middle] - tails[middle + 1]
        parts[-1] += tails[-1]
        total += weight * parts
    return total * (1 + _MASS_SLACK)


def _law(losses: Floats, masses: Floats, infinite: float) -> _Law:
    """Share every mass between the grid points around its loss so that the sums of m and of m e^-loss stay the same."""
    losses = losses + _LOSS_SLACK * (1 + np.abs(losses))
    mean = float(masses @ losses)
    deviation = math.sqrt(float(masses @ (losses - mean) ** 2))
    spacing = max(deviation / _POINTS_PER_DEVIATION, float(np.ptp(losses)) / _MOST_POINTS, 1e-9)
    places = np.floor(losses / spacing)
    up = masses * np.clip(np.expm1(places * spacing - losses) / math.expm1(-spacing), 0.0, 1.0)
    first = int(places.min())
    index = places.astype(np.int64) - first
    size = int(index.max()) + 2
    shared = np.bincount(index, masses - up, minlength=size) + np.bincount(index + 1, up, minlength=size)
    return _Law(spacing, first, np.asarray(shared, dtype=np.float64), infinite)


def _composed_delta(law: _Law, steps: int, epsilon: float) -> float:
    """P(loss infinite) + sum over finite losses l > epsilon of mass (1 - e^(epsilon - l)), after `steps` steps."""
    infinite = _infinite(law.infinite, steps)
    kept = np.flatnonzero(law.masses > 0)
    index, logs = kept + law.first, np.log(law.masses[kept])
    losses = np.asarray(index * law.spacing, dtype=np.float64)
    if epsilon >= steps * losses[-1]:
        return infinite

    def cumulant(tilt: float) -> float:
        exponents = logs + tilt * losses
        largest = float(exponents.max())
        return largest + math.log(float(np.exp(exponents - largest).sum()))

    tilt = _tilt(logs, losses, epsilon / steps)
    level = cumulant(tilt)
    tilted = np.exp(logs + tilt * losses - level)
    mean = float(tilted @ losses)
    deviation = math.sqrt(steps * float(tilted @ (losses - mean) ** 2)) + law.spacing
    # Chernoff's bound on both sides: outside [low, high] lies at most e^-60 of the composed tilted mass each.
    tilts = np.geomspace(0.1, 100, 24) / deviation
    high = min((steps * (cumulant(tilt + t) - level) + _TAIL) / t for t in tilts)
    low = max((steps * (level - cumulant(tilt - t)) - _TAIL) / t for t in tilts)
    bottom = math.floor(max(low / law.spacing, steps * float(index[0])))
    top = math.ceil(min(high / law.spacing, steps * float(index[-1])))
    size = 2 ** max(4, (top - bottom + 1).bit_length())
    one = np.bincount(index % size, tilted, minlength=size)
    composed = np.maximum(np.fft.irfft(np.fft.rfft(one) ** steps, size), 0.0)
    totals = np.arange(bottom, bottom + size)
    above = totals[totals * law.spacing > epsilon]
    excess = above * law.spacing - epsilon
    finite = float(composed[above % size] @ (np.exp(-tilt * excess) * -np.expm1(-excess)))
    # Sum of absolute errors: transform, power, inverse transform (Higham, section 24.1, with a generous constant).
    transform = 16 * math.log2(size) * (steps * float(np.linalg.norm(one)) + 1)
    rounding = 2 * _UNIT * math.sqrt(size) * (transform + 8 * steps)
    scale = math.exp(min(steps * level - tilt * epsilon, 700.0)) * (1 + 1e-12 * steps)
    return min(1.0, infinite + scale * (finite + rounding + 2 * math.exp(-_TAIL)))


def _tilt(logs: Floats, losses: Floats, wanted: float) -> float:
    """The tilt >= 0 at which the mean loss is about `wanted`. Any value is valid; this one resolves the tail best."""

    def mean(tilt: float) -> float:
        exponents = logs + tilt * losses
        weights = np.exp(exponents - exponents.max())
        return float(weights @ losses / weights.sum())

    if mean(0.0) >= wanted:
        return 0.0
    low, high = 0.0, 1.0
    while mean(high) < wanted and high < 1e6:
        low, high = high, 2 * high
    for _ in range(16):
        middle = (low + high) / 2
        low, high = (low, middle) if mean(middle) >= wanted else (middle, high)
    return low


def _composed_epsilon(law: _Law, steps: int, delta: float) -> float:
    """The smallest epsilon whose delta is small enough: the upper end of a bisection."""
    if _composed_delta(law, steps, 0.0) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while _composed_delta(law, steps, high) > delta:
        low, high = high, 2 * high
        if high > 1e12:
            raise _delta_too_small(delta)
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _composed_delta(law, steps, middle) > delta else (low, middle)
    return high


def _smallest(enough: Callable[[float], bool], high: float, *, first: float, precision: float) -> float | None:
    """A noise that is enough, at most `precision` (relative) above one that is not, or the smallest one considered.

    None where a thousand times the first guess is not enough: without sampling that guess would be.
    """
    most = 1000 * high
    while not enough(high):
        high *= 2
        if high > most:
            return None
    low = high * first
    while low >= LEAST_NOISE and enough(low):
        low, high = low * first, low
    if low < LEAST_NOISE:
        return high
    while high / low > 1 + precision:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _infinite(infinite: float, steps: int) -> float:
    """The probability of an infinite loss in any of the steps."""
    return -math.expm1(steps * math.log1p(-infinite))


def _delta_too_small(delta: float) -> InputError:
    return InputError("delta", rule="is too small for this accountant", got=delta, fix="Use at least 1e-12.")


def _binomial(sampling: float) -> Floats:
    """How many of the two ends are sampled."""
    return np.array([(1 - sampling) ** 2, 2 * sampling * (1 - sampling), sampling**2])


def _distance(noise_multiplier: float, steps: int) -> float:
    """Without sampling every step moves by at most 4 tau: `steps` Gaussian releases are one of this distance."""
    return 4 * math.sqrt(steps) / noise_multiplier * (1 + 1e-15)


def _check(sampling: float, noise_multiplier: float, steps: int) -> None:
    check_batches(sampling, steps)
    check_number(
        "noise_multiplier",
        noise_multiplier,
        allowed=lambda number: LEAST_NOISE <= number < math.inf,
        rule=f"must be finite and at least {LEAST_NOISE}",
        fix="It is the noise's standard deviation over the clipping length.",
    )


def check_batches(sampling: float, steps: int) -> None:
    """Raise `InputError` unless so many steps with this sampling can be accounted for."""
    check_number(
        "sampling",
        sampling,
        allowed=lambda number: 0 < number <= 1,
        rule="must lie in (0, 1]",
        fix="1 takes every node.",
    )
    check_number(
        "steps",
        steps,
        allowed=lambda number: 1 <= number <= MOST_STEPS,
        rule=f"must be a whole number from 1 to {MOST_STEPS}",
        fix="Usual are 50 to 500.",
        whole=True,
    )


def _check_delta(delta: float) -> None:
    check_number(
        "delta", delta, allowed=lambda number: 0 < number < 1, rule="must lie in (0, 1)", fix="For example 1e-5."
    )
