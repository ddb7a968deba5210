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

import numpy as np
import torch
from torch import Tensor

from gcon.learn.after_release import AfterMoments, after_moments
from gcon.learn.edge_free import EdgeFree
from gcon.learn.rescaling import shrunk_moments
from gcon.learn.sizes import is_large
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.gaussian_release import NoisyStatistic, Portion
from gcon.mechanisms.neighbour_rows import NeighbourRows
from gcon.methods.evidence import messages, tells
from gcon.methods.graph_facts import counted_rows, graph_facts
from gcon.nodes import PublicNodes

FEATURES_SHARE, ANSWERS_SHARE, SECOND_SHARE = 0.35, 0.05, 0.6  # of the squared distance; all public constants
HEARD = 2.25  # neighbours over noise from which sums are worth their budget


@dataclass(frozen=True, eq=False, kw_only=True)
class Found:
    """What the estimate gives: answers from moments, answers with released sums (None: there are none), and the homophily."""

    none: Tensor
    cached: Tensor | None
    homophily: float


class MomentsEstimate:
    """Stages and post-processing of one training. Holds public and released values only."""

    def __init__(self, nodes: PublicNodes, free: EdgeFree, *, device: str = "cpu") -> None:
        self._device = device  # where sums over edges run
        self._nodes, self._free = nodes, free
        self._counted = counted_rows(free.answers)
        self._after: AfterMoments | None = None

    def first_portions(self) -> tuple[Portion, ...]:
        """The moments of feature directions, and of the answers."""
        return (
            Portion(EdgeMoments(self._free.rows, device=self._device), FEATURES_SHARE),
            Portion(EdgeMoments(self._counted, device=self._device), ANSWERS_SHARE),
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
            return (Portion(EdgeMoments(self._free.rows, device=self._device), SECOND_SHARE),)
        answers = self._with_moments(released[:1]).answers
        return (Portion(NeighbourRows(_spoken(answers, homophily), device=self._device), SECOND_SHARE),)

    def finish(self, released: tuple[NoisyStatistic, ...]) -> Found:
        """All answers, from all that was released."""
        homophily, _ = self._facts(released)
        if released[2].symmetric:
            after = self._with_moments((released[0], released[2]))
            return Found(none=after.answers, cached=None, homophily=homophily)
        after = self._with_moments(released[:1])
        return Found(none=after.answers, cached=after.with_sums(released[2].value), homophily=homophily)

    def _facts(self, released: tuple[NoisyStatistic, ...]) -> tuple[float, float]:
        """Homophily and mean degree, from the moments of the answers."""
        facts = graph_facts(released[1], self._free.answers, self._nodes)
        return facts.homophily, facts.mean_degree

    def _with_moments(self, released: tuple[NoisyStatistic, ...]) -> AfterMoments:
        """The ensemble with the moments of the directions, shrunk by their noise; computed once for the same moments."""
        free, (value, deviation) = self._free, _joined(released)
        moments = shrunk_moments(value, deviation=deviation, rows=free.rows, expected=free.expected_moments)
        if self._after is None or not torch.equal(self._after.moments, moments):
            self._after = after_moments(free, moments)
        return self._after


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
    longest = max(_quantile(lengths, 0.9), 1e-12)
    return torch.div(rows, lengths.clamp_min(longest))


def _quantile(values: Tensor, share: float) -> float:
    """Torch's quantile refuses more than 16 million numbers; numpy's does not, and interpolates in the same way."""
    if is_large(len(values)):
        return float(np.quantile(values.numpy(), share))
    return float(values.quantile(share))
