"""Edges of any number -> an edge store (`gcon.edges.store_format`), with the memory that the user allows.

The same graph as `gcon.edges.edge_list` makes in memory: symmetrised, without self-loops, without duplicates, neighbours rising.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from gcon.files.external_sort import KEY, MOST_NODES, EdgeSorter, rows_and_columns
from gcon.files.store_files import ids_fingerprint, numbers_fingerprint
from gcon.privacy.boundary import without_frames
from gcon.writing import OWNER_ONLY, work_folder

if TYPE_CHECKING:
    from gcon.files.node_ids import NodeIds

MEMORY_BYTES = 2**30
SORTING, MERGING = "sort edges", "merge edges"
Chunks = Iterable[NDArray[Any]]
Step = Callable[[str, float], None]  # what is being done, and the share of it that is


def no_step(stage: str, share: float) -> None:
    """For callers that show no progress."""


@without_frames
def write_edge_store(
    chunks: Chunks,
    target: Path,
    *,
    num_nodes: int,
    ids: NodeIds | None = None,
    memory_bytes: int = MEMORY_BYTES,
    expected: int | None = None,
    step: Step = no_step,
) -> None:
    """Write a store from chunks of edges, whole or not at all.

    The work is done in a hidden folder `.NAME.unfinished` beside the target, readable by its owner only. A kill leaves it there,
    and the next call for the same target removes it and starts again.

    Args:
        chunks: the edges, 2 x k integers in [0, num_nodes) at a time.
        target: the folder to make, `NAME.csr`; nothing may be there yet. Readable by its owner only.
        num_nodes: the number of nodes, at most 2^32.
        ids: the public node ids, if they are others than 0, 1, 2, ...
        memory_bytes: for sorting, at least 4096.
        expected: about how many edges will come, if that is known: for progress, and to refuse before the disk is full.
        step: told what is being done, and which share of it is.

    Raises:
        InputError: the edges or the settings are wrong, or there is too little space; nothing stays.
        OSError: what the system refuses, a full disk for example; nothing stays.

    Privacy:
        No release: the owner's own edges, from one place into another. Nothing about them is returned.
    """
    if target.exists():
        rule, fix = "may not exist yet", "Choose another name, or move it away."
        raise InputError("target", rule=rule, got=target.name, fix=fix)
    with work_folder(target) as folder:
        store = folder / target.name
        build_store(
            chunks, store, num_nodes=num_nodes, ids=ids, memory_bytes=memory_bytes, expected=expected, step=step
        )
        set_permissions(store, OWNER_ONLY)
        store.rename(target)


def set_permissions(store: Path, mode: int) -> None:
    """Those of a file for all files of a store; people who may read them may enter its folder."""
    for name in (HEADER, POINTERS, COLUMNS):
        (store / name).chmod(mode)
    store.chmod(mode | (mode & 0o444) >> 2)


@without_frames
def build_store(
    chunks: Chunks,
    store: Path,
    *,
    num_nodes: int,
    ids: NodeIds | None,
    memory_bytes: int,
    expected: int | None,
    step: Step,
) -> None:
    """Write the files of a store into a new folder, with sorted runs beside it, inside a work folder.

    Args: those of `write_edge_store`.
    """
    check_memory(memory_bytes)
    if num_nodes > MOST_NODES:
        fix = "Larger graphs are not supported."
        raise InputError("num_nodes", rule="must be at most 2^32", got=num_nodes, fix=fix)
    a_column = column_type(num_nodes).itemsize
    _check_space(store.parent, 2 * (expected or 0) * (KEY.itemsize + a_column), num_nodes)
    step(SORTING, 0.0)
    sorter = EdgeSorter(store.parent, num_nodes=num_nodes, memory_bytes=memory_bytes)
    for chunk in chunks:
        sorter.add(chunk)
        step(SORTING, min(0.99, sorter.given / expected) if expected else 0.0)
    _check_space(store.parent, sorter.finish() * a_column, num_nodes)
    step(SORTING, 1.0)
    store.mkdir(mode=0o700)
    entries, checksums = _merge(sorter, store, num_nodes=num_nodes, step=step)
    header = StoreHeader(
        num_nodes=num_nodes,
        num_entries=entries,
        node_ids=numbers_fingerprint(np.arange(num_nodes)) if ids is None else ids_fingerprint(ids),
        cleaned={
            "given": sorter.given,
            "self_loops": sorter.self_loops,
            "duplicates": sorter.given - sorter.self_loops - entries // 2,
            "kept": entries // 2,
        },
        row_pointers=file_checksum(store / POINTERS),
        chunk_bytes=CHUNK_BYTES,
        columns=checksums,
    )
    with (store / HEADER).open("xb") as file:
        file.write(render_header(header).encode())
        file.flush()
        os.fsync(file.fileno())


def check_memory(memory_bytes: int) -> None:
    """Raise `InputError` unless something can be sorted in so much memory."""
    rule, fix = "must be at least 4096 bytes", "1 GiB is usual."
    check_number("memory", memory_bytes, allowed=lambda value: value >= 4096, rule=rule, fix=fix, whole=True)


def _check_space(folder: Path, needed: int, num_nodes: int) -> None:
    """Refuse before the disk is full; without the number of bytes, because it counts edges."""
    if needed + 8 * (num_nodes + 1) > shutil.disk_usage(folder).free:
        an_edge = 2 * (KEY.itemsize + column_type(num_nodes).itemsize)
        raise InputError(
            "out",
            rule=f"needs free space: about {an_edge} bytes for every edge in the file, 8 for every node",
            got="less than that",
            fix="Make room, or choose a folder on another disk.",
        )


def _merge(sorter: EdgeSorter, store: Path, *, num_nodes: int, step: Step) -> tuple[int, tuple[str, ...]]:
    """Write columns and row pointers; returns the number of entries and the checksums of the columns."""
    kind, checksums = column_type(num_nodes), ChunkChecksums(CHUNK_BYTES)
    entries = begun = 0  # begun: rows whose start is written
    with (store / POINTERS).open("xb") as pointers, (store / COLUMNS).open("xb") as columns:
        for keys, left in sorter.merged():
            rows, ends = rows_and_columns(keys)
            part = ends.astype(kind)
            columns.write(as_bytes(part))
            checksums.update(as_bytes(part))
            # The starts of all rows up to the last of these, whose end is not known yet.
            wanted = np.arange(begun, int(rows[-1]) + 1, dtype=np.int64).astype(np.uint32)
            pointers.write(as_bytes(np.searchsorted(rows, wanted, side="left").astype("<i8") + entries))
            begun += int(wanted.size)
            entries += int(keys.size)
            step(MERGING, entries / (entries + left))
        pointers.write(as_bytes(np.full(num_nodes + 1 - begun, entries, dtype="<i8")))
        for file in (pointers, columns):
            file.flush()
            os.fsync(file.fileno())
    step(MERGING, 1.0)
    return entries, checksums.all()
