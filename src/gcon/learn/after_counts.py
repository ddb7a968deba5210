"""What neighbour counts make of answers: a few softmax regressions on a node's own answer and on its counts by code.

They are taught on the released, noisy counts, taken for what they probably were (believed_counts.py), and may then be asked at
any counts: at the noisy ones for an answer that may be published, at the exact ones by the node's owner. Published answers hear
some more regressions, on what the noisy counts say about each class as well. Free: reads released and public numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from gcon.learn.after_release import AfterMoments
from gcon.learn.believed_counts import LEAST_ANSWER, BelievedCounts, CountBelief, with_labels
from gcon.learn.edge_free import PENALTIES
from gcon.learn.ensemble import Ensemble, Lesson, pseudo_labels
from gcon.learn.sample import blocks
from gcon.learn.softmax_regression import softmax_regressions
from gcon.machine import one_thread
from gcon.nodes import PublicNodes

_PENALTIES = (10.0, 1.0)
_TAUGHT_SHARE = 0.8  # of the unlabelled nodes
SHARES_SCALE = 3.0  # shares vary less than logarithms of counts; owners' exact counts are asked with it too
_LEAST_SCALE = 1e-12
_TRUST = (1.0, 0.5)  # in the evidence of counts: neighbours err together, so it is too sure of itself


@final
@dataclass(frozen=True, eq=False)
class CountModel:
    """Answers from what a node's answer is without counts, and from its counts: an average of softmax regressions.

    Attributes:
        weights: of the regressions; they add to 1. Float64.
        tables: regressions x (4 c + 1) x c, float64: from `count_inputs` of a node to the scores of its classes.
    """

    weights: Tensor
    tables: Tensor

    def answers(self, start: Tensor, counts: Tensor) -> Tensor:
        """Class probabilities of nodes from their answers without counts and from their counts, float64."""
        return averaged(self.weights, self.tables, count_inputs(start, counts))


def count_inputs(answers: Tensor, counts: Tensor) -> Tensor:
    """Logarithms of the answers, the counts, their logarithms, their shares, and 1; one row per node, float64."""
    counts = counts.double().clamp_min(0.0)
    shares = SHARES_SCALE * counts / (counts.sum(dim=1, keepdim=True) + 1)
    one = torch.ones(len(counts), 1, dtype=torch.float64)
    return torch.cat([answers.double().clamp_min(LEAST_ANSWER).log(), counts, counts.log1p(), shares, one], dim=1)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class AfterCounts:
    """What counts make of answers.

    Attributes:
        start: class probabilities without these counts: what the model is asked with, beside counts.
        model: the regressions.
        answers: class probabilities from the released counts.
        judged: those of the judges, without what their own labels taught.
    """

    start: Tensor
    model: CountModel
    answers: Tensor
    judged: Tensor


def after_counts(
    after: AfterMoments, before: AfterMoments | AfterCounts, noisy: Tensor, deviation: float
) -> AfterCounts:
    """Answers from released counts. What the first table of counts teaches about features becomes part of the start.

    Args:
        after: the ensemble that read no counts, and the features that it learned from.
        before: what was answered before these counts.
        noisy: the released counts, n x c.
        deviation: of their noise.
    """
    sample, start, judged = after.free.sample, before.answers, before.judged
    nodes, heard = sample.nodes, noisy[sample.places]
    # Where training nodes are the judges, their labels teach nothing that they judge.
    by_validation = after.ensemble.judges.folds is None
    labels = torch.where(nodes.train_mask, nodes.labels, -1) if by_validation else None

    def believed() -> tuple[CountBelief, _Regressions]:
        asked = start[sample.places]
        belief = CountBelief.fitted(heard, deviation, asked, labels)
        return belief, _regressions_on(asked, judged, belief.of(heard, asked), nodes)

    belief, regressions = believed()
    if before is after:  # a second table comes when the first one has taught its features already
        taught_by = regressions.ensemble.answers
        lesson = pseudo_labels(taught_by, nodes, _TAUGHT_SHARE)
        ensemble = after.ensemble.taught([after.rescaled], PENALTIES, lesson)
        if labels is not None:  # means are no twins of anybody, so only validation nodes can judge them
            around = after.free.graph.answers_around(with_labels(taught_by, labels))
            ensemble = ensemble.joined_by([around], lesson)
        start, judged = sample.everywhere(ensemble.answers, after.free.rows), ensemble.judged
        belief, regressions = believed()
    weights, tables = regressions.average
    model = CountModel(weights, torch.cat([tables[:, : 4 * nodes.num_classes], tables[:, -1:]], dim=1))
    regressions = regressions.with_evidence(nodes)
    weights, tables = regressions.average
    answers = torch.empty(start.shape, dtype=torch.float64)
    for rows in blocks(len(start)):
        inputs = _inputs(start[rows], belief.of(noisy[rows], start[rows]))
        answers[rows] = averaged(weights, tables, inputs)
    return AfterCounts(start=start, model=model, answers=answers, judged=regressions.ensemble.judged)


def averaged(weights: Tensor, tables: Tensor, inputs: Tensor) -> Tensor:
    """The average of what tables answer."""
    total = torch.zeros(len(inputs), tables.shape[2], dtype=torch.float64)
    for weight, table in zip(weights, tables, strict=True):
        total += weight * torch.softmax(inputs @ table, dim=1)
    return total


def _inputs(start: Tensor, believed: BelievedCounts) -> Tensor:
    """`count_inputs`, and the evidence of the counts before the 1."""
    plain = count_inputs(start, believed.counts)
    return torch.cat([plain[:, :-1], believed.evidence, plain[:, -1:]], dim=1)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class _Regressions:
    """An ensemble whose members are tables from inputs to scores.

    Attributes:
        inputs: `_inputs` of the nodes.
        ensemble: of the members.
        tables: theirs, before calibration.
    """

    inputs: Tensor
    ensemble: Ensemble
    tables: tuple[Tensor, ...] = ()

    @property
    def average(self) -> tuple[Tensor, Tensor]:
        """Weights, and calibrated tables."""
        calibrated = []
        for member, table in zip(self.ensemble.members, self.tables, strict=True):
            table = table / member.temperature
            table[-1] += member.shift
            calibrated.append(table)
        kept = self.ensemble.weights > 0
        return self.ensemble.weights[kept], torch.stack(calibrated)[kept]

    def joined_by(self, fitted: Callable[[Lesson], list[Tensor]], nodes: PublicNodes) -> _Regressions:
        """With more tables: taught by true labels, and by pseudo-labels."""

        def asked(tables: Sequence[Tensor], at: Tensor | slice = slice(None)) -> list[Tensor]:
            return [torch.softmax(self.inputs[at] @ table, dim=1) for table in tables]

        with one_thread():
            truth = self.ensemble.lesson
            tables = fitted(truth)
            ensemble = self.ensemble.joined_by(asked(tables), truth, lambda lesson, mask: asked(fitted(lesson), mask))
            lesson = pseudo_labels(ensemble.answers, nodes, _TAUGHT_SHARE)
            again = fitted(lesson)
            ensemble = ensemble.joined_by(asked(again), lesson)
        return replace(self, ensemble=ensemble, tables=(*self.tables, *tables, *again))

    def with_evidence(self, nodes: PublicNodes) -> _Regressions:
        """With the evidence of the counts, by Bayes' rule and in regressions: it knows how noisy a count is, shares do not."""
        own, _, logs, shares, told = _columns(nodes.num_classes)
        alone, beside = (
            [_scaling(self.inputs, groups)] for groups in ((told, logs + shares), (own, told, logs + shares))
        )

        def fitted(lesson: Lesson) -> list[Tensor]:
            _, both, products = _fitted(self.inputs, alone, beside, lesson, nodes.num_classes)
            return [*both, *products]

        posteriors = []
        for trust in _TRUST:
            posteriors.append(_as_it_is(self.inputs, nodes.num_classes))
            posteriors[-1][told, range(nodes.num_classes)] = trust
        return self.joined_by_given(posteriors).joined_by(fitted, nodes)

    def joined_by_given(self, tables: Sequence[Tensor]) -> _Regressions:
        """With tables that no label taught."""

        def asked(mask: Tensor | slice) -> list[Tensor]:
            return [torch.softmax(self.inputs[mask] @ table, dim=1) for table in tables]

        ensemble = self.ensemble.joined_by(asked(slice(None)), self.ensemble.lesson, lambda _, mask: asked(mask))
        return replace(self, ensemble=ensemble, tables=(*self.tables, *tables))


