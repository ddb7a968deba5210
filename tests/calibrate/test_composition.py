"""The tighter total: a pure release is dominated by its Gaussian, and the sum of Gaussians is exact."""

import math

import numpy as np
import pytest
import scipy.stats

from gcon.calibrate.composition import gaussian_total, pure_as_gaussian
from gcon.calibrate.gaussian import gaussian_delta, gaussian_epsilon
from gcon.privacy.budget import Budget
from gcon.privacy.ledger import Kind, MemoryLedger, Request


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
