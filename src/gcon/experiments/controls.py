"""The demo's zero-budget control: the encoder retrained on its own confident predictions, then one hop over own edges."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from gcon.encode.encoder import Encoder
from gcon.encode.mlp import EncoderSettings, train_encoder
from gcon.graphs.edges import EdgeList
from gcon.graphs.nodes import PublicNodes
from gcon.propagate.schemes import Schemes, propagate


def one_hop(edges: EdgeList, values: Tensor, restart: float) -> Tensor:
    """Every node's values averaged with those of its own neighbours."""
    return propagate(edges, values, Schemes(restart=restart, steps=(1,)))


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
