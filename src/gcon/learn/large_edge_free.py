"""The edge-free model of a large graph: the steps of edge_free.py, taught on a sample and asked in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import scipy.sparse
import torch
from torch import Tensor
from torch.nn.functional import normalize

from gcon.learn.edge_free import (
    GRAPH_WIDTH,
    NEIGHBOURS,
    PENALTIES,
    RESTARTS,
    ROUNDS,
    TAUGHT_SHARE,
    WIDTH,
    EdgeFree,
)
from gcon.learn.encoder import Encoder
from gcon.learn.feature_graph import label_agreement, nearest_rows, neighbour_graph
from gcon.learn.large_features import (
    Weighting,
    graph_moments,
    large_principal_rows,
    plain_rows,
    smoothed_together,
    weighting,
)
from gcon.learn.members import validation_loss
from gcon.learn.perceptron import EncoderSettings, train_encoder
from gcon.learn.sampled_pool import Reader, SampledPool, Source, part_of, sampled_places
from gcon.learn.sizes import blocks
from gcon.learn.unit_rows import rows_with_sum_one
from gcon.nodes import PublicNodes


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class LargeBase:
    """One set of principal directions; see `gcon.learn.edge_free.Directions`. The graph itself is not kept."""

    rows: Tensor
    moments: Tensor
    loss: float


@final
class Smoothed(Source):
    """Rows smoothed over a graph, once a restart: made when they are read, because together they are large."""

    def __init__(self, graph: scipy.sparse.csr_matrix, rows: Tensor) -> None:
        self.graph, self.rows = graph, rows

    @property
    def count(self) -> int:
        """One a restart."""
        return len(RESTARTS)

    def reader(self) -> Reader:
        """Smooths all of them."""
        views = smoothed_together(self.graph, self.rows, RESTARTS)
        return lambda place, nodes: views[place][nodes]


@final
class Asked(Source):
    """Class probabilities of trained encoders: from features as they are, or from rows with sum 1."""

    def __init__(self, features: Tensor, encoder: Encoder, on_sum_one: Sequence[Encoder]) -> None:
        self._features, self._encoder, self._on_sum_one = features, encoder, tuple(on_sum_one)

    @property
    def count(self) -> int:
        """One an encoder."""
        return 1 + len(self._on_sum_one)

    def reader(self) -> Reader:
        """Asks the encoders about features of some nodes."""

        def read(place: int, nodes: Tensor | slice) -> Tensor:
            rows = self._features[nodes]
            if place == 0:
                return self._encoder.probabilities(rows)
            return self._on_sum_one[place - 1].probabilities(rows_with_sum_one(rows))

        return read


def taught_places(nodes: PublicNodes) -> Tensor:
    """The nodes that encoders are trained on: all labelled ones, and the sample."""
    mask = nodes.train_mask | nodes.validation_mask
    mask[sampled_places(nodes)] = True
    return mask.nonzero()[:, 0]


def train_large_edge_free(nodes: PublicNodes, *, seed: int, on_sum_one: Sequence[Encoder] = ()) -> EdgeFree:
    """Train on public nodes alone.

    Args:
        nodes: public features, labels and splits; features may lie in a file.
        seed: of the encoder.
        on_sum_one: other encoders, for rows with sum 1, to be members too.

    Privacy:
        There is no argument that could hold an edge.
    """
    encoder = train_encoder(part_of(nodes, taught_places(nodes)), EncoderSettings(seed=seed))
    pool = SampledPool(nodes)
    views, found = [], []
    for weighted in (plain_rows, weighting(nodes.features)):
        source, agreement = _smoothed(nodes, weighted)
        seen = pool.views(source)
        views += seen
        found.append((_loss(pool.taught(seen[-1:], PENALTIES)), source, agreement))
    pool = pool.given(Asked(nodes.features, encoder, on_sum_one)).taught(views, PENALTIES)
    for _ in range(ROUNDS):
        pool = pool.taught(views, PENALTIES, TAUGHT_SHARE)
    answers = pool.average()
    loss, source, agreement = min(found, key=lambda entry: entry[0])
    base = LargeBase(rows=source.rows, moments=graph_moments(source.graph, source.rows), loss=loss)
    return EdgeFree(members=(answers,), answers=answers, base=base, neighbours_agree=agreement)


def _smoothed(nodes: PublicNodes, weighted: Weighting) -> tuple[Smoothed, float]:
    """The directions of some rows with their graph of nearest features, and how often labels agree along it."""
    rows = large_principal_rows(nodes.features, weighted, WIDTH)
    nearest = nearest_rows(rows[:, :GRAPH_WIDTH], NEIGHBOURS)
    for block in blocks(len(rows)):
        rows[block] = normalize(rows[block], dim=1)
    agreement = label_agreement(nearest, nodes.labels, nodes.train_mask | nodes.validation_mask)
    return Smoothed(neighbour_graph(nearest), rows), agreement


def _loss(pool: SampledPool) -> float:
    """The least validation loss of a member; infinite without validation nodes."""
    mask = pool.part.validation_mask
    if not bool(mask.any()):
        return torch.inf
    return min(validation_loss(member.answers[mask], pool.part.labels[mask]) for member in pool.members)
