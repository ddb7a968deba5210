"""Sorting more edges than fit in memory: sorted runs on disk, then one merge of all of them.

An edge becomes two keys, one a direction: row * 2^32 + column. A run is as many edges as the memory holds, sorted and without
repeats. The merge keeps the next keys of every run, and passes on all up to the smallest of their last ones: no skew of
degrees can make a piece too large, because a piece may end in the middle of a row.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gcon.edges.store_format import as_bytes
from gcon.errors import InputError
from gcon.files.sort_progress import SortProgress, run_path

Keys = NDArray[np.uint64]
MOST_NODES = 2**32
KEY = np.dtype("<u8")
BYTES_AN_EDGE = 40  # of a run: two keys, a copy without repeats and loops, and which ones to keep
BYTES_A_KEY = 40  # of a merge: held, joined, half of it while sorting, a copy without repeats, columns and rows


def write_runs(
    chunks: Iterable[NDArray[Any]], folder: Path, progress: SortProgress, *, num_nodes: int, memory_bytes: int
) -> Iterator[int]:
    """Sort the chunks (2 x k row numbers) into runs; gives the number of edges read so far after each piece.

    Edges that the runs of an earlier process hold are read again, but not sorted.

    Privacy:
        Reads bare private edges and writes them to the folder, which must be as private.
    """
    most = max(1, memory_bytes // BYTES_AN_EDGE)
    keys = np.empty(2 * most, dtype=KEY)
    skip, filled, read, loops, pending = progress.given, 0, 0, 0, 0
    for chunk in chunks:
        _check_ends(chunk, num_nodes)
        read += chunk.shape[1]
        start = min(skip, chunk.shape[1])
        skip -= start
        while start < chunk.shape[1]:
            part = chunk[:, start : start + most - pending]
            start += part.shape[1]
            pending += part.shape[1]
            count = part.shape[1]
            loops += int(np.count_nonzero(part[0] == part[1]))
            _encode(part[0], part[1], keys[filled : filled + count])
            _encode(part[1], part[0], keys[filled + count : filled + 2 * count])
            filled += 2 * count
            if pending == most:
                _finish_run(keys[:filled], folder, progress, given=pending, loops=loops)
                filled = loops = pending = 0
        yield read
    if skip:
        rule, fix = "must stay the same until the end", "Start again."
        raise InputError("edges", rule=rule, got="fewer than an unfinished conversion read", fix=fix)
    if pending:
        _finish_run(keys[:filled], folder, progress, given=pending, loops=loops)
    progress.merging, progress.taken = True, [0] * len(progress.runs)
    progress.save(folder)


def merged(folder: Path, progress: SortProgress, *, memory_bytes: int) -> Iterator[Keys]:
    """All keys in rising order, each once, in pieces; `progress.taken` counts those of every run that were passed on."""
    runs = range(len(progress.runs))
    room = max(1, memory_bytes // (BYTES_A_KEY * max(1, len(runs))))
    held: list[Keys] = [np.empty(0, dtype=KEY) for _ in runs]
    while True:
        for run in runs:
            if not held[run].size and progress.taken[run] < progress.runs[run]:
                held[run] = _next_keys(
                    folder, run, progress.taken[run], min(room, progress.runs[run] - progress.taken[run])
                )
        unread = [run for run in runs if progress.taken[run] + held[run].size < progress.runs[run]]
        last = min((held[run][-1] for run in unread), default=None)
        parts = []
        for run in runs:
            count = held[run].size if last is None else int(np.searchsorted(held[run], last, side="right"))
            parts.append(held[run][:count])
            held[run] = held[run][count:]
            progress.taken[run] += count
        piece = np.concatenate([np.empty(0, dtype=KEY), *parts])
        if piece.size:
            piece.sort(kind="stable")  # which makes use of parts that are sorted already: ten times as fast here
            yield _distinct(piece)
        if last is None:
            return


def rows_and_columns(keys: Keys) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """The two halves of the keys, without copying."""
    halves = keys.view("<u4").reshape(-1, 2)
    return halves[:, 1], halves[:, 0]


def _encode(rows: NDArray[Any], columns: NDArray[Any], out: Keys) -> None:
    halves = out.view("<u4").reshape(-1, 2)
    halves[:, 1], halves[:, 0] = rows, columns


def _check_ends(chunk: NDArray[Any], num_nodes: int) -> None:
    sound = chunk.ndim == 2 and chunk.shape[0] == 2 and chunk.dtype.kind in "iu"
    if sound and (not chunk.size or (int(chunk.min()) >= 0 and int(chunk.max()) < num_nodes)):
        return
    raise InputError(
        "edges",
        rule=f"must be two rows of node numbers, 0 to {num_nodes - 1}",
        got="another shape or type, or an end that is not a node",
        fix="Add the missing nodes to the node table, or drop their edges.",
    )


def _finish_run(keys: Keys, folder: Path, progress: SortProgress, *, given: int, loops: int) -> None:
    keys.sort()
    rows, columns = rows_and_columns(keys)
    keys = _distinct(keys, rows != columns)
    with run_path(folder, len(progress.runs)).open("wb", buffering=0) as file:
        write_all(file, keys)
        os.fsync(file.fileno())
    progress.runs.append(int(keys.size))
    progress.given += given
    progress.self_loops += loops
    progress.save(folder)


def write_all(file: Any, array: NDArray[Any]) -> None:
    """Every byte: a raw file may take fewer at a time."""
    view = as_bytes(np.ascontiguousarray(array))
    done = 0
    while done < len(view):
        done += file.write(view[done:])


def _next_keys(folder: Path, run: int, start: int, count: int) -> Keys:
    return np.fromfile(run_path(folder, run), dtype=KEY, count=count, offset=start * KEY.itemsize)


def _distinct(ordered: Keys, wanted: NDArray[np.bool_] | None = None) -> Keys:
    """Each key once, of all or of those that are wanted."""
    fresh = np.ones(ordered.size, dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=fresh[1:])
    if wanted is not None:
        fresh &= wanted
    return ordered if bool(fresh.all()) else ordered[fresh]
