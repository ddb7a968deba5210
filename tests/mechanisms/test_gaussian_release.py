"""Gaussian releases: plans, shares, stages, what is charged, what is refused, the lattice."""

import dataclasses
import json
import math
from types import SimpleNamespace

import networkx
import pytest
import torch

from gcon.edges.edge_list import private_edges, public_edges
from gcon.edges.schemes import Schemes
from gcon.errors import InputError, PlanMismatchError, PrivateComputationError, UnprovenBoundError
from gcon.mechanisms.composition import gaussian_total
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.exact_products import in_float64
from gcon.mechanisms.gaussian_curve import gaussian_delta, gaussian_epsilon, gaussian_multiplier
from gcon.mechanisms.gaussian_release import (
    GaussianRelease,
    JointStage,
    Portion,
    ReleasePlan,
    gaussian_release_plan,
    release_jointly,
)
from gcon.mechanisms.neighbour_rows import NeighbourRows
from gcon.mechanisms.samplers.lattice import lattice_spacing
from gcon.mechanisms.samplers.rounded import EXACT_GAUSSIAN
from gcon.mechanisms.statistic import BoundedEdges, Statistic
from gcon.privacy.budget import Budget
from gcon.privacy.gates import release_statistic
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.ledger_file import FileLedger
from gcon.privacy.randomness import SeededRandomness, SystemRandomness
from gcon.privacy.statement import statement
from gcon_lab.mechanisms.class_sums import ClassSums

