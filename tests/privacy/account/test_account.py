"""The account: paid first, opened once, failures withheld and charged, nothing released without its proof."""

import math
import os
import pickle
import sys
import threading
import time
import traceback
from contextlib import suppress
from copy import copy, deepcopy
from dataclasses import dataclass, replace

import pytest
import torch

import gcon.mechanisms.perturbed_objective
from gcon.edges.schemes import Schemes
from gcon.errors import (
    BoundaryError,
    BudgetExceededError,
    InputError,
    LedgerError,
    NoCertificateError,
    PlanMismatchError,
    PrivateComputationError,
    UnprovenBoundError,
)
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.gaussian_release import gaussian_plan
from gcon.mechanisms.losses import PseudoHuber
from gcon.mechanisms.objective_perturbation import ObjectivePerturbation
from gcon.privacy.account import release_once, spend, telling_charges, transcript
from gcon.privacy.budget import NOTHING, Budget, compose
from gcon.privacy.ledger import Kind, MemoryLedger, Outcome, Request, Reservation
from gcon.privacy.ledger_file import FileLedger
from gcon.privacy.plan import SingleRelease, proven
from gcon.privacy.randomness import SeededRandomness, SystemRandomness
from gcon.privacy.statement import statement

SEED = 8675309


def release(kit, mechanism=None, *, ledger=None, randomness=None):
    return release_once(
        mechanism or kit.mechanism(),
        kit.watched(),
        ledger=ledger or kit.ledger(),
        randomness=randomness or SystemRandomness(),
        purpose="a test",
    )


@proven("a test")
@dataclass(eq=False)
class Spy:
    """A mechanism that does what it is told."""

    events: list
    budget: Budget = Budget(0.5, 1e-6)  # noqa: RUF009
    name: str = "spy"
    failure: BaseException | None = None
    gaussian_distance: float | None = None
    reads_edges: bool = True

    def check(self):
        """Nothing to check."""

    @property
    def record(self):
        return {"noise": 3.0}

    def apply(self, edges, randomness):
        self.events.append("apply")
        if self.failure is not None:
            raise self.failure
        return float(edges.num_nodes)


def test_what_the_ledger_refused_is_not_told_as_a_charge(kit):
    with pytest.raises(BudgetExceededError) as caught, telling_charges():
        release(kit, ledger=MemoryLedger("a test", ceiling=Budget(1e-9, 0.0)))
    assert not getattr(caught.value, "__notes__", [])


def test_paid_before_anything_is_opened(kit):
    released = release(kit, Spy(kit.events))
    assert kit.events == ["reserve", "open", "apply", "settle as released"]
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


def test_over_the_ceiling_nothing_is_opened(kit):
    ledger = kit.ledger(ceiling=Budget(0.4, 1e-5))
    with pytest.raises(BudgetExceededError):
        release(kit, Spy(kit.events), ledger=ledger)
    assert not kit.events
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


