"""What neighbour counts make of answers: a few softmax regressions on a node's own answer and on its counts by code.

They are taught on the released, noisy counts, taken for what they probably were (believed_counts.py), and may then be asked at
any counts: at the noisy ones for an answer that may be published, at the exact ones by the node's owner. Published answers hear
some more regressions, on what the noisy counts say about each class as well. Free: reads released and public numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
from gcon.machine import one_thread, side_by_side
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

    def answers(self, inputs: Tensor) -> Tensor:
        """Class probabilities of nodes from their inputs, float64."""
        total = torch.zeros(len(inputs), self.tables.shape[2], dtype=torch.float64)
        for weight, table in zip(self.weights, self.tables, strict=True):
            total += weight * torch.softmax(inputs @ table, dim=1)
        return total


def count_inputs(answers: Tensor, counts: Tensor, evidence: Tensor | None = None) -> Tensor:
    """Logarithms of the answers, the counts, their logarithms, their shares, their evidence if wanted, and 1.

    One row per node, float64.
    """
    counts = counts.double().clamp_min(0.0)
    shares = SHARES_SCALE * counts / (counts.sum(dim=1, keepdim=True) + 1)
    parts = [answers.double().clamp_min(LEAST_ANSWER).log(), counts, counts.log1p(), shares]
    parts += [] if evidence is None else [evidence]
    return torch.cat([*parts, torch.ones(len(counts), 1, dtype=torch.float64)], dim=1)


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
    labels = torch.where(nodes.train_mask & by_validation, nodes.labels, -1)
    if before is after:  # a second table comes when the first one has taught its features already
        belief = CountBelief.fitted(heard, deviation, start[sample.places], labels)
        believed = belief.of(heard, start[sample.places])
        _, taught_by = _learned(start[sample.places], judged, believed, nodes, evidence=False)
        lesson = pseudo_labels(taught_by.answers, nodes, _TAUGHT_SHARE)
        ensemble = after.ensemble.taught([after.rescaled], PENALTIES, lesson)
        if by_validation:  # means are no twins of anybody, so only validation nodes can judge them
            around = after.free.graph.answers_around(with_labels(taught_by.answers, labels))
            ensemble = ensemble.joined_by([around], lesson)
        start, judged = sample.everywhere(ensemble.answers, after.free.rows), ensemble.judged
    belief = CountBelief.fitted(heard, deviation, start[sample.places], labels)
    believed = belief.of(heard, start[sample.places])
    (owners, published), ensemble = _learned(start[sample.places], judged, believed, nodes, evidence=True)
    # Owners ask at exact counts, of which there is no evidence: its columns are 0 in their tables.
    model = CountModel(owners.weights, torch.cat([owners.tables[:, : 4 * nodes.num_classes], owners.tables[:, -1:]], 1))
    answers = torch.empty(start.shape, dtype=torch.float64)

    def answer(rows: slice) -> None:
        believed = belief.of(noisy[rows], start[rows])
        answers[rows] = published.answers(count_inputs(start[rows], believed.counts, believed.evidence))

    side_by_side(answer, blocks(len(start)))
    return AfterCounts(start=start, model=model, answers=answers, judged=ensemble.judged)


def _learned(
    start: Tensor, judged: Tensor, believed: BelievedCounts, nodes: PublicNodes, *, evidence: bool
) -> tuple[list[CountModel], Ensemble]:
    """Regressions on believed counts, some beside the start, averaged as the judges say; then some that hear the evidence too.

    The start knows the labels that it was taught by: a regression on it and on counts, taught by the same labels, trusts it too
    much. So what counts say alone is multiplied with the start as well, less the class shares that both bring along. Training
    nodes that are judges have a start without their own labels, and teach with that. Evidence is heard by Bayes' rule and in
    regressions: it knows how noisy a count is, shares do not.

    Returns:
        The average without evidence, and the one with it if wanted; and the ensemble of the last one.
    """
    ensemble, classes = Ensemble(nodes=nodes), nodes.num_classes
    honest = start.double().clone()
    if ensemble.judges.folds is not None:
        honest[ensemble.judges.mask] = judged
    inputs = count_inputs(honest, believed.counts, believed.evidence)
    own, plain, logs, shares, told = (list(range(place * classes, (place + 1) * classes)) for place in range(5))
    as_it_is = torch.eye(inputs.shape[1], classes, dtype=torch.float64)  # the logarithms of the start
    posteriors = [as_it_is.clone() for _ in _TRUST]
    for table, trust in zip(posteriors, _TRUST, strict=True):
        table[told, range(classes)] = trust
    # Tables that no label taught; inputs of regressions without the start, and with it; how many of these do not join.
    stages = [([as_it_is], [[plain], [logs + shares]], [[own, plain], [own, logs + shares]], 0)]
    if evidence:
        stages.append((posteriors, [[told, logs + shares]], [[own, told, logs + shares]], len(_PENALTIES)))
    models: list[CountModel] = []
    tables: list[Tensor] = []

    def asked(some: Sequence[Tensor], at: Tensor | slice) -> list[Tensor]:
        return [torch.softmax(inputs[at] @ table, dim=1) for table in some]

    with one_thread():
        for given, alone, beside, left_out in stages:
            scalings = [[_scaling(inputs, groups) for groups in some] for some in (alone, beside)]

            def taught(
                lesson: Lesson, scalings: list[list[Tensor]] = scalings, left_out: int = left_out
            ) -> list[Tensor]:
                return _fitted(inputs, *scalings, lesson=lesson, classes=classes)[left_out:]

            def ask(
                lesson: Lesson,
                mask: Tensor,
                given: list[Tensor] = given,
                taught: Callable[[Lesson], list[Tensor]] = taught,
            ) -> list[Tensor]:
                return asked([*given, *taught(lesson)], mask)

            some = [*given, *taught(ensemble.lesson)]
            ensemble = ensemble.joined_by(asked(some, slice(None)), ensemble.lesson, ask)
            lesson = pseudo_labels(ensemble.answers, nodes, _TAUGHT_SHARE)
            again = taught(lesson)
            ensemble, tables = ensemble.joined_by(asked(again, slice(None)), lesson), [*tables, *some, *again]
            calibrated = []
            for member, table in zip(ensemble.members, tables, strict=True):
                table = table / member.temperature
                table[-1] += member.shift
                calibrated.append(table)
            kept = ensemble.weights > 0
            models.append(CountModel(ensemble.weights[kept], torch.stack(calibrated)[kept]))
    return models, ensemble


def _fitted(
    inputs: Tensor, alone: Sequence[Tensor], beside: Sequence[Tensor], *, lesson: Lesson, classes: int
) -> list[Tensor]:
    """Tables from the inputs to scores: from counts alone, from the start too, and products of the first with the start."""
    labels, tables = lesson.labels[lesson.mask], []
    for scaling in (*alone, *beside):
        rows = (inputs @ scaling).float()[lesson.mask]
        for scores in softmax_regressions(rows, one_hot(labels, classes), _PENALTIES):
            table = scaling @ scores[:-1]
            table[-1] += scores[-1]
            tables.append(table)
    taught = torch.bincount(labels, minlength=classes).double() + 1
    as_it_is = torch.eye(inputs.shape[1], classes, dtype=torch.float64)
    usual = torch.zeros_like(as_it_is)
    usual[-1] = (taught / taught.sum()).log()
    return [*tables, *(as_it_is + table - usual for table in tables[: len(alone) * len(_PENALTIES)])]


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
