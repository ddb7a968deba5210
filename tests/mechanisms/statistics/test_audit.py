"""A black-box audit on two nodes with and without their edge, where every sensitivity is attained.

The likelihood ratio decides; the bound on epsilon (Clopper-Pearson, false alarm 5e-7) stays below epsilon at the right noise,
comes near it, and exceeds it at half the noise.
"""

import math
from functools import lru_cache

import numpy as np
import pytest
import torch

from gcon.edges.edge_list import public_edges
from gcon.edges.schemes import Schemes
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.gaussian_release import gaussian_plan
from gcon.privacy.randomness import SystemRandomness
from gcon_lab.audits.cases.case import changed
from gcon_lab.audits.empirical import epsilon_bound
from gcon_lab.mechanisms.bilinear_sums import BilinearSums
from gcon_lab.mechanisms.class_sums import ClassSums
from gcon_lab.mechanisms.walk_moments import WalkMoments

EPSILON, DELTA, RUNS = 1.0, 0.1, 10_000  # all asserts lie 8 standard deviations from what is expected, or more
JOINED, APART = (public_edges(torch.arange(2)[:, None][:, :count], 2) for count in (1, 0))
SIGNS = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
PAIR = {
    "edge moments": EdgeMoments(torch.tensor([[0.6, 0.8], [0.6, 0.8]])),
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
    """`RUNS` runs on each graph with this factor on the noise; `GaussianPlan` itself refuses to be such a plan."""
    plan = gaussian_plan(EPSILON, DELTA, method="audit")
    release, randomness = changed(plan, distance=plan.distance / factor).noisy(statistic, share=1.0), SystemRandomness()
    base = statistic.of(APART)
    change = statistic.of(JOINED) - base
    for edges in (JOINED, APART):
        out = torch.stack([release.apply(edges, randomness).value for _ in range(RUNS)])
        # Noise is isotropic, among symmetric matrices too: the likelihood ratio is a function of this inner product.
        yield ((out - base) * change).sum(dim=(1, 2)).numpy()


@pytest.mark.slow
@pytest.mark.parametrize("statistic", PAIR.values(), ids=PAIR)
def test_audit_finds_epsilon_and_catches_half_the_noise(statistic):
    assert 0.2 <= epsilon_bound(*scores(statistic, 1.0), delta=DELTA, error=5e-7) <= EPSILON
    assert epsilon_bound(*scores(statistic, 0.5), delta=DELTA, error=5e-7) > EPSILON


@pytest.mark.slow
def test_audit_of_releases_with_a_share_chosen_from_the_first():
    """The second share depends on the first outcome, and uses up what is left: still one release of distance mu."""
    first, second = PAIR["bilinear sums"], PAIR["edge moments"]
    plan = gaussian_plan(EPSILON, DELTA, method="audit")
    bases = {statistic.name: statistic.of(APART) for statistic in (first, second)}
    changes = {statistic.name: statistic.of(JOINED) - bases[statistic.name] for statistic in (first, second)}

    def released(used, edges):
        out = [used.noisy(first, share=0.4).apply(edges, SystemRandomness())]
        promising = float(out[0].value[0, 0]) < 0.8  # exactly 0.6 with the edge, 1 without it
        rest = [(second, 0.6)] if promising else [(second, 0.1), (first, 0.5)]
        return out + [used.noisy(statistic, share=share).apply(edges, SystemRandomness()) for statistic, share in rest]

    def score(out):
        """The sum of the likelihood ratios of all releases, each in units of its own noise."""
        total = 0.0
        for noisy in out:
            change = changes[noisy.name] / noisy.standard_deviation
            seen = (noisy.value - bases[noisy.name]) / noisy.standard_deviation
            total += float((seen * change).sum() - change.square().sum() / 2)
        return total

    def scored(factor):
        used = changed(plan, distance=plan.distance / factor)
        for edges in (JOINED, APART):
            yield np.array([score(released(used, edges)) for _ in range(6_000)])

    assert epsilon_bound(*scored(1.0), delta=DELTA, error=5e-7) <= EPSILON
    assert epsilon_bound(*scored(0.4), delta=DELTA, error=5e-7) > EPSILON
