"""Zero-budget controls: models trained without any edge, scored under the same access as the private result.

A node's own edges are free at inference (the paper's rule), so a private model is worth its budget only if it beats
these:

- encoder alone: no edge at all;
- encoder, one hop: the encoder's class probabilities averaged over a node's own neighbourhood;
- self-training, one hop: the encoder retrained on its own confident predictions, then one hop;
- GCON without edges: this very pipeline with the private aggregates left out (restart 1 in training), then one hop.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from gcon.encode.encoder import Encoder
from gcon.encode.mlp import EncoderSettings, train_encoder
from gcon.graphs.edges import EdgeList
from gcon.graphs.nodes import PublicNodes
from gcon.propagate.schemes import Schemes, propagate

CONTROL_RESTARTS = (0.1, 0.3, 0.4, 0.6, 0.8, 0.9)


def one_hop(edges: EdgeList, values: Tensor, restart: float) -> Tensor:
    """Every node's values averaged with those of its own neighbours."""
    return propagate(edges, values, Schemes(restart=restart, steps=(1,)))


def control_scores(
    nodes: PublicNodes, edges: EdgeList, encoder: Encoder, settings: EncoderSettings
) -> dict[str, Tensor]:
    """Class scores of all nodes for every control and inference restart."""
    trained = self_trained_encoder(nodes, encoder, settings)
    scores = {"encoder alone": encoder.probabilities(nodes.features)}
    scores["self-training"] = trained.probabilities(nodes.features)
    for restart in CONTROL_RESTARTS:
        for name, model in (("encoder, one hop", encoder), ("self-training, one hop", trained)):
            scores[f"{name}|{restart:g}"] = one_hop(edges, model.probabilities(nodes.features).double(), restart)
    return scores


def self_trained_encoder(
    nodes: PublicNodes, encoder: Encoder, settings: EncoderSettings, *, rounds: int = 2
) -> Encoder:
    """Retrain on the labelled nodes plus the more confident half of every predicted class, a few times. Edge-free."""
    current = encoder
    candidates = ~(nodes.train_mask | nodes.validation_mask)
    for _ in range(rounds):
        confidence, classes = current.probabilities(nodes.features).max(dim=1)
        chosen = torch.zeros_like(candidates)
        for label in range(nodes.num_classes):
            members = (candidates & (classes == label)).nonzero()[:, 0]
            best = confidence[members].argsort(descending=True)[: len(members) // 2]
            chosen[members[best]] = True
        labels = torch.where(nodes.train_mask | nodes.validation_mask, nodes.labels, classes)
        expanded = replace(
            nodes,
            labels=labels,
            train_mask=nodes.train_mask | chosen,
            test_mask=torch.zeros_like(nodes.test_mask),
        )
        # The prior is that of the real labels: pseudo-labels carry no new information about its strength.
        decay = settings.weight_decay if settings.weight_decay is not None else 0.6 / int(nodes.train_mask.sum())
        current = train_encoder(expanded, replace(settings, weight_decay=decay))
    return current
