"""The labelled nodes that members are calibrated and weighted by.

Validation nodes, where there are some. Else the training nodes themselves: each is answered by a member's twin that its label
did not teach (cross-fitting).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from gcon.learn.members import Lesson
from gcon.nodes import PublicNodes

_FOLDS = 5
_SEED = 4


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

    @classmethod
    def of(cls, nodes: PublicNodes) -> Judges:
        """Validation nodes, or else the training nodes in five parts, each with its share of every class."""
        if bool(nodes.validation_mask.any()):
            return cls(nodes.validation_mask, nodes.labels[nodes.validation_mask], None)
        labels = nodes.labels[nodes.train_mask]
        mixed = torch.randperm(len(labels), generator=torch.Generator().manual_seed(_SEED))
        folds = torch.empty_like(labels)
        folds[mixed[labels[mixed].argsort(stable=True)]] = torch.arange(len(labels)) % _FOLDS
        return cls(nodes.train_mask, labels, folds)

    def answered(
        self, answers: Sequence[Tensor], lesson: Lesson, ask: Callable[[Lesson, Tensor], list[Tensor]]
    ) -> list[Tensor]:
        """The members' answers at the judges, without what their own labels taught.

        Args:
            answers: of the members, at all nodes.
            lesson: the true labels that taught them.
            ask: answers, at nodes of a mask, of the same members after another lesson.
        """
        if self.folds is None:
            return [each[self.mask] for each in answers]
        # Who was taught by nobody says nothing: a single node has no other.
        found = [
            torch.full((len(self.labels), each.shape[1]), 1 / each.shape[1], dtype=torch.float64) for each in answers
        ]
        for fold in self.folds.unique():  # fewer than five, if there are fewer nodes
            part, asked = self.folds == fold, self.mask.clone()
            asked[self.mask] = part
            others = lesson.mask & ~asked
            if bool(others.any()):
                for table, rows in zip(found, ask(Lesson(lesson.labels, others), asked), strict=True):
                    table[part] = rows
        return found
