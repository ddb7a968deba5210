"""Rehearsals: the whole private training, with its real noise, on the same public nodes and no edge at all.

What a rehearsal scores on validation labels is a function of public data and fresh noise. Choosing by it is free.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from gcon.edges.graph import private_graph
from gcon.errors import InputError
from gcon.learn.encoder import Encoder
from gcon.learn.perceptron import EncoderSettings, train_encoder
from gcon.methods.accuracy import micro_f1
from gcon.methods.no_edges import predict_without_edges
from gcon.methods.objective import Objective, ObjectiveModel
from gcon.nodes import PublicNodes
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import Randomness

HIDDEN = (16, 64)
RIDGES = (0.1, 0.3, 1.0, 3.0)
LOSSES = ("soft-margin", "pseudo-huber:0.2")


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """One combination of settings: its scores on validation nodes without edges, one a draw of the noise.

    Attributes:
        settings: what was rehearsed.
        scores: micro-F1, one a draw.
        model: the model of the first draw. It never saw an edge.
    """

    settings: Objective
    scores: tuple[float, ...]
    model: ObjectiveModel

    @property
    def mean(self) -> float:
        """The mean score."""
        return sum(self.scores) / len(self.scores)


def combinations(base: Objective) -> list[Objective]:
    """The grid: encoder widths, losses and ridges around the given settings."""
    return [
        replace(base, encoder=replace(base.encoder, hidden=hidden), loss=loss, ridge=ridge)
        for hidden in HIDDEN
        for loss in LOSSES
        for ridge in RIDGES
    ]


def rehearse(
    nodes: PublicNodes,
    candidates: Sequence[Objective],
    *,
    draws: int,
    randomness: Callable[[], Randomness],
    step: Callable[[str], None] = lambda done: None,
) -> list[Rehearsal]:
    """Train every candidate on the nodes without edges, `draws` times, and score it on the validation nodes.

    Privacy:
        Reads public nodes only: there is no argument that could hold an edge.
    """
    if not bool(nodes.validation_mask.any()):
        raise InputError(
            "split",
            rule="needs validation nodes to choose by",
            got="none",
            fix="Mark some nodes 'val' in the nodes file.",
        )
    graph = private_graph(nodes, torch.empty(2, 0, dtype=torch.int64), name="rehearsal without edges")
    encoders: dict[EncoderSettings, Encoder] = {}
    found = []
    for settings in candidates:
        if settings.encoder not in encoders:
            encoders[settings.encoder] = train_encoder(nodes, settings.encoder)
        models = [
            settings.train(
                nodes,
                graph.edges,
                ledger=MemoryLedger("rehearsal without edges"),
                randomness=randomness(),
                encoder=encoders[settings.encoder],
            )
            for _ in range(draws)
        ]
        scores = tuple(
            micro_f1(predict_without_edges(model, nodes.features).classes, nodes.labels, nodes.validation_mask)
            for model in models
        )
        found.append(Rehearsal(settings, scores, models[0]))
        step(f"hidden {settings.encoder.hidden}, {settings.loss}, ridge {settings.ridge:g}")
    return found


def best(rehearsals: Sequence[Rehearsal]) -> Rehearsal:
    """The one with the highest mean; the first of equals."""
    return max(rehearsals, key=lambda rehearsal: rehearsal.mean)
