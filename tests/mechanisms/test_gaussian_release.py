"""Gaussian releases: plans, shares, releases one after another, what is charged, what is refused, the lattice."""

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
from gcon.mechanisms.counts import NoisyCount
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.gaussian_curve import gaussian_delta, gaussian_epsilon, gaussian_multiplier
from gcon.mechanisms.gaussian_release import GaussianPlan, gaussian_plan
from gcon.mechanisms.samplers.rounded import EXACT_GAUSSIAN, SPACING
from gcon.mechanisms.statistic import Precise, Statistic
from gcon.privacy.account import spend, transcript
from gcon.privacy.budget import NOTHING, Budget
from gcon.privacy.ledger import MemoryLedger, Outcome
from gcon.privacy.ledger_file import FileLedger
from gcon.privacy.randomness import SeededRandomness, SystemRandomness
from gcon.privacy.statement import statement
from gcon_lab.mechanisms.bilinear_sums import BilinearSums
from gcon_lab.mechanisms.class_sums import ClassSums

SIZE = 12
PAIRS = torch.tensor(list(networkx.gnp_random_graph(SIZE, 0.4, seed=2).edges)).T
EDGES = public_edges(PAIRS, SIZE)
PRIVATE, _ = private_edges(PAIRS, SIZE)
ROWS = torch.randn(SIZE, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
EVERYONE = torch.eye(SIZE)  # a column for every node
MOMENTS, SUMS = EdgeMoments(ROWS), BilinearSums(ROWS, EVERYONE)
PLAN = gaussian_plan(1.0, 1e-5, method="test")


def spending(ledger, plan=PLAN, randomness=None):
    randomness = randomness or SystemRandomness()
    return spend(PRIVATE, plan, ledger=ledger, randomness=randomness, purpose="test")


def released_with(*portions, plan=PLAN):
    """Releases of these statistics with these shares, in one block."""
    with spending(MemoryLedger("circle"), plan) as account:
        return [account.release(plan.noisy(statistic, share=share)) for statistic, share in portions]


@pytest.fixture
def computed(monkeypatch):
    """Every statistic that is computed."""
    seen = []
    for kind in (EdgeMoments, BilinearSums):
        real = kind.precisely
        monkeypatch.setattr(kind, "precisely", lambda self, edges, real=real: seen.append(self) or real(self, edges))
    return seen


# --- plans ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 4.0, 20.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1])
def test_the_distance_is_what_the_budget_allows_and_never_more(epsilon, delta):
    plan = gaussian_plan(epsilon, delta, method="test")
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
        GaussianPlan(budget=Budget(math.inf, 0.0), distance=1.0, name="test")
    for epsilon, delta in ((0.0, 1e-5), (-1.0, 1e-5), (math.nan, 1e-5), (1.0, 0.0), (1.0, 1.0), (1.0, math.nan)):
        with pytest.raises(InputError):
            gaussian_plan(epsilon, delta, method="test")


@pytest.mark.parametrize("shares", [(1.0,), (0.5, 0.5), (0.1,) * 10, (1 / 11,) * 11, (0.9, 0.05)])
def test_noise_follows_the_shares_and_together_costs_no_more_than_the_plan(shares):
    portions = [((MOMENTS, SUMS)[place % 2], share) for place, share in enumerate(shares)]
    out = released_with(*portions)
    squares = [(noisy.sensitivity / noisy.standard_deviation) ** 2 for noisy in out]
    for square, share in zip(squares, shares, strict=True):
        assert square == pytest.approx(share * PLAN.distance**2, rel=1e-9)
    assert math.fsum(squares) <= PLAN.distance**2
    assert [noisy.name for noisy in out] == [statistic.name for statistic, _ in portions]


# --- one after another ------------------------------------------------------------------------------------------------


def test_a_later_release_may_be_chosen_from_earlier_ones():
    ledger = MemoryLedger("circle")
    with transcript() as lines, spending(ledger) as account:
        first = account.release(PLAN.noisy(MOMENTS, share=0.3))
        share = 0.1 if float(first.value.trace()) > 0 else 0.5
        directions = torch.linalg.eigh(first.value).eigenvectors[:, -2:]
        second = account.release(PLAN.noisy(BilinearSums(ROWS @ directions, EVERYONE), share=share))
    assert [line.value for line in lines] == [first, second]
    assert second.standard_deviation == pytest.approx(second.sensitivity / PLAN.distance / math.sqrt(share), rel=1e-9)
    assert [record["share"] for record in account.receipt.plan["releases"]] == [0.3, share]


@pytest.mark.parametrize("shares", [(0.6, 0.5), (1.0, 1e-9), (0.3, 0.3, 0.3, 0.2)])
def test_shares_above_one_are_refused_before_anything_more_is_computed(computed, shares):
    ledger = MemoryLedger("circle")
    with spending(ledger) as account:
        for share in shares[:-1]:
            account.release(PLAN.noisy(MOMENTS, share=share))
        with pytest.raises(PlanMismatchError, match="at most 1"):
            account.release(PLAN.noisy(MOMENTS, share=shares[-1]))
    assert len(computed) == len(shares) - 1
    assert [record["share"] for record in account.receipt.plan["releases"]] == list(shares[:-1])
    assert ledger.total() == Budget(1.0, 1e-5)


def test_a_share_is_a_part_of_the_budget():
    for share in (0.0, -0.1, 1.1, math.nan, math.inf, True, "half"):
        with pytest.raises(InputError, match="share"):
            PLAN.noisy(MOMENTS, share=share)
    PLAN.noisy(EdgeMoments(torch.zeros(SIZE, 2)), share=0.0)


def test_a_statistic_without_a_proof_is_refused(computed):
    class Claimed(Statistic):
        name, sensitivity, rounding, settings = "claimed", 1e-6, 0.0, {}

        def precisely(self, edges):
            return computed.append(self) or Precise(torch.zeros(1, 1), torch.zeros(1, 1))

    class Derived(EdgeMoments):
        sensitivity = 1e-6

    ledger = MemoryLedger("circle")
    for statistic in (Claimed(), Derived(ROWS)):
        with pytest.raises(UnprovenBoundError):
            PLAN.noisy(statistic, share=0.5)
        swapped = PLAN.noisy(MOMENTS, share=0.5)
        object.__setattr__(swapped, "statistic", statistic)
        with spending(ledger) as account, pytest.raises(UnprovenBoundError):
            account.release(swapped)
    assert not computed
    assert ledger.total() == NOTHING


def test_a_plan_pays_for_its_own_releases_and_nothing_like_them(computed):
    class Derived(type(PLAN.noisy(MOMENTS, share=0.5))):
        standard_deviation = 1e-9

    other = gaussian_plan(2.0, 1e-5, method="test")
    renamed = dataclasses.replace(PLAN, name="somebody else's")
    larger_share, larger_distance = (PLAN.noisy(MOMENTS, share=0.5) for _ in range(2))
    object.__setattr__(larger_share, "share", 1.5)
    forged = dataclasses.replace(PLAN)
    object.__setattr__(forged, "distance", 2 * PLAN.distance)
    object.__setattr__(larger_distance, "plan", forged)
    refused = [
        (other.noisy(MOMENTS, share=0.5), PlanMismatchError),
        (renamed.noisy(MOMENTS, share=0.5), PlanMismatchError),
        (larger_distance, PlanMismatchError),
        (larger_share, InputError),
        (NoisyCount(0.1, computed.append, 1), PlanMismatchError),
        (Derived(plan=PLAN, statistic=MOMENTS, share=0.5), UnprovenBoundError),
        (SimpleNamespace(plan=PLAN, statistic=MOMENTS, share=0.5, apply=computed.append), UnprovenBoundError),
    ]
    ledger = MemoryLedger("circle")
    for mechanism, error in refused:
        with spending(ledger) as account, pytest.raises(error):
            account.release(mechanism)
    assert not computed
    assert {entry.outcome for entry in ledger.entries()} == {Outcome.WITHDRAWN}
    assert ledger.total() == NOTHING


def test_the_noise_follows_from_what_a_release_holds_when_it_is_released():
    release = PLAN.noisy(MOMENTS, share=0.5)
    honest = release.standard_deviation
    object.__setattr__(release, "standard_deviation", 0.0)
    object.__setattr__(release, "reads_edges", False)
    with spending(MemoryLedger("circle")) as account:
        assert account.release(release).standard_deviation == honest > 0
    assert release.reads_edges


def test_whoever_holds_a_release_can_check_its_noise():
    out = released_with((MOMENTS, 0.25), (SUMS, 0.3), (MOMENTS, 0.45))
    assert [(noisy.name, noisy.share) for noisy in out] == [
        ("edge moments", 0.25),
        ("bilinear sums", 0.3),
        ("edge moments", 0.45),
    ]
    for noisy in out:
        expected = noisy.sensitivity / (PLAN.distance * math.sqrt(noisy.share))
        assert noisy.standard_deviation == pytest.approx(expected, rel=1e-11)


# --- values -----------------------------------------------------------------------------------------------------------


def test_infinite_epsilon_gives_exact_values_and_no_promise():
    plan = gaussian_plan(math.inf, 1e-5, method="test")
    out = released_with((MOMENTS, 0.5), (SUMS, 0.5), plan=plan)
    for noisy, statistic in zip(out, (MOMENTS, SUMS), strict=True):
        assert torch.equal(noisy.value, statistic.of(EDGES))
        assert noisy.standard_deviation == 0
    assert plan.gaussian_distance is None
    assert plan.budget == Budget(math.inf, 0.0)  # without a promise nothing is a matter of delta


def test_what_reads_no_edge_is_released_as_it_is():
    schemes = Schemes(restart=0.5, steps=(0, 2))
    sums = ClassSums(ROWS, torch.eye(3)[torch.arange(SIZE) % 3], schemes)
    zero = ClassSums(ROWS, torch.ones(SIZE, 1), Schemes(restart=0.5, steps=(0,)))
    noisy, exact = released_with((sums, 1.0), (zero, 0.0))
    assert torch.equal(noisy.value[:4], sums.of(EDGES)[:4])
    assert not (noisy.value[4:] == sums.of(EDGES)[4:]).any()
    assert torch.equal(exact.value, zero.of(EDGES))
    assert exact.standard_deviation == 0


@pytest.mark.parametrize("factor", [1.0, 37.3, 1e-3])
def test_every_noisy_number_lies_on_the_public_lattice(factor):
    for statistic in (EdgeMoments(factor * ROWS), BilinearSums(factor * ROWS, EVERYONE)):
        mechanism = PLAN.noisy(statistic, share=0.5)
        noisy, record = mechanism.apply(EDGES, SystemRandomness()), mechanism.record
        least = noisy.standard_deviation * (math.sqrt(0.5) * (1 + 1e-15) if noisy.symmetric else 1)
        assert record["spacing"] == SPACING * math.ulp(least)
        assert record["standard_deviation"] == noisy.standard_deviation
        assert torch.equal(noisy.value.remainder(record["spacing"]), torch.zeros_like(noisy.value))
        assert not noisy.symmetric or torch.equal(noisy.value, noisy.value.T)


def test_the_record_says_how_the_noise_was_made():
    schemes = Schemes(restart=0.5, steps=(0, 2))
    sums = ClassSums(ROWS, torch.eye(3)[torch.arange(SIZE) % 3], schemes)
    releases = [PLAN.noisy(sums, share=0.3), PLAN.noisy(MOMENTS, share=0.7)]
    with spending(MemoryLedger("circle")) as account:
        for mechanism in releases:
            account.release(mechanism)
    record = account.receipt.plan
    assert record == PLAN.public_record(releases)
    assert record["noise"] == EXACT_GAUSSIAN
    for each, statistic in zip(record["releases"], (sums, MOMENTS), strict=True):
        assert each["sensitivity"] == statistic.sensitivity > 2 * each["rounding"] > 0
        expected = each["sensitivity"] / (record["distance"] * math.sqrt(each["share"]))
        assert expected < each["standard_deviation"] < expected * (1 + 1e-11)
    without = gaussian_plan(math.inf, 1e-5, method="test")
    assert "noise" not in without.public_record([without.noisy(sums, share=1.0)])
    assert f"Noise: operating system; {EXACT_GAUSSIAN}." in str(statement(account.receipt))


def test_two_runs_differ():
    first, second = (PLAN.noisy(SUMS, share=1.0).apply(EDGES, SystemRandomness()).value for _ in range(2))
    assert int((first == second).sum()) <= 2  # of 48; each with a probability of 1e-4 at most


# --- the ledger -------------------------------------------------------------------------------------------------------


def test_the_ledger_is_charged_once_and_knows_the_distance(tmp_path):
    memory, file = MemoryLedger("circle"), FileLedger(tmp_path / "circle.ledger", data_set="circle")
    for ledger in (memory, file):
        for _ in range(2):
            with spending(ledger) as account:
                account.release(PLAN.noisy(MOMENTS, share=0.25))
                account.release(PLAN.noisy(SUMS, share=0.75))
            assert account.receipt.keeps_promise
            assert [record["statistic"] for record in account.receipt.plan["releases"]] == [
                "edge moments",
                "bilinear sums",
            ]
            json.dumps(account.receipt.plan)
    for ledger in (memory, FileLedger(tmp_path / "circle.ledger")):
        assert ledger.total() == Budget(2.0, 2e-5)
        assert [entry.request.gaussian_distance for entry in ledger.entries()] == [PLAN.distance] * 2
        total = gaussian_total(ledger.entries(), extra_delta=1e-5)
        assert total.epsilon == pytest.approx(gaussian_epsilon(math.sqrt(2) * PLAN.distance, 1e-5), rel=1e-6)
        record = ledger.entries()[0].request.plan
        assert record["epsilon"] == 1.0
        assert record["distance"] == PLAN.distance
        assert record["releases"] == []  # reserved before anything is released
        json.dumps(record)


def test_a_failure_inside_stays_charged_and_tells_nothing(monkeypatch):
    def failing(self, edges):
        raise ValueError(f"{edges.num_nodes} nodes")

    monkeypatch.setattr(EdgeMoments, "precisely", failing)
    ledger = MemoryLedger("circle")
    with pytest.raises(PrivateComputationError) as caught, spending(ledger) as account:
        account.release(PLAN.noisy(MOMENTS, share=0.6))
    assert "12 nodes" not in str(caught.value)
    assert caught.value.__context__ is None
    assert ledger.total() == Budget(1.0, 1e-5)
    assert [entry.outcome for entry in ledger.entries()] == [Outcome.WITHHELD]


def test_noise_from_a_seed_carries_no_promise():
    ledger, values = MemoryLedger("circle"), []
    for _ in range(2):
        with spending(ledger, randomness=SeededRandomness(3)) as account:
            values.append(account.release(PLAN.noisy(MOMENTS, share=1.0)).value)
        assert not account.receipt.keeps_promise
    assert torch.equal(*values)
    assert math.isinf(ledger.total().epsilon)
    assert all(entry.request.gaussian_distance is None for entry in ledger.entries())
