"""The ensemble: members are taught on a sample of the nodes, and asked about all nodes, a block at a time.

Of a graph with at most `EXACT_NODES` nodes the sample is everybody, and the members' answers there are all there is to ask.
Of a larger one a member is a small regression on a *view*, and only members with a weight are asked about all nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import product
from typing import final

import torch
from torch import Tensor

from gcon.learn import sizes
from gcon.learn.judges import Judges
from gcon.learn.members import (
    Calibration,
    Lesson,
    Regression,
    best_calibration,
    closest_calibration,
    pseudo_labels,
    validation_loss,
)
from gcon.learn.sizes import Places, blocks, sampled
from gcon.machine import one_thread
from gcon.nodes import PublicNodes

_SEED = 2  # of the sample
_PICKS = 12
_PICKS_OF_ALL = 4  # of them, if the training nodes judge: they are few, and all members together are never far off
_TRAINING_SHARE, _VALIDATION_SHARE = 0.6, 0.2  # of the sample, at most; other nodes fill it

Rows = Callable[[Places], Tensor]  # of some nodes
View = Callable[[], Rows]  # a matrix with one row per node, made when it is opened: it may be large, so nobody keeps it


def view_of(matrix: Tensor | Callable[[], Tensor], *steps: Callable[[Tensor], Tensor]) -> View:
    """A matrix that is in memory, or made when the view is opened; the steps are applied to the rows that are asked for."""

    def opened() -> Rows:
        made = matrix if isinstance(matrix, Tensor) else matrix()
        return lambda nodes: reduce(lambda rows, step: step(rows), steps, made[nodes])

    return opened


@final
@dataclass(frozen=True, eq=False)
class SampledView:
    """A view, and its rows at the sampled nodes."""

    view: View
    rows: Tensor


@final
@dataclass(frozen=True, eq=False)
class Member:
    """How to answer from a view, and the answers at the sampled nodes.

    Attributes:
        view: what is read.
        regression: None if the view holds class probabilities already.
        calibration: None if the answers need none.
        answers: class probabilities of the sampled nodes, float64.
        judged: class probabilities of the judges, whose labels did not teach it; members of one table share their weight.
    """

    view: View
    regression: Regression | None
    calibration: Calibration | None
    answers: Tensor
    judged: Tensor

    def answered(self, rows: Tensor) -> Tensor:
        """Class probabilities from rows of the view."""
        answers = rows.double() if self.regression is None else self.regression.answers(rows)
        return answers if self.calibration is None else self.calibration.of(answers)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Ensemble:
    """Members so far; adding some gives another ensemble.

    Attributes:
        nodes: all of them.
        places, sample: the nodes that teach and are taught.
        members: in the order in which they joined.
        judges: which of the sampled nodes tell how good a member is.
        validation_shares: whether calibration corrects for class shares unlike those of the validation labels.
    """

    nodes: PublicNodes
    places: Places
    sample: PublicNodes
    judges: Judges
    members: tuple[Member, ...] = ()
    validation_shares: bool = True

    @classmethod
    def without_members(cls, nodes: PublicNodes, *, validation_shares: bool = True) -> Ensemble:
        """The start. All nodes teach if they are few; else labelled ones as far as they fit, validation nodes, and others."""
        places: Places = slice(None)
        if nodes.num_nodes > sizes.EXACT_NODES:
            places = _teaching(nodes)
        sample = nodes if isinstance(places, slice) else part_of(nodes, places)
        judges = Judges.of(sample)
        return cls(nodes=nodes, places=places, sample=sample, judges=judges, validation_shares=validation_shares)

    def sampled(self, views: Sequence[View]) -> list[SampledView]:
        """Views with their rows at the sampled nodes, opened one after the other."""
        return [SampledView(view, view()(self.places)) for view in views]

    def joined_by(
        self,
        views: Sequence[SampledView],
        ask: Callable[[Lesson, Tensor], list[Tensor]],
        regressions: Sequence[Regression | None] = (),
    ) -> Ensemble:
        """With more members, taught by true labels, and calibrated by the judges.

        Args:
            views: what they read.
            ask: answers of such members after another lesson, at the nodes of a mask.
            regressions: how they answer from it; none if the views hold class probabilities already.
        """
        pairs = list(zip(views, regressions or [None] * len(views), strict=True))
        answers = [_answers(*pair) for pair in pairs]
        judged = self.judges.answered(answers, self.lesson, ask)
        return self._with(pairs, answers, judged, self.lesson)

    def joined_by_pupils(
        self, views: Sequence[SampledView], lesson: Lesson, regressions: Sequence[Regression | None] = ()
    ) -> Ensemble:
        """With twins of the last members, taught by pseudo-labels.

        Validation nodes judge them like others. Training nodes cannot: their labels are behind the pseudo-labels. Then a pupil is
        judged as its twin was, and is made as sure as the average that taught it.

        Args:
            views: what they read.
            lesson: what they were taught by.
            regressions: how they answer from it; none if the views hold class probabilities already.
        """
        pairs = list(zip(views, regressions or [None] * len(views), strict=True))
        answers = [_answers(*pair) for pair in pairs]
        if self.judges.folds is None:
            return self._with(pairs, answers, [each[self.judges.mask] for each in answers], lesson)
        others, members = ~self.sample.train_mask, []
        if not bool(others.any()):
            others = self.sample.train_mask  # everybody is labelled: pseudo-labels taught nobody
        for (seen, regression), given, twin in zip(pairs, answers, self.members[-len(pairs) :], strict=True):
            found = closest_calibration(given[others], self.average[1][others])
            members.append(Member(seen.view, regression, found, found.of(given), twin.judged))
        return replace(self, members=(*self.members, *members))

    def _with(
        self,
        pairs: Sequence[tuple[SampledView, Regression | None]],
        answers: Sequence[Tensor],
        judged: Sequence[Tensor],
        lesson: Lesson,
    ) -> Ensemble:
        """With these members, calibrated by the judges."""
        shares = self.validation_shares and self.judges.folds is None
        members = list(self.members)
        for (seen, regression), given, checked in zip(pairs, answers, judged, strict=True):
            found = best_calibration(checked, self.judges.labels, lesson if shares else None)
            members.append(Member(seen.view, regression, found, found.of(given), found.of(checked)))
        return replace(self, members=tuple(members))

    def taught(self, views: Sequence[SampledView], penalties: Sequence[float], share: float | None = None) -> Ensemble:
        """With one more regression per view and penalty.

        Args:
            views: what they learn from.
            penalties: on their squared weights.
            share: of the sampled nodes without a label that get pseudo-labels from the average, the surest ones; None for
                true labels alone. The last members must have been taught from the same views with the same penalties.
        """
        pairs = list(product(views, penalties))
        seen = [view for view, _ in pairs]

        def fitted(lesson: Lesson) -> list[Regression]:
            classes = self.nodes.num_classes
            return [Regression.fitted(view.rows, lesson, num_classes=classes, penalty=each) for view, each in pairs]

        def ask(lesson: Lesson, mask: Tensor) -> list[Tensor]:
            return [each.answers(view.rows[mask]) for each, view in zip(fitted(lesson), seen, strict=True)]

        with one_thread():
            if share is None:
                return self.joined_by(seen, ask, fitted(self.lesson))
            lesson = pseudo_labels(self.average[1], self.sample, share)
            return self.joined_by_pupils(seen, lesson, fitted(lesson))

    @property
    def lesson(self) -> Lesson:
        """True labels."""
        return Lesson(self.sample.labels, self.sample.train_mask)

    @cached_property
    def average(self) -> tuple[Tensor, Tensor]:
        """Weights of the members, and their average at the sampled nodes, float64.

        The weights are a dozen picks, each the one that lowers the judges' loss most (with repeats). Members that are judged
        alike share a pick. If training nodes are the judges, a third of the picks is all members.
        """
        tables = {id(member.judged): member.judged for member in self.members}
        judged, labels, number = torch.stack(list(tables.values())), self.judges.labels, len(tables)
        of_all = 0 if self.judges.folds is None else _PICKS_OF_ALL
        weights, total = [of_all / _PICKS / number] * number, of_all * judged.mean(dim=0)
        for pick in range(of_all + 1, _PICKS + 1):
            best = min(range(number), key=lambda place: validation_loss((total + judged[place]) / pick, labels))
            weights[best] += 1 / _PICKS
            total += judged[best]
        shared, sharing = dict(zip(tables, weights, strict=True)), Counter(id(member.judged) for member in self.members)
        found = torch.tensor(
            [shared[id(each.judged)] / sharing[id(each.judged)] for each in self.members], dtype=torch.float64
        )
        return found, torch.einsum("m,mnc->nc", found, torch.stack([member.answers for member in self.members]))

    @cached_property
    def judged(self) -> Tensor:
        """The best average at the judges, without what their own labels taught."""
        return torch.einsum("m,mnc->nc", self.average[0], torch.stack([member.judged for member in self.members]))

    @cached_property
    def answers(self) -> Tensor:
        """The best average at all nodes; of a large graph float32, and every view with a weight is opened once more."""
        weights, answers = self.average
        if self.nodes.num_nodes <= sizes.EXACT_NODES:
            return answers
        total = torch.zeros(self.nodes.num_nodes, self.nodes.num_classes)
        asked = [(member, weight) for member, weight in zip(self.members, weights.tolist(), strict=True) if weight]
        for view in dict.fromkeys(member.view for member, _ in asked):
            rows = view()
            for nodes in blocks(len(total)):
                here = rows(nodes)
                for member, weight in asked:
                    if member.view is view:
                        total[nodes] += (weight * member.answered(here)).float()
        return total

    def settled(self) -> Ensemble:
        """With members that are matrices of answers, so that their views need not be kept.

        Of a large graph their average is the only one: to ask all of them once more would take as long as before.
        """
        kept = [(member.answers, member.answers, member.judged) for member in self.members]
        if self.nodes.num_nodes > sizes.EXACT_NODES:
            kept = [(self.answers, self.answers[self.places].double(), self.judged)]
        return replace(
            self, members=tuple(Member(view_of(all_), None, None, here, judged) for all_, here, judged in kept)
        )


def _answers(seen: SampledView, regression: Regression | None) -> Tensor:
    return seen.rows.double() if regression is None else regression.answers(seen.rows)


def _teaching(nodes: PublicNodes) -> Tensor:
    """Of many nodes: labelled ones as far as they fit, validation nodes, and others."""
    training = _some(nodes.train_mask, int(_TRAINING_SHARE * sizes.EXACT_NODES))
    validation = _some(nodes.validation_mask, int(_VALIDATION_SHARE * sizes.EXACT_NODES))
    free = ~(nodes.train_mask | nodes.validation_mask)
    others = _some(free, sizes.EXACT_NODES - len(training) - len(validation))
    return torch.cat([training, validation, others]).sort().values


def _some(mask: Tensor, most: int) -> Tensor:
    places = mask.nonzero()[:, 0]
    return places[sampled(len(places), most, seed=_SEED)]


def part_of(nodes: PublicNodes, places: Places) -> PublicNodes:
    """A table of some of the nodes."""
    columns = ("features", "labels", "train_mask", "validation_mask", "test_mask")
    return replace(nodes, **{name: getattr(nodes, name)[places] for name in columns})
