"""Objective perturbation, with the paper's noise and with Gaussian noise, on two nodes.

The score is the exact privacy loss of the released weights: for each graph there is one noise that leads to them, so both
densities are known (`gcon_lab.audits.privacy_loss`). With one feature the privacy curve of the pair is an integral over a grid.
The theorems are not tight: less noise than planned shows first against the pair's own epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gcon.edges.edge_list import EdgeList
from gcon.edges.schemes import Schemes, propagate
from gcon.mechanisms.aggregates import Aggregates
from gcon.mechanisms.influence import sharp_influence
from gcon.mechanisms.losses import ConvexLoss, PseudoHuber, SoftMargin
from gcon.mechanisms.objective_perturbation import ObjectivePerturbation
from gcon.mechanisms.objective_plan import make_plan
from gcon.mechanisms.samplers.objective_noise import EnclosedNoise
from gcon.privacy.budget import Budget
from gcon.privacy.randomness import Randomness
from gcon_lab.audits.cases.case import (
    EARLY,
    HALVED,
    OTHER_OPTION,
    ROOT_TWO,
    AuditCase,
    Broken,
    Run,
    Score,
    Scores,
    reused,
)
from gcon_lab.audits.cases.case import changed as changed_record
from gcon_lab.audits.cases.stopped_solver import certified_or_not, one_step_from_afar
from gcon_lab.audits.pairs import two_nodes
from gcon_lab.audits.privacy_loss import GaussianNoise, NoiseLaw, RadialNoise, log_density, without_noise
from gcon_lab.mechanisms.gaussian_objective import GaussianObjective
from gcon_lab.mechanisms.gaussian_objective_plan import make_gaussian_objective_plan

_CLAIMED = Budget(4.0, 0.01)
_RESTART, _RIDGE = 0.8, 2.0
_SCHEMES = Schemes(restart=_RESTART, steps=(math.inf,))
_SIGNS = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
_TARGETS, _MASK = torch.eye(2, dtype=torch.float64), torch.ones(2, dtype=torch.bool)
_GRID = 1001
MakePlan = Callable[..., Any]


def objective_perturbation() -> list[AuditCase]:
    """The paper's mechanism, for both losses."""
    cases = [
        _case("objective-perturbation", words, ObjectivePerturbation, make_plan, loss, _radial, "noise_rate", -1)
        for words, loss in (("soft margin", SoftMargin(2)), ("pseudo-Huber 0.5", PseudoHuber(2, 0.5)))
    ]
    broken = (*cases[0].broken, one_step_from_afar(_CLAIMED))
    return [changed_record(cases[0], broken=broken), cases[1]]


def gaussian_objective() -> list[AuditCase]:
    """The same objective with Gaussian noise."""
    return [
        _case(
            "gaussian-objective",
            "soft margin",
            GaussianObjective,
            make_gaussian_objective_plan,
            SoftMargin(2),
            _gaussian,
            "scale",
            1,
        )
    ]


def _case(
    mechanism: str,
    options: str,
    kind: Callable[..., Any],
    make: MakePlan,
    loss: ConvexLoss,
    law: Callable[[Any], NoiseLaw],
    field: str,
    power: int,
) -> AuditCase:
    """`field` of the theorem's values is proportional to the noise to this power."""
    plan = _plan(make, loss, 2 * sharp_influence(_RESTART, math.inf))

    def with_noise(factor: float) -> Run:
        value = getattr(plan.theorem, field) * factor**power
        return _run(kind, plan, changed_record(plan, theorem=changed_record(plan.theorem, **{field: value})))

    return AuditCase(
        mechanism=mechanism,
        options=options,
        claimed=_CLAIMED,
        pair=two_nodes(),
        run=_run(kind, plan),
        score=_score(plan, law(plan)),
        runs=10_000,
        tight=False,
        pair_epsilon=integrated_epsilon(plan, law(plan)),
        broken=(
            Broken(kind=HALVED, run=with_noise(0.5)),
            Broken(kind=ROOT_TWO, run=with_noise(math.sqrt(0.5)), runs=50_000 if power > 0 else 20_000),
            Broken(kind=OTHER_OPTION, run=_run(kind, _plan(make, loss, 2 * sharp_influence(0.99, math.inf)))),
            Broken(kind=EARLY, run=_stopped(plan)),
            reused(_run(kind, plan), torch.cat),
        ),
    )


