"""The ensemble: members are taught on a sample of the nodes, and asked about all nodes, a block at a time.

Of a graph with at most `EXACT_NODES` nodes the sample is everybody, and the members' answers there are all there is to ask.
Of a larger one a member is a small regression on a *view*, and only members with a weight are asked about all nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import product
from typing import final

import torch
from torch import Tensor

from gcon.learn import sizes
from gcon.learn.members import Calibration, Lesson, Regression, best_calibration, pseudo_labels, validation_loss
from gcon.learn.sizes import Places, blocks, sampled
from gcon.machine import one_thread
from gcon.nodes import PublicNodes

_SEED = 2  # of the sample
_PICKS = 12
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
        calibration: None without validation nodes.
        answers: class probabilities of the sampled nodes, float64.
    """

    view: View
    regression: Regression | None
    calibration: Calibration | None
    answers: Tensor

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
        validation_shares: whether calibration corrects for class shares unlike those of the validation labels.
    """

    nodes: PublicNodes
    places: Places
    sample: PublicNodes
    members: tuple[Member, ...] = ()
    validation_shares: bool = True

    @classmethod
    def without_members(cls, nodes: PublicNodes, *, validation_shares: bool = True) -> Ensemble:
        """The start. All nodes teach if they are few; else labelled ones as far as they fit, validation nodes, and others."""
        if nodes.num_nodes <= sizes.EXACT_NODES:
            return cls(nodes=nodes, places=slice(None), sample=nodes, validation_shares=validation_shares)
        training = _some(nodes.train_mask, int(_TRAINING_SHARE * sizes.EXACT_NODES))
        validation = _some(nodes.validation_mask, int(_VALIDATION_SHARE * sizes.EXACT_NODES))
        free = ~(nodes.train_mask | nodes.validation_mask)
        others = _some(free, sizes.EXACT_NODES - len(training) - len(validation))
        places = torch.cat([training, validation, others]).sort().values
        return cls(nodes=nodes, places=places, sample=part_of(nodes, places), validation_shares=validation_shares)

    def sampled(self, views: Sequence[View]) -> list[SampledView]:
        """Views with their rows at the sampled nodes, opened one after the other."""
        return [SampledView(view, view()(self.places)) for view in views]

    def joined_by(
        self, views: Sequence[SampledView], regressions: Sequence[Regression | None] = (), lesson: Lesson | None = None
    ) -> Ensemble:
        """With more members, calibrated.

        Args:
            views: what they read.
            regressions: how they answer from it; none if the views hold class probabilities already.
            lesson: what they were taught by; None for true labels.
        """
        lesson = lesson or Lesson(self.sample.labels, self.sample.train_mask)
        members = list(self.members)
        for seen, regression in zip(views, regressions or [None] * len(views), strict=True):
            answers = seen.rows.double() if regression is None else regression.answers(seen.rows)
            found = best_calibration(answers, self.sample, lesson, validation_shares=self.validation_shares)
            answers = answers if found is None else found.of(answers)
            members.append(Member(seen.view, regression, found, answers))
        return replace(self, members=tuple(members))

    def taught(self, views: Sequence[SampledView], penalties: Sequence[float], share: float | None = None) -> Ensemble:
        """With one more regression per view and penalty.

        Args:
            views: what they learn from.
            penalties: on their squared weights.
            share: of the sampled nodes without a label that get pseudo-labels from the average, the surest ones; None for
                true labels alone.
        """
        lesson = Lesson(self.sample.labels, self.sample.train_mask)
        if share is not None:
            lesson = pseudo_labels(self.average[1], self.sample, share)
        pairs, classes = list(product(views, penalties)), self.nodes.num_classes
        with one_thread():
            fitted = [Regression.fitted(seen.rows, lesson, num_classes=classes, penalty=each) for seen, each in pairs]
        return self.joined_by([seen for seen, _ in pairs], fitted, lesson)

    @cached_property
    def average(self) -> tuple[Tensor, Tensor]:
        """Weights of the members, and their average at the sampled nodes, float64.

        The weights are a dozen picks, each the one that lowers the validation loss most (with repeats). Without validation
        nodes all count alike.
        """
        mask, number = self.sample.validation_mask, len(self.members)
        answers = torch.stack([member.answers for member in self.members])
        if not bool(mask.any()):
            return torch.full((number,), 1 / number, dtype=torch.float64), answers.mean(dim=0)
        checked, labels = answers[:, mask], self.sample.labels[mask]
        weights, total = torch.zeros(number, dtype=torch.float64), torch.zeros_like(checked[0])
        for pick in range(1, _PICKS + 1):
            best = min(range(number), key=lambda place: validation_loss((total + checked[place]) / pick, labels))
            weights[best] += 1 / _PICKS
            total += checked[best]
        return weights, torch.einsum("m,mnc->nc", weights, answers)

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
        large = self.nodes.num_nodes > sizes.EXACT_NODES
        kept = [self.answers] if large else [member.answers for member in self.members]
        members = [Member(view_of(each), None, None, each[self.places].double()) for each in kept]
        return replace(self, members=tuple(members))


def _some(mask: Tensor, most: int) -> Tensor:
    places = mask.nonzero()[:, 0]
    return places[sampled(len(places), most, seed=_SEED)]


def part_of(nodes: PublicNodes, places: Places) -> PublicNodes:
    """A table of some of the nodes."""
    columns = ("features", "labels", "train_mask", "validation_mask", "test_mask")
    return replace(nodes, **{name: getattr(nodes, name)[places] for name in columns})
