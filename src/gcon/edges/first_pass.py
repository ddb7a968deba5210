"""What the first pass over stored columns finds out: damage, and a graph that is not simple and undirected.

Every sensitivity is that of one undirected edge: in a directed graph, or with an edge that stands twice, one change can move more
than the noise hides. Checksums find damage. That every edge stands in the rows of both its ends is a sum over all entries (u, v)
of a number that (v, u) takes away again, so it is 0, in any order and in any division; with an entry that has no partner it is
not, but for a chance of about 2^-58.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_AT_ONCE = 2**15  # entries: all that is made of them stays in the processor's own memory
_FIRST, _SECOND, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(32)


class SimpleGraphCheck:
    """Whether entries are those of rising rows without loops, and how far they are from being the same in both directions.

    Args:
        row_pointers: where the entries of every row begin, and the end of the last.

    Privacy:
        As private as the edges.
    """

    def __init__(self, row_pointers: NDArray[np.int64]) -> None:
        self._pointers = row_pointers
        self._end, self._before = -1, 0  # of what was taken in last
        self.simple, self.balance = True, 0

    def goes_on_after(self, place: int, column: int) -> None:
        """Say what stands in the place before the next one, where entries begin in the middle of a row."""
        self._end, self._before = place + 1, column

    def update(self, first: int, columns: NDArray[Any]) -> None:
        """Take in the entries from the place `first` on."""
        for start in range(0, len(columns), _AT_ONCE):
            self._take(first + start, columns[start : start + _AT_ONCE])

    def _take(self, first: int, columns: NDArray[Any]) -> None:
        stop = first + len(columns)
        low = int(np.searchsorted(self._pointers, first, side="right")) - 1
        high = int(np.searchsorted(self._pointers, stop, side="left"))
        starts = np.clip(self._pointers[low : high + 1], first, stop)
        falls = np.flatnonzero(columns[1:] <= columns[:-1]) + (first + 1)
        rising = bool((starts[np.searchsorted(starts, falls)] == falls).all())  # columns may fall where a row begins
        if first == self._end and first > self._pointers[low]:
            rising = rising and bool(columns[0] > self._before)
        ends, others = np.repeat(_mixed(np.arange(low, high)), np.diff(starts)), _mixed(columns)
        apart = others - ends  # 0 for loops alone: different nodes are mixed differently
        self.simple = self.simple and rising and bool(apart.all())
        ends *= others
        ends *= apart
        self.balance = (self.balance + int(ends.sum(dtype=np.uint64))) % 2**64
        self._end, self._before = stop, int(columns[-1])


def _mixed(nodes: NDArray[Any]) -> NDArray[np.uint64]:
    """64 well-mixed bits per node."""
    mixed = nodes.astype(np.uint64)
    mixed += np.uint64(1)  # 0 would stay 0
    for factor in (_FIRST, _SECOND):
        mixed *= factor
        mixed ^= mixed >> _SHIFT
    return mixed