def _regressions_on(start: Tensor, judged: Tensor, believed: BelievedCounts, nodes: PublicNodes) -> _Regressions:
    """Regressions on believed counts, some beside the start, averaged as the judges say.

    The start knows the labels that it was taught by: a regression on it and on counts, taught by the same labels, trusts it too
    much. So what counts say alone is multiplied with the start as well, less the class shares that both bring along. Training
    nodes that are judges have a start without their own labels, and teach with that.
    """
    ensemble, classes = Ensemble(nodes=nodes), nodes.num_classes
    honest = start.double().clone()
    if ensemble.judges.folds is not None:
        honest[ensemble.judges.mask] = judged
    inputs = _inputs(honest, believed)
    own, plain, logs, shares, _ = _columns(classes)
    alone = [_scaling(inputs, groups) for groups in ((plain,), (logs + shares,))]
    beside = [_scaling(inputs, groups) for groups in ((own, plain), (own, logs + shares))]

    def fitted(lesson: Lesson) -> list[Tensor]:
        return [table for some in _fitted(inputs, alone, beside, lesson, classes) for table in some]

    start_alone = _Regressions(inputs=inputs, ensemble=ensemble).joined_by_given([_as_it_is(inputs, classes)])
    return start_alone.joined_by(fitted, nodes)


