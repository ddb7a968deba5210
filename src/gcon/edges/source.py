"""What all kinds of edges can do: in memory, on a GPU, in a file larger than memory, or spread over a cluster.

All that is ever computed from edges is computed row by row: what a node's neighbours add up to. So edges give out *blocks*,
the neighbours of consecutive nodes, and run a function on one block after another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")
BLOCK_ENTRIES = 2**22  # neighbours per block, unless a single node has more
_ROWS_AT_ONCE = 2**20
PART_NODES = {"cpu": 2**14, "cuda": 2**20}  # nodes whose results are made at a time


@dataclass(frozen=True, eq=False)
class RowBlock:
    """The neighbours of consecutive nodes.

    Attributes:
        nodes: which nodes, without a step.
        row_pointers: int64, one more than nodes; `columns[row_pointers[k]:row_pointers[k + 1]]` belong to the k-th of them.
            Starts at 0.
        columns: neighbour ids, rising in every row.
        num_nodes: of the whole graph.

    Privacy:
        A part of the edges, as private as they are.
    """

    nodes: slice
    row_pointers: Tensor
    columns: Tensor
    num_nodes: int
    _shares: dict[tuple[int, int], tuple[Tensor, Tensor, Tensor, Tensor]] = field(
        default_factory=dict, init=False, repr=False
    )

    @cached_property
    def degrees(self) -> Tensor:
        """Number of neighbours of every node of the block."""
        return self.row_pointers.diff()

    def shared_rows(self, longest: int, share: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Rows with more than `longest` neighbours, cut into shares of at most `share`: several threads take one row.

        Returns:
            The rows; and of every share its first entry, the one after its last, and the place of its row among these rows.
        """
        if (longest, share) not in self._shares:
            rows = self._longer_rows(longest)
            counts = (self.row_pointers[rows + 1] - self.row_pointers[rows] + share - 1) // share
            owners = torch.repeat_interleave(counts)
            places = torch.arange(len(owners), device=rows.device) - (counts.cumsum(0) - counts)[owners]
            starts = self.row_pointers[rows][owners] + places * share
            stops = torch.minimum(starts + share, self.row_pointers[rows + 1][owners])
            self._shares[longest, share] = (rows, starts, stops, owners)
        return self._shares[longest, share]

    def _longer_rows(self, longest: int) -> Tensor:
        """Some rows at a time: a first step asks when memory is fullest, and degrees of all nodes would be 8 bytes for each."""
        starts = range(0, len(self.row_pointers) - 1, _ROWS_AT_ONCE)
        pieces = (self.row_pointers[start : start + _ROWS_AT_ONCE + 1].diff() > longest for start in starts)
        found = [piece.nonzero()[:, 0] + start for start, piece in zip(starts, pieces, strict=True)]
        return torch.cat(found) if found else self.row_pointers.new_empty(0)

    def parts(self, most_nodes: int) -> Iterator[RowBlock]:
        """The same block in pieces of at most `most_nodes` nodes: views, nothing is copied."""
        if len(self.row_pointers) - 1 <= most_nodes:
            yield self
            return
        for start in range(0, len(self.row_pointers) - 1, most_nodes):
            pointers = self.row_pointers[start : start + most_nodes + 1]
            first, last = int(pointers[0]), int(pointers[-1])
            nodes = slice(self.nodes.start + start, self.nodes.start + start + len(pointers) - 1)
            yield RowBlock(nodes, pointers - first, self.columns[first:last], self.num_nodes)

    def to(self, device: torch.device) -> RowBlock:
        if self.columns.device == device:
            return self
        return RowBlock(self.nodes, self.row_pointers.to(device), self.columns.to(device), self.num_nodes)


class Edges(ABC):
    """A simple undirected graph on the nodes 0 to `num_nodes` - 1, both directions of every edge.

    Work that is handed in must be picklable (a function of a module, or a `partial` of one with small arguments), because it may
    run elsewhere; large matrices are handed in as `shared`. It must be exact or rounded row by row, so that the sizes of blocks
    change nothing.

    Privacy:
        A bare one is public. Private edges exist only as `Private[Edges]`.
    """

    num_nodes: int

    @abstractmethod
    def map_blocks(self, work: Callable[..., T], *shared: Tensor) -> Iterator[T]:
        """`work(block, *shared)` for all blocks, results in the order of the nodes; every edge is read once."""

    @abstractmethod
    def steps(
        self, origin: Tensor, begin: Callable[[Tensor], Tensor], work: Callable[..., None], count: int
    ) -> Iterator[Tensor]:
        """The rows of all nodes after 0, 1, ..., `count` passes over the edges; each is valid until the next is asked for.

        Where edges are on a cluster the rows are there too, and what comes out can only be indexed: by columns, or by rows, which
        then come here.

        Args:
            origin: one row per node.
            begin: makes the first rows of it, each of its own row alone.
            work: `work(block, rows, origin, out=...)` writes the next rows of a block; of the origin it reads the block's own.
            count: how many passes.
        """

    def run(self, compute: Callable[[Edges], T]) -> T:
        """`compute(edges)` where the edges are: here, unless they are on a cluster. The result leaves that place."""
        return compute(self)


class HoldsRows:
    """A computation that holds public matrices, one row per node, and only hands them to edges.

    Where edges are on a cluster these go straight to the workers, each its rows, and never to the one that coordinates.

    Attributes:
        row_fields: names of the attributes.
    """

    row_fields: ClassVar[tuple[str, ...]] = ()


class LocalEdges(Edges):
    """Edges whose blocks come to this process, one after another."""

    @abstractmethod
    def blocks(self, device: torch.device) -> Iterator[RowBlock]:
        """Consecutive blocks that cover all nodes, on a device."""

    def map_blocks(self, work: Callable[..., T], *shared: Tensor) -> Iterator[T]:
        """One block after another, in parts whose results fit into little memory."""
        device = shared[0].device if shared else torch.device("cpu")
        for block in self.blocks(device):
            for part in block.parts(PART_NODES[device.type]):
                yield work(part, *shared)

    def steps(
        self, origin: Tensor, begin: Callable[[Tensor], Tensor], work: Callable[..., None], count: int
    ) -> Iterator[Tensor]:
        current = begin(origin)
        yield current
        following = torch.empty_like(current) if count else current
        for _ in range(count):
            for block in self.blocks(current.device):
                work(block, current, origin, out=following[block.nodes])
            current, following = following, current
            yield current


def block_slices(row_pointers: Tensor, most_entries: int = BLOCK_ENTRIES) -> Iterator[slice]:
    """Consecutive nodes with at most `most_entries` neighbours in total; a node with more is a block by itself."""
    start, num_nodes = 0, len(row_pointers) - 1
    while start < num_nodes:
        room = int(torch.searchsorted(row_pointers, row_pointers[start] + most_entries, right=True)) - 1
        stop = min(max(room, start + 1), num_nodes)
        yield slice(start, stop)
        start = stop
