"""The ensemble: members that answer for all nodes of a table, calibrated and weighted as the judges among them say.

Judges are the validation nodes, where there are some. Else the training nodes themselves, in three parts (cross-fitting): for
every part, all that is learned is learned once more without its labels, pseudo-labels and what they teach too. These are the
twins of the members and of their average, and they answer that part. Of a large graph the table is a sample (sample.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import final

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from gcon.learn.class_shares import shift_to_believed_shares, shift_to_shares
from gcon.learn.softmax_regression import probabilities, softmax_regressions
from gcon.machine import one_thread
from gcon.nodes import PublicNodes

_FOLDS, _FOLDS_SEED = 3, 4  # more take longer and judge no better
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
        folds: which of the parts each belongs to, from 0 on; None for validation nodes, which teach nobody.
    """

    mask: Tensor
    labels: Tensor
    folds: Tensor | None

    def crossed(self, answers: Sequence[Tensor]) -> Tensor:
        """What the judges are answered: by the first, or each by the twin that its label did not teach."""
        found = answers[0][self.mask]
        for fold, twin in enumerate(answers[1:]):
            part = self.folds == fold
            found[part] = twin[self.mask][part]
        return found


@final
@dataclass(frozen=True, eq=False)
class Member:
    """What a member answers.

    Attributes:
        temperature, shift: its logits were divided by the one, and the other was added.
        answers: class probabilities of all nodes, float64.
        judged: class probabilities of the judges, whose labels did not teach it.
        loss: of these, the mean negative log-probability of the judges' labels.
        twins: what it would answer all nodes without the labels of one part of the judges, for every part.
    """

    temperature: float
    shift: Tensor
    answers: Tensor
    judged: Tensor
    loss: float
    twins: tuple[Tensor, ...] = ()


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Ensemble:
    """Members so far; adding some gives another ensemble.

    Attributes:
        nodes: who teaches and is taught.
        members: in the order in which they joined.
        validation_shares: whether calibration corrects for class shares unlike those of the validation labels.
        lessons: the true labels; if the training nodes judge, also without those of one part of them, for every part.
        judges: which nodes tell how good a member is.
        weights: of the members, float64.
        answers: their best average at all nodes, float64.
        twins: the same of the members' twins.
        judged: the best average at the judges, without what their own labels taught.
    """

    nodes: PublicNodes
    members: tuple[Member, ...] = ()
    validation_shares: bool = True
    lessons: tuple[Lesson, ...] = field(init=False)
    judges: Judges = field(init=False)
    weights: Tensor = field(init=False)
    answers: Tensor = field(init=False)
    twins: tuple[Tensor, ...] = field(init=False)
    judged: Tensor = field(init=False)

    def __post_init__(self) -> None:
        """Judges are the validation nodes, or else the training nodes in three parts, each with its share of every class.

        Weights are a dozen picks, each the member that lowers the judges' loss most (with repeats). If training nodes are the
        judges, a third of the picks is all members.
        """
        nodes, folds = self.nodes, None
        mask = nodes.validation_mask if bool(nodes.validation_mask.any()) else nodes.train_mask
        labels, lessons = nodes.labels[mask], [Lesson(nodes.labels, nodes.train_mask)]
        if mask is nodes.train_mask:
            mixed = torch.randperm(len(labels), generator=torch.Generator().manual_seed(_FOLDS_SEED))
            folds = torch.empty_like(labels)
            folds[mixed[labels[mixed].argsort(stable=True)]] = torch.arange(len(labels)) % _FOLDS
            for fold in range(min(len(labels), _FOLDS)):
                others = mask.clone()
                others[mask] = (folds != fold) | (len(labels) == 1)  # a single node has no others to learn from
                lessons.append(Lesson(nodes.labels, others))
        object.__setattr__(self, "lessons", tuple(lessons))
        object.__setattr__(self, "judges", Judges(mask, labels, folds))
        if not self.members:
            return
        # Of an answer only its probability of the true label counts.
        right = torch.stack([member.judged[torch.arange(len(labels)), labels] for member in self.members])
        of_all = 0 if folds is None else _PICKS_OF_ALL
        weights, total = torch.full((len(right),), of_all / _PICKS / len(right)).double(), of_all * right.mean(dim=0)
        for pick in range(of_all + 1, _PICKS + 1):
            best = int(((total + right) / pick).clamp_min(_LEAST).log().mean(dim=-1).argmax())
            weights[best] += 1 / _PICKS
            total += right[best]
        object.__setattr__(self, "weights", weights)
        for name in ("answers", "judged"):
            every = torch.stack([getattr(member, name) for member in self.members])
            object.__setattr__(self, name, torch.einsum("m,mnc->nc", self.weights, every))
        twins = zip(*(member.twins for member in self.members), strict=True)
        averages = (torch.einsum("m,mnc->nc", weights.float(), torch.stack(each)).double() for each in twins)
        object.__setattr__(self, "twins", tuple(averages))

    @property
    def shift(self) -> Tensor | None:
        """What is added to the scores of all answers, as common as classes are told or believed to be.

        None if validation nodes tell: better than rough numbers do.
        """
        nodes, judges = self.nodes, self.judges
        free = ~(nodes.train_mask | nodes.validation_mask)
        if judges.folds is None or not bool(free.any()):
            return None
        answers, told = self.answers[free], nodes.class_shares
        if told is not None:
            return shift_to_shares(answers, torch.tensor(told, dtype=torch.float64).log())
        return shift_to_believed_shares(answers, [each[free] for each in self.twins], self.judged, judges.labels)

    def moved(self) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        """Answers, what the judges are answered, and the twins' answers, with that shift.

        Lessons are answers without it: what is believed of class shares would be heard again and again.
        """
        shift, found = self.shift, (self.answers, self.judged, *self.twins)
        if shift is not None:
            found = tuple(probabilities(each.clamp_min(_LEAST).log() + shift) for each in found)
        answers, judged, *twins = found
        return answers, judged, tuple(twins)

    def surest(self, share: float) -> list[Lesson]:
        """What the average can teach, and what its twins can."""
        known = [replace(self.nodes, train_mask=lesson.mask) for lesson in self.lessons]
        averages = (self.answers, *self.twins)
        return [pseudo_labels(each, nodes, share) for each, nodes in zip(averages, known, strict=True)]

    def taught(self, views: Sequence[Tensor], penalties: Sequence[float], lessons: Sequence[Lesson] = ()) -> Ensemble:
        """With one more regression per view and penalty.

        Args:
            views: what they learn from, one row per node.
            penalties: on their squared weights.
            lessons: pseudo-labels for the regressions and for their twins; none for the true labels.
        """
        answers, lessons = [], lessons or self.lessons
        with one_thread():
            for lesson in lessons:
                told = one_hot(lesson.labels[lesson.mask], self.nodes.num_classes)
                answers.append(
                    [
                        probabilities((view @ table[:-1].to(view.dtype)).double() + table[-1])
                        for view in views
                        for table in softmax_regressions(view[lesson.mask], told, penalties)
                    ]
                )
            return self.joined_by(answers, lessons)

    def joined_by(self, answers: Sequence[Sequence[Tensor]], lessons: Sequence[Lesson]) -> Ensemble:
        """With more members, calibrated by the judges: with the temperature and the class shares that suit them best.

        Args:
            answers: for every lesson those of its members, class probabilities of all nodes, float64.
            lessons: what taught them: the first one the members, the others their twins.
        """
        judges, members = self.judges, list(self.members)
        # Class shares may be moved from those that taught to the judges', not at all, half way, or all the way.
        shift, shares = torch.zeros(self.nodes.num_classes, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
        if self.validation_shares and judges.folds is None:
            both = (judges.labels, lessons[0].labels[lessons[0].mask])
            counts = [torch.bincount(each, minlength=len(shift)).double() + 1 for each in both]
            wanted, taught = ((each / each.sum()).log() for each in counts)
            shift, shares = wanted - taught, torch.tensor((0.0, 0.5, 1.0), dtype=torch.float64)
        temperatures, own = torch.tensor(_TEMPERATURES, dtype=torch.float64), torch.arange(len(judges.labels))
        for given, *twins in zip(*answers, strict=True):
            # The temperature, and the share of that shift, of least loss.
            logs = judges.crossed((given, *twins)).clamp_min(_LEAST).log()
            # Classes come before nodes: sums of long rows are fast. Logarithms of probabilities are no reason to overflow.
            scores = logs.T.contiguous() / temperatures[:, None, None, None] + (shares[:, None] * shift)[..., None]
            right = (scores[:, :, judges.labels, own] - scores.exp().sum(dim=2).log()).mean(dim=-1)
            place, share = divmod(int(right.argmax()), len(shares))
            temperature, moved = _TEMPERATURES[place], float(shares[share]) * shift
            answered, told, *others = (
                probabilities(each / temperature + moved)
                for each in (given.clamp_min(_LEAST).log(), logs, *(twin.clamp_min(_LEAST).log() for twin in twins))
            )
            loss = -float(told[own, judges.labels].clamp_min(_LEAST).log().mean())
            members.append(Member(temperature, moved, answered, told, loss, tuple(each.float() for each in others)))
        return replace(self, members=tuple(members))
