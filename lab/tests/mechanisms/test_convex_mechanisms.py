"""What Gaussian objective perturbation and output perturbation have in common: refusals, the certificate, the ledger."""

import dataclasses
import math
from types import SimpleNamespace

import pytest
import torch
from lab.tests.mechanisms.convex_setting import NO_EDGES, NODES, WIDTH, gaussian_objective, output_perturbation

import gcon.mechanisms.perturbed_objective
from gcon.errors import InputError, NoCertificateError, PlanMismatchError
from gcon.mechanisms.aggregates import Aggregates
from gcon.privacy.budget import NOTHING, Budget
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SeededRandomness, SystemRandomness
from gcon_lab.audits.cases.case import changed

MAKERS = {"gaussian objective": gaussian_objective, "output perturbation": output_perturbation}


@pytest.fixture(scope="module", params=MAKERS)
def make(request):
    return MAKERS[request.param]


@pytest.fixture(scope="module")
def setting(make):
    return make()


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


@pytest.mark.parametrize("target", [math.nan, 1.01, -0.01])
def test_targets_outside_the_bounds_are_refused(setting, target):
    wrong = setting.targets.clone()
    wrong[3, 1] = target
    with pytest.raises(InputError, match="targets"):
        setting.mechanism(targets=wrong)


def test_rows_in_the_loss_must_be_those_of_the_plan(setting):
    for mask, targets in ((setting.mask, setting.targets[1:]), (~setting.mask, setting.targets)):
        with pytest.raises(PlanMismatchError):
            setting.mechanism(mask=mask, targets=targets)
    with pytest.raises(InputError, match="plans"):
        setting.mechanism(plans=())


def test_a_plan_without_noise_is_refused(setting):
    plan = setting.plan()
    told = {name: getattr(plan, name) for name in ("edge_influence", "longest_row", "needs_noise")}
    silent = SimpleNamespace(**{**vars(plan), **told, "scale": 0.0})
    with pytest.raises(PlanMismatchError, match="must add noise"):
        setting.mechanism(silent)


def test_without_a_certificate_nothing_is_released_and_it_stays_charged(setting, monkeypatch):
    monkeypatch.setattr(gcon.mechanisms.perturbed_objective, "MOST_ITERATIONS", 1)
    ledger = MemoryLedger("graph")
    with pytest.raises(NoCertificateError):
        setting.release(setting.mechanism(setting.plan(ridge=0.01)), ledger)
    assert ledger.total() == Budget(1.0, 1e-5)


def test_aggregates_that_are_not_numbers_release_nothing(setting, monkeypatch):
    broken = setting.rows().clone()
    broken[7, 0] = math.nan
    monkeypatch.setattr(Aggregates, "of", lambda self, edges: broken)
    with pytest.raises((NoCertificateError, torch.linalg.LinAlgError)):
        setting.mechanism().apply(setting.edges, SystemRandomness())


def test_no_promise_at_infinite_epsilon_or_with_a_seed(setting):
    for plan, randomness in (
        (setting.plan(Budget(math.inf, 1e-5)), SystemRandomness()),
        (setting.plan(), SeededRandomness(3)),
    ):
        ledger = MemoryLedger("graph")
        receipt = setting.release(setting.mechanism(plan), ledger, randomness=randomness).receipt
        assert math.isinf(ledger.total().epsilon)
        assert ledger.entries()[0].request.gaussian_distance is None
        assert not receipt.keeps_promise


def test_what_reads_no_edge_is_free(make, setting):
    alone = make(NO_EDGES)
    assert alone.aggregates.edge_influence == 0
    ledger = MemoryLedger("graph")
    released = alone.release(alone.mechanism(), ledger)
    assert ledger.total() == NOTHING
    exact = alone.mechanism(alone.plan(Budget(math.inf, 1e-5))).apply(alone.edges, SystemRandomness())
    assert torch.equal(released.value, exact)
    with pytest.raises(PlanMismatchError):  # the same plan does not cover aggregates that read edges
        setting.mechanism(alone.plan())
