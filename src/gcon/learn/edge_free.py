"""The strongest model that reads no edge: it is the start of the private one, and its control.

Features -> directions -> views -> members -> average. Two sets of principal directions (directions.py), of features as they
are and of weighted ones, each as it is and smoothed over its graph of nearest features (feature_graph.py), are what softmax
regressions learn from. They, an encoder and a perceptron are averaged as labelled nodes say that did not teach them
(judges.py), and taught once more by the surest answers of their average (ensemble.py). What released moments add is in
after_release.py.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import final

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch.nn.functional import normalize

from gcon.learn import sizes
from gcon.learn.directions import Weighting, principal_rows, unit_rows_along, weighting
from gcon.learn.ensemble import Ensemble, Lesson, pseudo_labels
from gcon.learn.feature_graph import graph_moments, label_agreement, nearest_rows, neighbour_graph, smoothed_rows
from gcon.learn.held_out import with_validation
from gcon.learn.perceptron import EncoderSettings, train_encoder
from gcon.learn.sample import Sample, part_of
from gcon.learn.unit_rows import rows_with_sum_one
from gcon.nodes import PublicNodes

WIDTH, GRAPH_WIDTH, NEIGHBOURS = 200, 100, 20
PENALTIES = (1.0, 0.1)  # on the squared weights of a regression
TAUGHT_SHARE = 0.5
RESTARTS = (0.1, 0.2, 0.4, 1.0)  # of smoothing; 1 is none, and comes last


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class EdgeFree:
    """The trained model.

    Attributes:
        sample: who taught and was taught; everybody, unless the graph is large.
        ensemble: members that answer for the sample.
        answers: class probabilities of all nodes, their best average; of a large graph in float32.
        rows: the principal directions on which regressions do better: n x k, of length 1, float32.
        expected_moments: F' G F of these rows F over their graph of nearest features: what edges are expected to look like.
        loss: the judges' loss of the best regression on the rows alone.
        neighbours_agree: how much more often than chance nodes with the nearest rows share their label.
    """

    sample: Sample
    ensemble: Ensemble
    answers: Tensor
    rows: Tensor
    expected_moments: Tensor
    loss: float
    neighbours_agree: float

    @property
    def examples(self) -> tuple[Tensor, Tensor]:
        """Labels of nodes, and what they are answered: what answers of a class look like.

        Without validation nodes nobody's own label taught these answers: those of training nodes are surer than others'.
        """
        judges, nodes = self.ensemble.judges, self.sample.nodes
        if judges.folds is not None:
            return judges.labels, self.ensemble.judged
        known = nodes.train_mask | nodes.validation_mask
        return nodes.labels[known], self.sample.at(self.answers)[known]


def learn_without_edges(nodes: PublicNodes, *, seed: int, device: str = "cpu") -> EdgeFree:
    """The edge-free model of these nodes; the last ones are kept in memory, since several budgets and methods share them.

    Args:
        nodes: public features, labels and splits; features may lie in a file.
        seed: of the encoder and the perceptron.
        device: where all nodes of a large graph are looked at. Last bits differ from device to device.

    Privacy:
        Reads public nodes: there is no argument that could hold an edge. Test labels are for scores only, and what is
        kept never saw them.
    """
    nodes = with_validation(nodes)
    masks = (nodes.train_mask, nodes.validation_mask)
    content = hashlib.sha256()  # of the masks first, which say how many labels follow
    for values in (*masks, *(nodes.labels[mask] for mask in masks)):
        content.update(np.ascontiguousarray(values.numpy()).data)
    large = nodes.num_nodes > sizes.EXACT_NODES
    key = (nodes.fingerprint, nodes.num_classes, content.hexdigest(), device if large else "")
    known = _Known(key, seed, replace(nodes, test_mask=torch.zeros_like(nodes.test_mask)), device)
    return _kept_large(known) if large else _kept(known)


@dataclass(frozen=True)
class _Known:
    """Public nodes and a seed, equal if their contents are: checksums, so that what is kept does not hold the tables twice."""

    key: tuple[str, int, str, str]
    seed: int
    nodes: PublicNodes = field(compare=False)
    device: str = field(compare=False)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class _Directions:
    """One set of principal directions of the sample, with its graph of nearest rows; the last view is the rows as they are."""

    weigh: Weighting
    directions: Tensor
    rows: Tensor
    graph: scipy.sparse.csr_matrix
    neighbours_agree: float
    views: list[Tensor]


def _trained(known: _Known) -> EdgeFree:
    sample, unit = Sample.of(known.nodes, known.device), partial(normalize, dim=1)
    nodes, found = sample.nodes, []
    for weigh in (unit, weighting(nodes.features)):
        rows, directions = principal_rows(nodes.features, weigh, WIDTH)
        nearest = nearest_rows(rows[:, :GRAPH_WIDTH], NEIGHBOURS)
        graph, rows = neighbour_graph(nearest), unit(rows)
        agree = label_agreement(nearest, nodes.labels, nodes.train_mask | nodes.validation_mask)
        views = [unit(table) for table in smoothed_rows(graph, rows, RESTARTS)]
        found.append(
            _Directions(weigh=weigh, directions=directions, rows=rows, graph=graph, neighbours_agree=agree, views=views)
        )
    views = [view for each in found for view in each.views]
    ensemble = Ensemble(nodes=nodes)
    networks = partial(_networks, nodes, known.seed, "cpu" if sample.places is None else known.device)
    answers = networks(ensemble.lesson, slice(None))
    ensemble = ensemble.joined_by(answers, ensemble.lesson, networks).taught(views, PENALTIES)
    losses = [member.loss for member in ensemble.members]
    # The members that read the rows as they are: the last ones of their directions.
    per_set = len(RESTARTS) * len(PENALTIES)
    plain = [min(losses[end - len(PENALTIES) : end]) for end in range(len(losses) - per_set, len(losses) + 1, per_set)]
    loss, best = min(zip(plain, found, strict=True), key=lambda entry: entry[0])
    ensemble, rows = ensemble.taught(views, PENALTIES, pseudo_labels(ensemble.answers, nodes, TAUGHT_SHARE)), best.rows
    if sample.places is not None:
        rows = unit_rows_along(best.directions, best.weigh, known.nodes.features, known.device)
    return EdgeFree(
        sample=sample,
        ensemble=ensemble,
        answers=sample.everywhere(ensemble.answers, rows),
        rows=rows,
        expected_moments=graph_moments(best.graph, best.rows),
        loss=loss,
        neighbours_agree=best.neighbours_agree,
    )


_kept = lru_cache(maxsize=4)(_trained)
_kept_large = lru_cache(maxsize=1)(_trained)  # one large table is enough to keep in memory


def _networks(nodes: PublicNodes, seed: int, device: str, lesson: Lesson, at: Tensor | slice) -> list[Tensor]:
    """Class probabilities of some nodes by the encoder, and by a perceptron, after a lesson; float64.

    The perceptron keeps all its inputs, on rows with sum 1: better than the encoder where nodes have few words.
    """
    keeping = EncoderSettings(
        hidden=64, drop_input=False, unit_input=False, weight_decay=5e-4, epochs=500, centre=False, seed=seed
    )
    known = (lesson.mask | nodes.validation_mask).nonzero()[:, 0]
    labelled = replace(part_of(nodes, known), train_mask=lesson.mask[known])
    with_sum_one = replace(labelled, features=rows_with_sum_one(labelled.features))
    encoder, perceptron = (
        train_encoder(labelled, EncoderSettings(centre=False, seed=seed), device=device),
        train_encoder(with_sum_one, keeping, device=device),
    )
    asked = nodes.features[at]
    answers = encoder.probabilities(asked), perceptron.probabilities(rows_with_sum_one(asked))
    return [each.double() for each in answers]
