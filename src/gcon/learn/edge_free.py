"""The strongest model that reads no edge: it is the start of the private one, and its control.

Features -> directions -> views -> members -> average. Two sets of principal directions (directions.py), of features as they
are and of weighted ones, each as it is and smoothed over its graph of nearest features (feature_graph.py), are what softmax
regressions learn from. They, an encoder and a perceptron are averaged as labelled nodes say that did not teach them
(judges.py), and taught once more by the surest answers of their average (ensemble.py). What released moments add is in
after_release.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import final

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch.nn.functional import normalize

from gcon.learn import sizes
from gcon.learn.directions import principal_rows, weighting
from gcon.learn.ensemble import Ensemble, SampledView, View, part_of, view_of
from gcon.learn.feature_graph import graph_moments, label_agreement, nearest_rows, neighbour_graph, smoothed_rows
from gcon.learn.held_out import with_validation
from gcon.learn.members import Lesson, validation_loss
from gcon.learn.perceptron import EncoderSettings, train_encoder
from gcon.learn.unit_rows import rows_with_sum_one
from gcon.nodes import PublicNodes

WIDTH, GRAPH_WIDTH, NEIGHBOURS = 200, 100, 20
PENALTIES = (1.0, 0.1)  # on the squared weights of a regression
TAUGHT_SHARE = 0.5
RESTARTS = (0.1, 0.2, 0.4, 1.0)  # of smoothing; 1 is none, and comes last
_SAMPLE_SEED = 1


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class EdgeFree:
    """The trained model.

    Attributes:
        ensemble: its members, as matrices of answers.
        answers: class probabilities of all nodes, their best average; of a large graph in float32.
        rows: the principal directions on which regressions do better: n x k, of length 1, float32.
        expected_moments: F' G F of these rows F over their graph of nearest features: what edges are expected to look like.
        loss: the judges' loss of the best regression on the rows alone.
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
        seed: of the encoder and the perceptron.

    Privacy:
        Reads public nodes: there is no argument that could hold an edge. Test labels are for scores only, and what is
        kept never saw them.
    """
    nodes = with_validation(nodes)
    masks = (nodes.train_mask, nodes.validation_mask)
    content = hashlib.sha256()  # of the masks first, which say how many labels follow
    for values in (*masks, *(nodes.labels[mask] for mask in masks)):
        content.update(np.ascontiguousarray(values.numpy()).data)
    key = (nodes.fingerprint, nodes.num_classes, content.hexdigest())
    known = _Known(key, seed, replace(nodes, test_mask=torch.zeros_like(nodes.test_mask)))
    return _kept_large(known) if nodes.num_nodes > sizes.EXACT_NODES else _kept(known)


@dataclass(frozen=True)
class _Known:
    """Public nodes and a seed, equal if their contents are: checksums, so that what is kept does not hold the tables twice."""

    key: tuple[str, int, str]
    seed: int
    nodes: PublicNodes = field(compare=False)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class _Directions:
    """One set of principal directions with its graph of nearest rows; the last view is the rows as they are."""

    rows: Tensor
    graph: scipy.sparse.csr_matrix
    neighbours_agree: float
    views: tuple[SampledView, ...]


def _smoothed(graph: scipy.sparse.csr_matrix, rows: Tensor, restart: float) -> Tensor:
    return smoothed_rows(graph, rows, [restart])[0]


def _trained(known: _Known) -> EdgeFree:
    nodes, unit = known.nodes, partial(normalize, dim=1)
    ensemble = Ensemble.without_members(nodes)
    sample = nodes.features[sizes.sampled(nodes.num_nodes, sizes.EXACT_NODES, seed=_SAMPLE_SEED)]
    directions = []
    for weigh in (unit, weighting(sample)):
        rows = principal_rows(nodes.features, sample, weigh, WIDTH)
        nearest = nearest_rows(rows[:, :GRAPH_WIDTH], NEIGHBOURS)
        for block in sizes.blocks(len(rows)):
            rows[block] = normalize(rows[block], dim=1)
        graph = neighbour_graph(nearest)
        smoothed = smoothed_rows(graph, rows, RESTARTS, places=ensemble.places)
        views = [
            SampledView(view_of(partial(_smoothed, graph, rows, restart), unit), unit(table))
            for restart, table in zip(RESTARTS, smoothed, strict=True)
        ]
        agree = label_agreement(nearest, nodes.labels, nodes.train_mask | nodes.validation_mask)
        directions.append(_Directions(rows=rows, graph=graph, neighbours_agree=agree, views=tuple(views)))
        del nearest, smoothed  # of a large graph these are large tables
    views = [view for each in directions for view in each.views]
    ensemble = ensemble.joined_by(*_networks(ensemble, known.seed)).taught(views, PENALTIES)
    plain = [  # the members that read the rows as they are
        [member.judged for member in ensemble.members if member.view is one.views[-1].view] for one in directions
    ]
    losses = [min(validation_loss(judged, ensemble.judges.labels) for judged in some) for some in plain]
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


def _networks(ensemble: Ensemble, seed: int) -> tuple[list[SampledView], Callable[[Lesson, Tensor], list[Tensor]]]:
    """Class probabilities by the encoder, and by a perceptron; and what they answer after another lesson.

    The perceptron keeps all its inputs, on rows with sum 1: better than the encoder where nodes have few words.
    """
    keeping = EncoderSettings(
        hidden=64, drop_input=False, unit_input=False, weight_decay=5e-4, epochs=500, centre=False, seed=seed
    )

    def trained(nodes: PublicNodes) -> list[View]:
        labelled = part_of(nodes, (nodes.train_mask | nodes.validation_mask).nonzero()[:, 0])
        with_sum_one = replace(labelled, features=rows_with_sum_one(labelled.features))
        encoder = train_encoder(labelled, EncoderSettings(centre=False, seed=seed))
        perceptron = train_encoder(with_sum_one, keeping)
        return [
            view_of(nodes.features, encoder.probabilities),
            view_of(nodes.features, rows_with_sum_one, perceptron.probabilities),
        ]

    def ask(lesson: Lesson, mask: Tensor) -> list[Tensor]:
        return [view()(mask).double() for view in trained(replace(ensemble.sample, train_mask=lesson.mask))]

    return ensemble.sampled(trained(ensemble.nodes)), ask
