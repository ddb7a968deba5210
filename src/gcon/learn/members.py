"""Ensembles of softmax regressions: calibrated members, an average chosen by validation labels, and self-training."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import torch
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits
from torch import Tensor
from torch.nn.functional import nll_loss

from gcon.nodes import PublicNodes

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression

_TEMPERATURES = (0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.4, 2.0)
_PICKS = 12
_LEAST = 1e-9  # instead of the logarithm of 0


@dataclass(frozen=True, eq=False)
class Taught:
    """Labels that a member learns from: one a node, and a mask that says where they count."""

    labels: Tensor
    mask: Tensor


def true_labels(nodes: PublicNodes) -> Taught:
    """The labels of the training nodes."""
    return Taught(nodes.labels, nodes.train_mask)


def taught_members(
    nodes: PublicNodes,
    views: Sequence[Tensor],
    taught: Taught,
    *,
    penalties: Sequence[float],
    validation_shares: bool = True,
) -> list[Tensor]:
    """Class probabilities of all nodes: one regression a view and penalty, calibrated."""
    return [
        calibrated(softmax_regression(view, taught, nodes.num_classes, penalty), nodes, taught, validation_shares)
        for view, penalty in product(views, penalties)
    ]


def softmax_regression(rows: Tensor, taught: Taught, num_classes: int, penalty: float) -> Tensor:
    """Class probabilities of all rows; classes that nobody taught get 0."""
    return Regression.fitted(rows[taught.mask], taught.labels[taught.mask], num_classes, penalty).answers(rows)


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
    def fitted(cls, rows: Tensor, labels: Tensor, num_classes: int, penalty: float) -> Regression:
        """Least loss on these rows and labels."""
        from sklearn.linear_model import LogisticRegression  # here, because it pulls in a progress bar of its own

        if len(seen := labels.unique()) == 1:
            return cls(None, int(seen), num_classes)
        model = LogisticRegression(C=1 / penalty, max_iter=100)
        # One thread: these products are small, and two thread pools (torch's and this one) would wait for each other.
        with warnings.catch_warnings(), threadpool_limits(limits=1):
            warnings.simplefilter("ignore", ConvergenceWarning)  # stopping early regularises too
            model.fit(rows.numpy(), labels.numpy())
        return cls(model, -1, num_classes)

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


def calibration(
    given: Tensor, nodes: PublicNodes, taught: Taught, validation_shares: bool = True
) -> Calibration | None:
    """The temperature, and the share of log(validation shares / training shares): least validation loss.

    None without validation nodes.
    """
    mask = nodes.validation_mask
    if not bool(mask.any()):
        return None
    shift = _log_shares(nodes.labels[mask], nodes.num_classes)
    shift = shift - _log_shares(taught.labels[taught.mask], nodes.num_classes)
    checked, labels = given[mask], nodes.labels[mask]
    choices = product(_TEMPERATURES, (0.0, 0.5, 1.0) if validation_shares else (0.0,))
    candidates = [Calibration(temperature, share * shift) for temperature, share in choices]
    return min(candidates, key=lambda candidate: validation_loss(candidate.of(checked), labels))


def calibrated(given: Tensor, nodes: PublicNodes, taught: Taught, validation_shares: bool = True) -> Tensor:
    """Answers with the best calibration, or as they are without validation nodes."""
    best = calibration(given, nodes, taught, validation_shares)
    return given if best is None else best.of(given)


def best_weights(members: Sequence[Tensor], nodes: PublicNodes) -> Tensor | None:
    """Weights of members: a dozen picks, each the one that lowers the validation loss most (with repeats).

    None without validation nodes.
    """
    mask = nodes.validation_mask
    if not bool(mask.any()):
        return None
    checked, labels = torch.stack([member[mask] for member in members]), nodes.labels[mask]
    weights, total = torch.zeros(len(members), dtype=torch.float64), torch.zeros_like(checked[0])
    for pick in range(1, _PICKS + 1):
        best = min(range(len(members)), key=lambda place: validation_loss((total + checked[place]) / pick, labels))
        weights[best] += 1 / _PICKS
        total += checked[best]
    return weights


def best_average(members: Sequence[Tensor], nodes: PublicNodes) -> Tensor:
    """The mean of members with the best weights; their plain mean without validation nodes."""
    weights = best_weights(members, nodes)
    if weights is None:
        return torch.stack(list(members)).mean(dim=0)
    return torch.einsum("m,mnc->nc", weights, torch.stack(list(members)))


def pseudo_labels(answers: Tensor, nodes: PublicNodes, share: float) -> Taught:
    """The labelled nodes, and the surest share of the nodes without a label with the answers as labels."""
    sure, classes = answers.max(dim=1)
    free = ~(nodes.train_mask | nodes.validation_mask)
    chosen = sure.masked_fill(~free, -1.0).topk(int(share * int(free.sum()))).indices
    taught = nodes.train_mask.clone()
    taught[chosen] = True
    return Taught(torch.where(free, classes, nodes.labels), taught)


def validation_loss(answers: Tensor, labels: Tensor) -> float:
    """Mean negative log-probability of the true labels."""
    return float(nll_loss(answers.clamp_min(_LEAST).log(), labels))


def _log_shares(labels: Tensor, num_classes: int) -> Tensor:
    counts = torch.bincount(labels, minlength=num_classes).double() + 1
    return (counts / counts.sum()).log()
