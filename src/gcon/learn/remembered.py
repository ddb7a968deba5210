"""The edge-free model of some public nodes, trained once: several budgets and methods share it."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from gcon.learn.edge_free import EdgeFree, train_edge_free
from gcon.learn.encoder import Encoder
from gcon.learn.large_edge_free import taught_places, train_large_edge_free
from gcon.learn.perceptron import EncoderSettings, train_encoder
from gcon.learn.sampled_pool import part_of
from gcon.learn.sizes import is_large
from gcon.learn.unit_rows import rows_with_sum_one
from gcon.nodes import PublicNodes

_OTHER_SEED = 2**61  # added to the seed of the second perceptron


def edge_free(nodes: PublicNodes, seed: int) -> EdgeFree:
    """The edge-free model of these nodes.

    Privacy:
        Reads public nodes. Test labels are for scores only: what is remembered never saw them.
    """
    known = _Known(replace(nodes, test_mask=torch.zeros_like(nodes.test_mask)), seed)
    return _remembered_large(known) if is_large(nodes.num_nodes) else _remembered(known)


class _Known:
    """Public nodes and a seed, equal if their contents are."""

    def __init__(self, nodes: PublicNodes, seed: int) -> None:
        self.nodes, self.seed = nodes, seed
        masks = (nodes.train_mask, nodes.validation_mask)
        # Checksums, so that what is remembered does not hold the tables twice.
        labels = tuple(_checksum(nodes.labels[mask]) for mask in masks)
        self._key = (nodes.fingerprint, seed, nodes.num_classes, labels, tuple(_checksum(mask) for mask in masks))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Known) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def _checksum(values: Tensor) -> str:
    return hashlib.sha256(np.ascontiguousarray(values.numpy()).data).hexdigest()


@lru_cache(maxsize=4)
def _remembered(known: _Known) -> EdgeFree:
    nodes = replace(known.nodes, features=rows_with_sum_one(known.nodes.features))
    perceptrons = [encoder.probabilities(nodes.features) for encoder in _perceptrons(nodes, known.seed)]
    return train_edge_free(known.nodes, seed=known.seed, more=perceptrons)


@lru_cache(maxsize=1)  # one large table is enough to keep in memory
def _remembered_large(known: _Known) -> EdgeFree:
    part = part_of(known.nodes, taught_places(known.nodes))
    part = replace(part, features=rows_with_sum_one(part.features))
    return train_large_edge_free(known.nodes, seed=known.seed, on_sum_one=_perceptrons(part, known.seed))


def _perceptrons(nodes: PublicNodes, seed: int) -> list[Encoder]:
    """Perceptrons that keep all their inputs, on rows with sum 1: better than the encoder where nodes have few words."""
    keeping = EncoderSettings(
        hidden=64, drop_input=False, unit_input=False, weight_decay=5e-4, epochs=500, patience=500, seed=seed
    )
    return [train_encoder(nodes, replace(keeping, seed=each)) for each in (seed, seed + _OTHER_SEED)]
