"""Edges of any number -> an edge store (`gcon.edges.store_format`), with the memory that the user allows.

The same graph as `gcon.edges.edge_list` makes in memory: symmetrised, without self-loops, without duplicates, neighbours rising.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from gcon.edges.store_format import (
    CHUNK_BYTES,
    COLUMNS,
    HEADER,
    POINTERS,
    ChunkChecksums,
    StoreHeader,
    as_bytes,
    column_type,
    file_checksum,
    render_header,
)
from gcon.errors import InputError, check_number
from gcon.files.external_sort import KEY, MOST_NODES, merged, rows_and_columns, write_all, write_runs
from gcon.files.node_ids import NodeIds
from gcon.files.sort_progress import SortProgress, Step, no_step, workplace
from gcon.files.store_files import ids_fingerprint

MEMORY_BYTES = 2**30
CHECKPOINT_BYTES = 2**28  # of columns: how much a kill can cost in the merge
SORTING, MERGING = "sort edges", "merge edges"
Chunks = Iterable[NDArray[Any]]


def write_edge_store(
    chunks: Callable[[], Chunks],
    target: Path,
    *,
    num_nodes: int,
    ids: NodeIds | None = None,
    memory_bytes: int = MEMORY_BYTES,
    identity: Mapping[str, object] | None = None,
    step: Step = no_step,
    notice: Callable[[str], None] = lambda words: None,
) -> None:
    """Write a store from chunks of edges, whole or not at all; after a kill the same call goes on.

    Args:
        chunks: gives the edges, 2 x k integers in [0, num_nodes) at a time, the same ones in the same order at every call.
        target: the folder to make, `NAME.csr`; nothing may be there yet. Readable by its owner only.
        num_nodes: the number of nodes, at most 2^32.
        ids: the public node ids, if they are others than 0, 1, 2, ...
        memory_bytes: for sorting, at least 4096.
        identity: what tells this input from another one, as JSON has it; an unfinished store of another one is started over.
        step: told what is being done, and which share of it is.
        notice: told in words whether an unfinished store was found.

    Raises:
        InputError: the edges or the settings are wrong; nothing stays.
        OSError: what the system refuses, a full disk for example; what is done stays in a hidden folder beside the target.

    Privacy:
        No release: the owner's own edges, from one place into another. Nothing about them is returned.
    """
    if target.exists():
        rule, fix = "may not exist yet", "Choose another name, or move it away."
        raise InputError("target", rule=rule, got=target.name, fix=fix)
    with workplace(work_folder(target), {**(identity or {}), "num_nodes": num_nodes}) as (progress, words):
        notice(words or "")
        folder = work_folder(target)
        build_store(chunks, folder, progress, num_nodes=num_nodes, ids=ids, memory_bytes=memory_bytes, step=step)
        set_permissions(folder / "store", 0o600)
        (folder / "store").rename(target)


def set_permissions(store: Path, mode: int) -> None:
    """Those of a file for all files of a store; who may read them may enter its folder."""
    for name in (HEADER, POINTERS, COLUMNS):
        (store / name).chmod(mode)
    store.chmod(mode | (mode & 0o444) >> 2)


def work_folder(target: Path) -> Path:
    """Where a store is made before it has its name."""
    return target.with_name(f".{target.name}.unfinished")


def build_store(
    chunks: Callable[[], Chunks],
    folder: Path,
    progress: SortProgress,
    *,
    num_nodes: int,
    ids: NodeIds | None = None,
    memory_bytes: int = MEMORY_BYTES,
    expected: int | None = None,
    step: Step = no_step,
) -> Path:
    """The finished store, as the folder `store` in a workplace; `expected` is about how many edges will be given.

    Args: else those of `write_edge_store`.
    """
    check_memory(memory_bytes)
    if num_nodes > MOST_NODES:
        raise InputError(
            "num_nodes", rule="must be at most 2^32", got=num_nodes, fix="Larger graphs are not supported."
        )
    check_space(folder, progress, num_nodes=num_nodes, edges=expected)
    if not progress.merging:
        step(SORTING, 0.0)
        for read in write_runs(chunks(), folder, progress, num_nodes=num_nodes, memory_bytes=memory_bytes):
            step(SORTING, min(0.99, read / expected) if expected else 0.0)
        step(SORTING, 1.0)
        check_space(folder, progress, num_nodes=num_nodes, edges=None)
    store = folder / "store"
    store.mkdir(mode=0o700, exist_ok=True)
    columns = _merge(folder, progress, num_nodes=num_nodes, memory_bytes=memory_bytes, step=step)
    kept = progress.entries // 2
    header = StoreHeader(
        num_nodes=num_nodes,
        num_entries=progress.entries,
        node_ids=ids_fingerprint(ids if ids is not None else NodeIds(numbers=np.arange(num_nodes))),
        cleaned={
            "given": progress.given,
            "self_loops": progress.self_loops,
            "duplicates": progress.given - progress.self_loops - kept,
            "kept": kept,
        },
        row_pointers=file_checksum(store / POINTERS),
        chunk_bytes=CHUNK_BYTES,
        columns=columns,
    )
    with (store / HEADER).open("w", encoding="utf-8") as file:
        file.write(render_header(header))
        file.flush()
        os.fsync(file.fileno())
    return store


def check_memory(memory_bytes: int) -> None:
    """Raise `InputError` unless something can be sorted in so much memory."""
    rule = "must be at least 4096 bytes"
    check_number(
        "memory", memory_bytes, allowed=lambda value: value >= 4096, rule=rule, fix="1 GiB is usual.", whole=True
    )


def check_space(folder: Path, progress: SortProgress, *, num_nodes: int, edges: int | None) -> None:
    """Refuse before the disk is full: runs (if it is known about how many edges come), columns and row pointers.

    Raises:
        InputError: without a number, because all of them count edges.
        OSError: there are sorted runs already, which stay.
    """
    a_column = column_type(num_nodes).itemsize
    if progress.merging or edges is None:
        needed = (sum(progress.runs) - progress.entries) * a_column
    else:
        needed = 2 * max(0, edges - progress.given) * KEY.itemsize + 2 * edges * a_column
    if needed + 8 * (num_nodes + 1) > shutil.disk_usage(folder).free:
        if progress.runs:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        raise InputError(
            "out",
            rule=f"needs free space: about {2 * (KEY.itemsize + a_column)} bytes for every edge in the file, 8 for every node",
            got="less than that",
            fix="Make room, or choose a folder on another disk.",
        )


def _merge(folder: Path, progress: SortProgress, *, num_nodes: int, memory_bytes: int, step: Step) -> tuple[str, ...]:
    """Write columns and row pointers from where the progress says; gives the checksums of the columns."""
    store, total = folder / "store", max(1, sum(progress.runs))
    with _opened(store / POINTERS, 8 * progress.pointers) as pointers:
        kind = column_type(num_nodes)
        with _opened(store / COLUMNS, progress.entries * kind.itemsize) as columns:
            checksums = _checksums_so_far(columns, progress)
            since = 0
            for keys in merged(folder, progress, memory_bytes=memory_bytes):
                rows, ends = rows_and_columns(keys)
                part = ends.astype(kind)
                write_all(columns, part)
                checksums.update(as_bytes(part))
                _write_pointers(pointers, progress, rows)
                progress.entries += int(keys.size)
                since += part.nbytes
                step(MERGING, sum(progress.taken) / total)
                if since >= CHECKPOINT_BYTES:
                    _checkpoint(folder, progress, checksums, pointers, columns)
                    since = 0
            rest = np.full(num_nodes + 1 - progress.pointers, progress.entries, dtype="<i8")
            write_all(pointers, rest)
            progress.pointers = num_nodes + 1
            _checkpoint(folder, progress, checksums, pointers, columns)
            step(MERGING, 1.0)
            return checksums.all()


def _write_pointers(file: BinaryIO, progress: SortProgress, rows: NDArray[np.uint32]) -> None:
    """The starts of all rows up to the last of these, whose end is not known yet."""
    wanted = np.arange(progress.pointers, int(rows[-1]) + 1, dtype=np.int64).astype(np.uint32)
    starts = np.searchsorted(rows, wanted, side="left").astype("<i8") + progress.entries
    write_all(file, starts)
    progress.pointers += int(wanted.size)


def _checkpoint(
    folder: Path, progress: SortProgress, checksums: ChunkChecksums, pointers: BinaryIO, columns: BinaryIO
) -> None:
    for file in (pointers, columns):
        os.fsync(file.fileno())
    progress.columns = list(checksums.finished)
    progress.save(folder)


def _opened(path: Path, size: int) -> BinaryIO:
    """The file, cut to what is known to be good, at its end."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    file: BinaryIO = os.fdopen(handle, "r+b", buffering=0)  # raw
    if file.seek(0, os.SEEK_END) < size:
        file.close()
        raise InputError("out", rule="must keep what was written", got="a file that became shorter", fix="Start again.")
    file.truncate(size)
    file.seek(size)
    return file


def _checksums_so_far(columns: BinaryIO, progress: SortProgress) -> ChunkChecksums:
    """Those of the finished chunks, and of what is there of the next one."""
    checksums = ChunkChecksums(CHUNK_BYTES, tuple(progress.columns))
    columns.seek(len(progress.columns) * CHUNK_BYTES)
    while piece := columns.read(2**22):
        checksums.update(memoryview(piece))
    return checksums
