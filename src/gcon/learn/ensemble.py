"""The ensemble: members are taught on a sample of the nodes, and asked about all nodes, a block at a time.

Of a graph with at most `EXACT_NODES` nodes the sample is everybody, and the members' answers there are all there is to ask.
Of a larger one a member is a small regression on a *view*, and only members with a weight are asked about all nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import final

import torch
from torch import Tensor

from gcon.learn import sizes
from gcon.learn.members import (
    Calibration,
    Lesson,
    Regression,
    best_calibration,
    best_weights,
    pseudo_labels,
    true_labels,
    validation_loss,
)
from gcon.learn.sizes import Places, blocks, is_large, sampled
from gcon.nodes import PublicNodes

_SEED = 2  # of the sample
_TRAINING_SHARE, _VALIDATION_SHARE = 0.6, 0.2  # of the sample, at most; other nodes fill it

Rows = Callable[[Places], Tensor]  # of some nodes
View = Callable[[], Rows]  # a matrix with one row per node, made when it is opened: it may be large, so nobody keeps it


def view_of(matrix: Tensor) -> View:
    """A matrix that is in memory."""
    return lambda: lambda nodes: matrix[nodes]


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
        """The start."""
        places = sampled_places(nodes)
        return cls(nodes=nodes, places=places, sample=part_of(nodes, places), validation_shares=validation_shares)

    def sampled(self, views: Sequence[View]) -> list[SampledView]:
        """Views with their rows at the sampled nodes, opened one after the other."""
        return [SampledView(view, view()(self.places)) for view in views]

    def joined_by(self, answers: Sequence[View]) -> Ensemble:
        """With class probabilities of other models, calibrated."""
        lesson = true_labels(self.sample)
        return self._with([self._member(each.view, None, each.rows.double(), lesson) for each in self.sampled(answers)])

    def taught(self, views: Sequence[SampledView], penalties: Sequence[float], share: float | None = None) -> Ensemble:
        """With one more regression per view and penalty.

        Args:
            views: what they learn from.
            penalties: on their squared weights.
            share: of the sampled nodes without a label that get pseudo-labels from the average, the surest ones; None for
                true labels alone.
        """
        lesson = true_labels(self.sample) if share is None else pseudo_labels(self.sample_answers, self.sample, share)
        members = []
        for seen, penalty in product(views, penalties):
            regression = Regression.fitted(seen.rows, lesson, num_classes=self.nodes.num_classes, penalty=penalty)
            members.append(self._member(seen.view, regression, regression.answers(seen.rows), lesson))
        return self._with(members)

    @cached_property
    def sample_answers(self) -> Tensor:
        """The best average at the sampled nodes, float64."""
        answers = torch.stack([member.answers for member in self.members])
        if not bool(self.sample.validation_mask.any()):
            return answers.mean(dim=0)
        return torch.einsum("m,mnc->nc", self._weights, answers)

    @cached_property
    def answers(self) -> Tensor:
        """The best average at all nodes; of a large graph float32, and every view with a weight is opened once more."""
        if not is_large(self.nodes.num_nodes):
            return self.sample_answers
        total = torch.zeros(self.nodes.num_nodes, self.nodes.num_classes)
        asked = [
            (member, weight) for member, weight in zip(self.members, self._weights.tolist(), strict=True) if weight
        ]
        for view in dict.fromkeys(member.view for member, _ in asked):
            rows = view()
            for nodes in blocks(len(total)):
                here = rows(nodes)
                for member, weight in asked:
                    if member.view is view:
                        total[nodes] += (weight * member.answered(here)).float()
        return total

    def loss_on(self, view: View) -> float:
        """The least validation loss of the members that read a view; infinite without validation nodes."""
        mask, labels = self.sample.validation_mask, self.sample.labels
        if not bool(mask.any()):
            return torch.inf
        return min(validation_loss(each.answers[mask], labels[mask]) for each in self.members if each.view is view)

    def settled(self) -> Ensemble:
        """With members that are matrices of answers, so that their views need not be kept.

        Of a large graph their average is the only one: to ask all of them once more would take as long as before.
        """
        kept = [self.answers] if is_large(self.nodes.num_nodes) else [member.answers for member in self.members]
        members = [Member(view_of(each), None, None, each[self.places].double()) for each in kept]
        return replace(self, members=tuple(members))

    @cached_property
    def _weights(self) -> Tensor:
        return best_weights([member.answers for member in self.members], self.sample)

    def _member(self, view: View, regression: Regression | None, answers: Tensor, lesson: Lesson) -> Member:
        found = best_calibration(answers, self.sample, lesson, validation_shares=self.validation_shares)
        return Member(view, regression, found, answers if found is None else found.of(answers))

    def _with(self, members: Sequence[Member]) -> Ensemble:
        return replace(self, members=(*self.members, *members))


def sampled_places(nodes: PublicNodes) -> Places:
    """All nodes if they are few; else labelled ones as far as they fit, validation nodes, and others at random."""
    if not is_large(nodes.num_nodes):
        return slice(None)
    free = ~(nodes.train_mask | nodes.validation_mask)
    training = _some(nodes.train_mask, int(_TRAINING_SHARE * sizes.EXACT_NODES))
    validation = _some(nodes.validation_mask, int(_VALIDATION_SHARE * sizes.EXACT_NODES))
    others = _some(free, sizes.EXACT_NODES - len(training) - len(validation))
    return torch.cat([training, validation, others]).sort().values


def _some(mask: Tensor, most: int) -> Tensor:
    return sampled(mask.nonzero()[:, 0], most, seed=_SEED)


def part_of(nodes: PublicNodes, places: Places) -> PublicNodes:
    """A table of some of the nodes."""
    columns = ("features", "labels", "train_mask", "validation_mask", "test_mask")
    return replace(nodes, **{name: getattr(nodes, name)[places] for name in columns})
