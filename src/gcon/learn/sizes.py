"""Up to which size everything is computed from all nodes at once, and in which blocks above it. Public constants."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

EXACT_NODES = 50_000  # above: nearest features by cells, an ensemble taught on a sample, answers in blocks
SAMPLED_NODES = 50_000  # the nodes that teach, and are taught, in a large graph
DIRECTION_ROWS = 100_000  # the rows that principal directions of a large table are taken from
BLOCK_NODES = 16_384


def is_large(num_nodes: int) -> bool:
    """Whether so many nodes are too many to be handled all at once."""
    return num_nodes > EXACT_NODES


def blocks(num_nodes: int) -> Iterator[slice]:
    """All nodes, a block at a time."""
    return (slice(start, min(start + BLOCK_NODES, num_nodes)) for start in range(0, num_nodes, BLOCK_NODES))


def sampled(places: Tensor, most: int, *, seed: int) -> Tensor:
    """At most so many of the places, the same ones every time, in rising order."""
    if len(places) <= most:
        return places
    chosen = torch.randperm(len(places), generator=torch.Generator().manual_seed(seed))[:most]
    return places[chosen.sort().values]
