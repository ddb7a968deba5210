"""Noisy gradients where one edge turns the gradients of both its ends around: a change of four clipping lengths.

A path of four nodes p - u - v - q with features 3, -2, -2, 3. Without the edge {u, v} the mean rows of u and v are 1/2, with
it -1/3; clipped gradients have the same length and the opposite direction. Copies of the path on features of their own
are independent runs.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from gcon.edges.edge_list import EdgeList
from gcon.edges.schemes import Schemes, propagate
from gcon.privacy.randomness import Randomness
from gcon_lab.audits.cases.case import OTHER_OPTION, AuditCase, Broken, Run, Scores, changed, too_little_noise
from gcon_lab.audits.pairs import copies, path_of_four
from gcon_lab.mechanisms.noisy_gradients import GradientPlan, NoisyGradients, gradient_plan
from gcon_lab.mechanisms.replaced_pair import replaced_pair_epsilon

_EPSILON, _DELTA, _CLIP = 1.0, 0.01, 0.05
_BATCH = 64
_RATE = 1e-6  # so small that all steps are taken at weights of nearly 0
_ONE_STEP = Schemes(restart=0, steps=(1,))


def noisy_gradients() -> list[AuditCase]:
    """Full batches, once and four times; and half of the nodes drawn."""
    half = _plan(0.5, 1)
    cases = [
        _case("all nodes, 1 step", _plan(1.0, 1)),
        _case("all nodes, 4 steps", _plan(1.0, 4)),
        _case("half of the nodes, 1 step", half),
    ]
    wrong = Broken(kind=OTHER_OPTION, run=_run(changed(half, sampling=1.0)))  # noise for samples, all nodes taken
    return [*cases[:2], changed(cases[2], broken=(*cases[2].broken, wrong))]


def _plan(sampling: float, steps: int) -> GradientPlan:
    return gradient_plan(_EPSILON, _DELTA, sampling=sampling, steps=steps, clip=_CLIP)


def _case(options: str, plan: GradientPlan) -> AuditCase:
    deviation = plan.standard_deviation
    return AuditCase(
        mechanism="noisy-gradients",
        options=options,
        claimed=plan.budget,
        pair=path_of_four(),
        run=_run(plan),
        score=_score,
        runs=60_000,
        gaussian=plan.sampling == 1,
        pair_epsilon=replaced_pair_epsilon(plan.sampling, deviation / plan.clip, plan.steps, _DELTA),
        broken=too_little_noise(lambda factor: _run(changed(plan, standard_deviation=deviation * factor)), torch.cat),
    )


def _run(plan: GradientPlan) -> Run:
    def run(edges: EdgeList, count: int, randomness: Randomness) -> Tensor:
        sizes = [_BATCH] * (count // _BATCH) + [count % _BATCH] * (count % _BATCH > 0)
        many = {size: copies(edges, size) for size in set(sizes)}
        return torch.cat([_batch(many[size], size, plan, randomness) for size in sizes])

    return run


def _rows(many: EdgeList, count: int) -> Tensor:
    """The mean rows of both ends of the edge, in all of so many copies of the graph."""
    features = torch.kron(torch.eye(count, dtype=torch.float64), torch.tensor([[3.0], [-2.0], [-2.0], [3.0]]).double())
    ends = torch.tensor([False, True, True, False]).repeat(count)
    return propagate(many, features, _ONE_STEP)[ends]


def _batch(many: EdgeList, count: int, plan: GradientPlan, randomness: Randomness) -> Tensor:
    """The weights of independent runs, one per row, in units that do not depend on how many there are."""
    mechanism = NoisyGradients(
        plan=plan,
        rows=partial(_rows, count=count),
        labels=torch.zeros(2 * count, dtype=torch.int64),
        num_classes=2,
        learning_rate=_RATE,
    )
    return mechanism.apply(many, randomness) * (2 * count * plan.sampling / _RATE)


def _score(weights: Tensor) -> Scores:
    """With the edge weights grow for the second class."""
    return (weights[:, 1] - weights[:, 0]).numpy()
