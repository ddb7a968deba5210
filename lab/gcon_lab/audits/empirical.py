"""Lower bounds on epsilon from scores of many runs on two neighbouring graphs, with a stated probability of error.

A test says "this release came from the graph with the edge" where its score reaches a cut. Its two rates bound epsilon
from below: a mechanism that is (epsilon, delta)-DP allows no test with

    true positives > e^epsilon * false positives + delta.

The cut is chosen on the first half of the runs and the rates are bounded on the second half (Clopper and Pearson 1934), so
the bound holds whatever the scores are. Where a mechanism claims a whole Gaussian curve, two rates bound its distance mu,
and mu gives epsilon at any delta (Nasr et al. 2023): far fewer runs are needed for a small delta.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainccinv, betaincinv, ndtri

from gcon.errors import InputError
from gcon.mechanisms.gaussian_curve import gaussian_epsilon

Scores = NDArray[np.float64]
Measure = Callable[[Scores, Scores], Scores]
_CUTS = 400
_LEAST_RUNS = 4


def lower_rate(hits: Scores, runs: int, error: float) -> Scores:
    """Clopper and Pearson: the true rate is below this with probability at most `error`.

    Example:
        >>> round(float(lower_rate(np.array([10.0]), 10, 0.05)[0]), 6)
        0.741134
    """
    safe = np.maximum(hits, 1)
    return np.where(hits > 0, betaincinv(safe, runs - safe + 1, error), 0.0)


def upper_rate(hits: Scores, runs: int, error: float) -> Scores:
    """Clopper and Pearson: the true rate is above this with probability at most `error`.

    Example:
        >>> round(float(upper_rate(np.array([0.0]), 10, 0.05)[0]), 6)
        0.258866
    """
    safe = np.minimum(hits, runs - 1)
    return np.where(hits < runs, betainccinv(safe + 1, runs - safe, error), 1.0)


def rates_to_epsilon(true_rate: Scores, false_rate: Scores, delta: float) -> Scores:
    """log((true - delta) / false), at least 0: the smallest epsilon that allows such a test."""
    gain = np.maximum(true_rate - delta, 0.0)
    with np.errstate(divide="ignore"):
        return np.where(gain > false_rate, np.log(np.maximum(gain, 1e-300) / np.maximum(false_rate, 1e-300)), 0.0)


def rates_to_distance(true_rate: Scores, false_rate: Scores) -> Scores:
    """Phi^-1(true) - Phi^-1(false), at least 0: the smallest Gaussian distance that allows such a test."""
    distance = ndtri(np.clip(true_rate, 1e-300, 1.0)) - ndtri(np.clip(false_rate, 1e-300, 1.0))
    return np.where(np.isfinite(distance), np.maximum(distance, 0.0), 0.0)


def epsilon_bound(joined: Scores, apart: Scores, *, delta: float, error: float) -> float:
    """A lower bound on epsilon at this delta that is too high with probability at most `error`.

    Both roles are tried: an edge must be as hard to rule out as to confirm.

    Args:
        joined: scores of runs on the graph with the edge; larger where a release looks like it.
        apart: scores of runs on the graph without the edge.
        delta: of the promise that is tested.
        error: probability that the bound is above the true epsilon, at most.
    """
    true_rate, false_rate = _chosen_rates(
        joined, apart, error, lambda true, false: rates_to_epsilon(true, false, delta)
    )
    return float(rates_to_epsilon(true_rate, false_rate, delta))


def distance_bound(joined: Scores, apart: Scores, *, error: float) -> float:
    """A lower bound on the Gaussian distance mu that is too high with probability at most `error`."""
    return float(rates_to_distance(*_chosen_rates(joined, apart, error, rates_to_distance)))


def gaussian_epsilon_bound(joined: Scores, apart: Scores, *, delta: float, error: float) -> float:
    """A lower bound on epsilon at this delta for a mechanism that claims a Gaussian curve.

    If the bound is above the claimed epsilon, the mechanism does not have the curve that it claims. It says nothing
    about mechanisms that claim (epsilon, delta) alone.
    """
    return gaussian_epsilon(distance_bound(joined, apart, error=error), delta)


def _chosen_rates(joined: Scores, apart: Scores, error: float, value: Measure) -> tuple[Scores, Scores]:
    """Bounds on both rates of the best test: chosen on the first half, measured on the second."""
    if min(len(joined), len(apart)) < _LEAST_RUNS or not 0 < error < 1:
        raise InputError(
            "runs, error",
            rule=f"must be at least {_LEAST_RUNS} runs per graph, and an error between 0 and 1",
            got=f"{min(len(joined), len(apart))} runs, error {error:g}",
            fix="Thousands of runs are usual.",
        )
    halves = [(scores[: len(scores) // 2], scores[len(scores) // 2 :]) for scores in (joined, apart)]
    (joined_first, joined_second), (apart_first, apart_second) = halves
    best = -math.inf
    chosen = (0.0, 1.0)
    # The second role: without the edge scores are small, so signs are turned around.
    for sign, near, far in ((1.0, joined_first, apart_first), (-1.0, apart_first, joined_first)):
        cuts = _cuts(sign * np.concatenate([near, far]))
        values = value(*_rates(sign * near, sign * far, cuts, error))
        place = int(np.argmax(values))
        if values[place] > best:
            best, chosen = float(values[place]), (sign, float(cuts[place]))
    sign, cut = chosen
    near, far = (joined_second, apart_second) if sign > 0 else (apart_second, joined_second)
    true_rate, false_rate = _rates(sign * near, sign * far, np.array([cut]), error)
    return true_rate[0], false_rate[0]


def _rates(near: Scores, far: Scores, cuts: Scores, error: float) -> tuple[Scores, Scores]:
    """For every cut, the lower rate of the near scores and the upper one of the far scores, with half the error each."""
    hits, alarms = (len(part) - np.searchsorted(np.sort(part), cuts, side="left") for part in (near, far))
    return (
        lower_rate(hits.astype(np.float64), len(near), error / 2),
        upper_rate(alarms.astype(np.float64), len(far), error / 2),
    )


def _cuts(scores: Scores) -> Scores:
    """Quantiles, denser in both tails."""
    tail = np.geomspace(1e-4, 0.1, _CUTS // 4)
    places = np.concatenate([tail, np.linspace(0.1, 0.9, _CUTS // 2), 1 - tail])
    return np.unique(np.quantile(scores, places, method="higher"))
