"""Up to how many nodes everything is computed from all of them at once, and in which blocks above. Public constants."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

EXACT_NODES = 50_000  # above: nearest features by cells, learning from a sample of as many nodes, answers in blocks
BLOCK_NODES = 16_384

Places = Tensor | slice  # node numbers


def is_large(num_nodes: int) -> bool:
    """Whether so many nodes are too many to be handled all at once."""
    return num_nodes > EXACT_NODES


def blocks(num_nodes: int) -> Iterator[slice]:
    """All nodes, a block at a time; in one block unless they are too many."""
    size = BLOCK_NODES if is_large(num_nodes) else max(num_nodes, 1)
    return (slice(start, min(start + size, num_nodes)) for start in range(0, num_nodes, size))


def sampled(numbers: Tensor, most: int, *, seed: int) -> Tensor:
    """At most so many of the numbers, the same ones every time, in their order."""
    if len(numbers) <= most:
        return numbers
    chosen = torch.randperm(len(numbers), generator=torch.Generator().manual_seed(seed))[:most]
    return numbers[chosen.sort().values]


def sampled_nodes(num_nodes: int, *, seed: int) -> Places:
    """All nodes, or `EXACT_NODES` of them at random."""
    return sampled(torch.arange(num_nodes), EXACT_NODES, seed=seed) if is_large(num_nodes) else slice(None)
