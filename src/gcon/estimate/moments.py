"""Our own method, step by step: which statistics are released, and what is made of them for free.

1. An edge-free ensemble answers for all nodes (edge_free.py).
2. First stage: noisy moments F' A F of its feature directions, and of its answers with a constant column, which tell how
   many edges there are and how often they stay inside a class.
3. Features rescaled by the moments join the ensemble.
4. Second stage, chosen from the first: sums of the answers' messages over neighbours where a node has enough of them to be
   heard over the noise; else the moments again, which together are one release at the full budget.

Every choice reads released numbers, public features, and labels: nothing is chosen with private edges.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gcon.estimate.edge_free import PENALTIES, EdgeFree
from gcon.estimate.edge_moments import FILTERS, rescaled_rows, shrunk_moments
from gcon.estimate.graph_facts import counted_rows, graph_facts
from gcon.estimate.members import best_average, pseudo_labels, taught_members, true_labels
from gcon.graphs.nodes import PublicNodes
from gcon.mechanisms.gaussian_release import NoisyStatistic, Portion
from gcon.predict.evidence import messages, tells
from gcon.statistics.edge_moments import EdgeMoments
from gcon.statistics.neighbour_rows import NeighbourRows

FEATURES_SHARE, ANSWERS_SHARE, SECOND_SHARE = 0.35, 0.05, 0.6  # of the squared distance; all public constants
HEARD = 2.25  # neighbours over noise from which sums are worth their budget
_SUM_PENALTIES = (1.0, 10.0)
TAUGHT_SHARE = 0.8  # of the unlabelled nodes; answers that have seen the graph may teach more than edge-free ones


@dataclass(frozen=True, eq=False, kw_only=True)
class Found:
    """What the estimate gives: answers from moments, answers with released sums (None: there are none), and the homophily."""

    none: Tensor
    cached: Tensor | None
    homophily: float


class MomentsEstimate:
    """Stages and post-processing of one training. Holds public and released values only."""

    def __init__(self, nodes: PublicNodes, free: EdgeFree) -> None:
        self._nodes, self._free = nodes, free
        self._counted = counted_rows(free.answers)

    def first_portions(self) -> tuple[Portion, ...]:
        """The moments of feature directions, and of the answers."""
        return (
            Portion(EdgeMoments(self._free.base.rows.double()), FEATURES_SHARE),
            Portion(EdgeMoments(self._counted), ANSWERS_SHARE),
        )

    def second_portions(self, released: tuple[NoisyStatistic, ...]) -> tuple[Portion, ...]:
        """Neighbour sums of messages where nodes have enough neighbours; else the moments of the directions again."""
        homophily, degree = self._facts(released)
        # The noise of the sums, were they released: that of the answers' moments, scaled by sensitivity and share. Their
        # constant column makes that sensitivity positive (but for a single node); features may all be 0.
        first = released[1]
        per_unit = first.standard_deviation / max(first.sensitivity, 1e-300) * math.sqrt(ANSWERS_SHARE / SECOND_SHARE)
        heard = degree >= HEARD * per_unit * math.sqrt(2)
        if not (heard and tells(homophily, self._nodes.num_classes)):
            return (Portion(EdgeMoments(self._free.base.rows.double()), SECOND_SHARE),)
        members, _ = self._with_moments(released[:1])
        answers = best_average(members, self._nodes)
        return (Portion(NeighbourRows(_spoken(answers, homophily)), SECOND_SHARE),)

    def finish(self, released: tuple[NoisyStatistic, ...]) -> Found:
        """All answers, from all that was released."""
        homophily, _ = self._facts(released)
        if released[2].symmetric:
            answers = best_average(self._with_moments((released[0], released[2]))[0], self._nodes)
            return Found(none=answers, cached=None, homophily=homophily)
        members, views = self._with_moments(released[:1])
        answers = best_average(members, self._nodes)
        cached = self._with_sums(members, answers, views[0], released[2].value)
        return Found(none=answers, cached=cached, homophily=homophily)

    def _facts(self, released: tuple[NoisyStatistic, ...]) -> tuple[float, float]:
        """Homophily and mean degree, from the moments of the answers."""
        facts = graph_facts(released[1], self._free.answers, self._nodes)
        return facts.homophily, facts.mean_degree

    def _with_moments(self, moments: tuple[NoisyStatistic, ...]) -> tuple[list[Tensor], list[Tensor]]:
        """All members, with those on rescaled features; and these features."""
        base, nodes = self._free.base, self._nodes
        value, deviation = _joined(moments)
        best = shrunk_moments(value, deviation=deviation, rows=base.rows, expected=base.moments)
        views = [rescaled_rows(base.rows, best, ridge=ridge, power=power) for ridge, power in FILTERS]
        members = [*self._free.members, *taught_members(nodes, views, true_labels(nodes), penalties=PENALTIES)]
        taught = pseudo_labels(best_average(members, nodes), nodes, TAUGHT_SHARE)
        return members + taught_members(nodes, views, taught, penalties=PENALTIES), views

    def _with_sums(self, members: list[Tensor], answers: Tensor, view: Tensor, sums: Tensor) -> Tensor:
        """Released sums as features beside the answers."""
        nodes = self._nodes
        heard, own = _standard(sums), _standard(answers.clamp_min(1e-4).log())
        views = [torch.cat(parts, dim=1).float() for parts in ((own, heard), (heard,), (view.double(), heard))]
        every = [*members, *taught_members(nodes, views, true_labels(nodes), penalties=_SUM_PENALTIES)]
        taught = pseudo_labels(best_average(every, nodes), nodes, TAUGHT_SHARE)
        every += taught_members(nodes, views, taught, penalties=_SUM_PENALTIES)
        return best_average(every, nodes)


def _joined(moments: tuple[NoisyStatistic, ...]) -> tuple[Tensor, float]:
    """Independent releases of one statistic, weighted by their precisions: one release at their joint budget."""
    if any(each.standard_deviation == 0 for each in moments):
        return moments[0].value, 0.0
    precisions = [each.standard_deviation**-2 for each in moments]
    total = sum(precisions)
    values = [each.value * precision for each, precision in zip(moments, precisions, strict=True)]
    return torch.stack(values).sum(dim=0) / total, total**-0.5


def _spoken(answers: Tensor, homophily: float) -> Tensor:
    """Messages as rows of length at most 1: the longest tenth is cut, so that few loud nodes do not drown the others."""
    rows = messages(answers, homophily)
    rows = rows - rows.mean(dim=0)
    lengths = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    longest = max(float(lengths.quantile(0.9)), 1e-12)
    return torch.div(rows, lengths.clamp_min(longest))


def _standard(rows: Tensor) -> Tensor:
    centred = rows - rows.mean(dim=0)
    return centred / max(float(centred.std()), 1e-12)
