"""Output perturbation with a public start far out, where the slopes of both nodes are nearly as large as they can be."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from gcon.edges.edge_list import EdgeList
from gcon.edges.schemes import Schemes, propagate
from gcon.mechanisms.aggregates import Aggregates
from gcon.mechanisms.convex_training import certified_weights
from gcon.mechanisms.gaussian_curve import gaussian_epsilon
from gcon.mechanisms.influence import FeatureExtent, edge_influence
from gcon.mechanisms.losses import SoftMargin
from gcon.mechanisms.samplers.objective_noise import EnclosedNoise
from gcon.privacy.budget import Budget
from gcon.privacy.randomness import Randomness
from gcon_lab.audits.cases.case import EARLY, OTHER_OPTION, AuditCase, Broken, Run, Scores, changed, too_little_noise
from gcon_lab.audits.cases.stopped_solver import certified_or_not
from gcon_lab.audits.pairs import two_nodes
from gcon_lab.mechanisms.output_noise_plan import OutputPlan, make_output_plan
from gcon_lab.mechanisms.output_perturbation import OutputPerturbation

_CLAIMED = Budget(4.0, 0.01)
_SCHEMES = Schemes(restart=0.97, steps=(1,))
_SIGNS = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
_TARGETS = torch.tensor([[1.0], [0.0]], dtype=torch.float64)
_MASK = torch.ones(2, dtype=torch.bool)
_START = torch.tensor([[-1.5]], dtype=torch.float64)


def output_perturbation() -> list[AuditCase]:
    """One class, two nodes, one step at restart 0.97."""
    plan = _plan(_SCHEMES)
    joined, apart = (_solution(edges, plan) for edges in (two_nodes().joined, two_nodes().apart))
    sign = 1.0 if joined > apart else -1.0

    def score(released: Tensor) -> Scores:
        return sign * released.flatten().numpy()

    return [
        AuditCase(
            mechanism="output-perturbation",
            options="soft margin, public start",
            claimed=_CLAIMED,
            pair=two_nodes(),
            run=_run(plan),
            score=score,
            runs=16_000,
            gaussian=True,
            pair_epsilon=gaussian_epsilon(abs(joined - apart) / plan.scale, _CLAIMED.delta),
            broken=(
                *too_little_noise(lambda factor: _run(changed(plan, scale=plan.scale * factor)), torch.cat),
                Broken(kind=OTHER_OPTION, run=_run(plan, Schemes(restart=0.5, steps=(1,)))),
                Broken(kind=EARLY, run=_stopped(plan)),
            ),
        )
    ]


def _plan(schemes: Schemes) -> OutputPlan:
    return make_output_plan(
        _CLAIMED,
        loss=SoftMargin(1),
        num_features=1,
        num_labelled=2,
        edge_influence=edge_influence(schemes, FeatureExtent(2.0, 1.0), num_nodes=2).value,
        ridge=1000.0,
        start_norm=1.5,
    )


def _run(plan: OutputPlan, schemes: Schemes = _SCHEMES) -> Run:
    # They claim what the plan was made for: real numbers without rounding; or, in a broken variant, another option.
    claims = {"edge_influence": plan.edge_influence, "longest_row": plan.longest_row}
    aggregates = changed(Aggregates(_SIGNS, schemes), **claims)

    def run(edges: EdgeList, count: int, randomness: Randomness) -> Tensor:
        mechanism = OutputPerturbation(
            aggregates=aggregates, plans=(plan,) * count, mask=_MASK, targets=_TARGETS, start=_START
        )
        return mechanism.apply(edges, randomness)

    return run


@lru_cache(maxsize=8)
def _linear(plan: OutputPlan) -> EnclosedNoise:
    return EnclosedNoise(-plan.num_labelled * plan.ridge * _START.T, 0.0)


def _solution(edges: EdgeList, plan: OutputPlan) -> float:
    rows = propagate(edges, _SIGNS, _SCHEMES)
    return float(certified_weights((plan,), aggregates=rows, mask=_MASK, targets=_TARGETS, noises=(_linear(plan),)))


def _stopped(plan: OutputPlan) -> Run:
    def run(edges: EdgeList, count: int, _: Randomness) -> Tensor:
        rows = propagate(edges, _SIGNS, _SCHEMES)
        return certified_or_not(plan, rows, _TARGETS, noise=_linear(plan)).expand(count, 1, 1)

    return run
