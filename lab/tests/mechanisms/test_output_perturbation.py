"""Output perturbation: the minimiser under the noise, the noise's law and scale, refusals, the ledger, an audit.

Statistical tests draw from the operating system; each has a false-alarm probability below 1e-6.
"""

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.stats
import torch
from lab.tests.mechanisms.convex_setting import CLASSES, WIDTH, output_perturbation

from gcon.edges.edge_list import public_edges
from gcon.edges.schemes import Schemes
from gcon.errors import InputError, PlanMismatchError
from gcon.mechanisms.aggregates import Aggregates
from gcon.mechanisms.composition import gaussian_total
from gcon.mechanisms.gaussian_curve import gaussian_epsilon
from gcon.mechanisms.losses import PseudoHuber, SoftMargin
from gcon.mechanisms.samplers.rounded import EXACT_GAUSSIAN, SPACING
from gcon.privacy.budget import Budget
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SystemRandomness
from gcon_lab.audits.cases.case import changed
from gcon_lab.audits.empirical import epsilon_bound
from gcon_lab.mechanisms.output_noise_plan import make_output_plan
from gcon_lab.mechanisms.output_perturbation import OutputPerturbation

LEVEL = 1e-6


@pytest.fixture(scope="module")
def setting():
    return output_perturbation()


# --- the minimiser ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_start", [False, True])
def test_infinite_epsilon_releases_the_minimiser_of_the_objective_by_hand(setting, with_start):
    start = torch.randn(WIDTH, CLASSES, generator=torch.Generator().manual_seed(5)) if with_start else None
    plan = setting.plan(Budget(math.inf, 1e-5), start_norm=10.0)
    (weights,) = setting.mechanism(plan, start=start).apply(setting.edges, SystemRandomness())
    rows = setting.rows()[4:]
    slopes = (torch.sigmoid(rows @ weights) - setting.targets) / CLASSES
    pulled = weights - (start.double() if with_start else 0)
    assert float((rows.T @ slopes / len(rows) + 0.3 * pulled).norm()) < 1e-10


def test_a_batch_is_the_same_as_single_releases(setting):
    plans = [
        setting.plan(Budget(math.inf, 1e-5), ridge=ridge, loss=loss)
        for ridge in (0.1, 2.0)
        for loss in (SoftMargin(CLASSES), PseudoHuber(CLASSES, 0.2))
    ]
    batch = setting.mechanism(*plans, plans[0]).apply(setting.edges, SystemRandomness())
    assert batch.shape == (5, WIDTH, CLASSES)
    assert torch.equal(batch[0], batch[4])
    for plan, weights in zip(plans, batch, strict=False):
        (alone,) = setting.mechanism(plan).apply(setting.edges, SystemRandomness())
        assert torch.allclose(alone, weights, atol=2 * plan.tolerance / plan.ridge)


# --- noise ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def noise(setting):
    """The noise of 1,000 releases of one plan, 18 numbers each, read off what the mechanism gives out."""
    plan = setting.plan()
    exact = setting.mechanism(setting.plan(Budget(math.inf, 1e-5))).apply(setting.edges, SystemRandomness())
    released = setting.mechanism(*[plan] * 1_000).apply(setting.edges, SystemRandomness())
    return plan, released, (released - exact).flatten(1).numpy()


def test_noise_is_normal_at_the_right_scale_only(noise):
    plan, _, drawn = noise
    assert scipy.stats.kstest(drawn.ravel(), scipy.stats.norm(scale=plan.scale).cdf).pvalue > LEVEL
    for factor in (1 / 2, 2 / 3, 3 / 2):
        assert scipy.stats.kstest(drawn.ravel(), scipy.stats.norm(scale=factor * plan.scale).cdf).pvalue < LEVEL


def test_releases_and_entries_draw_independent_noise(noise):
    _, _, drawn = noise
    for one, other in ((drawn[:-1], drawn[1:]), (drawn[:, :-1], drawn[:, 1:]), (drawn[:, :9], drawn[:, 9:])):
        assert np.mean(one == other) < 0.01
        assert scipy.stats.spearmanr(one.ravel(), other.ravel()).pvalue > LEVEL / 3


def test_every_weight_lies_on_the_public_lattice(noise, setting):
    plan, released, _ = noise
    spacing = SPACING * math.ulp(plan.scale)
    assert torch.equal(released.remainder(spacing), torch.zeros_like(released))
    assert setting.mechanism(plan).record["spacing"] == spacing
    for plans in ([plan], [plan, plan]):
        assert setting.mechanism(*plans).record["noise"] == EXACT_GAUSSIAN
    assert "noise" not in setting.mechanism(setting.plan(Budget(math.inf, 1e-5))).record


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_rows_longer_than_the_plan_says_are_refused(setting):
    with pytest.raises(PlanMismatchError, match=r"length at most 0\.5"):
        setting.mechanism(setting.plan(longest_row=0.5))