def _plan(make: MakePlan, loss: ConvexLoss, influence: float) -> Any:
    return make(_CLAIMED, loss=loss, num_features=1, num_labelled=2, edge_influence=influence, ridge=_RIDGE)


def _radial(plan: Any) -> NoiseLaw:
    return RadialNoise(plan.noise_rate)


def _gaussian(plan: Any) -> NoiseLaw:
    return GaussianNoise(plan.scale)


def _rows(edges: EdgeList) -> Tensor:
    return propagate(edges, _SIGNS, _SCHEMES)


def _run(kind: Callable[..., Any], plan: Any, broken: Any = None) -> Run:
    """Releases by a plan; or by a broken one, which the mechanism itself would refuse."""
    # They claim what the plan was made for: real numbers without rounding; or, in a broken variant, another option.
    claims = {"edge_influence": plan.theorem.edge_influence, "longest_row": 1.0}
    aggregates = changed_record(Aggregates(_SIGNS, _SCHEMES), **claims)

    def run(edges: EdgeList, count: int, randomness: Randomness) -> Tensor:
        mechanism = kind(aggregates=aggregates, plans=(plan,) * count, mask=_MASK, targets=_TARGETS)
        if broken is not None:
            mechanism = changed_record(mechanism, plans=(broken,) * count)
        released: Tensor = mechanism.apply(edges, randomness)
        return released

    return run


def _stopped(plan: Any) -> Run:
    def run(edges: EdgeList, count: int, randomness: Randomness) -> Tensor:
        noise = EnclosedNoise(torch.zeros(2, 1, dtype=torch.float64), 0.0)
        return certified_or_not(plan, _rows(edges), _TARGETS, noise=noise).expand(count, -1, -1)

    return run


def _logs(plan: Any, law: NoiseLaw, edges: EdgeList, weights: Tensor) -> Tensor:
    """The log-density of every run's weights (runs x classes, one feature) on one graph, class by class."""
    objective = without_noise(_rows(edges), _TARGETS, plan.loss, plan.total_ridge, problems=len(weights))
    return log_density(objective, weights.reshape(-1, 1), law).reshape(-1, 2)


def _score(plan: Any, law: NoiseLaw) -> Score:
    pair = two_nodes()

    def score(released: Tensor) -> Scores:
        weights = released[:, 0, :]  # runs x 1 feature x classes
        ratios = _logs(plan, law, pair.joined, weights) - _logs(plan, law, pair.apart, weights)
        return ratios.sum(dim=1).numpy()

    return score


def integrated_epsilon(plan: Any, law: NoiseLaw) -> float:
    """The pair's own epsilon at the claimed delta, in the worse direction: densities of both classes on a grid."""
    noise = 12 / plan.noise_rate if isinstance(law, RadialNoise) else 8 * plan.scale
    reach = (noise + 2 * plan.loss.slope_bound) / (2 * plan.total_ridge)
    grid = torch.linspace(-reach, reach, _GRID, dtype=torch.float64)
    laws = []
    for edges in (two_nodes().joined, two_nodes().apart):
        logs = _logs(plan, law, edges, torch.stack([grid, grid], dim=1)).numpy()
        masses = np.exp(logs - logs.max(axis=0))
        first, second = (masses / masses.sum(axis=0)).T
        laws.append(np.outer(first, second))
    return 1.01 * max(_curve_epsilon(laws[0], laws[1]), _curve_epsilon(laws[1], laws[0]))  # 1 % for the grid


def _curve_epsilon(first: Scores, second: Scores) -> float:
    """The largest log((P(E) - delta) / Q(E)) over the sets E where P/Q is above some level: no smaller epsilon will do."""
    ratios = np.log(np.maximum(first, 1e-300)) - np.log(np.maximum(second, 1e-300))
    order = np.argsort(-ratios, axis=None)
    gain = np.cumsum(first.ravel()[order]) - _CLAIMED.delta
    held = np.maximum(np.cumsum(second.ravel()[order]), 1e-300)
    return max(0.0, float(np.log(np.maximum(gain, 1e-300) / held).max()))
