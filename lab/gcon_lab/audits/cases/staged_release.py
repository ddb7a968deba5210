"""Gaussian releases one after another: the second share is chosen from the first release, and the rest is used up."""

from __future__ import annotations

import numpy as np
import torch

from gcon.edges.edge_list import EdgeList
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.gaussian_release import GaussianPlan, NoisyStatistic, gaussian_plan
from gcon.privacy.budget import Budget
from gcon.privacy.randomness import Randomness
from gcon_lab.audits.cases.case import HALVED, AuditCase, Broken, Run, Scores, changed, reused
from gcon_lab.audits.pairs import two_nodes
from gcon_lab.mechanisms.bilinear_sums import BilinearSums

_CLAIMED = Budget(2.0, 0.01)
_FIRST = BilinearSums(torch.eye(2), torch.eye(2))  # which nodes meet which: not symmetric by itself
_SECOND = EdgeMoments(torch.tensor([[0.6, 0.8], [0.6, 0.8]], dtype=torch.float64))


def staged_release() -> list[AuditCase]:
    """Bilinear sums first; then moments, or both again, with shares that depend on the noisy sums."""
    return [
        AuditCase(
            mechanism="staged-release",
            options="second share chosen from the first release",
            claimed=_CLAIMED,
            pair=two_nodes(),
            run=_run(1.0),
            score=_score,
            runs=3_000,
            gaussian=True,
            pair_epsilon=_CLAIMED.epsilon,
            broken=(
                Broken(kind=HALVED, run=_run(0.5)),
                reused(_run(1.0), lambda runs: [one for run in runs for one in run]),
            ),
        )
    ]


def _run(factor: float) -> Run:
    plan = gaussian_plan(_CLAIMED.epsilon, _CLAIMED.delta, method="audit")
    assert plan.distance is not None
    used = changed(plan, distance=plan.distance / factor)

    def run(edges: EdgeList, count: int, randomness: Randomness) -> list[list[NoisyStatistic]]:
        return [_releases(used, edges, randomness) for _ in range(count)]

    return run


def _releases(plan: GaussianPlan, edges: EdgeList, randomness: Randomness) -> list[NoisyStatistic]:
    """Two releases where the first looks promising, three where it does not; their shares always add to 1."""
    first = plan.noisy(_FIRST, share=0.4).apply(edges, randomness)
    promising = float(first.value[0, 1] + first.value[1, 0]) > 0.5  # exactly 1 with the edge, 0 without it
    rest = [(_SECOND, 0.6)] if promising else [(_SECOND, 0.1), (_FIRST, 0.5)]
    return [first, *(plan.noisy(statistic, share=share).apply(edges, randomness) for statistic, share in rest)]


def _score(released: list[list[NoisyStatistic]]) -> Scores:
    """The log-likelihood ratio: of all releases of a run, each in units of its own noise."""
    pair, both = two_nodes(), (_FIRST, _SECOND)
    bases = {statistic.name: statistic.of(pair.apart) for statistic in both}
    moved = {statistic.name: statistic.of(pair.joined) - bases[statistic.name] for statistic in both}
    totals = []
    for run in released:
        total = 0.0
        for noisy in run:
            change = moved[noisy.name] / noisy.standard_deviation
            seen = (noisy.value - bases[noisy.name]) / noisy.standard_deviation
            total += float((seen * change).sum() - change.square().sum() / 2)
        totals.append(total)
    return np.array(totals)
