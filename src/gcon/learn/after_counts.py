"""What neighbour counts make of answers: a few softmax regressions on a node's own answer and on its counts by code.

They are taught on the released, noisy counts, taken for what they probably were, and may then be asked at any counts: at the
noisy ones for an answer that may be published, at the exact ones by the node's owner. Free: reads released and public numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from gcon.learn.after_release import AfterMoments
from gcon.learn.edge_free import PENALTIES
from gcon.learn.ensemble import Ensemble, Lesson, pseudo_labels
from gcon.learn.sample import blocks
from gcon.learn.softmax_regression import softmax_regressions
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
    than their noise tells the spread of degrees, and that proportion.

    Args:
        noisy: n x K.
        deviation: of the noise of an entry.
        answers: n x c, class probabilities.
    """
    counts = noisy.double()
    if deviation == 0:
        return counts
    noise, codes = deviation**2, counts.shape[1]
    known = torch.cat([torch.ones(len(counts), 1, dtype=torch.float64), answers.double()], dim=1)
    products = known.T @ known
    products += _RIDGE * products.diagonal().mean() * torch.eye(len(products), dtype=torch.float64)
    expected: Tensor = (known @ torch.linalg.solve(products, known.T @ counts)).clamp_min(_LEAST_COUNT)
    usual, degrees = expected.sum(dim=1, keepdim=True), counts.sum(dim=1, keepdim=True)
    spread = float(((degrees / usual - 1).square() - codes * noise / usual.square()).mean())
    variance = max(spread, _LEAST_SPREAD) * usual.square()
    degrees = (usual + variance / (variance + codes * noise) * (degrees - usual)).clamp_min(_LEAST_DEGREE)
    expected = expected / usual * degrees
    rest = counts - expected
    crowding = ((rest.square() - noise) * expected).sum(dim=0) / expected.square().sum(dim=0)
    variance = crowding.clamp_min(_LEAST_CROWDING) * expected
    believed: Tensor = (expected + variance / (variance + noise) * rest).clamp_min(0.0)
    return believed


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
        model, _ = _learned(start[sample.places], judged, counts[sample.places], sample.nodes)
        taught_by = model.answers(start[sample.places], counts[sample.places])
        lesson = pseudo_labels(taught_by, sample.nodes, _TAUGHT_SHARE)
        ensemble = after.ensemble.taught([after.rescaled], PENALTIES, lesson)
        start, judged = sample.everywhere(ensemble.answers, after.free.rows), ensemble.judged
        counts = believed_counts(noisy, deviation, start)
    model, judged = _learned(start[sample.places], judged, counts[sample.places], sample.nodes)
    return AfterCounts(start=start, model=model, answers=model.answers(start, counts), judged=judged)


def _learned(start: Tensor, judged: Tensor, counts: Tensor, nodes: PublicNodes) -> tuple[CountModel, Tensor]:
    """Regressions on believed counts, some beside the start, averaged as the judges say; and what the judges get.

    The start knows the labels that it was taught by: a regression on it and on counts, taught by the same labels, trusts it too
    much. So what counts say alone is multiplied with the start as well, less the class shares that both bring along. Training
    nodes that are judges have a start without their own labels, and teach with that.
    """
    ensemble, classes = Ensemble(nodes=nodes), nodes.num_classes
    honest = start.double().clone()
    if ensemble.judges.folds is not None:
        honest[ensemble.judges.mask] = judged
    inputs = count_inputs(honest, counts)
    own, plain, logs, shares = (list(range(place * classes, (place + 1) * classes)) for place in range(4))
    scaling = torch.zeros(
        inputs.shape[1], 4 * classes, dtype=torch.float64
    )  # to mean 0, and to one deviation of a group
    for columns in (own, plain, logs + shares):
        means = inputs[:, columns].mean(dim=0)
        factor = 1 / max(float((inputs[:, columns] - means).std()), _LEAST_SCALE)
        scaling[columns, columns] = factor
        scaling[-1, columns] = -factor * means
    alone, beside = (plain, logs + shares), (own + plain, own + logs + shares)
    as_it_is = torch.eye(inputs.shape[1], classes, dtype=torch.float64)  # the logarithms of the start

    def fitted(lesson: Lesson) -> list[Tensor]:
        """Tables from the inputs to scores: from counts alone, from the start too, and products."""
        labels, tables = lesson.labels[lesson.mask], []
        for columns in (*alone, *beside):
            rows = (inputs @ scaling[:, columns]).float()[lesson.mask]
            for scores in softmax_regressions(rows, one_hot(labels, classes), _PENALTIES):
                table = scaling[:, columns] @ scores[:-1]
                table[-1] += scores[-1]
                tables.append(table)
        taught = torch.bincount(labels, minlength=classes).double() + 1
        usual = torch.zeros_like(as_it_is)
        usual[-1] = (taught / taught.sum()).log()
        told = tables[: len(alone) * len(_PENALTIES)]
        return [*tables, *(as_it_is + table - usual for table in told)]

    def asked(tables: Sequence[Tensor], at: Tensor | slice = slice(None)) -> list[Tensor]:
        return [torch.softmax(inputs[at] @ table, dim=1) for table in tables]

    with one_thread():
        tables = [as_it_is, *fitted(ensemble.lesson)]
        ensemble = ensemble.joined_by(
            asked(tables), ensemble.lesson, lambda lesson, mask: asked([as_it_is, *fitted(lesson)], mask)
        )
        lesson = pseudo_labels(ensemble.answers, nodes, _TAUGHT_SHARE)
        again = fitted(lesson)
        ensemble, tables = ensemble.joined_by(asked(again), lesson), tables + again
    calibrated = []
    for member, table in zip(ensemble.members, tables, strict=True):
        table = table / member.temperature
        table[-1] += member.shift
        calibrated.append(table)
    kept = ensemble.weights > 0
    return CountModel(ensemble.weights[kept], torch.stack(calibrated)[kept]), ensemble.judged
