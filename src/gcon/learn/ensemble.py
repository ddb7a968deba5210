"""The ensemble: members that answer for all nodes of a table, calibrated and weighted as the judges among them say.

Of a large graph the table is a sample (sample.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import torch
from torch import Tensor

from gcon.learn.judges import Judges
from gcon.learn.members import (
    Calibration,
    Lesson,
    best_calibration,
    closest_calibration,
    log_likelihoods,
    pseudo_labels,
    taught_tables,
)
from gcon.learn.softmax_regression import class_probabilities
from gcon.machine import one_thread
from gcon.nodes import PublicNodes

_PICKS = 12
_PICKS_OF_ALL = 4  # of them, if the training nodes judge: they are few, and all members together are never far off


@final
@dataclass(frozen=True, eq=False)
class Member:
    """What a member answers.

    Attributes:
        calibration: what made its answers of those that it gave.
        answers: class probabilities of all nodes, float64.
        judged: class probabilities of the judges, whose labels did not teach it; members of one table share their weight.
    """

    calibration: Calibration
    answers: Tensor
    judged: Tensor


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Ensemble:
    """Members so far; adding some gives another ensemble.

    Attributes:
        nodes: who teaches and is taught.
        judges: which of them tell how good a member is.
        members: in the order in which they joined.
        validation_shares: whether calibration corrects for class shares unlike those of the validation labels.
    """

    nodes: PublicNodes
    judges: Judges
    members: tuple[Member, ...] = ()
    validation_shares: bool = True

    @classmethod
    def without_members(cls, nodes: PublicNodes, *, validation_shares: bool = True) -> Ensemble:
        """The start."""
        return cls(nodes=nodes, judges=Judges.of(nodes), validation_shares=validation_shares)

    def joined_by(self, answers: Sequence[Tensor], ask: Callable[[Lesson, Tensor], list[Tensor]]) -> Ensemble:
        """With more members, taught by true labels, and calibrated by the judges.

        Args:
            answers: theirs, class probabilities of all nodes, float64.
            ask: answers of such members after another lesson, at the nodes of a mask.
        """
        return self._with(answers, self.judges.answered(answers, self.lesson, ask), self.lesson)

    def joined_by_pupils(self, answers: Sequence[Tensor], lesson: Lesson) -> Ensemble:
        """With twins of the last members, taught by pseudo-labels.

        Validation nodes judge them like others. Training nodes cannot: their labels are behind the pseudo-labels. Then a pupil is
        judged as its twin was, and is made as sure as the average that taught it.

        Args:
            answers: theirs, class probabilities of all nodes, float64.
            lesson: what they were taught by.
        """
        if self.judges.folds is None:
            return self._with(answers, [each[self.judges.mask] for each in answers], lesson)
        others, members = ~self.nodes.train_mask, []
        if not bool(others.any()):
            others = self.nodes.train_mask  # everybody is labelled: pseudo-labels taught nobody
        for given, twin in zip(answers, self.members[-len(answers) :], strict=True):
            found = closest_calibration(given[others], self.answers[others])
            members.append(Member(found, found.of(given), twin.judged))
        return replace(self, members=(*self.members, *members))

    def _with(self, answers: Sequence[Tensor], judged: Sequence[Tensor], lesson: Lesson) -> Ensemble:
        """With these members, calibrated by the judges."""
        shares = self.validation_shares and self.judges.folds is None
        members = list(self.members)
        for given, checked in zip(answers, judged, strict=True):
            found = best_calibration(checked, self.judges.labels, lesson if shares else None)
            members.append(Member(found, found.of(given), found.of(checked)))
        return replace(self, members=tuple(members))

    def taught(self, views: Sequence[Tensor], penalties: Sequence[float], share: float | None = None) -> Ensemble:
        """With one more regression per view and penalty.

        Args:
            views: what they learn from, one row per node.
            penalties: on their squared weights.
            share: of the nodes without a label that get pseudo-labels from the average, the surest ones; None for
                true labels alone. The last members must have been taught from the same views with the same penalties.
        """

        def fitted(lesson: Lesson, at: Tensor | slice) -> list[Tensor]:
            return [
                class_probabilities(view[at], table)
                for view in views
                for table in taught_tables(view, lesson, self.nodes.num_classes, penalties)
            ]

        everybody = slice(None)
        with one_thread():
            if share is None:
                return self.joined_by(fitted(self.lesson, everybody), fitted)
            lesson = pseudo_labels(self.answers, self.nodes, share)
            return self.joined_by_pupils(fitted(lesson, everybody), lesson)

    @property
    def lesson(self) -> Lesson:
        """True labels."""
        return Lesson(self.nodes.labels, self.nodes.train_mask)

    @cached_property
    def weights(self) -> Tensor:
        """Of the members, float64.

        They are a dozen picks, each the one that lowers the judges' loss most (with repeats). Members that are judged alike share
        a pick. If training nodes are the judges, a third of the picks is all members.
        """
        tables = {id(member.judged): member.judged for member in self.members}
        labels = self.judges.labels  # of an answer only its probability of the true label counts
        right = torch.stack([judged[torch.arange(len(labels)), labels] for judged in tables.values()])
        of_all = 0 if self.judges.folds is None else _PICKS_OF_ALL
        weights, total = [of_all / _PICKS / len(right)] * len(right), of_all * right.mean(dim=0)
        for pick in range(of_all + 1, _PICKS + 1):
            best = int(log_likelihoods((total + right) / pick).argmax())
            weights[best] += 1 / _PICKS
            total += right[best]
        shared, sharing = dict(zip(tables, weights, strict=True)), Counter(id(member.judged) for member in self.members)
        return torch.tensor(
            [shared[id(each.judged)] / sharing[id(each.judged)] for each in self.members], dtype=torch.float64
        )

    @cached_property
    def answers(self) -> Tensor:
        """The best average at all nodes, float64."""
        return torch.einsum("m,mnc->nc", self.weights, torch.stack([member.answers for member in self.members]))

    @cached_property
    def judged(self) -> Tensor:
        """The best average at the judges, without what their own labels taught."""
        return torch.einsum("m,mnc->nc", self.weights, torch.stack([member.judged for member in self.members]))
