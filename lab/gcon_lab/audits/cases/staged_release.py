"""Gaussian releases in two stages: the second share is chosen from the first release, and uses up what is left."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from gcon.edges.edge_list import EdgeList
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.gaussian_release import (
    GaussianRelease,
    JointStage,
    NoisyStatistic,
    Portion,
    gaussian_release_plan,
)
from gcon.mechanisms.neighbour_rows import NeighbourRows
from gcon.privacy.budget import Budget
from gcon.privacy.randomness import Randomness
from gcon_lab.audits.cases.case import HALVED, AuditCase, Broken, Run, Scores, changed, reused
from gcon_lab.audits.pairs import two_nodes

_CLAIMED = Budget(2.0, 0.01)
_FIRST = NeighbourRows(torch.ones(2, 1))
_SECOND = EdgeMoments(torch.tensor([[0.6, 0.8], [0.6, 0.8]], dtype=torch.float64))


def staged_release() -> list[AuditCase]:
    """Neighbour rows first; then moments, or both again, with shares that depend on the noisy rows."""
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


def _rest(released: tuple[NoisyStatistic, ...]) -> Sequence[Portion]:
    promising = float(released[0].value.sum()) > 1
    return [Portion(_SECOND, 0.6)] if promising else [Portion(_SECOND, 0.1), Portion(_FIRST, 0.5)]


def _run(factor: float) -> Run:
    plan = gaussian_release_plan(_CLAIMED.epsilon, _CLAIMED.delta)
    assert plan.distance is not None
    release = GaussianRelease(
        plan=changed(plan, distance=plan.distance / factor),
        stages=(JointStage([Portion(_FIRST, 0.4)]), _rest),
        method="audit",
    )

    def run(edges: EdgeList, count: int, randomness: Randomness) -> list[tuple[NoisyStatistic, ...]]:
        return [release.apply(edges, randomness) for _ in range(count)]

    return run


def _score(released: list[tuple[NoisyStatistic, ...]]) -> Scores:
    """The log-likelihood ratio: of all portions, each in units of its own noise."""
    joined = two_nodes().joined
    changes = {statistic.name: statistic.of(joined) for statistic in (_FIRST, _SECOND)}  # without the edge both are 0
    totals = []
    for portions in released:
        total = 0.0
        for noisy in portions:
            change = changes[noisy.name] / noisy.standard_deviation
            total += float((noisy.value / noisy.standard_deviation * change).sum() - change.square().sum() / 2)
        totals.append(total)
    return np.array(totals)
