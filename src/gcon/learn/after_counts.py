"""What neighbour counts make of answers: a few softmax regressions on a node's own answer and on its counts by code.

They are taught on the released, noisy counts, taken for what they probably were, and may then be asked at any counts: at the
noisy ones for an answer that may be published, at the exact ones by the node's owner. Free: reads released and public numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import final

import torch
from torch import Tensor

from gcon.learn.after_release import AfterMoments
from gcon.learn.edge_free import PENALTIES
from gcon.learn.ensemble import Ensemble
from gcon.learn.members import Lesson, pseudo_labels, taught_tables
from gcon.learn.sizes import blocks
from gcon.learn.softmax_regression import class_probabilities
from gcon.machine import one_thread
from gcon.nodes import PublicNodes

_PENALTIES = (10.0, 1.0)
_TAUGHT_SHARE = 0.8  # of the unlabelled nodes
LEAST_ANSWER = 1e-4  # owners' exact counts are asked with the same two (gcon.methods.evidence)
SHARES_SCALE = 3.0  # shares vary less than logarithms of counts
_LEAST_SCALE = 1e-12
_LEAST_COUNT, _LEAST_DEGREE = 0.05, 0.3  # what is expected of a count, and of a degree
_LEAST_SPREAD = 1e-3  # of degrees, relative and squared
_LEAST_CROWDING = 0.2  # the variance of a count over its mean; 1 for a Poisson number
_RIDGE = 1e-3


def believed_counts(noisy: Tensor, deviation: float, answers: Tensor) -> Tensor:
    """The posterior mean of the counts.

    What is believed before: counts follow from a node's answer (least squares on the noisy counts of all nodes, whose noise has
    mean 0), scaled by its degree; the variance of a count is proportional to its mean. By how much the noisy counts vary more
    than their noise tells the spread of degrees, and that proportion. Of a large graph a block of nodes at a time: beside the
    result nothing is as long as the nodes.

    Args:
        noisy: n x K.
        deviation: of the noise of an entry.
        answers: n x c, class probabilities.
    """
    if deviation == 0:
        return noisy.double()
    noise, codes, parts = deviation**2, noisy.shape[1], list(blocks(len(noisy)))

    def known(part: slice) -> Tensor:
        some = answers[part].double()
        return torch.cat([torch.ones(len(some), 1, dtype=torch.float64), some], dim=1)

    products = _added(known(part).T @ known(part) for part in parts)
    products += _RIDGE * products.diagonal().mean() * torch.eye(len(products), dtype=torch.float64)
    table = torch.linalg.solve(products, _added(known(part).T @ noisy[part].double() for part in parts))

    def usual(part: slice) -> tuple[Tensor, Tensor, Tensor]:
        """Counts that answers lead to, what they add to, and what the noisy counts add to."""
        expected = (known(part) @ table).clamp_min(_LEAST_COUNT)
        return expected, expected.sum(dim=1, keepdim=True), noisy[part].double().sum(dim=1, keepdim=True)

    def beyond(part: slice) -> Tensor:
        _, total, degrees = usual(part)
        return ((degrees / total - 1).square() - codes * noise / total.square()).sum()

    spread = max(float(_added(map(beyond, parts)) / len(noisy)), _LEAST_SPREAD)

    def scaled(part: slice) -> tuple[Tensor, Tensor]:
        """Counts that are expected of a node of its degree, and what is left of the noisy ones."""
        expected, total, degrees = usual(part)
        variance = spread * total.square()
        degrees = (total + variance / (variance + codes * noise) * (degrees - total)).clamp_min(_LEAST_DEGREE)
        expected = expected / total * degrees
        return expected, noisy[part].double() - expected

    def crowded(part: slice) -> Tensor:
        expected, rest = scaled(part)
        return torch.stack([((rest.square() - noise) * expected).sum(dim=0), expected.square().sum(dim=0)])

    varied, squares = _added(map(crowded, parts))
    crowding = (varied / squares).clamp_min(_LEAST_CROWDING)
    believed = torch.empty(noisy.shape, dtype=torch.float64)
    for part in parts:
        expected, rest = scaled(part)
        variance = crowding * expected
        believed[part] = (expected + variance / (variance + noise) * rest).clamp_min(0.0)
    return believed


def _added(tables: Iterable[Tensor]) -> Tensor:
    """One after another, so that never more than two are there."""
    return reduce(torch.add, tables)


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
        total = torch.zeros(start.shape, dtype=torch.float64)
        for rows in blocks(len(start)):
            inputs = count_inputs(start[rows], counts[rows])
            for weight, table in zip(self.weights, self.tables, strict=True):
                total[rows] += weight * torch.softmax(inputs @ table, dim=1)
        return total


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
    counts = believed_counts(noisy, deviation, start)
    if before is after:  # a second table comes when the first one has taught its features already
        model, _ = _learned(sample.at(start), judged, sample.at(counts), sample.nodes)
        taught_by = model.answers(sample.at(start), sample.at(counts))
        lesson = pseudo_labels(taught_by, sample.nodes, _TAUGHT_SHARE)
        with one_thread():
            tables = taught_tables(after.rescaled, lesson, sample.nodes.num_classes, PENALTIES)
            pupils = [class_probabilities(after.rescaled, table) for table in tables]
        ensemble = after.ensemble.joined_by_pupils(pupils, lesson)
        start, judged = sample.everywhere(ensemble.answers, after.free.rows), ensemble.judged
        counts = believed_counts(noisy, deviation, start)
    model, judged = _learned(sample.at(start), judged, sample.at(counts), sample.nodes)
    return AfterCounts(start=start, model=model, answers=model.answers(start, counts), judged=judged)


def _learned(start: Tensor, judged: Tensor, counts: Tensor, nodes: PublicNodes) -> tuple[CountModel, Tensor]:
    """Regressions on believed counts, some beside the start, averaged as the judges say; and what the judges get.

    The start knows the labels that it was taught by: a regression on it and on counts, taught by the same labels, trusts it too
    much. So what counts say alone is multiplied with the start as well, less the class shares that both bring along. Training
    nodes that are judges have a start without their own labels, and teach with that.
    """
    ensemble, classes = Ensemble.without_members(nodes), nodes.num_classes
    honest = start.double().clone()
    if ensemble.judges.folds is not None:
        honest[ensemble.judges.mask] = judged
    inputs = count_inputs(honest, counts)
    own, plain, logs, shares = (list(range(place * classes, (place + 1) * classes)) for place in range(4))
    alone = [_scaling(inputs, groups) for groups in ((plain,), (logs + shares,))]
    beside = [_scaling(inputs, groups) for groups in ((own, plain), (own, logs + shares))]
    as_it_is = torch.eye(inputs.shape[1], classes, dtype=torch.float64)  # the logarithms of the start

    def fitted(lesson: Lesson) -> list[Tensor]:
        """Tables from the inputs to scores: from counts alone, from the start too, and products."""
        told, both = (
            [table for scaling in some for table in _regressions(inputs, scaling, lesson, classes)]
            for some in (alone, beside)
        )
        taught = torch.bincount(lesson.labels[lesson.mask], minlength=classes).double() + 1
        usual = torch.zeros_like(as_it_is)
        usual[-1] = (taught / taught.sum()).log()
        return [*told, *both, *(as_it_is + table - usual for table in told)]

    def asked(tables: Sequence[Tensor], mask: Tensor | slice) -> list[Tensor]:
        return [torch.softmax(inputs[mask] @ table, dim=1) for table in tables]

    with one_thread():
        tables, everybody = [as_it_is, *fitted(ensemble.lesson)], slice(None)
        ensemble = ensemble.joined_by(
            asked(tables, everybody), lambda lesson, mask: asked([as_it_is, *fitted(lesson)], mask)
        )
        lesson = pseudo_labels(ensemble.answers, nodes, _TAUGHT_SHARE)
        again = fitted(lesson)
        ensemble, tables = ensemble.joined_by_pupils(asked(again, everybody), lesson), tables + again
    calibrated = []
    for member, table in zip(ensemble.members, tables, strict=True):
        table = table / member.calibration.temperature
        table[-1] += member.calibration.shift
        calibrated.append(table)
    kept = ensemble.weights > 0
    return CountModel(ensemble.weights[kept], torch.stack(calibrated)[kept]), ensemble.judged


def _regressions(inputs: Tensor, scaling: Tensor, lesson: Lesson, num_classes: int) -> list[Tensor]:
    """One per penalty on scaled inputs, as tables from the inputs to scores."""
    tables = []
    for scores in taught_tables((inputs @ scaling).float(), lesson, num_classes, _PENALTIES):
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