def test_a_failure_in_propagation_is_withheld_too(kit, monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr("gcon.mechanisms.aggregates.propagate", fail)
    ledger = kit.ledger()
    with pytest.raises(PrivateComputationError):
        release(kit, ledger=ledger)
    assert ledger.entries()[0].outcome is Outcome.WITHHELD
    assert ledger.total() == Budget(1.0, 1e-5)


def test_an_interrupted_run_stays_reserved_and_charged(kit):
    ledger = kit.ledger()
    with pytest.raises(KeyboardInterrupt):
        release(kit, Spy(kit.events, failure=KeyboardInterrupt()), ledger=ledger)
    assert ledger.entries()[0].outcome is Outcome.RESERVED
    assert ledger.total() == Budget(0.5, 1e-6)


def test_without_a_certificate_nothing_is_released(kit, monkeypatch):
    monkeypatch.setattr(gcon.mechanisms.perturbed_objective, "MOST_ITERATIONS", 1)
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


def changed(aggregates, **facts):
    """Aggregates that claim something else, past every check of theirs."""
    forged = copy(aggregates)
    for name, value in facts.items():
        object.__setattr__(forged, name, value)
    return forged


@pytest.mark.parametrize(
    "change",
    [
        {"num_columns": 5},
        {"num_rows": 61},
        {"longest_row": 1.0001},
        {"longest_row": math.inf},
        {"longest_row": math.nan},
        {"edge_influence": math.nan},
    ],
    ids=str,
)
def test_aggregates_that_do_not_fit_the_plan_are_refused(kit, change):
    with pytest.raises(PlanMismatchError):
        kit.mechanism(kit.plan(), aggregates=changed(kit.aggregates, **change))


def test_the_bound_is_that_of_the_features_as_they_were(kit):
    features = kit.encoder.encode(kit.graph.nodes.features)
    aggregates = type(kit.aggregates)(features, Schemes(restart=0.8, steps=(2,)))
    features *= 100
    assert aggregates.edge_influence == kit.aggregates.edge_influence
    mechanism = kit.mechanism(kit.plan(math.inf), aggregates=aggregates)
    assert torch.equal(release(kit, mechanism).value, release(kit, kit.mechanism(kit.plan(math.inf))).value)


def test_rows_longer_than_one_are_refused(kit):
    features = 2 * kit.encoder.encode(kit.graph.nodes.features)
    long = type(kit.aggregates)(features, Schemes(restart=0.8, steps=(2,)))
    with pytest.raises(PlanMismatchError, match="rows of length at most 1"):
        kit.mechanism(kit.plan(edge_influence=long.edge_influence), aggregates=long)


def test_targets_of_another_shape_are_refused(kit):
    plan, rows = kit.plan(), kit.rows
    fewer = rows.mask.clone()
    fewer[0] = False
    for mask, targets in ((fewer, rows.targets), (rows.mask, rows.targets[:, :2]), (rows.mask, rows.targets[1:])):
        with pytest.raises(PlanMismatchError):
            ObjectivePerturbation(aggregates=kit.aggregates, plans=(plan,), mask=mask, targets=targets)
    with pytest.raises(InputError, match="targets"):
        ObjectivePerturbation(aggregates=kit.aggregates, plans=(plan,), mask=rows.mask, targets=rows.targets * 1.01)
    with pytest.raises(InputError, match="plans"):
        kit.mechanism(plan, kit.plan(num_features=9))
    with pytest.raises(InputError, match="plans"):
        ObjectivePerturbation(aggregates=kit.aggregates, plans=(), mask=rows.mask, targets=rows.targets)


def test_a_finite_epsilon_always_adds_noise(kit):
    plan = kit.plan()
    without = replace(plan.theorem, noise_rate=math.inf)
    with pytest.raises(PlanMismatchError):
        replace(plan, theorem=without)
    silent = copy(plan)
    object.__setattr__(silent, "theorem", without)  # past every check of the plan
    with pytest.raises(PlanMismatchError):
        kit.mechanism(silent)


def test_a_plan_that_was_changed_or_made_by_others_is_refused(kit):
    plan = kit.plan()
    mechanism, quiet = kit.mechanism(plan), replace(plan.theorem, noise_rate=1e9)
    object.__setattr__(plan, "theorem", quiet)  # after the mechanism was made
    with pytest.raises(PlanMismatchError):
        mechanism.check()

    class Quiet(type(kit.plan())):
        noise_rate = 1e9

    with pytest.raises(PlanMismatchError, match="make_plan"):
        kit.mechanism(Quiet(**vars(kit.plan())))


def test_plans_cannot_be_added_after_paying(kit):
    plans = [kit.plan()]
    mechanism = ObjectivePerturbation(
        aggregates=kit.aggregates, plans=plans, mask=kit.rows.mask, targets=kit.rows.targets
    )
    plans.append(kit.plan())
    assert len(mechanism.plans) == 1


def test_a_price_that_changes_after_paying_is_refused(kit):
    mechanism = kit.mechanism(kit.plan())
    options = {"ledger": kit.ledger(), "randomness": SystemRandomness(), "purpose": "a test"}
    account = spend(kit.watched(), SingleRelease(mechanism), **options)
    with pytest.raises(PlanMismatchError, match="changed its price"), account:
        object.__setattr__(mechanism, "plans", (kit.plan(), kit.plan()))
        account.release(mechanism)


def test_a_loss_of_ones_own_has_no_plan(kit):
    class Flattering(type(kit.plan().loss)):
        slope_bound = 1e-6

    for loss in (Flattering(kit.plan().loss.num_classes), PseudoHuber(3, -1.0), PseudoHuber(3, math.nan)):
        with pytest.raises((PlanMismatchError, InputError)):
            replace(kit.plan(), loss=loss)


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
    mechanism = kit.mechanism(kit.plan(aggregates=aggregates), aggregates=aggregates)
    first = release(kit, mechanism, ledger=ledger, randomness=randomness)
    second = release(kit, mechanism, ledger=ledger, randomness=randomness)
    assert torch.equal(first.value, second.value)
    assert first.receipt.keeps_promise
    assert first.receipt.budget == ledger.total() == NOTHING
    assert len(ledger.entries()) == 2


def test_two_releases_add_up(kit):
    ledger = kit.ledger()
    first = release(kit, ledger=ledger).receipt
    second = release(kit, kit.mechanism(kit.plan(0.2, 1e-6)), ledger=ledger).receipt
    assert first.total == Budget(1.0, 1e-5)
    assert second.budget == Budget(0.2, 1e-6)
    assert second.total == Budget(1.2, 1.1e-5)


def test_a_batch_of_plans_costs_the_sum(kit):
    plans = [kit.plan(epsilon, 1e-6) for epsilon in (0.1, 0.2, 0.3)]
    ledger = kit.ledger()
    released = release(kit, kit.mechanism(*plans), ledger=ledger)
    assert ledger.total() == released.receipt.budget == Budget(0.6, 3e-6) == compose(plan.budget for plan in plans)
    assert len(ledger.entries()) == 1
    assert [record["epsilon"] for record in released.receipt.plan["plans"]] == [0.1, 0.2, 0.3]
    assert not torch.equal(released.value[0], released.value[1])


def test_equal_plans_of_a_batch_draw_their_own_noise(kit):
    first, second = release(kit, kit.mechanism(kit.plan(), kit.plan())).value
    assert not torch.equal(first, second)


def test_a_batch_with_one_plan_without_noise_has_no_promise(kit):
    assert not release(kit, kit.mechanism(kit.plan(), kit.plan(math.inf))).receipt.keeps_promise


def test_a_batch_solves_each_plan_as_if_alone(kit):
    (alone,) = release(kit, kit.mechanism(kit.plan(math.inf, ridge=0.5))).value
    _, second = release(kit, kit.mechanism(kit.plan(math.inf, ridge=2.0), kit.plan(math.inf, ridge=0.5))).value
    torch.testing.assert_close(second, alone, rtol=0, atol=1e-8)


# ---- several releases in one block

PLAN = gaussian_plan(1.0, 1e-5, method="test")
ROWS = torch.eye(60, 3)


def spending(kit, plan=PLAN, *, ledger=None, randomness=None):
    ledger, randomness = ledger or kit.ledger(), randomness or SystemRandomness()
    return spend(kit.watched(), plan, ledger=ledger, randomness=randomness, purpose="a test")


@pytest.mark.parametrize("name", ["edges", "plan", "ledger", "randomness", "purpose"])
def test_what_an_account_was_made_with_is_never_exchanged(kit, name):
    """Else noise of a seed could come under a promise that was paid for noise that nobody can predict."""
    ledger = kit.ledger()
    with spending(kit, ledger=ledger) as account, pytest.raises(BoundaryError, match="never exchanged"):
        setattr(account, name, SeededRandomness(SEED))
    assert ledger.total() == NOTHING


def test_one_charge_for_all_releases_of_a_block(kit):
    ledger = kit.ledger()
    with spending(kit, ledger=ledger) as account:
        first = account.release(PLAN.noisy(EdgeMoments(ROWS), share=0.4))
        kit.events.append(f"public code, {first.value.shape[0]} columns")
        account.release(PLAN.noisy(EdgeMoments(ROWS), share=0.6))
    assert kit.events == ["reserve", "open", "public code, 3 columns", "open", "settle as released"]
    assert ledger.total() == Budget(1.0, 1e-5)
    assert [record["share"] for record in account.receipt.plan["releases"]] == [0.4, 0.6]
    assert ledger.entries()[0].request.plan["releases"] == []  # written before anything was chosen
    assert ledger.entries()[0].request.gaussian_distance == PLAN.distance


def test_more_than_the_plan_is_refused_before_anything_is_opened(kit):
    ledger = kit.ledger()
    with pytest.raises(PlanMismatchError, match="add to at most 1"), spending(kit, ledger=ledger) as account:
        account.release(PLAN.noisy(EdgeMoments(ROWS), share=0.7))
        account.release(PLAN.noisy(EdgeMoments(ROWS), share=0.7))
    assert kit.events.count("open") == 1
    assert ledger.entries()[0].outcome is Outcome.RELEASED  # what was handed out stays charged
    with pytest.raises(BoundaryError):
        account.receipt  # noqa: B018


def test_releases_of_another_plan_are_refused(kit):
    larger = gaussian_plan(8.0, 1e-5, method="test")
    with pytest.raises(PlanMismatchError, match="made itself"), spending(kit) as account:
        account.release(larger.noisy(EdgeMoments(ROWS), share=1.0))
    with pytest.raises(PlanMismatchError), spending(kit) as account:
        account.release(kit.mechanism())
    with pytest.raises(PlanMismatchError), spending(kit, SingleRelease(kit.mechanism())) as account:
        account.release(kit.mechanism())  # an equal one is another one
    assert "open" not in kit.events


def test_a_single_release_is_made_once(kit):
    mechanism = Spy(kit.events)
    with pytest.raises(PlanMismatchError), spending(kit, SingleRelease(mechanism)) as account:
        account.release(mechanism)
        account.release(mechanism)
    assert kit.events.count("open") == 1


def test_a_mechanism_without_a_proof_is_refused(kit):
    class Unproven(Spy):
        """Inherits everything but the proof."""

    ledger = kit.ledger()
    with pytest.raises(UnprovenBoundError):
        release(kit, Unproven(kit.events), ledger=ledger)
    assert ledger.entries()[0].outcome is Outcome.WITHDRAWN
    assert ledger.total() == NOTHING


def test_a_block_that_released_nothing_costs_nothing(kit):
    ledger = kit.ledger()
    with spending(kit, ledger=ledger):
        pass
    with pytest.raises(ZeroDivisionError), spending(kit, ledger=ledger):
        kit.events.append(1 / 0)
    assert [entry.outcome for entry in ledger.entries()] == [Outcome.WITHDRAWN] * 2
    assert ledger.total() == NOTHING
    assert "open" not in kit.events


def test_an_error_between_releases_is_its_own_and_the_budget_stays_charged(kit):
    ledger = kit.ledger()
    with pytest.raises(ZeroDivisionError, match="public"), spending(kit, ledger=ledger) as account:
        account.release(PLAN.noisy(EdgeMoments(ROWS), share=0.4))
        raise ZeroDivisionError("public")
    assert ledger.entries()[0].outcome is Outcome.RELEASED
    assert ledger.total() == Budget(1.0, 1e-5)


def test_an_interruption_between_releases_stays_reserved(kit):
    ledger = kit.ledger()
    with pytest.raises(KeyboardInterrupt), spending(kit, ledger=ledger) as account:
        account.release(PLAN.noisy(EdgeMoments(ROWS), share=0.4))
        raise KeyboardInterrupt
    assert ledger.entries()[0].outcome is Outcome.RESERVED
    assert ledger.total() == Budget(1.0, 1e-5)


def test_a_failed_release_is_charged_even_if_the_caller_goes_on(kit):
    ledger, mechanism = kit.ledger(), Spy(kit.events, failure=ValueError("977"))
    with spending(kit, SingleRelease(mechanism), ledger=ledger) as account, pytest.raises(PrivateComputationError):
        account.release(mechanism)
    assert ledger.entries()[0].outcome is Outcome.WITHHELD
    assert ledger.total() == mechanism.budget


def test_nothing_is_released_outside_the_block(kit):
    account = spending(kit)
    with pytest.raises(BoundaryError):
        account.release(PLAN.noisy(EdgeMoments(ROWS), share=0.4))
    with account:
        account.release(PLAN.noisy(EdgeMoments(ROWS), share=0.4))
    with pytest.raises(BoundaryError):
        account.release(PLAN.noisy(EdgeMoments(ROWS), share=0.4))
    with pytest.raises(BoundaryError), account:
        pass
    assert kit.events.count("open") == 1


def test_a_failed_block_is_closed_too(kit):
    with pytest.raises(ZeroDivisionError), spending(kit) as account:
        raise ZeroDivisionError
    with pytest.raises(BoundaryError):
        account.release(PLAN.noisy(EdgeMoments(ROWS), share=0.4))
    assert "open" not in kit.events


def test_a_free_plan_releases_nothing_that_reads_edges(kit):
    with pytest.raises(PlanMismatchError, match="free only if"):
        release(kit, Spy(kit.events, budget=NOTHING))
    assert "open" not in kit.events
    assert release(kit, Spy(kit.events, budget=NOTHING, reads_edges=False)).receipt.budget == NOTHING


def test_a_withdrawn_entry_is_settled_once():
    ledger = MemoryLedger("x")
    reservation = ledger.reserve(Request(kind=Kind.RELEASE, mechanism="m", purpose="p", cost=Budget(1.0, 0.0)))
    ledger.settle(reservation, Outcome.WITHDRAWN)
    with pytest.raises(LedgerError, match="settled already"):
        ledger.settle(reservation, Outcome.RELEASED)


def test_the_transcript_hears_everything_and_changes_nothing(kit):
    with transcript() as outer:
        with transcript() as inner, spending(kit, randomness=SeededRandomness(SEED)) as account:
            first = account.release(PLAN.noisy(EdgeMoments(ROWS), share=0.4))
        release(kit, Spy(kit.events))
    assert [line.value for line in inner] == [first]
    assert [type(line.mechanism).__name__ for line in outer] == ["NoisyRelease", "Spy"]
    with spending(kit, randomness=SeededRandomness(SEED)) as account:
        again = account.release(PLAN.noisy(EdgeMoments(ROWS), share=0.4))
    assert torch.equal(first.value, again.value)
    assert len(outer) == 2


# ---- what a reviewer tried


def test_an_account_is_not_copied(kit):
    with spending(kit) as account:
        for way in (copy, deepcopy, pickle.dumps):
            with pytest.raises(BoundaryError, match="copied"):
                way(account)


def test_a_forked_process_releases_and_settles_nothing(kit, tmp_path):
    ledger = FileLedger(tmp_path / "ledger", data_set="circles")
    with spending(kit, ledger=ledger) as account:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                account.release(PLAN.noisy(EdgeMoments(ROWS), share=1.0))
            except BoundaryError:
                account.__exit__(None, None, None)
                code = 0
            os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert ledger.entries()[0].outcome is Outcome.RESERVED
        account.release(PLAN.noisy(EdgeMoments(ROWS), share=1.0))
    assert ledger.entries()[0].outcome is Outcome.RELEASED


def test_threads_cannot_spend_a_share_twice(kit):
    ready = threading.Barrier(4)
    found = []

    def spend_all(account):
        ready.wait()
        with suppress(PlanMismatchError, BoundaryError):
            found.append(account.release(PLAN.noisy(EdgeMoments(ROWS), share=1.0)))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(30):
            found.clear()
            with spending(kit) as account:
                threads = [threading.Thread(target=spend_all, args=(account,)) for _ in range(4)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            assert len(found) == 1
    finally:
        sys.setswitchinterval(interval)


def test_threads_cannot_meet_between_the_look_and_the_count(kit, monkeypatch):
    mechanism, found, check = Spy(kit.events), [], SingleRelease.check

    def slow_check(plan, mechanisms):
        check(plan, mechanisms)
        time.sleep(0.05)  # all would have looked before one is counted

    monkeypatch.setattr(SingleRelease, "check", slow_check)

    def release_it(account):
        with suppress(PlanMismatchError, BoundaryError):
            found.append(account.release(mechanism))

    with spending(kit, SingleRelease(mechanism)) as account:
        threads = [threading.Thread(target=release_it, args=(account,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (len(found), kit.events.count("apply")) == (1, 1)


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_nobody_else_withdraws_an_entry(kit, tmp_path, kind):
    ledger = MemoryLedger("x") if kind == "memory" else FileLedger(tmp_path / "ledger", data_set="x")
    with spending(kit, ledger=ledger) as account:
        mine = account._reservation
        for forged in (Reservation(0, mine.ledger), Reservation(0, mine.ledger, object())):
            with pytest.raises(LedgerError, match="stays charged"):
                ledger.settle(forged, Outcome.WITHDRAWN)
        account.release(PLAN.noisy(EdgeMoments(ROWS), share=1.0))
    assert ledger.total() == Budget(1.0, 1e-5)
    dead = ledger.reserve(Request(kind=Kind.RELEASE, mechanism="m", purpose="p", cost=Budget(1.0, 0.0)))
    again = ledger if kind == "memory" else FileLedger(tmp_path / "ledger")
    with pytest.raises(LedgerError, match="stays charged"):
        again.settle(Reservation(dead.number, dead.ledger), Outcome.WITHDRAWN)
    bare = ledger.reserve(Request(kind=Kind.DECLASSIFICATION, mechanism="m", purpose="p", cost=Budget(math.inf, 0.0)))
    with pytest.raises(LedgerError, match="stays charged"):
        ledger.settle(bare, Outcome.WITHDRAWN)
    assert math.isinf(ledger.total().epsilon)


def test_a_plan_without_a_proof_is_refused_before_anything_is_reserved(kit):
    class Cheap:
        """Says that everything fits."""

        name, budget, gaussian_distance = "cheap", Budget(1e-6, 0.0), None

        def public_record(self, released):
            return {}

        def check(self, mechanisms):
            pass

    ledger = kit.ledger()
    with pytest.raises(UnprovenBoundError), spending(kit, Cheap(), ledger=ledger):
        pytest.fail("the block began")
    assert not ledger.entries()


def test_targets_that_were_changed_later_are_refused(kit):
    mechanism = kit.mechanism()
    kit.rows.targets.mul_(1)  # the mechanism has a copy of its own
    assert mechanism.targets is not kit.rows.targets
    mechanism.targets.mul_(1000)
    with pytest.raises(InputError, match="targets"):
        release(kit, mechanism)
    assert "open" not in kit.events


def test_after_a_failed_release_nothing_more_is_released(kit):
    mechanism = Spy(kit.events, failure=ValueError("977"))
    with spending(kit, SingleRelease(mechanism)) as account:
        with pytest.raises(PrivateComputationError):
            account.release(mechanism)
        with pytest.raises(BoundaryError):
            account.release(mechanism)
    with pytest.raises(BoundaryError, match="receipt"):
        account.receipt  # noqa: B018
