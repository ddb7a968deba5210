"""Bounds from rates: against scipy, hand values, and their exact probability of being wrong."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats

from gcon.errors import InputError
from gcon.mechanisms.gaussian_curve import gaussian_epsilon, gaussian_multiplier
from gcon_lab.audits.empirical import (
    distance_bound,
    epsilon_bound,
    gaussian_epsilon_bound,
    lower_rate,
    rates_to_distance,
    rates_to_epsilon,
    upper_rate,
)


@pytest.mark.parametrize("runs", [1, 7, 500])
@pytest.mark.parametrize("error", [0.2, 1e-3, 1e-8])
def test_rates_are_those_of_scipy(runs, error):
    for hits in {0, 1, runs // 2, runs - 1, runs}:
        # scipy's interval has the error on both sides together.
        expected = scipy.stats.binomtest(hits, runs).proportion_ci(1 - 2 * error, "exact")
        assert lower_rate(np.array([float(hits)]), runs, error)[0] == pytest.approx(expected.low, rel=1e-8, abs=1e-12)
        assert upper_rate(np.array([float(hits)]), runs, error)[0] == pytest.approx(expected.high, rel=1e-8)


def test_hand_values():
    # No hit among n: the upper rate p solves (1 - p)^n = error. All hits: the lower one solves p^n = error.
    assert upper_rate(np.array([0.0]), 20, 0.05)[0] == pytest.approx(1 - 0.05 ** (1 / 20))
    assert lower_rate(np.array([20.0]), 20, 0.05)[0] == pytest.approx(0.05 ** (1 / 20))
    assert rates_to_epsilon(np.array(0.5), np.array(0.1), 0.1) == pytest.approx(math.log(4))
    assert rates_to_epsilon(np.array(0.2), np.array(0.1), 0.2) == 0
    assert rates_to_distance(np.array(0.8413447), np.array(0.5)) == pytest.approx(1.0, abs=1e-6)
    assert rates_to_distance(np.array(0.0), np.array(0.5)) == 0
    # Perfectly separated scores: both halves have only hits and no alarm.
    separated = epsilon_bound(np.ones(200), np.zeros(200), delta=0.01, error=0.02)
    low, high = 0.01 ** (1 / 100), 1 - 0.01 ** (1 / 100)
    assert separated == pytest.approx(math.log((low - 0.01) / high))


def test_the_error_is_at_most_what_was_asked_for():
    """Randomised response, six runs a graph: every outcome is enumerated, with its probability."""
    truth, error, half = 0.75, 0.3, 3
    epsilon = math.log(truth / (1 - truth))
    counts = range(half + 1)
    wrong = 0.0
    for joined_first, joined_second, apart_first, apart_second in itertools.product(counts, repeat=4):
        probability = 1.0
        for count, rate in ((joined_first, truth), (joined_second, truth), (apart_first, 1 - truth)):
            probability *= scipy.stats.binom.pmf(count, half, rate)
        probability *= scipy.stats.binom.pmf(apart_second, half, 1 - truth)
        joined, apart = (
            np.array([1.0] * first + [0.0] * (half - first) + [1.0] * second + [0.0] * (half - second))
            for first, second in ((joined_first, joined_second), (apart_first, apart_second))
        )
        wrong += probability * (epsilon_bound(joined, apart, delta=0.0, error=error) > epsilon)
    assert wrong <= error


def test_both_directions_are_tried():
    """Only the absence of the edge is certain here: scores of 0 never come from the graph with it."""
    joined, apart = np.ones(400), np.array([0.0, 1.0] * 200)
    assert epsilon_bound(joined, apart, delta=0.0, error=0.01) > 2
    assert epsilon_bound(-apart, -joined, delta=0.0, error=0.01) > 2


def test_gaussian_curve_needs_fewer_runs_and_stays_below():
    """Failing by chance: below 1e-7 for the upper limit; the lower one lies more than six deviations away."""
    epsilon, delta = 1.0, 1e-5
    distance = 1 / gaussian_multiplier(epsilon, delta)
    generator = np.random.default_rng()
    joined, apart = generator.normal(distance, 1, 200_000), generator.normal(0, 1, 200_000)
    assert 0.6 * epsilon <= gaussian_epsilon_bound(joined, apart, delta=delta, error=1e-7) <= epsilon
    assert epsilon_bound(joined, apart, delta=delta, error=1e-7) <= epsilon
    half = distance_bound(joined, apart, error=1e-7)
    assert gaussian_epsilon_bound(joined, apart, delta=delta, error=1e-7) == pytest.approx(
        gaussian_epsilon(half, delta)
    )


def test_scores_without_information_give_nothing():
    same = np.arange(1000.0)
    assert epsilon_bound(same, same, delta=0.0, error=1e-7) == 0
    assert gaussian_epsilon_bound(same, same, delta=1e-5, error=1e-7) == 0


def test_too_few_runs_are_refused():
    with pytest.raises(InputError, match="runs"):
        epsilon_bound(np.ones(3), np.ones(3), delta=0.0, error=0.1)
