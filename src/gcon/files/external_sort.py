"""Sorting more edges than fit in memory: sorted runs on disk, then one merge of all of them.

An edge becomes two keys, one per direction: row * 2^32 + column. A run is as many edges as the memory takes, sorted and without
repeats. The merge has the next keys of every run in memory, and passes on all up to the smallest of their last ones: no skew of
degrees can make a piece too large, because a piece may end in the middle of a row.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gcon.edges.store_format import as_bytes
from gcon.errors import InputError

Keys = NDArray[np.uint64]
MOST_NODES = 2**32
KEY = np.dtype("<u8")
EDGE_BYTES = 40  # of a run, per edge: two keys, a copy without repeats and loops, and which ones to keep
KEY_BYTES = 40  # of a merge, per key: read, joined, half of it while sorting, a copy without repeats, columns and rows


class EdgeSorter:
    """Takes edges in any order, and gives them back sorted, in both directions, without loops and repeats.

    Args:
        folder: for the runs.
        num_nodes: ends are 0 to one less than that.
        memory_bytes: for sorting.

    Attributes:
        given: edges so far, self-loops included.
        self_loops: of these.

    Privacy:
        Bare private edges: the folder must be as private, and so are all counts.
    """

    def __init__(self, folder: Path, *, num_nodes: int, memory_bytes: int) -> None:
        self.given = self.self_loops = 0
        self._folder, self._num_nodes, self._memory_bytes = folder, num_nodes, memory_bytes
        self._most = max(1, memory_bytes // EDGE_BYTES)  # edges per run
        self._keys: Keys = np.empty(2 * self._most, dtype=KEY)
        self._filled = 0
        self._runs: list[_Run] = []

    def add(self, ends: NDArray[Any]) -> None:
        """Take the next edges, 2 x k row numbers."""
        _check_ends(ends, self._num_nodes)
        self.given += ends.shape[1]
        self.self_loops += int(np.count_nonzero(ends[0] == ends[1]))
        start = 0
        while start < ends.shape[1]:
            part = ends[:, start : start + self._most - self._filled // 2]
            for rows, columns in (part, part[::-1]):
                halves = self._keys[self._filled : self._filled + part.shape[1]].view("<u4").reshape(-1, 2)
                halves[:, 1], halves[:, 0] = rows, columns
                self._filled += part.shape[1]
            start += part.shape[1]
            if self._filled == self._keys.size:
                self._finish_run()

    def finish(self) -> int:
        """Say that there are no more edges; returns how many keys the merge will read."""
        if self._filled:
            self._finish_run()
        self._keys = np.empty(0, dtype=KEY)
        return sum(run.left for run in self._runs)

    def merged(self) -> Iterator[tuple[Keys, int]]:
        """All keys in rising order, each once, in pieces; and how many are left to read after each piece."""
        room = max(1, self._memory_bytes // (KEY_BYTES * max(1, len(self._runs))))
        while any(run.left or run.ahead.size for run in self._runs):
            for run in self._runs:
                run.read_ahead(room)
            last = min((run.ahead[-1] for run in self._runs if run.left), default=None)
            piece = np.concatenate([run.take_up_to(last) for run in self._runs])
            piece.sort(kind="stable")  # which makes use of parts that are sorted already: ten times as fast here
            yield _distinct(piece), sum(run.left + run.ahead.size for run in self._runs)

    def _finish_run(self) -> None:
        keys = self._keys[: self._filled]
        keys.sort()
        rows, columns = rows_and_columns(keys)
        keys = _distinct(keys, rows != columns)
        path = self._folder / f"run-{len(self._runs):06d}.bin"
        with path.open("xb") as file:
            file.write(as_bytes(keys))
        self._runs.append(_Run(path, keys.size))
        self._filled = 0


class _Run:
    """A sorted file that is read from its start to its end: `ahead` is in memory, `left` keys are only on disk."""

    def __init__(self, path: Path, size: int) -> None:
        self._path, self._size = path, size
        self.left, self.ahead = size, np.empty(0, dtype=KEY)

    def read_ahead(self, most: int) -> None:
        if not self.ahead.size and self.left:
            start, count = self._size - self.left, min(most, self.left)
            self.ahead = np.fromfile(self._path, dtype=KEY, count=count, offset=start * KEY.itemsize)
            if self.ahead.size != count:  # numpy says nothing where the disk fails
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            self.left -= count

    def take_up_to(self, last: np.uint64 | None) -> Keys:
        count = self.ahead.size if last is None else int(np.searchsorted(self.ahead, last, side="right"))
        taken, self.ahead = self.ahead[:count], self.ahead[count:]
        return taken


def rows_and_columns(keys: Keys) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """The two halves of the keys, without copying."""
    halves = keys.view("<u4").reshape(-1, 2)
    return halves[:, 1], halves[:, 0]


def _check_ends(ends: NDArray[Any], num_nodes: int) -> None:
    sound = ends.ndim == 2 and ends.shape[0] == 2 and ends.dtype.kind in "iu"
    if sound and (not ends.size or (int(ends.min()) >= 0 and int(ends.max()) < num_nodes)):
        return
    raise InputError(
        "edges",
        rule=f"must be two rows of node numbers, 0 to {num_nodes - 1}",
        got="another shape or type, or an end that is not a node",
        fix="Add the missing nodes to the node table, or drop their edges.",
    )


def _distinct(ordered: Keys, wanted: NDArray[np.bool_] | None = None) -> Keys:
    """Each key once, of all or of those that are wanted."""
    fresh = np.ones(ordered.size, dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=fresh[1:])
    if wanted is not None:
        fresh &= wanted
    return ordered if bool(fresh.all()) else ordered[fresh]
