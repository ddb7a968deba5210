"""Nothing becomes free because a product of small numbers vanished, and no noise is lost beside large values."""

import math

import pytest
import torch

from gcon.edges.edge_list import private_edges, public_edges
from gcon.edges.schemes import Schemes
from gcon.errors import InputError, PlanMismatchError
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.gaussian_release import gaussian_plan
from gcon.mechanisms.influence import FeatureExtent, edge_influence
from gcon.mechanisms.statistic import longest_rows
from gcon.privacy.account import spend
from gcon.privacy.budget import NOTHING
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SystemRandomness
from gcon_lab.mechanisms.bilinear_sums import BilinearSums
from gcon_lab.mechanisms.class_sums import ClassSums
from gcon_lab.mechanisms.walk_moments import WalkMoments

WIDE = torch.float64
PAIR = torch.tensor([[1.0], [-1.0]], dtype=WIDE)


def release(statistic, epsilon=1.0):
    return gaussian_plan(epsilon, 1e-5, method="test").noisy(statistic, share=1.0)


def matrix(*rows):
    return torch.tensor(rows, dtype=WIDE)


# --- rows that are far shorter than the longest -----------------------------------------------------------------------


@pytest.mark.parametrize("short", [1e-155, 1e-160, 1e-162, 1e-170, 1e-200, 1e-300, 5e-324])
def test_a_short_row_is_refused_and_never_free(short):
    with pytest.raises((InputError, PlanMismatchError)):
        release(EdgeMoments(matrix([1.0, 0.0], [short, 0.0], [0.0, 0.0])))


@pytest.mark.parametrize(("first", "second"), [(1e-50, 1e-120), (1e-50, 1e-60), (1.0, 1e-11), (1e50, 5e-324)])
def test_rows_that_vanish_in_fixed_point_are_refused(first, second):
    with pytest.raises(InputError, match="comparable"):
        EdgeMoments(matrix([first], [second]))


@pytest.mark.parametrize("size", [1e-40, 1.0, 1e45])
@pytest.mark.parametrize("ratio", [1e-99, 1e-101, 1e-155, 1e-160, 1e-165, 1e-200, 1e-250])
def test_short_rows_are_measured_at_their_own_scale(size, ratio):
    rows = size * matrix([0.0, 1.0], [3 * ratio, 4 * ratio], [0.0, 0.0])
    first, second = longest_rows(rows)
    assert first == size * (1 + 1e-9)
    assert math.hypot(*rows[1].tolist()) <= second <= 5 * ratio * size * (1 + 2e-9)


@pytest.mark.parametrize("size", [1e-45, 1.0, 1e45])
@pytest.mark.parametrize("ratio", [1.0, 0.3, 1e-3, 1e-5, 3e-7])
def test_one_edge_moves_moments_by_no_more_than_the_sensitivity_however_short_a_row(size, ratio):
    statistic = EdgeMoments(matrix([size, 0.0], [size * ratio, 0.0]))
    moved = float(statistic.of(public_edges(torch.tensor([[0], [1]]), 2)).max())
    assert 0 < moved <= statistic.sensitivity <= moved * (1 + 4e-9)


def test_moments_that_only_one_row_enters_are_free():
    for rows in (matrix([1.0, 0.0], [0.0, 0.0]), matrix([1e-50, 0.0], [0.0, 0.0]), torch.zeros(3, 2)):
        assert release(EdgeMoments(rows)).record["standard_deviation"] == 0


def test_noise_that_float64_hardly_holds_is_refused():
    statistic = EdgeMoments(PAIR)
    for sensitivity in (1e-152, 1e152):
        statistic.sensitivity = sensitivity
        with pytest.raises(PlanMismatchError, match="float64 can hold"):
            release(statistic)
        assert release(statistic, epsilon=math.inf).standard_deviation == 0


# --- a tiny clip ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clip", [1e-201, 1e-300, 1e-310, 5e-324])
@pytest.mark.parametrize("steps", [(1,), (2,), (0, 3), (math.inf,)])
def test_a_tiny_clip_does_not_make_sums_free(clip, steps):
    schemes = Schemes(restart=0.5, steps=steps, clip=clip)
    for make in (
        lambda: ClassSums(1e-45 * PAIR, torch.eye(2), schemes),
        lambda: ClassSums(1e-45 * PAIR, PAIR, schemes),
        lambda: WalkMoments(1e-45 * PAIR, schemes),
    ):
        with pytest.raises(InputError, match="clip"):
            make()
    zeros = ClassSums(torch.zeros(2, 1), torch.eye(2), schemes)
    assert zeros.sensitivity == 0
    assert bool(zeros.edge_free.all())


