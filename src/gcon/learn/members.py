"""What members of the ensemble are made of: lessons, regressions on them, and calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from gcon.learn.softmax_regression import softmax_regressions
from gcon.nodes import PublicNodes

_TEMPERATURES = (0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.4, 2.0)
_LEAST = 1e-9  # instead of the logarithm of 0


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


def taught_tables(rows: Tensor, lesson: Lesson, num_classes: int, penalties: Sequence[float]) -> list[Tensor]:
    """Softmax regressions on the rows that the lesson has labels for, one per penalty."""
    return softmax_regressions(rows[lesson.mask], one_hot(lesson.labels[lesson.mask], num_classes), penalties)


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
    shares = torch.tensor((0.0,) if lesson is None else (0.0, 0.5, 1.0), dtype=torch.float64)
    logs, temperatures = judged.clamp_min(_LEAST).log(), torch.tensor(_TEMPERATURES, dtype=torch.float64)
    scores = (logs / temperatures[:, None, None])[:, None] + (shares[:, None] * shift)[:, None]
    right = torch.log_softmax(scores, dim=-1)[..., torch.arange(len(labels)), labels].mean(dim=-1)
    temperature, share = divmod(int(right.argmax()), len(shares))
    return Calibration(_TEMPERATURES[temperature], float(shares[share]) * shift)


def closest_calibration(answers: Tensor, teacher: Tensor) -> Calibration:
    """The temperature with which answers come closest to those that taught them: pupils are surer than their teacher."""
    candidates = [Calibration(each, torch.zeros(answers.shape[1], dtype=torch.float64)) for each in _TEMPERATURES]
    return min(
        candidates, key=lambda candidate: -float((teacher * candidate.of(answers).clamp_min(_LEAST).log()).sum())
    )


def validation_loss(answers: Tensor, labels: Tensor) -> float:
    """Mean negative log-probability of the true labels."""
    return -float(log_likelihoods(answers[torch.arange(len(labels)), labels]))


def log_likelihoods(right: Tensor) -> Tensor:
    """The mean logarithm, along the last axis, of probabilities of true labels."""
    return right.clamp_min(_LEAST).log().mean(dim=-1)
