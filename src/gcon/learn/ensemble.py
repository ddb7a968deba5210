"""The ensemble: members that answer for all nodes of a table, calibrated and weighted as the judges among them say.

Judges are the validation nodes, where there are some. Else the training nodes themselves: each is answered by a member's twin
that its label did not teach (cross-fitting). Of a large graph the table is a sample (sample.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import final

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from gcon.learn.softmax_regression import softmax_regressions
from gcon.machine import one_thread
from gcon.nodes import PublicNodes

_FOLDS, _FOLDS_SEED = 5, 4
_PICKS = 12
_PICKS_OF_ALL = 4  # of them, if the training nodes judge: they are few, and all members together are never far off
_TEMPERATURES = (0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.4, 2.0)
_LEAST = 1e-9  # instead of the logarithm of 0


@final
@dataclass(frozen=True, eq=False)
class Lesson:
    """What a member learns from: one label per node, and a mask that says where they count."""

    labels: Tensor
    mask: Tensor


def pseudo_labels(answers: Tensor, nodes: PublicNodes, share: float) -> Lesson:
    """The labelled nodes, and the surest share of the nodes without a label with the answers as labels."""
    sure, classes = answers.max(dim=1)
    free = ~(nodes.train_mask | nodes.validation_mask)
    chosen = sure.masked_fill(~free, -1.0).topk(int(share * int(free.sum()))).indices
    mask = nodes.train_mask.clone()
    mask[chosen] = True
    return Lesson(torch.where(free, classes, nodes.labels), mask)


@final
@dataclass(frozen=True, eq=False)
class Judges:
    """Labelled nodes by which members are judged.

    Attributes:
        mask: where they are.
        labels: theirs, in the order of the nodes.
        folds: which of the five parts each belongs to; None for validation nodes, which teach nobody.
    """

    mask: Tensor
    labels: Tensor
    folds: Tensor | None


@final
@dataclass(frozen=True, eq=False)
class Member:
    """What a member answers.

    Attributes:
        temperature, shift: its logits were divided by the one, and the other was added.
        answers: class probabilities of all nodes, float64.
        judged: class probabilities of the judges, whose labels did not teach it; members of one table share their weight.
        loss: of these, the mean negative log-probability of the judges' labels.
    """

    temperature: float
    shift: Tensor
    answers: Tensor
    judged: Tensor
    loss: float


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Ensemble:
    """Members so far; adding some gives another ensemble.

    Attributes:
        nodes: who teaches and is taught.
        members: in the order in which they joined.
        validation_shares: whether calibration corrects for class shares unlike those of the validation labels.
        lesson: the true labels.
        judges: which nodes tell how good a member is.
        weights: of the members, float64.
        answers: their best average at all nodes, float64.
        judged: the best average at the judges, without what their own labels taught.
    """

    nodes: PublicNodes
    members: tuple[Member, ...] = ()
    validation_shares: bool = True
    lesson: Lesson = field(init=False)
    judges: Judges = field(init=False)
    weights: Tensor = field(init=False)
    answers: Tensor = field(init=False)
    judged: Tensor = field(init=False)

    def __post_init__(self) -> None:
        """Judges are the validation nodes, or else the training nodes in five parts, each with its share of every class.

        Weights are a dozen picks, each the member that lowers the judges' loss most (with repeats). Members that are judged alike
        share a pick. If training nodes are the judges, a third of the picks is all members.
        """
        nodes, folds = self.nodes, None
        mask = nodes.validation_mask if bool(nodes.validation_mask.any()) else nodes.train_mask
        labels = nodes.labels[mask]
        if mask is nodes.train_mask:
            mixed = torch.randperm(len(labels), generator=torch.Generator().manual_seed(_FOLDS_SEED))
            folds = torch.empty_like(labels)
            folds[mixed[labels[mixed].argsort(stable=True)]] = torch.arange(len(labels)) % _FOLDS
        object.__setattr__(self, "lesson", Lesson(nodes.labels, nodes.train_mask))
        object.__setattr__(self, "judges", Judges(mask, labels, folds))
        if not self.members:
            return
        tables = {id(member.judged): member.judged for member in self.members}
        # Of an answer only its probability of the true label counts.
        right = torch.stack([judged[torch.arange(len(labels)), labels] for judged in tables.values()])
        of_all = 0 if folds is None else _PICKS_OF_ALL
        shares, total = [of_all / _PICKS / len(right)] * len(right), of_all * right.mean(dim=0)
        for pick in range(of_all + 1, _PICKS + 1):
            best = int(((total + right) / pick).clamp_min(_LEAST).log().mean(dim=-1).argmax())
            shares[best] += 1 / _PICKS
            total += right[best]
        shared, sharing = dict(zip(tables, shares, strict=True)), Counter(id(member.judged) for member in self.members)
        weights = [shared[id(member.judged)] / sharing[id(member.judged)] for member in self.members]
        object.__setattr__(self, "weights", torch.tensor(weights, dtype=torch.float64))
        for name in ("answers", "judged"):
            every = torch.stack([getattr(member, name) for member in self.members])
            object.__setattr__(self, name, torch.einsum("m,mnc->nc", self.weights, every))

    def taught(self, views: Sequence[Tensor], penalties: Sequence[float], lesson: Lesson | None = None) -> Ensemble:
        """With one more regression per view and penalty.

        Args:
            views: what they learn from, one row per node.
            penalties: on their squared weights.
            lesson: pseudo-labels; None for the true labels.
        """

        def fitted(lesson: Lesson, at: Tensor | slice) -> list[Tensor]:
            told = one_hot(lesson.labels[lesson.mask], self.nodes.num_classes)
            return [
                torch.softmax((view[at] @ table[:-1].to(view.dtype)).double() + table[-1], dim=1)
                for view in views
                for table in softmax_regressions(view[lesson.mask], told, penalties)
            ]

        with one_thread():
            answers = fitted(lesson or self.lesson, slice(None))
            return self.joined_by(answers, lesson or self.lesson, fitted if lesson is None else None)

    def joined_by(
        self,
        answers: Sequence[Tensor],
        lesson: Lesson,
        ask: Callable[[Lesson, Tensor], list[Tensor]] | None = None,
    ) -> Ensemble:
        """With more members, calibrated by the judges: with the temperature and the class shares that suit them best.

        Args:
            answers: theirs, class probabilities of all nodes, float64.
            lesson: what taught them.
            ask: answers of such members after another lesson, at the nodes of a mask; None for pupils, which were taught by
                pseudo-labels, and are twins of the last members.
        """
        judges, members = self.judges, list(self.members)
        if judges.folds is None:
            judged = [each[judges.mask] for each in answers]
        elif ask is None:
            return self._joined_by_twins(answers)
        else:
            judged = self._cross_fitted(ask, judges.folds, len(answers))
        # Class shares may be moved from those that taught to the judges', not at all, half way, or all the way.
        shift, shares = torch.zeros(self.nodes.num_classes, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
        if self.validation_shares and judges.folds is None:
            both = (judges.labels, lesson.labels[lesson.mask])
            counts = [torch.bincount(each, minlength=len(shift)).double() + 1 for each in both]
            wanted, taught = ((each / each.sum()).log() for each in counts)
            shift, shares = wanted - taught, torch.tensor((0.0, 0.5, 1.0), dtype=torch.float64)
        temperatures, own = torch.tensor(_TEMPERATURES, dtype=torch.float64), torch.arange(len(judges.labels))
        for given, checked in zip(answers, judged, strict=True):
            # The temperature, and the share of that shift, of least loss.
            logs = checked.clamp_min(_LEAST).log()
            # Classes come before nodes: sums of long rows are fast. Logarithms of probabilities are no reason to overflow.
            scores = logs.T.contiguous() / temperatures[:, None, None, None] + (shares[:, None] * shift)[..., None]
            right = (scores[:, :, judges.labels, own] - scores.exp().sum(dim=2).log()).mean(dim=-1)
            place, share = divmod(int(right.argmax()), len(shares))
            temperature, moved = _TEMPERATURES[place], float(shares[share]) * shift
            answered, told = (
                torch.softmax(each / temperature + moved, dim=1) for each in (given.clamp_min(_LEAST).log(), logs)
            )
            loss = -float(told[own, judges.labels].clamp_min(_LEAST).log().mean())
            members.append(Member(temperature, moved, answered, told, loss))
        return replace(self, members=tuple(members))

    def _cross_fitted(self, ask: Callable[[Lesson, Tensor], list[Tensor]], folds: Tensor, count: int) -> list[Tensor]:
        """What so many members answer training nodes, part by part, when the labels of that part did not teach them."""
        # Who was taught by nobody says nothing: a single node has no other.
        shape = len(folds), self.nodes.num_classes
        found = [torch.full(shape, 1 / shape[1], dtype=torch.float64) for _ in range(count)]
        for fold in folds.unique():  # fewer than five, if there are fewer nodes
            part, asked = folds == fold, self.judges.mask.clone()
            asked[self.judges.mask] = part
            others = self.lesson.mask & ~asked
            if bool(others.any()):
                for table, rows in zip(found, ask(Lesson(self.lesson.labels, others), asked), strict=True):
                    table[part] = rows
        return found

    def _joined_by_twins(self, answers: Sequence[Tensor]) -> Ensemble:
        """With pupils that training nodes cannot judge: their labels are behind the pseudo-labels.

        A pupil is judged as its twin was, and is made as sure as the average that taught it, since pupils are surer than that.
        """
        others, members = ~self.nodes.train_mask, list(self.members)
        if not bool(others.any()):
            others = self.nodes.train_mask  # everybody is labelled: pseudo-labels taught nobody
        for given, twin in zip(answers, self.members[-len(answers) :], strict=True):
            logs, distances = given.clamp_min(_LEAST).log(), []
            for temperature in _TEMPERATURES:
                sure = torch.softmax(logs[others] / temperature, dim=1).clamp_min(_LEAST)
                distances.append(-float((self.answers[others] * sure.log()).sum()))
            closest = _TEMPERATURES[distances.index(min(distances))]
            answered, no_shift = torch.softmax(logs / closest, dim=1), torch.zeros_like(twin.shift)
            members.append(Member(closest, no_shift, answered, twin.judged, twin.loss))
        return replace(self, members=tuple(members))
