"""Up to how many nodes everything is computed from all of them at once, and in which blocks above. Public constants."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

COMPARED_NODES = 10_000  # above: nearest features by cells; all pairs of more would take most of a training
EXACT_NODES = 50_000  # above: a sample learns, and a network that it taught answers for all (sample.py)
SAMPLE_NODES = 25_000
BLOCK_NODES = 16_384

Places = Tensor | slice  # node numbers


def blocks(num_nodes: int) -> Iterator[slice]:
    """All nodes, a block at a time; in one block unless they are too many."""
    size = BLOCK_NODES if num_nodes > EXACT_NODES else max(num_nodes, 1)
    return (slice(start, min(start + size, num_nodes)) for start in range(0, num_nodes, size))


def sampled(count: int, most: int, *, seed: int) -> Places:
    """The places of so many things, or of at most so many of them at random: the same ones every time, in their order."""
    if count <= most:
        return slice(None)
    return torch.randperm(count, generator=torch.Generator().manual_seed(seed))[:most].sort().values
