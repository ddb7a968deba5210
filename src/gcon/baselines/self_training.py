"""Self-training without edges, then one hop over own edges: the strongest model here that costs nothing.

1. Views of the public features: principal directions, as they are and smoothed over the graph of nearest features.
2. Members: the encoder, and softmax regressions on every view. Each is calibrated by validation labels (temperature, and
   class shares like those of the validation labels), and an average is chosen greedily by validation loss.
3. Twice: the nodes on which this average is surest get its labels, and members trained with them join the choice.

A node's neighbours are asked at inference only if feature neighbours share their labels, judged by public labels: where
likeness says nothing about the class (heterophily), averaging would hurt.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from torch import Tensor
from torch.nn.functional import nll_loss, normalize

from gcon.baselines.controls import edge_free_scorers
from gcon.baselines.feature_neighbours import (
    label_agreement,
    nearest_rows,
    neighbour_graph,
    principal_rows,
    smoothed_rows,
    weighted_rows,
)
from gcon.baselines.interface import Method, Trained
from gcon.encode.mlp import EncoderSettings, train_encoder
from gcon.errors import InputError
from gcon.graphs.edges import EdgeList
from gcon.graphs.nodes import PublicNodes, features_fingerprint
from gcon.privacy.boundary import Private
from gcon.privacy.ledger import Ledger
from gcon.privacy.randomness import Randomness

_WIDTH, _GRAPH_WIDTH = 200, 100  # principal directions that are learned from, and that nodes are compared in
_RESTARTS = (0.1, 0.2, 0.4, 1.0)  # of smoothing; 1 is none
_PENALTIES = (1.0, 0.1)  # on the squared weights of a regression
_TEMPERATURES = (0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.4, 2.0)
_PICKS = 12


@dataclass(frozen=True, kw_only=True)
class SelfTraining(Method):
    """An edge-free ensemble, retrained on its own surest answers. One set of settings serves all graphs.

    Attributes:
        inference_restart: the weight a of a node itself in (1 - a) T + a I; fixed in advance, never chosen with edges.
        least_agreement: one hop only if feature neighbours share their labels so much more often than chance (0 is chance,
            1 always).
        neighbours: how many nearest nodes are joined in the public graph.
        rounds: of self-training.
        taught_share: share of the unlabelled nodes that get pseudo-labels, the surest ones.
        validation_shares: correct for training labels whose class shares differ from those of the validation labels.
    """

    name = "self-training"
    about = "Reads no edge in training; every node's answer is computed from its own edges."

    inference_restart: float = 0.2
    least_agreement: float = 0.2
    neighbours: int = 20
    rounds: int = 2
    taught_share: float = 0.5
    validation_shares: bool = True

    def _train(
        self, nodes: PublicNodes, edges: Private[EdgeList], *, ledger: Ledger, randomness: Randomness
    ) -> Trained:
        directions = principal_rows(weighted_rows(nodes.features), _WIDTH)
        nearest = nearest_rows(directions[:, :_GRAPH_WIDTH], self.neighbours)
        graph, rows = neighbour_graph(nearest), normalize(directions, dim=1)
        views = [normalize(smoothed_rows(graph, rows, restart=restart), dim=1) for restart in _RESTARTS]
        answers = self._answers(nodes, views)
        known = nodes.train_mask | nodes.validation_mask
        agree = label_agreement(nearest, nodes.labels, known) >= self.least_agreement

        def probabilities(features: Tensor) -> Tensor:
            if features_fingerprint(features) != nodes.fingerprint:
                raise InputError(
                    "graph",
                    rule="must have the nodes of the training",
                    got="others",
                    fix="Train on all nodes together.",
                )
            return answers

        return Trained(scorers=edge_free_scorers(probabilities, self.inference_restart if agree else 1.0))

    def _answers(self, nodes: PublicNodes, views: Sequence[Tensor]) -> Tensor:
        """Class probabilities of all nodes."""
        truth = nodes.labels, nodes.train_mask
        encoder = train_encoder(nodes, EncoderSettings(seed=self.seed))
        members = [self._calibrated(encoder.probabilities(nodes.features).double(), nodes, truth)]
        members += self._members(nodes, views, truth)
        for _ in range(self.rounds):
            taught = _pseudo_labels(_best_average(members, nodes), nodes, self.taught_share)
            members += self._members(nodes, views, taught)
        return _best_average(members, nodes)

    def _members(self, nodes: PublicNodes, views: Sequence[Tensor], taught: tuple[Tensor, Tensor]) -> list[Tensor]:
        return [
            self._calibrated(_softmax_regression(view, taught, nodes.num_classes, penalty), nodes, taught)
            for view, penalty in product(views, _PENALTIES)
        ]

    def _calibrated(self, given: Tensor, nodes: PublicNodes, taught: tuple[Tensor, Tensor]) -> Tensor:
        """Logits over a temperature plus a share of log(validation shares / training shares): least validation loss."""
        mask = nodes.validation_mask
        if not bool(mask.any()):
            return given
        shift = _log_shares(nodes.labels[mask], nodes.num_classes)
        shift = shift - _log_shares(taught[0][taught[1]], nodes.num_classes)
        logits = given.clamp_min(1e-9).log()

        def adjusted(rows: Tensor, choice: tuple[float, float]) -> Tensor:
            return torch.softmax(rows / choice[0] + choice[1] * shift, dim=1)

        choices = product(_TEMPERATURES, (0.0, 0.5, 1.0) if self.validation_shares else (0.0,))
        checked, labels = logits[mask], nodes.labels[mask]
        return adjusted(logits, min(choices, key=lambda choice: _loss(adjusted(checked, choice), labels)))


def _best_average(members: Sequence[Tensor], nodes: PublicNodes) -> Tensor:
    """A weighted mean of members: a dozen picks, each the one that lowers the validation loss most (with repeats)."""
    mask = nodes.validation_mask
    if not bool(mask.any()):
        return torch.stack(list(members)).mean(dim=0)
    checked, labels = torch.stack([member[mask] for member in members]), nodes.labels[mask]
    weights, total = torch.zeros(len(members), dtype=torch.float64), torch.zeros_like(checked[0])
    for pick in range(1, _PICKS + 1):
        best = min(range(len(members)), key=lambda place: _loss((total + checked[place]) / pick, labels))
        weights[best] += 1 / _PICKS
        total += checked[best]
    return torch.einsum("m,mnc->nc", weights, torch.stack(list(members)))


def _pseudo_labels(answers: Tensor, nodes: PublicNodes, share: float) -> tuple[Tensor, Tensor]:
    """Labels and a mask: the labelled nodes, and the surest share of the nodes without a label."""
    sure, classes = answers.max(dim=1)
    free = ~(nodes.train_mask | nodes.validation_mask)
    chosen = sure.masked_fill(~free, -1.0).topk(int(share * int(free.sum()))).indices
    taught = nodes.train_mask.clone()
    taught[chosen] = True
    return torch.where(free, classes, nodes.labels), taught


def _softmax_regression(rows: Tensor, taught: tuple[Tensor, Tensor], num_classes: int, penalty: float) -> Tensor:
    """Class probabilities of all rows; classes that nobody taught get 0."""
    labels, mask = taught
    answers = torch.zeros(len(rows), num_classes, dtype=torch.float64)
    if len(seen := labels[mask].unique()) == 1:
        answers[:, seen] = 1.0
        return answers
    model = LogisticRegression(C=1 / penalty, max_iter=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stopping early regularises too
        model.fit(rows[mask].numpy(), labels[mask].numpy())
    answers[:, model.classes_] = torch.from_numpy(model.predict_proba(rows.numpy())).double()
    return answers


def _log_shares(labels: Tensor, num_classes: int) -> Tensor:
    counts = torch.bincount(labels, minlength=num_classes).double() + 1
    return (counts / counts.sum()).log()


def _loss(answers: Tensor, labels: Tensor) -> float:
    return float(nll_loss(answers.clamp_min(1e-9).log(), labels))
