"""What neighbour counts make of answers: softmax regressions on a node's own answer, on its counts, and on what these say.

They are taught on the released, noisy counts, taken for what they probably were (believed_counts.py), and may then be asked at
any counts: at the noisy ones for an answer that may be published, at the exact ones by the node's owner. Free: reads released
and public numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from gcon.learn.after_release import AfterMoments
from gcon.learn.believed_counts import LEAST_ANSWER, CountBelief, with_labels
from gcon.learn.edge_free import PENALTIES
from gcon.learn.ensemble import Ensemble, Lesson
from gcon.learn.sample import blocks
from gcon.learn.softmax_regression import probabilities, softmax_regressions
from gcon.machine import one_thread, side_by_side
from gcon.nodes import PublicNodes

_PENALTIES = (10.0, 1.0)
_TAUGHT_SHARE = 0.8  # of the unlabelled nodes
_LESSONS = 2  # counts teach the features so often, and are looked at again from there
SHARES_SCALE = 3.0  # shares vary less than logarithms of counts; owners' exact counts are asked with it too
_LEAST_SCALE = 1e-12
_NEVER = 30.0  # a score so much lower than others is as good as none
_TRUST = (1.0, 0.5)  # in the evidence of counts: neighbours err together, so it is too sure of itself


@final
@dataclass(frozen=True, eq=False)
class CountModel:
    """Answers from what a node's answer is without counts, and from its counts: an average of softmax regressions.

    Attributes:
        weights: of the regressions; they add to 1. Float64.
        tables: regressions x (5 c + 1) x c, float64: from `count_inputs` of a node to the scores of its classes.
    """

    weights: Tensor
    tables: Tensor

    def answers(self, inputs: Tensor) -> Tensor:
        """Class probabilities of nodes from their inputs, float64."""
        total = torch.zeros(len(inputs), self.tables.shape[2], dtype=torch.float64)
        for weight, table in zip(self.weights, self.tables, strict=True):
            total += weight * probabilities(inputs @ table)
        return total


def count_inputs(answers: Tensor, counts: Tensor, evidence: Tensor) -> Tensor:
    """Logarithms of the answers, the counts, their logarithms, their shares, their evidence, and 1.

    One row per node, float64.
    """
    counts = counts.double().clamp_min(0.0)
    shares = SHARES_SCALE * counts / (counts.sum(dim=1, keepdim=True) + 1)
    logs, constant = answers.double().clamp_min(LEAST_ANSWER).log(), torch.ones(len(counts), 1, dtype=torch.float64)
    return torch.cat([logs, counts, counts.log1p(), shares, evidence, constant], dim=1)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class AfterCounts:
    """What counts make of answers.

    Attributes:
        start: class probabilities without these counts: what the model is asked with, beside counts.
        belief: how counts come about.
        model: the regressions.
        answers: class probabilities from the released counts.
        twins: the same of the sampled nodes, without the labels of one part of the judges, for every part.
        gain: the mean loss that counts spared the judges, at the first look or with an earlier table; 0 if they spared none.
    """

    start: Tensor
    belief: CountBelief
    model: CountModel
    answers: Tensor
    twins: tuple[Tensor, ...]
    gain: float


def after_counts(
    after: AfterMoments, before: AfterMoments | AfterCounts, noisy: Tensor, deviations: Tensor | float
) -> AfterCounts:
    """Answers from released counts. What the first table of counts teaches about features becomes part of the start.

    Args:
        after: the ensemble that read no counts, and the features that it learned from.
        before: what was answered before these counts.
        noisy: the released counts, n x c.
        deviations: of their noise: of every node's row, or one for all.
    """
    sample, start, twins = after.free.sample, before.answers, before.twins
    nodes, heard, judges = sample.nodes, noisy[sample.places], after.ensemble.judges
    deviations = torch.as_tensor(deviations, dtype=torch.float64).expand(len(noisy))
    loud, gain = deviations[sample.places], before.gain if isinstance(before, AfterCounts) else 0.0
    # A second table comes when the first one has taught its features already.
    looks = 1 + (_LESSONS if before is after else 0)
    for look in range(looks):
        starts = [start[sample.places].double(), *twins]
        if judges.folds is not None:  # training nodes that judge teach with answers that their own labels did not teach
            judged = judges.crossed(starts)
            starts = [each.index_put((judges.mask,), judged) for each in starts]
        labels = [torch.where(lesson.mask, nodes.labels, -1) for lesson in after.ensemble.lessons]
        beliefs = [CountBelief.fitted(heard, loud, *each) for each in zip(starts, labels, strict=True)]
        inputs = []
        for belief, each in zip(beliefs, starts, strict=True):
            believed = belief.of(heard, loud, each)
            inputs.append(count_inputs(each, believed.counts, believed.evidence))
        model, ensemble = _learned(inputs, nodes)
        if look == 0:  # what counts spared the judges, beside the first member, which is the start as it is
            right = ensemble.judged[torch.arange(len(judges.labels)), judges.labels].clamp_min(LEAST_ANSWER)
            gain = max(gain, ensemble.members[0].loss + float(right.log().mean()))
        if look < looks - 1:
            lessons, graph = ensemble.surest(_TAUGHT_SHARE), after.free.graph
            pupils = after.ensemble.taught([after.rescaled], PENALTIES, lessons)
            averages = zip((ensemble.answers, *ensemble.twins), labels, strict=True)
            pupils = pupils.joined_by([[graph.answers_around(with_labels(*each))] for each in averages], lessons)
            answers, _, twins = pupils.moved()
            start = sample.everywhere(answers, after.free.rows)
    answers, belief = torch.empty(start.shape, dtype=torch.float64), beliefs[0]

    def answer(rows: slice) -> None:
        believed = belief.of(noisy[rows], deviations[rows], start[rows])
        answers[rows] = model.answers(count_inputs(start[rows], believed.counts, believed.evidence))

    side_by_side(answer, blocks(len(start)))
    twins = ensemble.moved()[2]
    return AfterCounts(start=start, belief=belief, model=model, answers=answers, twins=twins, gain=gain)


def _learned(every: Sequence[Tensor], nodes: PublicNodes) -> tuple[CountModel, Ensemble]:
    """Regressions on believed counts and their evidence, averaged as the judges say.

    The start knows the labels that it was taught by: a regression on it and on counts, taught by the same labels, trusts it too
    much. So what counts say alone is multiplied with the start as well, less the class shares that both bring along. Evidence is
    heard by Bayes' rule and in regressions: it knows how noisy a count is, shares do not.

    Args:
        every: inputs of all nodes, those of the twins too.
        nodes: who teaches and is taught.
    """
    ensemble, classes = Ensemble(nodes=nodes), nodes.num_classes
    own, plain, logs, shares, told = (list(range(place * classes, (place + 1) * classes)) for place in range(5))
    alone = [[plain], [logs + shares], [told, logs + shares]]
    as_it_is = torch.eye(every[0].shape[1], classes, dtype=torch.float64)  # the logarithms of the start
    if ensemble.judges.folds is not None:  # evidence may name a class that nobody taught, and nobody could judge that
        as_it_is[-1, torch.bincount(ensemble.judges.labels, minlength=classes) == 0] = -_NEVER
    untaught = [as_it_is, *(as_it_is.clone() for _ in _TRUST)]
    for table, trust in zip(untaught[1:], _TRUST, strict=True):
        table[told, range(classes)] = trust

    def taught(inputs: Tensor, lesson: Lesson) -> list[Tensor]:
        """Tables from the inputs to scores: from counts alone, from the start too, and products of the first with the start."""
        labels, tables = lesson.labels[lesson.mask], []
        for groups in (*alone, *([own, *groups] for groups in alone)):
            scaling = _scaling(inputs, groups)
            rows = (inputs @ scaling).float()[lesson.mask]
            for scores in softmax_regressions(rows, one_hot(labels, classes), _PENALTIES):
                table = scaling @ scores[:-1]
                table[-1] += scores[-1]
                tables.append(table)
        usual = torch.bincount(labels, minlength=classes).double() + 1
        products = [as_it_is + table for table in tables[: len(alone) * len(_PENALTIES)]]
        for table in products:
            table[-1] -= (usual / usual.sum()).log()
        return [*tables, *products]

    kept: list[Tensor] = []
    with one_thread():
        for pupils in (False, True):
            lessons = ensemble.surest(_TAUGHT_SHARE) if pupils else ensemble.lessons
            tables = [taught(inputs, lesson) for inputs, lesson in zip(every, lessons, strict=True)]
            tables = tables if pupils else [[*untaught, *each] for each in tables]
            answers = [
                [probabilities(inputs @ table) for table in each] for inputs, each in zip(every, tables, strict=True)
            ]
            ensemble, kept = ensemble.joined_by(answers, lessons), [*kept, *tables[0]]
    calibrated, shift = [], ensemble.shift
    for member, table in zip(ensemble.members, kept, strict=True):
        table = table / member.temperature
        table[-1] += member.shift if shift is None else member.shift + shift
        calibrated.append(table)
    heard = ensemble.weights > 0
    return CountModel(ensemble.weights[heard], torch.stack(calibrated)[heard]), ensemble


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