def _columns(classes: int) -> list[list[int]]:
    """Where inputs hold the start, the counts, their logarithms, their shares and their evidence."""
    return [list(range(place * classes, (place + 1) * classes)) for place in range(5)]


def _as_it_is(inputs: Tensor, classes: int) -> Tensor:
    """The table that gives the logarithms of the start."""
    return torch.eye(inputs.shape[1], classes, dtype=torch.float64)


def _fitted(
    inputs: Tensor, alone: Sequence[Tensor], beside: Sequence[Tensor], lesson: Lesson, classes: int
) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """Tables from the inputs to scores: from counts alone, from the start too, and products of the first with the start."""
    told, both = (
        [table for scaling in some for table in _regressions(inputs, scaling, lesson, classes)]
        for some in (alone, beside)
    )
    taught = torch.bincount(lesson.labels[lesson.mask], minlength=classes).double() + 1
    as_it_is = _as_it_is(inputs, classes)
    usual = torch.zeros_like(as_it_is)
    usual[-1] = (taught / taught.sum()).log()
    return told, both, [as_it_is + table - usual for table in told]


def _regressions(inputs: Tensor, scaling: Tensor, lesson: Lesson, num_classes: int) -> list[Tensor]:
    """One per penalty on scaled inputs, as tables from the inputs to scores."""
    tables = []
    rows, labels = (inputs @ scaling).float()[lesson.mask], lesson.labels[lesson.mask]
    for scores in softmax_regressions(rows, one_hot(labels, num_classes), _PENALTIES):
        table = scaling @ scores[:-1]
        table[-1] += scores[-1]
        tables.append(table)
    return tables


def _scaling(inputs: Tensor, groups: Sequence[list[int]]) -> Tensor:
    """A matrix that takes inputs to some of their columns, of mean 0; a group is divided by its deviation as a whole."""
    scaling = torch.zeros(inputs.shape[1], sum(map(len, groups)), dtype=torch.float64)
    place = 0
    for columns in groups:
        here, means = range(place, place + len(columns)), inputs[:, columns].mean(dim=0)
        factor = 1 / max(float((inputs[:, columns] - means).std()), _LEAST_SCALE)
        scaling[columns, here] = factor
        scaling[-1, here] = -factor * means
        place += len(columns)
    return scaling
