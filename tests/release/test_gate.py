"""The gates: paid first, opened once, failures withheld and charged, nothing released without its proof."""

import math
import traceback
from copy import copy
from dataclasses import dataclass, replace

import pytest
import torch

import gcon.mechanisms.newton
from gcon.edges.schemes import Schemes
from gcon.errors import (
    BudgetExceededError,
    InputError,
    NoCertificateError,
    PlanMismatchError,
    PrivateComputationError,
)
from gcon.mechanisms.aggregates import aggregate_privately
from gcon.mechanisms.objective_perturbation import ObjectivePerturbation
from gcon.privacy.budget import NOTHING, Budget
from gcon.privacy.gates import answer_owners, declassify, diagnose, release_statistic
from gcon.privacy.ledger import Kind, Outcome, Request
from gcon.privacy.opening import map_private, open_private
from gcon.privacy.randomness import SeededRandomness, SystemRandomness
from gcon.privacy.statement import statement

SEED = 8675309


def release(kit, mechanism=None, aggregates=None, *, ledger=None, randomness=None):
    return release_statistic(
        mechanism or kit.mechanism(),
        aggregates or kit.watched(),
        ledger=ledger or kit.ledger(),
        randomness=randomness or SystemRandomness(),
        purpose="a test",
    )


@dataclass
class Spy:
    """A mechanism that does what it is told."""

    events: list
    budget: Budget = Budget(0.5, 1e-6)  # noqa: RUF009
    name: str = "spy"
    refusal: Exception | None = None
    failure: Exception | None = None

    def public_record(self):
        return {"noise": 3.0}

    def check(self, bounded):
        self.events.append("check")
        if self.refusal is not None:
            raise self.refusal

    def apply(self, value, randomness):
        self.events.append("apply")
        if self.failure is not None:
            raise self.failure
        return float(value.sum())


def test_paid_before_anything_is_opened(kit):
    released = release(kit, Spy(kit.events))
    assert kit.events == ["check", "reserve", "open", "apply", "settle as released"]
    assert isinstance(released.value, float)


def test_the_real_mechanism_is_paid_first_too(kit):
    release(kit)
    assert kit.events == ["reserve", "open", "settle as released"]


def test_the_ledger_entry_and_the_receipt(kit):
    ledger = kit.ledger(data_set="friendships")
    ledger.reserve(Request(kind=Kind.RELEASE, mechanism="earlier", purpose="earlier", cost=Budget(2.0, 1e-6)))
    receipt = release(kit, Spy(kit.events), ledger=ledger).receipt
    entry = ledger.entries()[-1]
    assert (entry.request.kind, entry.outcome, entry.data_set) == (Kind.RELEASE, Outcome.RELEASED, "friendships")
    assert (entry.request.mechanism, entry.request.purpose) == ("spy", "a test")
    assert entry.request.cost == receipt.budget == Budget(0.5, 1e-6)
    assert entry.request.plan == receipt.plan == {"noise": 3.0}
    assert entry.request.randomness == receipt.randomness == "operating system"
    assert receipt.time == entry.time == "2030-01-02T00:00:00+00:00"
    assert (receipt.mechanism, receipt.purpose, receipt.data_set) == ("spy", "a test", "friendships")
    assert receipt.protected_change == "one undirected edge"
    assert receipt.keeps_promise
    assert receipt.total == ledger.total() == Budget(2.5, 2e-6)


def test_a_refused_check_opens_and_charges_nothing(kit):
    ledger = kit.ledger()
    with pytest.raises(PlanMismatchError, match=r"^no$"):
        release(kit, Spy(kit.events, refusal=PlanMismatchError("no")), ledger=ledger)
    assert kit.events == ["check"]
    assert not ledger.entries()


def test_over_the_ceiling_nothing_is_opened(kit):
    ledger = kit.ledger(ceiling=Budget(0.4, 1e-5))
    with pytest.raises(BudgetExceededError):
        release(kit, Spy(kit.events), ledger=ledger)
    assert kit.events == ["check"]
    assert not ledger.entries()
    assert ledger.total() == NOTHING


