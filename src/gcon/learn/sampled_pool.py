"""The ensemble of a large graph: taught on a sample of its nodes, asked for the answers of all, a block at a time.

What members.py does with all nodes is done with the sampled ones, in the same order. A member is kept as a small
regression on a *source* of rows; only members with a weight are ever asked about all nodes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import product
from typing import final

import torch
from torch import Tensor

from gcon.learn.members import (
    Calibration,
    Regression,
    Taught,
    best_average,
    best_weights,
    calibration,
    pseudo_labels,
    true_labels,
)
from gcon.learn.sizes import SAMPLED_NODES, blocks, sampled
from gcon.nodes import PublicNodes

_SEED = 2  # of the sample
_TRAINING_SHARE, _VALIDATION_SHARE = 0.6, 0.2  # of the sample, at most; other nodes fill it

Reader = Callable[[int, Tensor | slice], Tensor]  # which rows, of which nodes -> rows


class Source(ABC):
    """Several matrices with one row a node, which need not be in memory."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many there are."""

    @abstractmethod
    def reader(self) -> Reader:
        """Something that reads them; it may hold large matrices, so nobody keeps it."""


@final
@dataclass(frozen=True, eq=False)
class View:
    """One matrix of a source, and its rows at the sampled nodes."""

    source: Source
    place: int
    rows: Tensor


@final
@dataclass(frozen=True, eq=False)
class Member:
    """How to answer from one matrix of a source, and the answers at the sampled nodes.

    Attributes:
        source, place: the matrix.
        regression: None if it holds class probabilities already.
        calibration: None without validation nodes.
        answers: class probabilities of the sampled nodes, float64.
    """

    source: Source
    place: int
    regression: Regression | None
    calibration: Calibration | None
    answers: Tensor

    def of(self, rows: Tensor) -> Tensor:
        """Class probabilities from rows of the matrix."""
        answers = rows.double() if self.regression is None else self.regression.answers(rows)
        return answers if self.calibration is None else self.calibration.of(answers)


def sampled_places(nodes: PublicNodes) -> Tensor:
    """The nodes of the sample: labelled ones as far as they fit, validation nodes, then others at random."""
    free = ~(nodes.train_mask | nodes.validation_mask)
    training = _some(nodes.train_mask, int(_TRAINING_SHARE * SAMPLED_NODES))
    validation = _some(nodes.validation_mask, int(_VALIDATION_SHARE * SAMPLED_NODES))
    others = _some(free, SAMPLED_NODES - len(training) - len(validation))
    return torch.cat([training, validation, others]).sort().values


def _some(mask: Tensor, most: int) -> Tensor:
    return sampled(mask.nonzero()[:, 0], most, seed=_SEED)


@final
class SampledPool:
    """Members taught on a sample of the nodes."""

    def __init__(self, nodes: PublicNodes) -> None:
        self._nodes, self._places = nodes, sampled_places(nodes)
        self.part = part_of(nodes, self._places)
        self.members: tuple[Member, ...] = ()

    def views(self, source: Source) -> list[View]:
        """The rows of a source at the sampled nodes."""
        read = source.reader()
        return [View(source, place, read(place, self._places)) for place in range(source.count)]

    def given(self, source: Source, *, as_they_are: bool = False) -> SampledPool:
        """With members that are class probabilities: calibrated, or as they are."""
        members = []
        for view in self.views(source):
            answers = view.rows.double()
            found = None if as_they_are else calibration(answers, self.part, true_labels(self.part))
            members.append(Member(source, view.place, None, found, answers if found is None else found.of(answers)))
        return self._with(members)

    def taught(self, views: Sequence[View], penalties: Sequence[float], share: float | None = None) -> SampledPool:
        """With one regression more a view and penalty.

        Args:
            views: what they learn from.
            penalties: on their squared weights.
            share: of the sampled nodes without a label that get pseudo-labels of the average; None for true labels alone.
        """
        part = self.part
        lesson = true_labels(part) if share is None else pseudo_labels(self.average_of_part(), part, share)
        return self._with([self._fitted(view, lesson, penalty) for view, penalty in product(views, penalties)])

    def average_of_part(self) -> Tensor:
        """The best average at the sampled nodes."""
        return best_average([member.answers for member in self.members], self.part)

    def average(self) -> Tensor:
        """The best average at all nodes, float32; every source is opened once, one after the other."""
        found = best_weights([member.answers for member in self.members], self.part)
        weights = [1 / len(self.members)] * len(self.members) if found is None else found.tolist()
        total = torch.zeros(self._nodes.num_nodes, self._nodes.num_classes)
        asked = [(member, weight) for member, weight in zip(self.members, weights, strict=True) if weight > 0]
        for source in dict.fromkeys(member.source for member, _ in asked):
            here = [(member, weight) for member, weight in asked if member.source is source]
            _add(total, source.reader(), here)
        return total

    def _fitted(self, view: View, lesson: Taught, penalty: float) -> Member:
        classes, mask = self._nodes.num_classes, lesson.mask
        regression = Regression.fitted(view.rows[mask], lesson.labels[mask], classes, penalty)
        answers = regression.answers(view.rows)
        found = calibration(answers, self.part, lesson)
        return Member(view.source, view.place, regression, found, answers if found is None else found.of(answers))

    def _with(self, members: Sequence[Member]) -> SampledPool:
        more = copy(self)
        more.members = (*self.members, *members)
        return more


def part_of(nodes: PublicNodes, places: Tensor) -> PublicNodes:
    """A table of some of the nodes."""
    return PublicNodes(
        features=nodes.features[places],
        labels=nodes.labels[places],
        num_classes=nodes.num_classes,
        train_mask=nodes.train_mask[places],
        validation_mask=nodes.validation_mask[places],
        test_mask=nodes.test_mask[places],
        class_names=nodes.class_names,
    )


def _add(total: Tensor, read: Reader, asked: Sequence[tuple[Member, float]]) -> None:
    """Add weighted answers of members of one source, a block of nodes at a time."""
    used = sorted({member.place for member, _ in asked})
    for nodes in blocks(len(total)):
        rows = {place: read(place, nodes) for place in used}
        for member, weight in asked:
            total[nodes] += (weight * member.of(rows[member.place])).float()
