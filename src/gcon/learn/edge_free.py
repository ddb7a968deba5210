"""The strongest model that reads no edge: it is the start of the private one, and its control.

Features -> directions -> views -> members -> average. Two sets of principal directions (directions.py), each as it is and
smoothed over its graph of nearest features (feature_graph.py), are what softmax regressions learn from. They, an encoder
and two perceptrons are averaged as validation labels say, and twice taught by the surest answers of their average
(ensemble.py). What released moments add is in after_release.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import final

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch.nn.functional import normalize

from gcon.learn.directions import both_directions
from gcon.learn.encoder import Encoder
from gcon.learn.ensemble import Ensemble, Rows, View, part_of
from gcon.learn.feature_graph import graph_moments, label_agreement, nearest_rows, neighbour_graph, smoothed_rows
from gcon.learn.perceptron import EncoderSettings, train_encoder
from gcon.learn.sizes import blocks, is_large
from gcon.learn.unit_rows import rows_with_sum_one
from gcon.nodes import PublicNodes

WIDTH, GRAPH_WIDTH, NEIGHBOURS = 200, 100, 20
PENALTIES = (1.0, 0.1)  # on the squared weights of a regression
TAUGHT_SHARE = 0.5
RESTARTS = (0.1, 0.2, 0.4, 1.0)  # of smoothing; 1 is none, and comes last
ROUNDS = 2
_OTHER_SEED = 2**61  # added to the seed of the second perceptron


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class EdgeFree:
    """The trained model.

    Attributes:
        ensemble: its members, as matrices of answers.
        answers: class probabilities of all nodes, their best average; of a large graph in float32.
        rows: the principal directions on which regressions do better: n x k, of length 1, float32.
        expected_moments: F' G F of these rows F over their graph of nearest features: what edges are expected to look like.
        loss: the validation loss of the best regression on the rows alone; infinite without validation nodes.
        neighbours_agree: how much more often than chance nodes with the nearest rows share their label.
    """

    ensemble: Ensemble
    answers: Tensor
    rows: Tensor
    expected_moments: Tensor
    loss: float
    neighbours_agree: float


def learn_without_edges(nodes: PublicNodes, *, seed: int) -> EdgeFree:
    """The edge-free model of these nodes; the last ones are kept in memory, since several budgets and methods share them.

    Args:
        nodes: public features, labels and splits; features may lie in a file.
        seed: of the encoder and the perceptrons.

    Privacy:
        Reads public nodes: there is no argument that could hold an edge. Test labels are for scores only, and what is
        kept never saw them.
    """
    known = _Known(replace(nodes, test_mask=torch.zeros_like(nodes.test_mask)), seed)
    return _kept_large(known) if is_large(nodes.num_nodes) else _kept(known)


class _Known:
    """Public nodes and a seed, equal if their contents are."""

    def __init__(self, nodes: PublicNodes, seed: int) -> None:
        self.nodes, self.seed = nodes, seed
        masks = (nodes.train_mask, nodes.validation_mask)
        # Checksums, so that what is kept does not hold the tables twice.
        labels = tuple(_checksum(nodes.labels[mask]) for mask in masks)
        self._key = (nodes.fingerprint, seed, nodes.num_classes, labels, tuple(_checksum(mask) for mask in masks))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Known) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def _checksum(values: Tensor) -> str:
    return hashlib.sha256(np.ascontiguousarray(values.numpy()).data).hexdigest()


def _trained(known: _Known) -> EdgeFree:
    nodes = known.nodes
    directions = [_Directions.of(nodes, rows) for rows in both_directions(nodes.features, WIDTH)]
    ensemble = Ensemble.without_members(nodes)
    views = ensemble.sampled([view for each in directions for view in each.views])
    ensemble = ensemble.joined_by(_encoder_views(nodes, known.seed)).taught(views, PENALTIES)
    losses = [ensemble.loss_on(each.views[-1]) for each in directions]
    for _ in range(ROUNDS):
        ensemble = ensemble.taught(views, PENALTIES, TAUGHT_SHARE)
    loss, best = min(zip(losses, directions, strict=True), key=lambda entry: entry[0])
    return EdgeFree(
        ensemble=ensemble.settled(),
        answers=ensemble.answers,
        rows=best.rows,
        expected_moments=graph_moments(best.graph, best.rows),
        loss=loss,
        neighbours_agree=best.neighbours_agree,
    )


_kept = lru_cache(maxsize=4)(_trained)
_kept_large = lru_cache(maxsize=1)(_trained)  # one large table is enough to keep in memory


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class _Directions:
    """One set of principal directions with its graph of nearest rows; the last view is the rows as they are."""

    rows: Tensor
    graph: scipy.sparse.csr_matrix
    neighbours_agree: float
    views: tuple[View, ...]

    @classmethod
    def of(cls, nodes: PublicNodes, rows: Tensor) -> _Directions:
        nearest = nearest_rows(rows[:, :GRAPH_WIDTH], NEIGHBOURS)
        for block in blocks(len(rows)):
            rows[block] = normalize(rows[block], dim=1)
        graph = neighbour_graph(nearest)
        return cls(
            rows=rows,
            graph=graph,
            neighbours_agree=label_agreement(nearest, nodes.labels, nodes.train_mask | nodes.validation_mask),
            views=tuple(_smoothed_view(graph, rows, restart) for restart in RESTARTS),
        )


def _smoothed_view(graph: scipy.sparse.csr_matrix, rows: Tensor, restart: float) -> View:
    def opened() -> Rows:
        smoothed = smoothed_rows(graph, rows, restart=restart)
        return lambda nodes: normalize(smoothed[nodes], dim=1)

    return opened


def _encoder_views(nodes: PublicNodes, seed: int) -> list[View]:
    """Class probabilities by the encoder, and by two perceptrons.

    The perceptrons keep all their inputs, on rows with sum 1: better than the encoder where nodes have few words.
    """
    labelled = part_of(nodes, (nodes.train_mask | nodes.validation_mask).nonzero()[:, 0])
    with_sum_one = replace(labelled, features=rows_with_sum_one(labelled.features))
    keeping = EncoderSettings(
        hidden=64, drop_input=False, unit_input=False, weight_decay=5e-4, epochs=500, patience=500, centre=False
    )
    encoder = train_encoder(labelled, EncoderSettings(centre=False, seed=seed))
    perceptrons = [train_encoder(with_sum_one, replace(keeping, seed=each)) for each in (seed, seed + _OTHER_SEED)]
    return [
        _encoded_view(encoder, nodes.features, lambda features: features),
        *(_encoded_view(each, nodes.features, rows_with_sum_one) for each in perceptrons),
    ]


def _encoded_view(encoder: Encoder, features: Tensor, prepared: Callable[[Tensor], Tensor]) -> View:
    return lambda: lambda nodes: encoder.probabilities(prepared(features[nodes]))
