"""Every statistic, released once with Gaussian noise, on two nodes: where sensitivities are attained, or nearly so."""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor

from gcon.edges.edge_list import EdgeList
from gcon.edges.schemes import Schemes
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.gaussian_curve import gaussian_epsilon
from gcon.mechanisms.gaussian_release import NoisyRelease, gaussian_plan
from gcon.mechanisms.statistic import Precise, Statistic
from gcon.privacy.budget import Budget
from gcon.privacy.randomness import Randomness
from gcon_lab.audits.cases.case import (
    DIRECTED,
    OTHER_OPTION,
    AuditCase,
    Broken,
    Run,
    Score,
    Scores,
    changed,
    too_little_noise,
)
from gcon_lab.audits.pairs import EdgePair, directed_star, two_nodes
from gcon_lab.mechanisms.bilinear_sums import BilinearSums
from gcon_lab.mechanisms.class_sums import ClassSums
from gcon_lab.mechanisms.walk_moments import WalkMoments

CLAIMED = Budget(1.0, 0.01)
_SIGNS = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
_CLASSES = torch.eye(2, dtype=torch.float64)
_LEAVES = 100
_BLOCKS = 64


def edge_moments() -> list[AuditCase]:
    """F' A F for two nodes with the same row."""
    rows = torch.tensor([[0.6, 0.8], [0.6, 0.8]], dtype=torch.float64)
    return [statistic_case("edge-moments", "two columns", EdgeMoments(rows), two_nodes(), runs=40_000)]


def class_sums() -> list[AuditCase]:
    """Z' Y for two nodes with opposite features and different classes, in every kind of scheme."""
    options = {
        "restart 0.8, limit": Schemes(restart=0.8, steps=(math.inf,)),
        "restart 0.5, 1 step": Schemes(restart=0.5, steps=(1,)),
        "restart 0.2, 2 steps": Schemes(restart=0.2, steps=(2,)),
        "restart 0.8, 0 and 2 steps": Schemes(restart=0.8, steps=(0, 2)),
        "restart 0.5, 1 step, clip 0.25": Schemes(restart=0.5, steps=(1,), clip=0.25),
    }
    cases = [
        statistic_case("class-sums", words, ClassSums(_SIGNS, _CLASSES, schemes), two_nodes())
        for words, schemes in options.items()
    ]
    return [changed(cases[0], broken=(*cases[0].broken, _other_restart(), _directed_input())), *cases[1:]]


def walk_moments() -> list[AuditCase]:
    """F' Z for two nodes with opposite rows."""
    options = {
        "restart 0.5, 1 step": Schemes(restart=0.5, steps=(1,)),
        "restart 0.8, limit": Schemes(restart=0.8, steps=(math.inf,)),
    }
    return [
        statistic_case("walk-moments", words, WalkMoments(_SIGNS, schemes), two_nodes())
        for words, schemes in options.items()
    ]


def bilinear_sums() -> list[AuditCase]:
    """X' T_w P for two nodes with opposite features and different answers."""
    heavy, light = (BilinearSums(_SIGNS, _CLASSES, weight) for weight in (4.0, 1.0))
    cases = [
        statistic_case("bilinear-sums", "self weight 1", light, two_nodes()),
        statistic_case("bilinear-sums", "self weight 4", heavy, two_nodes()),
    ]
    wrong = Broken(kind=OTHER_OPTION, run=_run(light, heavy.sensitivity / light.sensitivity))
    return [changed(cases[0], broken=(*cases[0].broken, wrong)), cases[1]]


def statistic_case(
    mechanism: str, options: str, statistic: Statistic, pair: EdgePair, *, runs: int = 200_000
) -> AuditCase:
    """One release of a statistic, with its own noise; scored by the projection on the exact change.

    The noise is isotropic (among symmetric matrices too), so no score is better.
    """
    change = _change(statistic, pair)
    distance = float(torch.linalg.vector_norm(change)) / _deviation(statistic)
    return AuditCase(
        mechanism=mechanism,
        options=options,
        claimed=CLAIMED,
        pair=pair,
        run=_run(statistic),
        score=_projection(statistic, pair),
        runs=runs,
        gaussian=True,
        tight=distance * _deviation(statistic) >= 0.7 * statistic.sensitivity,
        pair_epsilon=gaussian_epsilon(distance, CLAIMED.delta),
        broken=too_little_noise(partial(_run, statistic), torch.cat),
    )


