"""Which worker has which rows: decided by the public numbers of nodes and workers alone, so that it tells nothing about edges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

CHUNKS = 16  # per worker: nodes with many neighbours often have numbers close to each other


class Chunk(NamedTuple):
    """Consecutive nodes of one worker, and where their rows are among its own."""

    nodes: slice
    rows: slice


@dataclass(frozen=True)
class Partition:
    """Chunks of consecutive nodes, dealt out to the workers in turn.

    Attributes:
        num_nodes: of the graph.
        parts: how many workers.

    Example:
        >>> [chunk.nodes for chunk in Partition(5, 2).chunks(1)]
        [slice(1, 2, None), slice(3, 4, None)]
    """

    num_nodes: int
    parts: int

    @property
    def size(self) -> int:
        """Nodes of a chunk; the last has what is left."""
        return max(1, -(-self.num_nodes // (self.parts * CHUNKS)))

    @property
    def num_chunks(self) -> int:
        """Of all workers."""
        return -(-self.num_nodes // self.size)

    def chunks(self, part: int) -> Iterator[Chunk]:
        """Those of one worker, in the order of the nodes."""
        for place, number in enumerate(range(part, self.num_chunks, self.parts)):
            nodes = slice(number * self.size, min((number + 1) * self.size, self.num_nodes))
            yield Chunk(nodes, slice(place * self.size, place * self.size + nodes.stop - nodes.start))

    def count(self, part: int) -> int:
        """How many rows a worker has."""
        return sum(chunk.nodes.stop - chunk.nodes.start for chunk in self.chunks(part))

    def owners(self, nodes: Tensor) -> Tensor:
        """Which workers have these nodes."""
        return torch.remainder(torch.div(nodes, self.size, rounding_mode="floor"), self.parts)

    def places(self, nodes: Tensor) -> Tensor:
        """Where the rows of these nodes are among those of their owners."""
        chunks = torch.div(nodes, self.size, rounding_mode="floor")
        return torch.div(chunks, self.parts, rounding_mode="floor") * self.size + nodes - chunks * self.size
