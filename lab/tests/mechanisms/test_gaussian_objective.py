"""Gaussian objective perturbation: the noise inside released weights, the final noise, refusals, the ledger.

Statistical tests draw from the operating system; each has a false-alarm probability below 1e-6.
"""

import dataclasses
import math
from types import SimpleNamespace

import networkx
import pytest
import scipy.stats
import torch

import gcon.mechanisms.newton
from gcon.edges.edge_list import public_edges
from gcon.edges.schemes import Schemes
from gcon.edges.source import Edges
from gcon.errors import InputError, NoCertificateError, PlanMismatchError
from gcon.mechanisms import convex_training
from gcon.mechanisms.aggregates import Aggregates
from gcon.mechanisms.losses import PseudoHuber, SoftMargin
from gcon.mechanisms.samplers.rounded import lattice_spacing
from gcon.privacy.account import release_once
from gcon.privacy.boundary import Private
from gcon.privacy.budget import NOTHING, Budget
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SeededRandomness, SystemRandomness
from gcon_lab.audits.cases.case import changed
from gcon_lab.mechanisms.gaussian_objective import GaussianObjective
from gcon_lab.mechanisms.gaussian_objective_plan import make_gaussian_objective_plan

LEVEL = 1e-6
NODES, WIDTH, CLASSES = 40, 6, 3


@dataclasses.dataclass(frozen=True, eq=False)
class Setting:
    """A small graph; all nodes but the first four are in the loss."""

    aggregates: Aggregates
    edges: Edges
    mask: torch.Tensor
    targets: torch.Tensor

    def plan(self, budget=Budget(1.0, 1e-5), **changes):  # noqa: B008  (budgets are frozen)
        options = {
            "loss": SoftMargin(CLASSES),
            "num_features": WIDTH,
            "num_labelled": len(self.targets),
            "edge_influence": self.aggregates.edge_influence,
            "ridge": 1.0,
        }
        return make_gaussian_objective_plan(budget, **(options | changes))

    def mechanism(self, *plans):
        return GaussianObjective(
            aggregates=self.aggregates, plans=plans or (self.plan(),), mask=self.mask, targets=self.targets
        )

    def rows(self):
        """The aggregates of all nodes."""
        return self.aggregates.of(self.edges)

    def release(self, mechanism, ledger, *, randomness=None):
        private, randomness = Private(self.edges, "edges"), randomness or SystemRandomness()
        return release_once(mechanism, private, ledger=ledger, randomness=randomness, purpose="test")


def make_setting(schemes):
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(NODES, WIDTH, generator=generator, dtype=torch.float64)
    features /= features.norm(dim=1, keepdim=True) * 1.0001
    graph = networkx.gnp_random_graph(NODES, 0.1, seed=1)
    edges = public_edges(torch.tensor(list(graph.edges)).T, NODES)
    mask = torch.arange(NODES) >= 4
    targets = torch.eye(CLASSES, dtype=torch.float64)[torch.randint(CLASSES, (NODES - 4,), generator=generator)]
    return Setting(Aggregates(features, schemes), edges, mask, targets)


@pytest.fixture(scope="module")
def setting():
    return make_setting(Schemes(restart=0.8, steps=(2,)))


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
    assert torch.equal(noisy.remainder(lattice_spacing(plan.final_noise)), torch.zeros_like(noisy))
    assert setting.mechanism(plan).public_record()["spacing"] == lattice_spacing(plan.final_noise)


@pytest.mark.parametrize("loss", [SoftMargin(CLASSES), PseudoHuber(CLASSES, 0.2)], ids=lambda loss: loss.name)
def test_infinite_epsilon_releases_the_minimiser_of_the_plain_objective(setting, loss):
    plan = setting.plan(Budget(math.inf, 1e-5), loss=loss)
    (weights,) = setting.mechanism(plan).apply(setting.edges, SystemRandomness())
    rows = setting.rows()[4:]
    gradient = rows.T @ loss.slope(rows @ weights, setting.targets) / len(rows) + 1.0 * weights
    assert float(gradient.norm()) < 1e-10


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_aggregates_that_the_plan_does_not_cover_are_refused(setting):
    for change in (
        {"edge_influence": setting.aggregates.edge_influence * 1.01},
        {"edge_influence": math.nan},
        {"longest_row": 1.001},
        {"longest_row": math.nan},
        {"num_columns": WIDTH + 1},
        {"num_rows": NODES - 1},
    ):
        with pytest.raises(PlanMismatchError):
            dataclasses.replace(setting.mechanism(), aggregates=changed(setting.aggregates, **change))


@pytest.mark.parametrize("targets", [math.nan, 1.01, -0.01])
def test_targets_outside_the_bounds_are_refused(setting, targets):
    wrong = setting.targets.clone()
    wrong[3, 1] = targets
    with pytest.raises(InputError, match="targets"):
        GaussianObjective(aggregates=setting.aggregates, plans=(setting.plan(),), mask=setting.mask, targets=wrong)


def test_a_plan_without_noise_is_refused(setting):
    plan = setting.plan()
    silent = SimpleNamespace(**vars(plan), scale=0.0, needs_noise=True, total_ridge=1.0, final_noise=0.0)
    with pytest.raises(PlanMismatchError, match="must add noise"):
        setting.mechanism(silent)


def test_without_a_certificate_nothing_is_released_and_it_stays_charged(setting, monkeypatch):
    monkeypatch.setattr(gcon.mechanisms.newton, "MOST_ITERATIONS", 1)
    ledger = MemoryLedger("graph")
    with pytest.raises(NoCertificateError):
        setting.release(setting.mechanism(), ledger)
    assert ledger.total() == Budget(1.0, 1e-5)


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


def test_no_promise_at_infinite_epsilon_or_with_a_seed(setting):
    for plan, randomness in (
        (setting.plan(Budget(math.inf, 1e-5)), SystemRandomness()),
        (setting.plan(), SeededRandomness(3)),
    ):
        ledger = MemoryLedger("graph")
        receipt = setting.release(setting.mechanism(plan), ledger, randomness=randomness).receipt
        assert math.isinf(ledger.total().epsilon)
        assert not receipt.keeps_promise


def test_what_reads_no_edge_is_free():
    alone = make_setting(Schemes(restart=1.0, steps=(2,)))
    ledger = MemoryLedger("graph")
    released = alone.release(alone.mechanism(), ledger)
    assert ledger.total() == NOTHING
    exact = alone.mechanism(alone.plan(Budget(math.inf, 1e-5))).apply(alone.edges, SystemRandomness())
    assert torch.equal(released.value, exact)
