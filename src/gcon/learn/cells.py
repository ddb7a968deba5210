"""The most similar rows of many, nearly: rows are sorted into cells, and compared inside the nearest cells alone.

Cells have centres found by a few rounds of k-means on a sample. With as many rows a cell whatever their number, and with
centres found in the same way once they are many, the cost grows hardly faster than the number of rows. The same rows give
the same result: one thread works, in a fixed order. (The comparisons are many and small: with several threads on a busy
machine they would mostly wait for each other.)
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

ROWS_A_CELL = 256
PROBES = 8  # cells that a row is compared with
_LARGEST_CELL = 4 * ROWS_A_CELL  # a larger one (many equal rows) is cut, or its cost would be quadratic
_WHOLE = 4096  # so few rows are compared all with all
_ROUNDS = 3  # of k-means
_ROWS_A_CENTRE = 32  # in the sample that k-means reads
_CHUNK = 2048
_SELF = np.float32(-2)  # below every cosine: a row is no neighbour of its own


def matches_in_cells(units: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """For every row so many other rows, nearly the most similar ones.

    Args:
        units: n x d, float32, of length 1 (or 0); more than `count` rows.
        count: neighbours a row, far fewer than rows in a cell.

    Returns:
        n x count places (int32) and their cosines, the most similar first.
    """
    rows, random = units.numpy(), np.random.default_rng(0)
    with one_thread():
        places, cosines = _search(rows, rows, count, _centres(rows, random), random, own=True)
        _complete(rows, places, cosines)
    for start in range(0, len(places), _CHUNK):
        part = slice(start, start + _CHUNK)
        order = np.argsort(-cosines[part], axis=1, kind="stable")
        places[part] = np.take_along_axis(places[part], order, axis=1)
        cosines[part] = np.take_along_axis(cosines[part], order, axis=1)
    return torch.from_numpy(places), torch.from_numpy(cosines)


def _centres(rows: Floats, random: np.random.Generator) -> Floats:
    number = math.ceil(len(rows) / ROWS_A_CELL)
    order = random.permutation(len(rows))
    centres = rows[np.sort(order[:number])]
    sample = rows[np.sort(order[: _ROWS_A_CENTRE * number])]
    for _ in range(_ROUNDS):
        home = _matches(sample, centres, 1, random)[:, 0]
        sums = np.zeros_like(centres)
        np.add.at(sums, home, sample)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        centres = np.where(lengths > 0, sums / np.where(lengths > 0, lengths, 1), centres)
    return centres


def _matches(queries: Floats, base: Floats, count: int, random: np.random.Generator) -> Places:
    """The most similar base rows of every query, the best first: exact for few base rows, else by cells of them."""
    count = min(count, len(base))
    places = np.full((len(queries), count), -1, dtype=np.int32)
    cosines = np.full((len(queries), count), _SELF, dtype=np.float32)
    if len(base) > _WHOLE:
        places, cosines = _search(queries, base, count, _centres(base, random), random, own=False)
    else:
        every = np.arange(len(base))
        for start in range(0, len(queries), _CHUNK):
            who = np.arange(start, min(start + _CHUNK, len(queries)))
            _improve(places, cosines, queries, base, who, every, own=False)
    best = cosines.argmax(axis=1)[:, None]
    first = np.take_along_axis(places, best, axis=1)
    np.put_along_axis(places, best, places[:, :1].copy(), axis=1)
    places[:, :1] = first
    return np.maximum(places, 0)  # a query far from every cell asks the first centre


def _search(
    queries: Floats, base: Floats, count: int, centres: Floats, random: np.random.Generator, *, own: bool
) -> tuple[Places, Floats]:
    """Compare every query with the rows of its nearest cells. `own`: queries are the base, and never their own match."""
    asked = _matches(queries, centres, PROBES, random)
    home = asked[:, 0] if own else _matches(base, centres, 1, random)[:, 0]
    members, member_ends = _grouped(home, len(centres))
    pairs, pair_ends = _grouped(asked.reshape(-1), len(centres))
    pairs //= asked.shape[1]
    places = np.full((len(queries), count), -1, dtype=np.int32)
    cosines = np.full((len(queries), count), _SELF, dtype=np.float32)
    first = start = 0
    for last, stop in zip(member_ends, pair_ends, strict=True):
        inside, who = members[first:last], pairs[start:stop]
        first, start = last, stop
        pieces = math.ceil(len(inside) / _LARGEST_CELL)
        for piece in range(pieces):
            # Queries are spread over the pieces of a cut cell; a piece is every so-manieth member.
            some = who if pieces == 1 else who[who % pieces == piece]
            for begin in range(0, len(some), _CHUNK):
                part = some[begin : begin + _CHUNK]
                _improve(places, cosines, queries, base, part, inside[piece::pieces], own=own)
    return places, cosines


def _grouped(cells: Places, number: int) -> tuple[NDArray[np.int64], list[int]]:
    """Places in the order of their cells, and where each cell ends."""
    ends: list[int] = np.cumsum(np.bincount(cells, minlength=number)).tolist()
    return np.argsort(cells, kind="stable"), ends


def _improve(
    places: Places,
    cosines: Floats,
    queries: Floats,
    base: Floats,
    who: NDArray[np.int64],
    inside: NDArray[np.int64],
    *,
    own: bool,
) -> None:
    """Compare some queries with some base rows, and keep the best of these and of what was known, in any order."""
    similar = queries[who] @ base[inside].T
    if own:
        spots = np.minimum(np.searchsorted(inside, who), len(inside) - 1)  # members are in rising order
        found = np.flatnonzero(inside[spots] == who)
        similar[found, spots[found]] = _SELF
    best = _largest(similar, places.shape[1])
    every = np.concatenate([cosines[who], np.take_along_axis(similar, best, axis=1)], axis=1)
    known = np.concatenate([places[who], inside[best].astype(np.int32)], axis=1)
    known[every <= _SELF] = -1  # its own place, in a cell with hardly any other row
    kept = _largest(every, places.shape[1])
    cosines[who], places[who] = np.take_along_axis(every, kept, axis=1), np.take_along_axis(known, kept, axis=1)


def _largest(values: Floats, count: int) -> NDArray[np.int64]:
    """Where the largest values of every row are, in any order."""
    if values.shape[1] <= count:
        return np.broadcast_to(np.arange(values.shape[1]), values.shape)
    return np.argpartition(values, -count, axis=1)[:, -count:]


def _complete(units: Floats, places: Places, cosines: Floats) -> None:
    """Rows whose cells hold too few others are compared with a fixed part of the table instead."""
    lonely = np.flatnonzero((places < 0).any(axis=1))
    others = np.arange(0, len(units), max(len(units) // _WHOLE, 1))
    for start in range(0, len(lonely), _CHUNK):
        some = lonely[start : start + _CHUNK]
        places[some], cosines[some] = -1, _SELF
        _improve(places, cosines, units, units, some, others, own=True)