def test_rows_longer_than_one_are_refused_whatever_the_plan_says(setting):
    with pytest.raises(InputError, match="longest_row"):
        setting.plan(longest_row=1.5)
    forged = SimpleNamespace(**{**vars(setting.plan()), "longest_row": 2.0})
    with pytest.raises(PlanMismatchError, match="length at most"):
        dataclasses.replace(setting, aggregates=changed(setting.aggregates, longest_row=1.5)).mechanism(forged)


def test_a_start_that_the_plan_does_not_cover_is_refused(setting):
    start = torch.ones(WIDTH, CLASSES)
    norm = math.sqrt(WIDTH * CLASSES)
    with pytest.raises(PlanMismatchError, match="start"):
        setting.mechanism(setting.plan(start_norm=0.99 * norm), start=start)
    for wrong in (start.T, start * math.nan, start * math.inf):
        with pytest.raises(InputError, match="start"):
            setting.mechanism(setting.plan(start_norm=100.0), start=wrong)
    setting.mechanism(setting.plan(start_norm=norm), start=start)


# --- the ledger -------------------------------------------------------------------------------------------------------


def test_ledger_is_charged_and_knows_the_gaussian_distance(setting):
    ledger = MemoryLedger("graph")
    plans = [setting.plan(Budget(epsilon, 1e-5)) for epsilon in (1.0, 0.5, 2.0)]
    receipt = setting.release(setting.mechanism(plans[0]), ledger).receipt
    setting.release(setting.mechanism(*plans[1:]), ledger)
    assert receipt.keeps_promise
    assert receipt.plan["scale"] == plans[0].scale
    first, second = ledger.entries()
    assert first.request.mechanism == "output perturbation"
    assert first.request.gaussian_distance == pytest.approx(plans[0].distance, rel=1e-9)
    assert second.request.gaussian_distance == pytest.approx(math.hypot(*(plan.distance for plan in plans[1:])))
    assert ledger.total() == Budget(3.5, 3e-5)
    expected = gaussian_epsilon(math.hypot(*(plan.sensitivity / plan.scale for plan in plans)), 1e-5)
    assert gaussian_total(ledger.entries(), extra_delta=1e-5).epsilon == pytest.approx(expected, rel=1e-6)
    assert expected < 3.5


# --- audit ------------------------------------------------------------------------------------------------------------


def pair_scores(broken, runs=20_000):
    """Runs on two nodes with opposite features and classes, with and without their edge; the start is on the wrong side.

    Both slopes are then nearly as large as they can be, and the edge moves the minimiser by 3/4 of the sensitivity.
    """
    schemes, features = Schemes(restart=0.97, steps=(1,)), torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
    plan = make_output_plan(
        Budget(2.0, 0.1),
        loss=SoftMargin(1),
        num_features=1,
        num_labelled=2,
        edge_influence=0.06,
        ridge=1000.0,
        start_norm=1.5,
    )
    mechanism = OutputPerturbation(
        # The influence of real numbers; rounding is far below what an audit sees.
        aggregates=changed(Aggregates(features, schemes), edge_influence=0.06, longest_row=1.0),
        plans=(plan,) * runs,
        mask=torch.ones(2, dtype=torch.bool),
        targets=torch.tensor([[1.0], [0.0]], dtype=torch.float64),
        start=torch.tensor([[-1.5]], dtype=torch.float64),
    )
    object.__setattr__(plan, "scale", broken * plan.scale)  # a plan that is checked cannot be broken otherwise
    outcomes = []
    for pairs in ([[0], [1]], [[], []]):
        edges = public_edges(torch.tensor(pairs, dtype=torch.int64), 2)
        outcomes.append(mechanism.apply(edges, SystemRandomness()).flatten().numpy())
    # One dimension, equal variances: the likelihood ratio rises or falls with the outcome.
    sign = 1.0 if outcomes[0].mean() > outcomes[1].mean() else -1.0
    return [sign * outcome for outcome in outcomes]


@pytest.mark.slow
def test_audit_on_two_nodes_stays_below_epsilon_and_catches_half_the_noise():
    assert 0.6 <= epsilon_bound(*pair_scores(1.0), delta=0.1, error=5e-7) <= 2.0
    assert epsilon_bound(*pair_scores(0.5), delta=0.1, error=5e-7) > 2.0
