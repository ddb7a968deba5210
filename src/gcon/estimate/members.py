"""Ensembles of softmax regressions: calibrated members, an average chosen by validation labels, and self-training."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import torch
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits
from torch import Tensor
from torch.nn.functional import nll_loss

from gcon.graphs.nodes import PublicNodes

_TEMPERATURES = (0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.4, 2.0)
_PICKS = 12


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
    from sklearn.linear_model import LogisticRegression  # here, because it pulls in a progress bar of its own

    labels, mask = taught.labels, taught.mask
    answers = torch.zeros(len(rows), num_classes, dtype=torch.float64)
    if len(seen := labels[mask].unique()) == 1:
        answers[:, seen] = 1.0
        return answers
    model = LogisticRegression(C=1 / penalty, max_iter=100)
    # One thread: these products are small, and two thread pools (torch's and this one) would wait for each other.
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore", ConvergenceWarning)  # stopping early regularises too
        model.fit(rows[mask].numpy(), labels[mask].numpy())
    answers[:, model.classes_] = torch.from_numpy(model.predict_proba(rows.numpy())).double()
    return answers


def calibrated(given: Tensor, nodes: PublicNodes, taught: Taught, validation_shares: bool = True) -> Tensor:
    """Logits over a temperature plus a share of log(validation shares / training shares): least validation loss."""
    mask = nodes.validation_mask
    if not bool(mask.any()):
        return given
    shift = _log_shares(nodes.labels[mask], nodes.num_classes)
    shift = shift - _log_shares(taught.labels[taught.mask], nodes.num_classes)
    logits = given.clamp_min(1e-9).log()

    def adjusted(rows: Tensor, choice: tuple[float, float]) -> Tensor:
        return torch.softmax(rows / choice[0] + choice[1] * shift, dim=1)

    choices = product(_TEMPERATURES, (0.0, 0.5, 1.0) if validation_shares else (0.0,))
    checked, labels = logits[mask], nodes.labels[mask]
    return adjusted(logits, min(choices, key=lambda choice: validation_loss(adjusted(checked, choice), labels)))


def best_average(members: Sequence[Tensor], nodes: PublicNodes) -> Tensor:
    """A weighted mean of members: a dozen picks, each the one that lowers the validation loss most (with repeats)."""
    mask = nodes.validation_mask
    if not bool(mask.any()):
        return torch.stack(list(members)).mean(dim=0)
    checked, labels = torch.stack([member[mask] for member in members]), nodes.labels[mask]
    weights, total = torch.zeros(len(members), dtype=torch.float64), torch.zeros_like(checked[0])
    for pick in range(1, _PICKS + 1):
        best = min(range(len(members)), key=lambda place: validation_loss((total + checked[place]) / pick, labels))
        weights[best] += 1 / _PICKS
        total += checked[best]
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
    return float(nll_loss(answers.clamp_min(1e-9).log(), labels))


def _log_shares(labels: Tensor, num_classes: int) -> Tensor:
    counts = torch.bincount(labels, minlength=num_classes).double() + 1
    return (counts / counts.sum()).log()
