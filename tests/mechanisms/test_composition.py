"""The tighter total: a pure release is dominated by its Gaussian, and the sum of Gaussians is exact."""

import math

import numpy as np
import pytest
import scipy.stats

from gcon.mechanisms.composition import gaussian_total
from gcon.mechanisms.gaussian_curve import gaussian_delta, gaussian_epsilon, pure_as_gaussian
from gcon.privacy.budget import Budget
from gcon.privacy.ledger import Kind, MemoryLedger, Outcome, Request

mpmath = pytest.importorskip("mpmath")  # comes with torch, by way of sympy


def books(*costs):
    ledger = MemoryLedger("friendships")
    for cost in costs:
        ledger.reserve(Request(kind=Kind.RELEASE, mechanism="count", purpose="test", cost=cost))
    return ledger.entries()


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 5.0, 30.0])
def test_every_pure_release_is_at_least_as_private_as_its_gaussian(epsilon):
    """Trade-off curves: at every false alarm rate, the attacker on the Gaussian misses no more often."""
    mu = pure_as_gaussian(epsilon)
    alarms = np.linspace(1e-6, 1 - 1e-6, 20_001)
    pure = np.maximum(0, np.maximum(1 - math.exp(epsilon) * alarms, math.exp(-epsilon) * (1 - alarms)))
    gaussian = scipy.stats.norm.cdf(scipy.stats.norm.isf(alarms) - mu)
    assert (gaussian <= pure + 1e-12).all()
    # It is the best such Gaussian: they touch at the corner.
    corner = 1 / (1 + math.exp(epsilon))
    assert scipy.stats.norm.cdf(scipy.stats.norm.isf(corner) - mu) == pytest.approx(corner, rel=1e-6)


@pytest.mark.parametrize("mu", [1e-3, 0.1, 1.0, 10.0, 60.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.1])
def test_epsilon_is_the_inverse_of_delta(mu, delta):
    epsilon = gaussian_epsilon(mu, delta)
    assert gaussian_delta(epsilon, mu) <= delta
    if epsilon > 0:
        assert gaussian_delta(epsilon * (1 - 1e-6), mu) > delta


def test_exact_composition_of_counts_never_exceeds_the_total():
    """A hundred randomised responses of epsilon 0.1, the worst pure releases, composed exactly (binomial)."""
    total = gaussian_total(books(*[Budget(0.1, 0.0)] * 100), extra_delta=1e-6)
    k, p = np.arange(101), 1 / (1 + math.exp(-0.1))
    here, there = scipy.stats.binom.pmf(k, 100, p), scipy.stats.binom.pmf(k, 100, 1 - p)
    delta = np.maximum(0, here - math.exp(total.epsilon) * there).sum()
    assert delta <= 1e-6
    assert total.epsilon < 7 < 10
    assert total.delta == 1e-6


def test_releases_with_a_delta_add_as_they_are():
    pure = gaussian_total(books(*[Budget(0.1, 0.0)] * 100), extra_delta=1e-6)
    both = gaussian_total(books(Budget(1.0, 1e-5), *[Budget(0.1, 0.0)] * 100, Budget(2.0, 1e-6)), extra_delta=1e-6)
    assert both.epsilon == pytest.approx(pure.epsilon + 3.0)
    assert both.delta == pytest.approx(1e-6 + 1.1e-5)
    assert math.isinf(gaussian_total(books(Budget(math.inf, 0.0)), extra_delta=1e-6).epsilon)
    assert gaussian_total(books(), extra_delta=1e-6).epsilon == 0


SMALL = (5e-324, 1e-310, 1e-200, 1e-17, 1e-16, 1e-9, 1e-4, 0.0099999)
MIDDLE = (0.01, 0.0100001, 0.5, 1.0, 30.0, 300.0, 699.9, 700.0)
LARGE = (700.1, 740.0, 746.0, 1000.0, 1e6)


@pytest.mark.parametrize("epsilon", [*SMALL, *MIDDLE, *LARGE])
def test_the_gaussian_of_a_pure_release_is_never_rounded_down(epsilon):
    """mu is large enough if and only if Phi(-mu/2) <= 1/(1 + e^eps); checked with as many digits as that takes."""
    mu = pure_as_gaussian(epsilon)
    assert 0 < mu <= math.sqrt(8 * epsilon) * (1 + 1e-11)
    with mpmath.workdps(800):
        corner = 1 / (1 + mpmath.exp(mpmath.mpf(epsilon)))
        assert mpmath.ncdf(-mpmath.mpf(mu) / 2) <= corner
        if 1e-300 < epsilon <= 700:
            assert mpmath.ncdf(-mpmath.mpf(mu * (1 - 3e-6)) / 2) > corner  # and hardly larger than it must be


def test_a_release_of_a_huge_pure_epsilon_adds_as_it_is():
    """Its Gaussian would cost four times as much, and beyond 745 had an infinite distance."""
    small = [Budget(0.1, 0.0)] * 100
    alone = gaussian_total(books(*small), extra_delta=1e-6)
    both = gaussian_total(books(Budget(1000.0, 0.0), *small), extra_delta=1e-6)
    assert both.epsilon == pytest.approx(1000 + alone.epsilon)
    assert gaussian_total(books(Budget(1e308, 0.0)), extra_delta=1e-6).epsilon == 1e308


def one(cost, distance, outcome=Outcome.RELEASED):
    ledger = MemoryLedger("friendships")
    request = Request(kind=Kind.RELEASE, mechanism="sums", purpose="test", cost=cost, gaussian_distance=distance)
    ledger.settle(ledger.reserve(request), outcome)
    return ledger.entries()


@pytest.mark.parametrize("outcome", [Outcome.RELEASED, Outcome.WITHHELD])
def test_a_distance_counts_whatever_became_of_the_release(outcome):
    delta = gaussian_delta(1.0, 0.25)
    total = gaussian_total(one(Budget(1.0, delta), 0.25, outcome), extra_delta=1e-6)
    assert total.epsilon == pytest.approx(gaussian_epsilon(0.25, 1e-6), rel=1e-9)
    assert total.delta == 1e-6


def test_a_release_without_promise_is_infinite_whatever_distance_it_names():
    assert math.isinf(gaussian_total(one(Budget(math.inf, 0.0), 0.25), extra_delta=1e-6).epsilon)


def test_a_pure_release_takes_the_smaller_distance():
    pure = pure_as_gaussian(0.5)
    for own in (pure / 2, pure * 2):
        total = gaussian_total(one(Budget(0.5, 0.0), own), extra_delta=1e-6)
        assert total.epsilon == pytest.approx(gaussian_epsilon(min(own, pure), 1e-6), rel=1e-9)
