"""What members of the ensemble are made of: lessons, softmax regressions, and calibration."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor
from torch.nn.functional import nll_loss

from gcon.nodes import PublicNodes

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression

_TEMPERATURES = (0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.4, 2.0)
_LEAST = 1e-9  # instead of the logarithm of 0
_SURE = 30.0  # a score so much lower than others is as good as none


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


@dataclass(frozen=True, eq=False)
class Regression:
    """A fitted softmax regression: small, whatever it was taught by.

    Attributes:
        model: scikit-learn's; None if a single class was taught.
        single: that class.
        num_classes: columns of the answers.
    """

    model: LogisticRegression | None
    single: int
    num_classes: int

    @classmethod
    def fitted(cls, rows: Tensor, lesson: Lesson, *, num_classes: int, penalty: float) -> Regression:
        """Least loss on the rows that the lesson has labels for, with a penalty on squared weights."""
        from sklearn.linear_model import LogisticRegression  # here, because it pulls in a progress bar of its own

        labels = lesson.labels[lesson.mask]
        if len(seen := labels.unique()) == 1:
            return cls(None, int(seen), num_classes)
        model = LogisticRegression(C=1 / penalty, max_iter=100)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # stopping early regularises too
            model.fit(rows[lesson.mask].numpy(), labels.numpy())
        return cls(model, -1, num_classes)

    def table(self, width: int) -> Tensor:
        """Its scores as a matrix, (width + 1) x c, float64: the last row is added to those of any input."""
        table = torch.zeros(width + 1, self.num_classes, dtype=torch.float64)
        if self.model is None:
            table[-1, self.single] = _SURE
            return table
        found = torch.from_numpy(np.column_stack([self.model.coef_, self.model.intercept_])).double().T
        found = torch.cat([torch.zeros_like(found), found], dim=1) if found.shape[1] == 1 else found  # of two classes
        table[:, self.model.classes_] = found
        table[-1] -= _SURE
        table[-1, self.model.classes_] += _SURE
        return table

    def answers(self, rows: Tensor) -> Tensor:
        """Class probabilities of rows, float64; classes that nobody taught get 0."""
        answers = torch.zeros(len(rows), self.num_classes, dtype=torch.float64)
        if self.model is None:
            answers[:, self.single] = 1.0
        else:
            answers[:, self.model.classes_] = torch.from_numpy(self.model.predict_proba(rows.numpy())).double()
        return answers


@dataclass(frozen=True, eq=False)
class Calibration:
    """Logits over a temperature, plus a shift."""

    temperature: float
    shift: Tensor

    def of(self, answers: Tensor) -> Tensor:
        """Answers with these logits."""
        return torch.softmax(answers.clamp_min(_LEAST).log() / self.temperature + self.shift, dim=1)


def best_calibration(judged: Tensor, labels: Tensor, lesson: Lesson | None) -> Calibration:
    """The temperature, and the share of log(judges' shares / taught shares), of least loss.

    Args:
        judged: class probabilities of the judges.
        labels: theirs.
        lesson: what the answers were taught by; None leaves out the shift towards the judges' class shares.
    """
    shift = torch.zeros(judged.shape[1], dtype=torch.float64)
    if lesson is not None:
        both = (labels, lesson.labels[lesson.mask])
        counts = [torch.bincount(each, minlength=judged.shape[1]).double() + 1 for each in both]
        wanted, taught = ((each / each.sum()).log() for each in counts)
        shift = wanted - taught
    choices = product(_TEMPERATURES, (0.0,) if lesson is None else (0.0, 0.5, 1.0))
    candidates = [Calibration(temperature, share * shift) for temperature, share in choices]
    return min(candidates, key=lambda candidate: validation_loss(candidate.of(judged), labels))


def closest_calibration(answers: Tensor, teacher: Tensor) -> Calibration:
    """The temperature with which answers come closest to those that taught them: pupils are surer than their teacher."""
    candidates = [Calibration(each, torch.zeros(answers.shape[1], dtype=torch.float64)) for each in _TEMPERATURES]
    return min(
        candidates, key=lambda candidate: -float((teacher * candidate.of(answers).clamp_min(_LEAST).log()).sum())
    )


def validation_loss(answers: Tensor, labels: Tensor) -> float:
    """Mean negative log-probability of the true labels."""
    return float(nll_loss(answers.clamp_min(_LEAST).log(), labels))
