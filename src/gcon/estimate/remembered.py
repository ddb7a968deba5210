"""The edge-free model of some public nodes, trained once: several budgets and methods share it."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import torch

from gcon.encode.mlp import EncoderSettings, train_encoder
from gcon.encode.unit_rows import rows_with_sum_one
from gcon.estimate.edge_free import EdgeFree, train_edge_free
from gcon.graphs.nodes import PublicNodes

_OTHER_SEED = 2**61  # added to the seed of the second perceptron


def edge_free(nodes: PublicNodes, seed: int) -> EdgeFree:
    """The edge-free model of these nodes.

    Privacy:
        Reads public nodes. Test labels are for scores only: what is remembered never saw them.
    """
    return _remembered(_Known(replace(nodes, test_mask=torch.zeros_like(nodes.test_mask)), seed))


class _Known:
    """Public nodes and a seed, equal if their contents are."""

    def __init__(self, nodes: PublicNodes, seed: int) -> None:
        self.nodes, self.seed = nodes, seed
        masks = (nodes.train_mask, nodes.validation_mask)
        labels = tuple(nodes.labels[mask].numpy().tobytes() for mask in masks)
        self._key = (
            nodes.fingerprint,
            seed,
            nodes.num_classes,
            labels,
            tuple(mask.numpy().tobytes() for mask in masks),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Known) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


@lru_cache(maxsize=4)
def _remembered(known: _Known) -> EdgeFree:
    # Perceptrons that keep all their inputs, on rows with sum 1: better than the encoder where nodes have few words.
    nodes = replace(known.nodes, features=rows_with_sum_one(known.nodes.features))
    keeping = EncoderSettings(
        hidden=64, drop_input=False, unit_input=False, weight_decay=5e-4, epochs=500, patience=500, seed=known.seed
    )
    seeds = (known.seed, known.seed + _OTHER_SEED)
    perceptrons = [train_encoder(nodes, replace(keeping, seed=seed)).probabilities(nodes.features) for seed in seeds]
    return train_edge_free(known.nodes, seed=known.seed, more=perceptrons)
