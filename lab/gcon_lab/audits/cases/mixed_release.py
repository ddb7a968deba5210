"""A mixed plan in every branch on two nodes: a Gaussian release first, then what it says, then a count of answers.

Many disjoint copies of the pair are many runs at once. All three continuations are drawn for every copy, and the attacker looks
at the one that was chosen: with the same law as if only that one had been made.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gcon.edges.edge_list import EdgeList
from gcon.mechanisms.counts import ENDS_OF_AN_EDGE, NoisyCount
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.gaussian_curve import mixed_delta
from gcon.mechanisms.gaussian_release import NoisyRelease, NoisyStatistic
from gcon.mechanisms.mixed_release import MixedPlan, mixed_plan
from gcon.privacy.budget import Budget
from gcon.privacy.randomness import Randomness
from gcon_lab.audits.cases.case import HALVED, AuditCase, Broken, Run, Score, Scores, changed, reused
from gcon_lab.audits.cases.neighbour_counts import (
    ONE_COUNTED,
    count_losses,
    count_neighbours,
    first_codes,
    next_codes,
    one_way_losses,
)
from gcon_lab.audits.cases.whole_numbers import lonely_nodes
from gcon_lab.audits.pairs import copies, two_nodes

_CLAIMED = Budget(2.0, 0.01)
_FIRST = 0.3  # share of mu^2
_MOMENTS, _ONE, _TWO = range(3)
_COPIES = (
    64  # in one matrix of moments: more noise is drawn for nothing with more, and more matrices are made with fewer
)
_BRANCHES = {"moments": _MOMENTS, "1 round of counts": _ONE, "2 rounds of counts": _TWO}


@dataclass(frozen=True, eq=False, kw_only=True)
class Runs:
    """What came out of so many runs; a chosen branch decides which of it counts.

    Attributes:
        first, rest: Gaussian releases of all copies, and their noise.
        one, two: runs x rounds x 2 nodes x codes; with a plan for one-way counts the second is one such table.
        answers: one per run.
    """

    first: NoisyStatistic
    rest: NoisyStatistic
    one: Tensor
    two: Tensor
    answers: Tensor


def mixed_release() -> list[AuditCase]:
    """Gaussian first, then moments or counts, then answers: every branch, and the branch chosen from the first release."""
    planned = partial(
        mixed_plan, _CLAIMED.epsilon, _CLAIMED.delta, first_share=_FIRST, answer_share=0.2, method="audit"
    )
    plan, one_way = planned(), planned(one_way=True)
    cases = [_case(plan, words, branch) for words, branch in _BRANCHES.items()]
    return [
        *cases,
        _case(plan, "branch chosen from the first release", None),
        _case(one_way, "one-way counts", _TWO),
        _case(one_way, "branch chosen from the first release, one-way counts among them", None),
    ]


def _case(plan: MixedPlan, options: str, branch: int | None) -> AuditCase:
    halved = _with_noise(plan, 0.5)
    return AuditCase(
        mechanism="mixed-release",
        options=options,
        claimed=_CLAIMED,
        pair=two_nodes(),
        run=_run(plan),
        score=_score(plan, branch),
        runs=100_000,
        pair_epsilon=None if branch is None else _branch_epsilon(plan, branch),
        broken=(
            Broken(kind=HALVED, run=_run(halved), score=_score(halved, branch)),
            reused(_run(plan), _joined, score=_total),
        ),
    )


def _with_noise(plan: MixedPlan, factor: float) -> MixedPlan:
    assert plan.distance is not None
    return changed(
        plan,
        distance=plan.distance / factor,
        rates=tuple(rate / factor for rate in plan.rates),
        answer_epsilon=plan.answer_epsilon / factor,
    )


def _branch_epsilon(plan: MixedPlan, branch: int) -> float:
    """Exact: the two nodes attain every sensitivity, and one branch alone has the curve of its pair.

    The count of answers moves by 2, so its loss is epsilon, 0 or -epsilon: a little less than a response of that rate.
    """
    mu = plan.distance
    assert mu is not None
    distance, responses = mu, []
    if branch != _MOMENTS:
        number = 1 if plan.one_way and branch == _TWO else 2 * branch
        distance, responses = math.sqrt(_FIRST) * mu, [(plan.rates[branch - 1], number)]
    decay = math.exp(-plan.answer_epsilon / ENDS_OF_AN_EDGE)
    answers = [
        (1 / (1 + decay), plan.answer_epsilon),
        (decay * (1 - decay) / (1 + decay), 0.0),
        (decay**2 / (1 + decay), -plan.answer_epsilon),
    ]

    def delta(epsilon: float) -> float:
        return sum(chance * mixed_delta(epsilon - loss, distance, responses) for chance, loss in answers)

    low, high = 0.0, _CLAIMED.epsilon
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if delta(middle) > _CLAIMED.delta else (low, middle)
    return high


def _run(plan: MixedPlan) -> Run:
    count_lonely: Callable[[Any], int] = lonely_nodes
    lonely = NoisyCount(plan.answer_epsilon, count_lonely, ENDS_OF_AN_EDGE)

    def run(edges: EdgeList, count: int, randomness: Randomness) -> Runs:
        many = copies(edges, count)
        first, rest = (_moments(plan, share, edges, count, randomness) for share in (_FIRST, 1 - _FIRST))
        return Runs(
            first=first,
            rest=rest,
            one=_tables(many, plan.rates[0], 1, count, randomness),
            two=(_one_way_table if plan.one_way else _two_tables)(many, plan.rates[1], count, randomness),
            answers=torch.tensor([lonely.apply(edges, randomness) for _ in range(count)], dtype=torch.float64),
        )

    return run


def _moments(plan: MixedPlan, share: float, edges: EdgeList, count: int, randomness: Randomness) -> NoisyStatistic:
    """Edge moments of every copy, one number each: the diagonal of the moments of many, with a column for every copy.

    Every row has length 1, so the sensitivity of many copies is that of one, and the noise is too.
    """
    released = []
    for start in range(0, count, _COPIES):
        size = min(_COPIES, count - start)
        release = NoisyRelease(plan=plan, statistic=_moments_of(size), share=share)
        released.append(release.apply(copies(edges, size), randomness))
    return changed(released[0], value=torch.cat([each.value.diagonal() for each in released]))


@cache
def _moments_of(size: int) -> EdgeMoments:
    return EdgeMoments(torch.kron(torch.eye(size), torch.ones(2, 1)))


def _tables(many: EdgeList, rate: float, rounds: int, count: int, randomness: Randomness) -> Tensor:
    codes, released = first_codes(count), []
    for _ in range(rounds):
        table = count_neighbours(many, codes, rate, rounds, randomness)
        released.append(table.reshape(count, 2, -1))
        codes = next_codes(table)
    return torch.stack(released, dim=1)


def _two_tables(many: EdgeList, rate: float, count: int, randomness: Randomness) -> Tensor:
    return _tables(many, rate, 2, count, randomness)


def _one_way_table(many: EdgeList, rate: float, count: int, randomness: Randomness) -> Tensor:
    codes = torch.tensor(ONE_COUNTED).repeat(count)
    return count_neighbours(many, codes, rate, 1, randomness, one_way=True).reshape(count, 1, 2, -1)


def _score(plan: MixedPlan, branch: int | None) -> Score:
    """The log-likelihood ratio of what was released in the branch that was taken."""

    def score(runs: Runs) -> Scores:
        last = one_way_losses(runs.two, ONE_COUNTED) if plan.one_way else count_losses(runs.two)
        losses = torch.stack(
            [
                _gaussian_losses(runs.rest),
                plan.rates[0] * count_losses(runs.one),
                plan.rates[1] * last,
            ]
        )
        taken = _chosen(runs.first) if branch is None else torch.full_like(runs.answers, branch).long()
        answers = runs.answers - len(two_nodes().apart.degrees)  # without the edge both nodes are lonely
        rate = plan.answer_epsilon / ENDS_OF_AN_EDGE
        total = _gaussian_losses(runs.first) + losses.gather(0, taken[None])[0]
        return (total + rate * (answers.abs() - runs.answers.abs())).numpy()

    return score


def _chosen(first: NoisyStatistic) -> Tensor:
    """Moments where there seems to be no edge, counts where there seems to be one, two rounds where it is clear."""
    seen = _gaussian_losses(first)
    return (seen > 0).long() + (seen > 0.5).long()


def _gaussian_losses(released: NoisyStatistic) -> Tensor:
    """Of every copy: with the edge the moment is 2, without it 0."""
    return 2 * (released.value - 1) / released.standard_deviation**2


def _joined(runs: list[Runs]) -> Runs:
    return Runs(
        first=changed(runs[0].first, value=torch.cat([run.first.value for run in runs])),
        rest=changed(runs[0].rest, value=torch.cat([run.rest.value for run in runs])),
        **{name: torch.cat([getattr(run, name) for run in runs]) for name in ("one", "two", "answers")},
    )


def _total(runs: Runs) -> Scores:
    """With the same noise the first moments differ by exactly 2."""
    total: Scores = runs.first.value.numpy().astype(np.float64)
    return total
