"""A black-box audit on two nodes with and without their edge, where every sensitivity is attained.

The likelihood ratio decides; the bound on epsilon (Clopper-Pearson, false alarm 5e-7) stays below epsilon at the right noise,
comes near it, and exceeds it at half the noise.
"""

import math
from functools import lru_cache
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from gcon.edges.edge_list import public_edges
from gcon.edges.schemes import Schemes
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.gaussian_release import GaussianRelease, JointStage, Portion, gaussian_release_plan
from gcon.mechanisms.neighbour_rows import NeighbourRows
from gcon.privacy.randomness import SystemRandomness
from gcon_lab.audits.lower_bound import epsilon_lower_bound
from gcon_lab.mechanisms.bilinear_sums import BilinearSums
from gcon_lab.mechanisms.class_sums import ClassSums
from gcon_lab.mechanisms.walk_moments import WalkMoments

EPSILON, DELTA, RUNS = 1.0, 0.1, 10_000  # all asserts lie 8 standard deviations from what is expected, or more
JOINED, APART = (public_edges(torch.arange(2)[:, None][:, :count], 2) for count in (1, 0))
SIGNS = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
PAIR = {
    "edge moments": EdgeMoments(torch.tensor([[0.6, 0.8], [0.6, 0.8]])),
    "neighbour rows": NeighbourRows(torch.ones(2, 1)),
    "class sums": ClassSums(SIGNS, torch.eye(2), Schemes(restart=0.8, steps=(math.inf,))),
    "walk moments": WalkMoments(SIGNS, Schemes(restart=0.5, steps=(1,))),
    "bilinear sums": BilinearSums(SIGNS, torch.eye(2), 4.0),
}


@pytest.fixture(autouse=True)
def remembered(monkeypatch):
    """Every exact value is computed once, by the statistic itself; the runs differ in their noise alone."""
    for kind in {type(statistic) for statistic in PAIR.values()}:
        monkeypatch.setattr(kind, "precisely", lru_cache(maxsize=None)(kind.precisely))


def scores(statistic, factor):
    """`RUNS` runs on each graph with this factor on the noise, in one release of many portions.

    Portions draw independent noise. With `RUNS` times the squared distance and equal shares each has the noise of a single
    release; `ReleasePlan` itself refuses to be such a plan.
    """
    plan = gaussian_release_plan(EPSILON, DELTA)
    fake = SimpleNamespace(budget=plan.budget, distance=plan.distance * math.sqrt(RUNS) / factor)
    mechanism = GaussianRelease(plan=fake, stages=(JointStage([Portion(statistic, 1 / RUNS)] * RUNS),), method="audit")
    base = statistic.of(APART)
    change = statistic.of(JOINED) - base
    for edges in (JOINED, APART):
        out = torch.stack([noisy.value for noisy in mechanism.apply(edges, SystemRandomness())])
        # Noise is isotropic, among symmetric matrices too: the likelihood ratio is a function of this inner product.
        yield ((out - base) * change).sum(dim=(1, 2)).numpy()


@pytest.mark.parametrize(
    "statistic",
    [
        pytest.param(statistic, id=name, marks=[] if name == "edge moments" else pytest.mark.slow)
        for name, statistic in PAIR.items()
    ],
)
def test_audit_finds_epsilon_and_catches_half_the_noise(statistic):
    assert 0.2 <= epsilon_lower_bound(*scores(statistic, 1.0), DELTA) <= EPSILON
    assert epsilon_lower_bound(*scores(statistic, 0.5), DELTA) > EPSILON


@pytest.mark.slow
def test_audit_of_two_stages_with_a_share_chosen_from_the_first():
    """The second share depends on the first outcome, and uses up what is left: still one release of distance mu."""
    first, second = PAIR["neighbour rows"], PAIR["edge moments"]
    plan = gaussian_release_plan(EPSILON, DELTA)

    def rest(released):
        promising = float(released[0].value.sum()) > 1
        return [Portion(second, 0.6 if promising else 0.1)] + ([] if promising else [Portion(first, 0.5)])

    def score(out):
        """The sum of the likelihood ratios of all portions, each in units of its own noise."""
        changes = {"neighbour rows": torch.ones(2, 1), "edge moments": second.of(JOINED)}
        total = 0.0
        for noisy in out:
            change = changes[noisy.name] / noisy.standard_deviation
            total += float((noisy.value / noisy.standard_deviation * change).sum() - change.square().sum() / 2)
        return total

    def scored(factor):
        fake = SimpleNamespace(budget=plan.budget, distance=plan.distance / factor)
        mechanism = GaussianRelease(plan=fake, stages=(JointStage([Portion(first, 0.4)]), rest), method="audit")
        for edges in (JOINED, APART):
            yield np.array([score(mechanism.apply(edges, SystemRandomness())) for _ in range(6_000)])

    assert epsilon_lower_bound(*scored(1.0), DELTA) <= EPSILON
    assert epsilon_lower_bound(*scored(0.4), DELTA) > EPSILON