def test_a_failure_is_withheld_and_stays_charged(kit):
    ledger = kit.ledger()
    failure = ValueError(f"{SEED} edges")
    with pytest.raises(PrivateComputationError) as raised:
        release(kit, Spy(kit.events, failure=failure), ledger=ledger)
    assert str(SEED) not in "".join(traceback.format_exception(raised.value))
    assert all(frame.f_code.co_name != "apply" for frame, _ in traceback.walk_tb(raised.value.__traceback__))
    assert ledger.entries()[0].outcome is Outcome.WITHHELD
    assert ledger.total() == Budget(0.5, 1e-6)
    assert kit.events[-1] == "settle as withheld"


def test_a_failure_in_propagation_is_withheld_too(kit):
    def fail(value):
        raise ZeroDivisionError

    broken = replace(kit.aggregates, value=map_private(fail, kit.aggregates.value, "broken"))
    ledger = kit.ledger()
    with pytest.raises(PrivateComputationError):
        release(kit, aggregates=broken, ledger=ledger)
    assert ledger.entries()[0].outcome is Outcome.WITHHELD
    assert ledger.total() == Budget(1.0, 1e-5)


def test_an_interrupted_run_stays_reserved_and_charged(kit):
    ledger = kit.ledger()
    with pytest.raises(KeyboardInterrupt):
        release(kit, Spy(kit.events, failure=KeyboardInterrupt()), ledger=ledger)
    assert ledger.entries()[0].outcome is Outcome.RESERVED
    assert ledger.total() == Budget(0.5, 1e-6)


def test_without_a_certificate_nothing_is_released(kit, monkeypatch):
    monkeypatch.setattr(gcon.mechanisms.newton, "MOST_ITERATIONS", 1)
    ledger, outcomes = kit.ledger(), []
    with pytest.raises(NoCertificateError, match="nothing is released") as raised:
        outcomes.append(release(kit, ledger=ledger))
    assert not outcomes
    assert not any(character.isdigit() for character in str(raised.value))
    assert raised.value.__context__ is None
    assert ledger.entries()[0].outcome is Outcome.WITHHELD
    assert ledger.total() == Budget(1.0, 1e-5)


def test_a_plan_for_a_smaller_influence_is_refused(kit):
    small = kit.plan(edge_influence=kit.aggregates.edge_influence * (1 - 1e-12))
    ledger = kit.ledger()
    with pytest.raises(PlanMismatchError, match="plan made for edge influence"):
        release(kit, kit.mechanism(small), ledger=ledger)
    assert not kit.events
    assert not ledger.entries()


def test_one_plan_of_a_batch_for_a_smaller_influence_is_refused(kit):
    with pytest.raises(PlanMismatchError):
        release(kit, kit.mechanism(kit.plan(), kit.plan(edge_influence=0.0), kit.plan()))
    assert not kit.events


def test_a_plan_for_a_larger_influence_is_welcome(kit):
    large = kit.plan(edge_influence=2 * kit.aggregates.edge_influence)
    assert release(kit, kit.mechanism(large)).receipt.keeps_promise


@pytest.mark.parametrize(
    "change", [{"num_columns": 5}, {"num_rows": 61}, {"longest_row": 1.0001}, {"longest_row": math.inf}], ids=str
)
def test_aggregates_that_do_not_fit_the_plan_are_refused(kit, change):
    with pytest.raises(PlanMismatchError):
        release(kit, aggregates=replace(kit.watched(), **change))
    assert not kit.events


@pytest.mark.parametrize("fact", ["edge_influence", "longest_row"])
def test_a_bound_that_is_not_a_number_is_refused(kit, fact):
    with pytest.raises(PlanMismatchError):
        release(kit, aggregates=replace(kit.watched(), **{fact: math.nan}))
    assert not kit.events


