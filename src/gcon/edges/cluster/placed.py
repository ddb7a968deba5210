"""A matrix whose rows are on the workers, each with those of its own nodes: what the coordinator holds instead of it.

Which worker has which rows is decided by the public numbers of nodes and workers alone, so that it tells nothing about edges.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol, final

import torch
from torch import Tensor

TYPES = (torch.int32, torch.int64, torch.float32, torch.float64)  # of matrices that can be placed
CHUNKS = 16  # per worker: nodes with many neighbours often have numbers close to each other


class Matrix(NamedTuple):
    """Which matrix of the workers: its name, its columns, and as what type to read it."""

    name: str
    columns: slice
    dtype: torch.dtype


class Keeper(Protocol):
    """Who knows where the rows are."""

    def rows(self, matrix: Matrix, nodes: slice | Tensor) -> Tensor:
        """Rows of consecutive nodes, or of any."""

    def ends(self, matrix: Matrix) -> tuple[Tensor, Tensor]:
        """The largest and the smallest entry of every column."""


keeper: ContextVar[Keeper] = ContextVar("keeper")


@final
class PlacedRows:
    """Answers to what statistics and walks ask of a matrix, without holding it; anything else is an error.

    Args:
        keeper: who knows where the rows are.
        matrix: which matrix it is.
        shape: one row per node.
    """

    device = torch.device("cpu")

    def __init__(self, keeper: Keeper, matrix: Matrix, shape: tuple[int, ...]) -> None:
        self._keeper, self.matrix, self.shape = keeper, matrix, shape

    @property
    def dtype(self) -> torch.dtype:
        return self.matrix.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def numel(self) -> int:
        return self.shape[0] * self.shape[1]

    def to(self, where: Any) -> PlacedRows:
        """The same as another type; workers use their processors, whatever the device."""
        if not isinstance(where, torch.dtype):
            return self
        return PlacedRows(self._keeper, self.matrix._replace(dtype=where), self.shape)

    def contiguous(self) -> PlacedRows:
        """Rows are made so where they are read."""
        return self

    @cached_property
    def _ends(self) -> tuple[Tensor, Tensor]:
        return self._keeper.ends(self.matrix)

    def amax(self, dim: int) -> Tensor:
        return self._ends[0]

    def amin(self, dim: int) -> Tensor:
        return self._ends[1]

    def __getitem__(self, which: Any) -> Any:
        """Some columns, which stay there, or some rows, which come here."""
        if isinstance(which, tuple):
            start, stop, _ = which[1].indices(self.shape[1])
            first = self.matrix.columns.start
            columns = slice(first + start, first + stop)
            return PlacedRows(self._keeper, self.matrix._replace(columns=columns), (len(self), stop - start))
        if isinstance(which, slice):
            start, stop, _ = which.indices(len(self))
            which = slice(start, stop)
        return self._keeper.rows(self.matrix, which)


def placed_rows(name: str, dtype: torch.dtype, shape: tuple[int, ...]) -> PlacedRows:
    """The matrix of this name, at the coordinator that unpacks it."""
    return PlacedRows(keeper.get(), Matrix(name, slice(0, shape[1]), dtype), shape)


@final
class RowsElsewhere:
    """Stands for a matrix in what is sent to the coordinator, while its rows go to the workers."""

    def __init__(self, name: str, rows: Tensor) -> None:
        self._given = (name, rows.dtype, tuple(rows.shape))

    def __reduce__(self) -> tuple[object, ...]:
        return placed_rows, self._given


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
        return sum(chunk.nodes.stop - chunk.nodes.start for chunk in self.chunks(part))

    def owners(self, nodes: Tensor) -> Tensor:
        """Which workers have these nodes."""
        return torch.remainder(torch.div(nodes, self.size, rounding_mode="floor"), self.parts)

    def places(self, nodes: Tensor) -> Tensor:
        """Where the rows of these nodes are among those of their owners."""
        chunks = torch.div(nodes, self.size, rounding_mode="floor")
        return torch.div(chunks, self.parts, rounding_mode="floor") * self.size + nodes - chunks * self.size