def _run(statistic: Statistic, factor: float = 1.0) -> Run:
    """Releases with this factor on the noise."""
    plan = gaussian_plan(CLAIMED.epsilon, CLAIMED.delta, method="audit")
    assert plan.distance is not None
    release = changed(plan, distance=plan.distance / factor).noisy(statistic, share=1.0)

    def run(edges: EdgeList, count: int, randomness: Randomness) -> Tensor:
        # The first is a release as it is; the others are made many at once.
        first = release.apply(edges, randomness)
        if count == 1:
            return first.value[None]
        draw = _symmetric_copies if statistic.symmetric else _copies
        return torch.cat([first.value[None], draw(release, edges, count - 1, randomness)])

    return run


def _copies(release: NoisyRelease, edges: EdgeList, count: int, randomness: Randomness) -> Tensor:
    return _noisy(release, edges, release.statistic.of(edges).expand(count, -1, -1), randomness)


def _symmetric_copies(release: NoisyRelease, edges: EdgeList, count: int, randomness: Randomness) -> Tensor:
    """Many small symmetric matrices as the blocks on the diagonal of a larger one: their noise is independent."""
    exact, parts = release.statistic.of(edges), []
    width = len(exact)
    for start in range(0, count, _BLOCKS):
        blocks = min(_BLOCKS, count - start)
        whole = torch.kron(torch.eye(blocks, dtype=torch.float64), exact)
        noisy = _noisy(release, edges, whole, randomness).reshape(blocks, width, blocks, width)
        parts.append(noisy[torch.arange(blocks), :, torch.arange(blocks), :])
    return torch.cat(parts)


def _noisy(release: NoisyRelease, edges: EdgeList, value: Tensor, randomness: Randomness) -> Tensor:
    """The release of a statistic that has this value: same noise, drawn by the same lines."""
    exact = Precise(value, torch.zeros((), dtype=torch.float64).expand(value.shape))
    given = changed(release.statistic, precisely=lambda _: exact)
    return changed(release, statistic=given).apply(edges, randomness).value


def _projection(statistic: Statistic, pair: EdgePair) -> Score:
    base, change = statistic.of(pair.apart), _change(statistic, pair)

    def score(released: Tensor) -> Scores:
        return ((released - base) * change).sum(dim=(1, 2)).numpy()

    return score


def _change(statistic: Statistic, pair: EdgePair) -> Tensor:
    return statistic.of(pair.joined) - statistic.of(pair.apart)


def _deviation(statistic: Statistic) -> float:
    plan = gaussian_plan(CLAIMED.epsilon, CLAIMED.delta, method="audit")
    assert plan.distance is not None
    return statistic.sensitivity / plan.distance


def _other_restart() -> Broken:
    """Restart 0.5 with the noise of restart 0.8."""
    used, assumed = (ClassSums(_SIGNS, _CLASSES, Schemes(restart=restart, steps=(1,))) for restart in (0.5, 0.8))
    return Broken(
        kind=OTHER_OPTION,
        run=_run(used, assumed.sensitivity / used.sensitivity),
        score=_projection(used, two_nodes()),
    )


def _directed_input() -> Broken:
    """Two steps at restart 0.2 over arcs as they are: leaves point to a hub, one arc of the hub changes them all."""
    pair = directed_star(_LEAVES)
    features = torch.ones(_LEAVES + 2, 1, dtype=torch.float64)
    features[1] = -1.0
    targets = torch.zeros(_LEAVES + 2, 2, dtype=torch.float64)
    targets[:, 0] = 1.0
    statistic = ClassSums(features, targets, Schemes(restart=0.2, steps=(2,)))
    return Broken(kind=DIRECTED, run=_run(statistic), pair=pair, score=_projection(statistic, pair), runs=20_000)
