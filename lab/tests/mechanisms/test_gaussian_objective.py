"""Gaussian objective perturbation: the noise inside released weights, the final noise, refusals, the ledger.

Statistical tests draw from the operating system; each has a false-alarm probability below 1e-6.
"""

import math

import pytest
import scipy.stats
import torch
from lab.tests.mechanisms.convex_setting import CLASSES, WIDTH, gaussian_objective

from gcon.mechanisms import convex_training
from gcon.mechanisms.losses import PseudoHuber, SoftMargin
from gcon.mechanisms.samplers.rounded import SPACING
from gcon.privacy.budget import Budget
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SeededRandomness, SystemRandomness

LEVEL = 1e-6


@pytest.fixture(scope="module")
def setting():
    return gaussian_objective()


# --- noise ------------------------------------------------------------------------------------------------------------


def sigma_by_hand(plan, influence, rows):
    """Theorem C for the soft margin, with the certificate's reserve taken off the budget; no function of the package."""
    epsilon, delta = 1.0 - 2e-3, 1e-5 * math.exp(-1e-3)
    slope, curvature, third = 1 / CLASSES, 1 / (4 * CLASSES), 1 / (6 * math.sqrt(3) * CLASSES)
    quantile = scipy.stats.chi(WIDTH).isf(0.01 * delta / CLASSES)
    height = math.sqrt(2 * CLASSES / math.pi) + math.sqrt(-2 * math.log(0.99 * delta))

    def kappa(left):
        return (height + math.sqrt(height**2 + 2 * left)) / (2 * left)

    push = math.sqrt(CLASSES) * influence * kappa(0.9 * epsilon) * quantile / rows
    ridge = max(1.0, 2 * curvature * push)
    bound = slope * (1 + push) / (ridge - curvature * push)
    jacobian = CLASSES * WIDTH * math.log1p((2 * curvature + third * bound) * influence / (WIDTH * rows * ridge))
    assert jacobian <= 0.1 * epsilon  # so there is no extra ridge
    assert plan.total_ridge == pytest.approx(ridge)
    return math.sqrt(CLASSES) * (slope + curvature * bound) * influence * kappa(epsilon - jacobian)


@pytest.fixture(scope="module")
def drawn(setting):
    """The noise of 700 released models: at the minimiser the gradient vanishes, so it can be read off the weights."""
    plan = setting.plan()
    released = setting.mechanism(*[plan] * 700).apply(setting.edges, SystemRandomness())
    rows = setting.rows()[4:]
    slopes = (torch.sigmoid(rows @ released) - setting.targets) / CLASSES
    noise = -(rows.T @ slopes + len(rows) * plan.total_ridge * released)
    return noise.flatten(1).numpy(), sigma_by_hand(plan, setting.aggregates.edge_influence, len(rows))


def test_released_weights_hold_normal_noise_of_the_right_scale_only(drawn):
    noise, sigma = drawn
    assert scipy.stats.kstest(noise.ravel(), scipy.stats.norm(scale=sigma).cdf).pvalue > LEVEL
    for factor in (1 / 2, 2 / 3, 3 / 2):
        assert scipy.stats.kstest(noise.ravel(), scipy.stats.norm(scale=factor * sigma).cdf).pvalue < LEVEL


def test_releases_and_entries_draw_independent_noise(drawn):
    noise, _ = drawn
    for one, other in ((noise[:-1], noise[1:]), (noise[:, :-1], noise[:, 1:]), (noise[:, :9], noise[:, 9:])):
        assert scipy.stats.spearmanr(one.ravel(), other.ravel()).pvalue > LEVEL / 3


def test_final_noise_has_the_scale_of_the_plan_and_lies_on_the_lattice(setting, monkeypatch):
    """One seed draws the same objective noise twice; the second time the final noise is left out."""
    plan = setting.plan()
    mechanism = setting.mechanism(*[plan] * 250)
    noisy = mechanism.apply(setting.edges, SeededRandomness(7))
    monkeypatch.setattr(convex_training, "rounded_noise", lambda randomness, values, *, scale, spacing: values)
    plain = mechanism.apply(setting.edges, SeededRandomness(7))
    sample = (noisy - plain).numpy().ravel()
    assert scipy.stats.kstest(sample, scipy.stats.norm(scale=plan.final_noise).cdf).pvalue > LEVEL
    for factor in (2 / 3, 3 / 2):
        assert scipy.stats.kstest(sample, scipy.stats.norm(scale=factor * plan.final_noise).cdf).pvalue < LEVEL
    assert torch.equal(noisy.remainder(SPACING * math.ulp(plan.final_noise)), torch.zeros_like(noisy))
    assert setting.mechanism(plan).record["spacing"] == SPACING * math.ulp(plan.final_noise)


@pytest.mark.parametrize("loss", [SoftMargin(CLASSES), PseudoHuber(CLASSES, 0.2)], ids=lambda loss: loss.name)
def test_infinite_epsilon_releases_the_minimiser_of_the_plain_objective(setting, loss):
    plan = setting.plan(Budget(math.inf, 1e-5), loss=loss)
    (weights,) = setting.mechanism(plan).apply(setting.edges, SystemRandomness())
    rows = setting.rows()[4:]
    gradient = rows.T @ loss.slope(rows @ weights, setting.targets) / len(rows) + 1.0 * weights
    assert float(gradient.norm()) < 1e-10


# --- refusals ---------------------------------------------------------------------------------------------------------


# --- the ledger -------------------------------------------------------------------------------------------------------


def test_ledger_is_charged_and_no_gaussian_distance_is_claimed(setting):
    ledger = MemoryLedger("graph")
    plans = [setting.plan(Budget(epsilon, 1e-5)) for epsilon in (1.0, 0.5)]
    receipt = setting.release(setting.mechanism(*plans), ledger).receipt
    assert receipt.keeps_promise
    assert [record["scale"] for record in receipt.plan["plans"]] == [plan.scale for plan in plans]
    (entry,) = ledger.entries()
    assert entry.request.mechanism == "objective perturbation (Gaussian)"
    assert entry.request.gaussian_distance is None
    assert ledger.total() == Budget(1.5, 2e-5)
