"""The most similar rows of many, nearly: rows are sorted into cells, and compared inside the nearest cells alone.

Cells have centres found by a few rounds of k-means on a sample. There are at most `EXACT_NODES` rows, so all centres are compared
with all rows. One thread works, in a fixed order: the same rows give the same result.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcon.machine import one_thread

Floats = NDArray[np.float32]
Places = NDArray[np.int32]
Indices = NDArray[np.int64]

ROWS_PER_CELL = 128
PROBES = 5  # cells that a row is compared with
_LARGEST_CELL = 4 * ROWS_PER_CELL  # a larger one (many equal rows) is cut, or its cost would be quadratic
_PART = 4096  # rows that a lonely one is compared with
_ROUNDS = 3  # of k-means
_ROWS_PER_CENTRE = 32  # in the sample that k-means reads
_CHUNK = 2048
_SELF = np.float32(-2)  # below every cosine: a row is no neighbour of its own


def matches_in_cells(units: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """For every row other rows, nearly the most similar ones.

    Args:
        units: n x d, float32, of length 1 (or 0); more than `count` rows.
        count: neighbours per row, far fewer than rows in a cell.

    Returns:
        n x count places (int32) and their cosines, the most similar first.
    """
    rows = units.numpy()
    with one_thread():
        found = _by_cells(rows, count, np.random.default_rng(0))
        # Rows whose cells hold too few others are compared with a fixed part of the table instead.
        lonely = np.flatnonzero((found.places < 0).any(axis=1))
        found.places[lonely], found.cosines[lonely] = -1, _SELF
        found.compare(lonely, np.arange(0, len(rows), max(len(rows) // _PART, 1)))
    found.sort()
    return torch.from_numpy(found.places), torch.from_numpy(found.cosines)


class _Matches:
    """The most similar base rows of every query so far, in any order, with their cosines; -1 where none was found."""

    def __init__(self, queries: Floats, base: Floats, count: int) -> None:
        self._queries, self._base, self._count = queries, base, min(count, len(base))
        self.places = np.full((len(queries), self._count), -1, dtype=np.int32)
        self.cosines = np.full((len(queries), self._count), _SELF, dtype=np.float32)

    def compare(self, who: Indices, inside: Indices) -> None:
        """Compare some queries with some base rows, in rising order, and keep the best."""
        for start in range(0, len(who), _CHUNK):
            self._compare(who[start : start + _CHUNK], inside)

    def _compare(self, who: Indices, inside: Indices) -> None:
        similar = self._queries[who] @ self._base[inside].T
        if self._queries is self._base:
            spots = np.minimum(np.searchsorted(inside, who), len(inside) - 1)
            found = np.flatnonzero(inside[spots] == who)
            similar[found, spots[found]] = _SELF
        best = _largest(similar, self._count)
        cosines = np.concatenate([self.cosines[who], np.take_along_axis(similar, best, axis=1)], axis=1)
        places = np.concatenate([self.places[who], inside[best].astype(np.int32)], axis=1)
        places[cosines <= _SELF] = -1  # its own place, in a cell with hardly any other row
        kept = _largest(cosines, self._count)
        self.cosines[who] = np.take_along_axis(cosines, kept, axis=1)
        self.places[who] = np.take_along_axis(places, kept, axis=1)

    def sort(self) -> None:
        """The most similar first."""
        for start in range(0, len(self.places), _CHUNK):
            part = slice(start, start + _CHUNK)
            order = np.argsort(-self.cosines[part], axis=1, kind="stable")
            self.places[part] = np.take_along_axis(self.places[part], order, axis=1)
            self.cosines[part] = np.take_along_axis(self.cosines[part], order, axis=1)


def _by_cells(rows: Floats, count: int, random: np.random.Generator) -> _Matches:
    """Compare every row with the rows of its nearest cells."""
    centres = _centres(rows, random)
    asked = _nearest(rows, centres, PROBES)
    found = _Matches(rows, rows, count)
    for inside, asking in zip(
        _grouped(asked[:, 0], len(centres)), _grouped(asked.reshape(-1), len(centres)), strict=True
    ):
        who = asking // asked.shape[1]
        pieces = math.ceil(len(inside) / _LARGEST_CELL)
        for piece in range(pieces):
            # The queries of a cut cell are spread over its pieces; a piece is every third member, say.
            found.compare(who if pieces == 1 else who[who % pieces == piece], inside[piece::pieces])
    return found


def _nearest(rows: Floats, centres: Floats, count: int) -> Places:
    """The nearest centres of every row, the best first."""
    found = _Matches(rows, centres, count)
    found.compare(np.arange(len(rows)), np.arange(len(centres)))
    found.sort()
    return found.places


def _centres(rows: Floats, random: np.random.Generator) -> Floats:
    number = math.ceil(len(rows) / ROWS_PER_CELL)
    order = random.permutation(len(rows))
    centres = rows[np.sort(order[:number])]
    sample = rows[np.sort(order[: _ROWS_PER_CENTRE * number])]
    for _ in range(_ROUNDS):
        home = _nearest(sample, centres, 1)[:, 0]
        sums = np.zeros_like(centres)
        np.add.at(sums, home, sample)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        centres = np.where(lengths > 0, sums / np.where(lengths > 0, lengths, 1), centres)
    return centres


def _grouped(cells: Places, number: int) -> list[Indices]:
    """The places of every cell, rising."""
    return np.split(np.argsort(cells, kind="stable"), np.cumsum(np.bincount(cells, minlength=number))[:-1])


def _largest(values: Floats, count: int) -> Indices:
    """Where the largest values of every row are, in any order."""
    if values.shape[1] <= count:
        return np.broadcast_to(np.arange(values.shape[1]), values.shape)
    return np.argpartition(values, -count, axis=1)[:, -count:]