SIZE = 12
PAIRS = torch.tensor(list(networkx.gnp_random_graph(SIZE, 0.4, seed=2).edges)).T
EDGES = public_edges(PAIRS, SIZE)
ROWS = torch.randn(SIZE, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
MOMENTS, SUMS = EdgeMoments(ROWS), NeighbourRows(ROWS)
PLAN = gaussian_release_plan(1.0, 1e-5)


def staged(*stages, plan=PLAN):
    return GaussianRelease(plan=plan, stages=stages, method="test")


# --- plans ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 4.0, 20.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1])
def test_the_distance_is_what_the_budget_allows_and_never_more(epsilon, delta):
    plan = gaussian_release_plan(epsilon, delta)
    assert plan.budget == Budget(epsilon, delta)
    assert gaussian_delta(epsilon, plan.distance) <= delta
    assert gaussian_epsilon(plan.distance, delta) <= epsilon
    assert plan.distance == pytest.approx(1 / gaussian_multiplier(epsilon, delta), rel=1e-11)


def test_a_plan_covers_its_budget_or_is_refused():
    for distance in (None, 0.0, -1.0, math.nan, math.inf, 1.0001 * PLAN.distance):
        with pytest.raises(PlanMismatchError):
            dataclasses.replace(PLAN, distance=distance)
    assert dataclasses.replace(PLAN, distance=PLAN.distance / 2).budget == PLAN.budget
    with pytest.raises(PlanMismatchError):
        ReleasePlan(budget=Budget(math.inf, 0.0), distance=1.0)
    for epsilon, delta in ((0.0, 1e-5), (-1.0, 1e-5), (math.nan, 1e-5), (1.0, 0.0), (1.0, 1.0), (1.0, math.nan)):
        with pytest.raises(InputError):
            gaussian_release_plan(epsilon, delta)


@pytest.mark.parametrize("shares", [(1.0,), (0.5, 0.5), (0.1,) * 10, (1 / 11,) * 11, (0.9, 0.05)])
def test_noise_follows_the_shares_and_together_costs_no_more_than_the_plan(shares):
    portions = [Portion((MOMENTS, SUMS)[place % 2], share) for place, share in enumerate(shares)]
    out = release_jointly(portions, epsilon=1.0, delta=1e-5, method="test").apply(EDGES, SystemRandomness())
    squares = [(noisy.sensitivity / noisy.standard_deviation) ** 2 for noisy in out]
    for square, share in zip(squares, shares, strict=True):
        assert square == pytest.approx(share * PLAN.distance**2, rel=1e-9)
    assert math.fsum(squares) <= PLAN.distance**2
    assert [noisy.name for noisy in out] == [portion.statistic.name for portion in portions]


# --- stages -----------------------------------------------------------------------------------------------------------


def test_later_stages_see_what_was_released_and_nothing_else():
    seen = []

    def first(released):
        seen.append(released)
        return [Portion(MOMENTS, 0.3), Portion(SUMS, 0.2)]

    def second(released):
        seen.append(released)
        directions = torch.linalg.eigh(released[0].value).eigenvectors[:, -2:]
        return [Portion(NeighbourRows(ROWS @ directions), 0.1 if float(released[0].value.trace()) > 0 else 0.5)]

    out = staged(first, second, lambda released: []).apply(EDGES, SystemRandomness())
    assert [noisy.name for noisy in out] == ["edge moments", "neighbour rows", "neighbour rows"]
    assert seen == [(), out[:2]]
    share = 0.1 if float(out[0].value.trace()) > 0 else 0.5
    assert out[2].standard_deviation == pytest.approx(out[2].sensitivity / PLAN.distance / math.sqrt(share), rel=1e-9)


@pytest.mark.parametrize("shares", [(0.6, 0.5), (1.0, 1e-9), (0.3, 0.3, 0.3, 0.2)])
def test_shares_above_one_are_refused_before_the_portion_is_computed(monkeypatch, shares):
    computed, real = [], EdgeMoments.precisely
    monkeypatch.setattr(EdgeMoments, "precisely", lambda self, edges: computed.append(1) or real(self, edges))
    stages = [lambda released, share=share: [Portion(MOMENTS, share)] for share in shares]
    with pytest.raises(PlanMismatchError, match="at most 1"):
        staged(*stages).apply(EDGES, SystemRandomness())
    assert len(computed) == len(shares) - 1
    computed.clear()
    with pytest.raises(PlanMismatchError, match="at most 1"):  # all in one stage: nothing is computed
        staged(lambda released: [Portion(MOMENTS, share) for share in shares]).apply(EDGES, SystemRandomness())
    assert not computed


def test_what_is_fixed_is_refused_before_anything_is_charged():
    with pytest.raises(PlanMismatchError, match="at most 1"):
        release_jointly([Portion(MOMENTS, 0.6), Portion(SUMS, 0.5)], epsilon=1.0, delta=1e-5, method="test")
    with pytest.raises(PlanMismatchError, match="at most 1"):
        staged(JointStage([Portion(MOMENTS, 0.6)]), lambda released: [], JointStage([Portion(SUMS, 0.5)]))
    with pytest.raises(InputError, match="stages"):
        staged()
    for share in (0.0, -0.1, 1.1, math.nan, math.inf, True, "half"):
        with pytest.raises(InputError, match="share"):
            Portion(MOMENTS, share)
    Portion(EdgeMoments(torch.zeros(SIZE, 2)), 0.0)


def test_a_statistic_without_a_proof_is_refused():
    class Claimed(Statistic):
        name, sensitivity, rounding = "claimed", 1e-6, 0.0

        def public_record(self):
            return {}

        def precisely(self, edges):
            return in_float64(torch.zeros(1, 1))

    class Derived(EdgeMoments):
        sensitivity = 1e-6

    for statistic in (Claimed(), Derived(ROWS)):
        with pytest.raises(UnprovenBoundError):
            Portion(statistic, 0.5)
        swapped = Portion(MOMENTS, 0.5)
        object.__setattr__(swapped, "statistic", statistic)
        with pytest.raises(UnprovenBoundError):
            staged(lambda released, swapped=swapped: [swapped]).apply(EDGES, SystemRandomness())


def test_a_stage_returns_portions_and_nothing_like_them():
    computed = []
    counts = SimpleNamespace(
        precisely=computed.append, sensitivity=0.0, rounding=0.0, name="counts", symmetric=False, edge_free=None
    )
    alike = SimpleNamespace(statistic=counts, share=0.0)
    for portions in ([alike], [Portion(MOMENTS, 0.5), alike]):
        with pytest.raises(PlanMismatchError, match="portions"):
            staged(lambda released, portions=portions: portions).apply(EDGES, SystemRandomness())
        with pytest.raises(PlanMismatchError, match="portions"):
            staged(JointStage(portions))
    assert not computed


def test_whoever_holds_a_release_can_check_its_noise():
    stages = (JointStage([Portion(MOMENTS, 0.25)]), lambda released: [Portion(SUMS, 0.3), Portion(MOMENTS, 0.45)])
    out = staged(*stages).apply(EDGES, SystemRandomness())
    assert [(noisy.name, noisy.share) for noisy in out] == [
        ("edge moments", 0.25),
        ("neighbour rows", 0.3),
        ("edge moments", 0.45),
    ]
    for noisy in out:
        expected = noisy.sensitivity / (PLAN.distance * math.sqrt(noisy.share))
        assert noisy.standard_deviation == pytest.approx(expected, rel=1e-11)


# --- values -----------------------------------------------------------------------------------------------------------


def test_infinite_epsilon_gives_exact_values_and_no_promise():
    mechanism = release_jointly(
        [Portion(MOMENTS, 0.5), Portion(SUMS, 0.5)], epsilon=math.inf, delta=1e-5, method="test"
    )
    for noisy, statistic in zip(mechanism.apply(EDGES, SystemRandomness()), (MOMENTS, SUMS), strict=True):
        assert torch.equal(noisy.value, statistic.of(EDGES))
        assert noisy.standard_deviation == 0
    assert mechanism.gaussian_distance is None
    assert mechanism.budget == Budget(math.inf, 0.0)  # without a promise nothing is a matter of delta


def test_what_reads_no_edge_is_released_as_it_is():
    schemes = Schemes(restart=0.5, steps=(0, 2))
    sums = ClassSums(ROWS, torch.eye(3)[torch.arange(SIZE) % 3], schemes)
    zero = ClassSums(ROWS, torch.ones(SIZE, 1), Schemes(restart=0.5, steps=(0,)))
    mechanism = release_jointly([Portion(sums, 1.0), Portion(zero, 0.0)], epsilon=1.0, delta=1e-5, method="test")
    noisy, exact = mechanism.apply(EDGES, SystemRandomness())
    assert torch.equal(noisy.value[:4], sums.of(EDGES)[:4])
    assert not (noisy.value[4:] == sums.of(EDGES)[4:]).any()
    assert torch.equal(exact.value, zero.of(EDGES))
    assert exact.standard_deviation == 0


@pytest.mark.parametrize("factor", [1.0, 37.3, 1e-3])
def test_every_noisy_number_lies_on_the_public_lattice(factor):
    portions = [Portion(EdgeMoments(factor * ROWS), 0.5), Portion(NeighbourRows(factor * ROWS), 0.5)]
    mechanism = release_jointly(portions, epsilon=1.0, delta=1e-5, method="test")
    (records,) = mechanism.public_record()["stages"]
    for noisy, record in zip(mechanism.apply(EDGES, SystemRandomness()), records, strict=True):
        least = noisy.standard_deviation * (math.sqrt(0.5) * (1 + 1e-15) if noisy.symmetric else 1)
        assert record["spacing"] == lattice_spacing(least)
        assert record["standard_deviation"] == noisy.standard_deviation
        assert torch.equal(noisy.value.remainder(record["spacing"]), torch.zeros_like(noisy.value))
        assert not noisy.symmetric or torch.equal(noisy.value, noisy.value.T)


def test_the_record_says_how_the_noise_was_made():
    schemes = Schemes(restart=0.5, steps=(0, 2))
    sums = ClassSums(ROWS, torch.eye(3)[torch.arange(SIZE) % 3], schemes)
    mechanism = release_jointly([Portion(sums, 0.3), Portion(MOMENTS, 0.7)], epsilon=1.0, delta=1e-5, method="test")
    record = mechanism.public_record()
    assert record["noise"] == EXACT_GAUSSIAN
    for each, statistic in zip(record["stages"][0], (sums, MOMENTS), strict=True):
        assert each["sensitivity"] == statistic.sensitivity > 2 * each["rounding"] > 0
        expected = each["sensitivity"] / (record["distance"] * math.sqrt(each["share"]))
        assert expected < each["standard_deviation"] < expected * (1 + 1e-11)
    without = release_jointly([Portion(sums, 1.0)], epsilon=math.inf, delta=1e-5, method="test")
    assert "noise" not in without.public_record()
    released = release(mechanism, MemoryLedger("circle"))
    assert f"Noise: operating system; {EXACT_GAUSSIAN}." in str(statement(released.receipt))


def test_two_runs_differ():
    mechanism = release_jointly([Portion(SUMS, 1.0)], epsilon=1.0, delta=1e-5, method="test")
    first, second = (mechanism.apply(EDGES, SystemRandomness())[0].value for _ in range(2))
    assert int((first == second).sum()) <= 2  # of 48; each with a probability of 1e-4 at most


# --- the ledger -------------------------------------------------------------------------------------------------------


def release(mechanism, ledger, randomness=None):
    private, _ = private_edges(PAIRS, SIZE)
    return release_statistic(
        mechanism, BoundedEdges(private), ledger=ledger, randomness=randomness or SystemRandomness(), purpose="test"
    )


def test_the_ledger_is_charged_once_and_knows_the_distance(tmp_path):
    adaptive = staged(JointStage([Portion(MOMENTS, 0.25)]), lambda released: [Portion(SUMS, 0.75)])
    memory, file = MemoryLedger("circle"), FileLedger(tmp_path / "circle.ledger", data_set="circle")
    for ledger in (memory, file):
        released = release(adaptive, ledger)
        assert len(released.value) == 2
        assert released.receipt.keeps_promise
        release(adaptive, ledger)
    for ledger in (memory, FileLedger(tmp_path / "circle.ledger")):
        assert ledger.total() == Budget(2.0, 2e-5)
        assert [entry.request.gaussian_distance for entry in ledger.entries()] == [PLAN.distance] * 2
        total = gaussian_total(ledger.entries(), extra_delta=1e-5)
        assert total.epsilon == pytest.approx(gaussian_epsilon(math.sqrt(2) * PLAN.distance, 1e-5), rel=1e-6)
        record = ledger.entries()[0].request.plan
        assert record["epsilon"] == 1.0
        assert record["stages"][0][0]["statistic"] == "edge moments"
        assert record["stages"][1] == "chosen from earlier releases"
        json.dumps(record)


def test_a_refusal_inside_stays_charged_and_tells_nothing():
    ledger = MemoryLedger("circle")
    mechanism = staged(lambda released: [Portion(MOMENTS, 0.6)], lambda released: [Portion(MOMENTS, 0.6)])
    with pytest.raises(PrivateComputationError):
        release(mechanism, ledger)
    assert ledger.total() == Budget(1.0, 1e-5)


def test_noise_from_a_seed_carries_no_promise():
    ledger = MemoryLedger("circle")
    mechanism = release_jointly([Portion(MOMENTS, 1.0)], epsilon=1.0, delta=1e-5, method="test")
    values = [release(mechanism, ledger, SeededRandomness(3)).value[0].value for _ in range(2)]
    assert torch.equal(*values)
    assert math.isinf(ledger.total().epsilon)
    assert all(entry.request.gaussian_distance is None for entry in ledger.entries())