@pytest.mark.parametrize("clip", [1e-310, 5e-324])
def test_a_tiny_clip_does_not_make_aggregates_free(clip):
    schemes = Schemes(restart=0.9, steps=(2,), clip=clip)
    with pytest.raises(InputError, match="clip"):
        edge_influence(schemes, FeatureExtent(1e-10, 1.0), num_nodes=9)
    assert edge_influence(schemes, FeatureExtent(0.0, 0.0), num_nodes=9).value == 0
    assert edge_influence(Schemes(0.9, (2,), 1e-100), FeatureExtent(1e-10, 1.0), num_nodes=9).value > 0


def test_a_clip_below_rounding_is_refused_and_a_small_one_works():
    """Float64 cannot tell 1 - clip from 1: the bound on its rounding is then larger than what an edge can change."""
    for clip, fine in ((1e-90, False), (1e-14, False), (1e-9, True)):
        statistic = ClassSums(PAIR, PAIR, Schemes(restart=0.5, steps=(1,), clip=clip))
        assert statistic.sensitivity == pytest.approx(2 * clip + 2 * statistic.rounding, rel=1e-8)
        if fine:
            assert release(statistic).standard_deviation > 0
        else:
            with pytest.raises(PlanMismatchError, match="Rounding"):
                release(statistic)


# --- values that drown their noise ------------------------------------------------------------------------------------

SCHEMES = Schemes(restart=0.5, steps=(1, 2))


def three(features, answers):
    return BilinearSums(answers, features, 1.0), ClassSums(features, answers, SCHEMES), WalkMoments(features, SCHEMES)


def test_nearly_constant_rows_of_many_nodes_are_refused_before_anything_is_charged():
    """Their sums are rounded by more than one edge can change; centred they are like any others."""
    size, random = 25_500, torch.Generator().manual_seed(0)
    spread = 2e-14 * torch.rand(size, 2, generator=random, dtype=WIDE)
    answers = torch.eye(3, dtype=WIDE)[torch.randint(3, (size,), generator=random)]
    for statistic in three(1 / 3.0 + spread, answers):
        with pytest.raises(PlanMismatchError, match="centre the rows"):
            release(statistic)
        assert release(statistic, epsilon=math.inf).standard_deviation == 0
    for statistic in three(spread - spread.mean(dim=0), answers):
        assert release(statistic).standard_deviation > 0


@pytest.mark.parametrize("field", ["rounding", "sensitivity"])
def test_a_later_release_is_refused_before_it_is_computed(monkeypatch, field):
    """Chosen from what was released, and made too fine for float64 only then: nothing is opened for it."""
    computed = []
    monkeypatch.setattr(BilinearSums, "precisely", lambda self, edges: computed.append(self))
    plan, ledger = gaussian_plan(1.0, 1e-5, method="test"), MemoryLedger("pair")
    private, _ = private_edges(torch.tensor([[0], [1]]), 2)
    with spend(private, plan, ledger=ledger, randomness=SystemRandomness(), purpose="test") as account:
        account.release(plan.noisy(EdgeMoments(PAIR), share=0.5))
        sums = BilinearSums(PAIR, PAIR)
        drowned = plan.noisy(sums, share=0.5)
        setattr(sums, field, 1e160)
        with pytest.raises(PlanMismatchError, match=r"centre the rows|float64 can hold"):
            plan.noisy(sums, share=0.5)
        with pytest.raises(PlanMismatchError, match=r"centre the rows|float64 can hold"):
            account.release(drowned)
    assert not computed
    assert len(account.receipt.plan["releases"]) == 1


def test_too_little_or_too_much_noise_is_refused_before_anything_is_charged(monkeypatch):
    computed, ledger = [], MemoryLedger("pair")
    private, _ = private_edges(torch.tensor([[0], [1]]), 2)
    monkeypatch.setattr(EdgeMoments, "precisely", lambda self, edges: computed.append(self))
    plan = gaussian_plan(1.0, 1e-5, method="test")
    moments = EdgeMoments(PAIR)
    prepared = plan.noisy(moments, share=1.0)
    for sensitivity in (1e-152, 1e152, -1.0, math.nan):
        moments.sensitivity = sensitivity
        with (
            spend(private, plan, ledger=ledger, randomness=SystemRandomness(), purpose="test") as account,
            pytest.raises(PlanMismatchError, match="float64 can hold"),
        ):
            account.release(prepared)
    assert not computed
    assert ledger.total() == NOTHING


def test_a_tenth_of_the_sensitivity_may_be_rounding_and_no_more():
    statistic = BilinearSums(PAIR, PAIR)
    statistic.rounding = 0.0499 * statistic.sensitivity
    release(statistic)
    statistic.rounding = 0.0501 * statistic.sensitivity
    with pytest.raises(PlanMismatchError, match="centre the rows"):
        release(statistic)