def test_rows_longer_than_one_are_refused(kit):
    features = 2 * kit.encoder.encode(kit.graph.nodes.features)
    long = aggregate_privately(kit.graph.edges, features, Schemes(restart=0.8, steps=(2,)))
    with pytest.raises(PlanMismatchError, match="rows of length at most 1"):
        release(kit, kit.mechanism(kit.plan(edge_influence=long.edge_influence)), kit.watched(long))
    assert not kit.events


def test_targets_of_another_shape_are_refused(kit):
    plan, rows = kit.plan(), kit.rows
    fewer = rows.mask.clone()
    fewer[0] = False
    for mask, targets in ((fewer, rows.targets), (rows.mask, rows.targets[:, :2]), (rows.mask, rows.targets[1:])):
        with pytest.raises(PlanMismatchError):
            ObjectivePerturbation(plans=(plan,), mask=mask, targets=targets)
    with pytest.raises(InputError, match="targets"):
        ObjectivePerturbation(plans=(plan,), mask=rows.mask, targets=rows.targets * 1.01)
    with pytest.raises(InputError, match="plans"):
        ObjectivePerturbation(plans=(plan, kit.plan(num_features=9)), mask=rows.mask, targets=rows.targets)
    with pytest.raises(InputError, match="plans"):
        ObjectivePerturbation(plans=(), mask=rows.mask, targets=rows.targets)


def test_a_finite_epsilon_always_adds_noise(kit):
    plan = kit.plan()
    without = replace(plan.theorem, noise_rate=math.inf)
    with pytest.raises(PlanMismatchError):
        replace(plan, theorem=without)
    silent = copy(plan)
    object.__setattr__(silent, "theorem", without)  # past every check of the plan
    ledger = kit.ledger()
    with pytest.raises(PrivateComputationError):
        release(kit, kit.mechanism(silent), ledger=ledger)
    assert ledger.entries()[0].outcome is Outcome.WITHHELD


def test_two_secure_releases_differ(kit):
    assert not torch.equal(release(kit).value, release(kit).value)


def test_a_seeded_release_carries_no_promise(kit):
    ledger = kit.ledger()
    receipt = release(kit, ledger=ledger, randomness=SeededRandomness(SEED)).receipt
    assert not receipt.keeps_promise
    assert receipt.randomness == "seeded: no promise"
    assert math.isinf(receipt.total.epsilon)
    assert math.isinf(ledger.total().epsilon)
    made = statement(receipt)
    assert "There is no promise: the noise was drawn from a seed" in str(made)
    assert made.fields["promise"] is False
    for shown in (made, made.fields, receipt, ledger.entries()):
        assert str(SEED) not in f"{shown}{shown!r}"


def test_a_finite_ceiling_refuses_a_seeded_release(kit):
    with pytest.raises(BudgetExceededError, match="carries no promise"):
        release(kit, ledger=kit.ledger(ceiling=Budget(100.0, 0.5)), randomness=SeededRandomness(SEED))
    assert not kit.events


def test_seeded_releases_repeat(kit):
    first, second = (release(kit, randomness=SeededRandomness(SEED)) for _ in range(2))
    assert torch.equal(first.value, second.value)
    assert not torch.equal(first.value, release(kit, randomness=SeededRandomness(SEED + 1)).value)


def test_a_seeded_release_that_spends_delta_alone_carries_no_promise(kit):
    released = release(kit, Spy(kit.events, budget=Budget(0.0, 1e-3)), randomness=SeededRandomness(SEED))
    assert not released.receipt.keeps_promise
    assert math.isinf(released.receipt.total.epsilon)


def test_infinite_epsilon_carries_no_promise(kit):
    ledger = kit.ledger()
    released = release(kit, kit.mechanism(kit.plan(math.inf)), ledger=ledger)
    assert not released.receipt.keeps_promise
    assert math.isinf(ledger.total().epsilon)
    assert "There is no promise: no noise was added" in str(statement(released.receipt))
    again = release(kit, kit.mechanism(kit.plan(math.inf)))
    assert torch.equal(released.value, again.value)


