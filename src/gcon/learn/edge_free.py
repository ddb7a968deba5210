"""The strongest model that reads no edge: it is the start of the private one, and its control.

Two sets of principal directions, of the features as they are and of weighted ones (tf-idf for bags of words), each also
smoothed over its graph of nearest features. Softmax regressions on all of them and the encoder are averaged as validation
labels say, and twice taught by the surest answers of their average.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import scipy.sparse
import torch
from torch import Tensor
from torch.nn.functional import normalize

from gcon.learn.feature_graph import (
    Nearest,
    label_agreement,
    nearest_rows,
    neighbour_graph,
    principal_rows,
    smoothed_rows,
    weighted_rows,
)
from gcon.learn.members import (
    best_average,
    calibrated,
    pseudo_labels,
    taught_members,
    true_labels,
    validation_loss,
)
from gcon.learn.perceptron import EncoderSettings, train_encoder
from gcon.nodes import PublicNodes

WIDTH, GRAPH_WIDTH, NEIGHBOURS = 200, 100, 20
PENALTIES = (1.0, 0.1)  # on the squared weights of a regression
TAUGHT_SHARE = 0.5
RESTARTS = (0.1, 0.2, 0.4, 1.0)  # of smoothing; 1 is none, and comes last
ROUNDS = 2


class Directions(Protocol):
    """One set of principal directions, as far as training with edges needs to know it."""

    @property
    def rows(self) -> Tensor:
        """N x k, of length 1, float32."""

    @property
    def moments(self) -> Tensor:
        """Feature moments over the public graph of nearest features: what edges are expected to look like."""

    @property
    def loss(self) -> float:
        """The validation loss of the best regression on the rows alone; infinite without validation nodes."""


@dataclass(frozen=True, eq=False, kw_only=True)
class FeatureBase:
    """One set of principal directions.

    Attributes:
        rows: n x k, of length 1.
        nearest: the most similar nodes of every node.
        graph: of these, symmetric and normalised.
        loss: the validation loss of the best regression on the rows alone; infinite without validation nodes.
    """

    rows: Tensor
    nearest: Nearest
    graph: scipy.sparse.csr_matrix
    loss: float

    @cached_property
    def moments(self) -> Tensor:
        """Feature moments over the public graph of nearest features: what edges are expected to look like."""
        rows = self.rows.double()
        return rows.T @ torch.from_numpy(self.graph @ rows.numpy())


@dataclass(frozen=True, eq=False, kw_only=True)
class EdgeFree:
    """The trained model.

    Attributes:
        members: class probabilities of all nodes, one matrix a member; of a large graph their best average alone.
        answers: their best average; of a large graph in float32.
        base: the set of directions with the lower validation loss.
        neighbours_agree: how much more often than chance nearest nodes share their label.
    """

    members: tuple[Tensor, ...]
    answers: Tensor
    base: Directions
    neighbours_agree: float


def train_edge_free(nodes: PublicNodes, *, seed: int, more: Sequence[Tensor] = ()) -> EdgeFree:
    """Train on public nodes alone.

    Args:
        nodes: public features, labels and splits.
        seed: of the encoder.
        more: class probabilities of other edge-free models, to be members too.

    Privacy:
        There is no argument that could hold an edge.
    """
    found = [_base(nodes, rows) for rows in _feature_rows(nodes)]
    views = [view for _, seen in found for view in seen]
    truth = true_labels(nodes)
    encoder = train_encoder(nodes, EncoderSettings(seed=seed))
    members = [calibrated(given.double(), nodes, truth) for given in (encoder.probabilities(nodes.features), *more)]
    members += taught_members(nodes, views, truth, penalties=PENALTIES)
    for _ in range(ROUNDS):
        taught = pseudo_labels(best_average(members, nodes), nodes, TAUGHT_SHARE)
        members += taught_members(nodes, views, taught, penalties=PENALTIES)
    base = min((base for base, _ in found), key=lambda base: base.loss)
    known = nodes.train_mask | nodes.validation_mask
    return EdgeFree(
        members=tuple(members),
        answers=best_average(members, nodes),
        base=base,
        neighbours_agree=label_agreement(base.nearest, nodes.labels, known),
    )


def _feature_rows(nodes: PublicNodes) -> list[Tensor]:
    return [normalize(nodes.features.to(torch.float32), dim=1), weighted_rows(nodes.features)]


def _base(nodes: PublicNodes, rows: Tensor) -> tuple[FeatureBase, list[Tensor]]:
    """The directions of some rows, and their views: smoothed, and as they are."""
    directions = principal_rows(rows, WIDTH)
    nearest = nearest_rows(directions[:, :GRAPH_WIDTH], NEIGHBOURS)
    graph, units = neighbour_graph(nearest), normalize(directions, dim=1)
    views = [normalize(smoothed_rows(graph, units, restart=restart), dim=1) for restart in RESTARTS]
    alone = taught_members(nodes, [units], true_labels(nodes), penalties=PENALTIES)
    mask = nodes.validation_mask
    losses = [validation_loss(member[mask], nodes.labels[mask]) for member in alone] if bool(mask.any()) else []
    loss = min(losses, default=torch.inf)
    return FeatureBase(rows=units, nearest=nearest, graph=graph, loss=loss), views
