"""The strongest model that reads no edge: it is the start of the private one, and its control.

Features -> directions -> views -> members -> average. Softmax regressions learn from rows along two sets of principal directions,
of features as they are and of weighted ones, and from these rows smoothed over a graph of nearest features (feature_graph.py);
of many nodes along the better set alone. They, an encoder and a perceptron are averaged as labelled nodes say that did not teach
them, and taught once more by the surest answers of their average (ensemble.py). What released moments add is in after_release.py.
"""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import final

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor
from torch.nn.functional import normalize, one_hot

from gcon.learn import sample
from gcon.learn.encoder import Scale, scaled_rows
from gcon.learn.ensemble import Ensemble, Lesson
from gcon.learn.feature_graph import Directions, FeatureGraph, feature_graph, principal_directions
from gcon.learn.perceptron import EncoderSettings, train_encoder
from gcon.learn.sample import Sample, with_validation
from gcon.learn.sparse_rows import compact
from gcon.nodes import PublicNodes

WIDTH, GRAPH_WIDTH, SMOOTHED_WIDTH, NEIGHBOURS = 150, 100, 100, 20
PENALTIES = (1.0, 0.1)  # on the squared weights of a regression
TAUGHT_SHARE = 0.5
RESTARTS = (0.1, 0.2, 0.4)  # of smoothing
# By what rows are divided: the encoder, and a perceptron that keeps all its inputs, on rows with sum 1. It is better than the
# encoder where nodes have few words.
_NETWORKS: dict[Scale, EncoderSettings] = {
    "length": EncoderSettings(patience=15, unit_input=False, centre=False),
    "sum": EncoderSettings(hidden=64, patience=10, drop_input=False, unit_input=False, weight_decay=5e-4, centre=False),
}
_LABEL_RESTART, _LABEL_STEPS = 0.1, 10  # of labels that spread over the graph


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
        graph: of nearest rows, of the sample.
        examples: labels of nodes, and what they are answered: what answers of a class look like. Without validation nodes
            nobody's own label taught these answers: those of training nodes are surer than others'.
    """

    sample: Sample
    ensemble: Ensemble
    answers: Tensor
    rows: Tensor
    expected_moments: Tensor
    graph: FeatureGraph
    examples: tuple[Tensor, Tensor]

    @property
    def neighbours_agree(self) -> float:
        """How much more often than chance nodes with the nearest rows share their label."""
        nodes = self.sample.nodes
        return self.graph.label_agreement(nodes.labels, nodes.train_mask | nodes.validation_mask)


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
    large = nodes.num_nodes > sample.EXACT_NODES
    key = (nodes.fingerprint, nodes.num_classes, nodes.class_shares, content.hexdigest(), device if large else "")
    known = _Known(key, seed, replace(nodes, test_mask=torch.zeros_like(nodes.test_mask)), device)
    return _kept_large(known) if large else _kept(known)


@dataclass(frozen=True)
class _Known:
    """Public nodes and a seed, equal if their contents are: checksums, so that what is kept does not hold the tables twice."""

    key: tuple[str, int, tuple[float, ...] | None, str, str]
    seed: int
    nodes: PublicNodes = field(compare=False)
    device: str = field(compare=False)


def _trained(known: _Known) -> EdgeFree:
    chosen, unit = Sample(known.nodes, slice(None), "cpu"), partial(normalize, dim=1)
    if known.nodes.num_nodes > sample.EXACT_NODES:
        chosen = Sample.of(known.nodes, known.device)
    # Features -> directions -> views.
    nodes = chosen.nodes
    found: list[Directions] = []
    entries = compact(nodes.features)
    features = nodes.features if entries is None else entries
    for weighted in (False, True):
        start = found[0].axes if found else None
        found.append(principal_directions(features, WIDTH, weighted=weighted, start=start))
    # Members: regressions on the rows along both sets. Graphs are most of the work: of many nodes the better set alone gets one.
    plain = [unit(directions.rows) for directions in found]
    ensemble = Ensemble(nodes=nodes).taught(plain, PENALTIES)
    better = _set_of_least_loss(ensemble)
    directions, rows = found[better], plain[better]
    if nodes.num_nodes > sample.COMPARED_NODES:
        found, plain, better = [directions], [rows], 0
    graphs = [feature_graph(each.rows[:, :GRAPH_WIDTH], NEIGHBOURS) for each in found]
    # Labels that spread over the graphs, networks, regressions on smoothed rows.
    spread, answered = [], []
    for lesson in ensemble.lessons:
        told = one_hot(lesson.labels[lesson.mask], nodes.num_classes).float()
        seeds = torch.zeros(len(nodes.labels), nodes.num_classes)
        seeds[lesson.mask] = told / told.sum(dim=0).clamp_min(1)  # every class is as loud as any other
        spread.append([graph.answers_around(seeds, restart=_LABEL_RESTART, steps=_LABEL_STEPS) for graph in graphs])
        answered.append(_networks(nodes, features, known.seed, chosen.device, lesson))
    ensemble = ensemble.joined_by(spread, ensemble.lessons).joined_by(answered, ensemble.lessons)
    views = [
        [unit(table) for table in graph.smoothed(each[:, :SMOOTHED_WIDTH], RESTARTS)]
        for graph, each in zip(graphs, plain, strict=True)
    ]
    heard = len(ensemble.members)
    ensemble = ensemble.taught(list(itertools.chain(*views)), PENALTIES)
    # Pupils read the views of which one taught best.
    best = _set_of_least_loss(ensemble, after=heard) if len(views) > 1 else 0
    ensemble = ensemble.taught([*views[best], plain[best]], PENALTIES, ensemble.surest(TAUGHT_SHARE))
    graph = graphs[better]
    # From the sample to everybody.
    everybody = rows if nodes is known.nodes else directions.unit_rows(known.nodes.features, known.device)
    believed, judged, _ = ensemble.moved()
    answers = chosen.everywhere(believed, everybody)
    examples = ensemble.judges.labels, judged
    if ensemble.judges.folds is None:
        labelled = nodes.train_mask | nodes.validation_mask
        examples = nodes.labels[labelled], answers[chosen.places][labelled]
    return EdgeFree(
        sample=chosen,
        ensemble=ensemble,
        answers=answers,
        rows=everybody,
        expected_moments=(rows.T @ graph.smoothed(rows, (0.0,), steps=1)[0]).double(),
        graph=graph,
        examples=examples,
    )


def _set_of_least_loss(ensemble: Ensemble, *, after: int = 0) -> int:
    """Which of two sets of directions has the best member, of those that joined after so many: half of them read each."""
    losses = [member.loss for member in ensemble.members[after:]]
    half = len(losses) // 2
    return int(min(losses[half:]) < min(losses[:half]))


_kept = lru_cache(maxsize=4)(_trained)
_kept_large = lru_cache(maxsize=1)(_trained)  # one large table is enough to keep in memory


def forget_learned() -> None:
    """Drop what is kept in memory."""
    _kept.cache_clear()
    _kept_large.cache_clear()


def _networks(
    nodes: PublicNodes, features: Tensor | csr_matrix, seed: int, device: str, lesson: Lesson
) -> list[Tensor]:
    """Class probabilities of all nodes by the encoder, and by a perceptron, after a lesson; float64."""
    known, answers = lesson.mask | nodes.validation_mask, []
    for by, settings in _NETWORKS.items():
        labelled = PublicNodes(
            features=scaled_rows(nodes.features[known], by=by),
            labels=nodes.labels[known],
            num_classes=nodes.num_classes,
            train_mask=lesson.mask[known],
            validation_mask=nodes.validation_mask[known],
            test_mask=nodes.test_mask[known],
        )
        network = train_encoder(labelled, settings, seed=seed, device=device)
        answers.append(network.probabilities(scaled_rows(features, by=by, sparse=True), scaled=True).double())
    return answers