@pytest.mark.parametrize("schemes", [Schemes(restart=1.0, steps=(2,)), Schemes(restart=0.3, steps=(0,))], ids=str)
@pytest.mark.parametrize("randomness", [SystemRandomness(), SeededRandomness(SEED)], ids=["system", "seeded"])
def test_what_reads_no_edge_costs_nothing(kit, schemes, randomness):
    aggregates = kit.propagated(schemes)
    assert aggregates.edge_influence == 0
    ledger = kit.ledger(ceiling=NOTHING)
    mechanism = kit.mechanism(kit.plan(aggregates=aggregates))
    first = release(kit, mechanism, aggregates, ledger=ledger, randomness=randomness)
    second = release(kit, mechanism, aggregates, ledger=ledger, randomness=randomness)
    assert torch.equal(first.value, second.value)
    assert first.receipt.keeps_promise
    assert first.receipt.budget == ledger.total() == NOTHING
    assert len(ledger.entries()) == 2


def test_answers_to_owners_are_recorded(kit):
    ledger = kit.ledger(ceiling=NOTHING)
    answer = answer_owners(lambda edges: edges.num_nodes, kit.graph.edges, ledger=ledger, purpose="owners")
    assert answer == 60
    (entry,) = ledger.entries()
    assert (entry.request.kind, entry.outcome) == (Kind.DELIVERY, Outcome.RELEASED)
    assert entry.request.purpose == "owners"
    assert entry.request.cost == NOTHING
    assert kit.events == ["reserve", "settle as released"]


def test_diagnostics_are_recorded_as_not_for_publication(kit):
    ledger = kit.ledger()
    assert diagnose(lambda edges: edges.num_nodes, kit.graph.edges, ledger=ledger, purpose="look") == 60
    (entry,) = ledger.entries()
    assert entry.request.kind is Kind.DIAGNOSTIC
    assert "not for publication" in entry.request.mechanism
    assert entry.request.plan == {}


@pytest.mark.parametrize("gate", [answer_owners, diagnose])
def test_a_failure_in_these_gates_tells_nothing(kit, gate):
    ledger = kit.ledger()

    def fail(edges):
        raise ValueError(f"{edges.columns.tolist()}")

    with pytest.raises(PrivateComputationError, match=r"^A computation on private values failed"):
        gate(fail, kit.graph.edges, ledger=ledger, purpose="x")
    assert ledger.entries()[0].outcome is Outcome.WITHHELD


def test_declassification_makes_the_total_infinite(kit):
    ledger = kit.ledger()
    edges = declassify(kit.graph.edges, reason="an attack on a synthetic graph", ledger=ledger)
    assert edges is open_private(kit.graph.edges)
    (entry,) = ledger.entries()
    assert entry.request.kind is Kind.DECLASSIFICATION
    assert entry.request.purpose == "an attack on a synthetic graph"
    assert math.isinf(ledger.total().epsilon)
    assert math.isinf(release(kit, ledger=ledger).receipt.total.epsilon)


@pytest.mark.parametrize("reason", ["", " ", "\n\t"])
def test_declassification_needs_a_reason(kit, reason):
    ledger = kit.ledger()
    with pytest.raises(InputError, match=r"^reason"):
        declassify(kit.graph.edges, reason=reason, ledger=ledger)
    assert not ledger.entries()


def test_a_ceiling_refuses_declassification(kit):
    ledger = kit.ledger(ceiling=Budget(10.0, 0.1))
    with pytest.raises(BudgetExceededError):
        declassify(kit.watched().value, reason="a test", ledger=ledger)
    assert not kit.events


def test_two_releases_add_up(kit):
    ledger = kit.ledger()
    first = release(kit, ledger=ledger).receipt
    second = release(kit, kit.mechanism(kit.plan(0.2, 1e-6)), ledger=ledger).receipt
    assert first.total == Budget(1.0, 1e-5)
    assert second.budget == Budget(0.2, 1e-6)
    assert second.total == Budget(1.2, 1.1e-5)
