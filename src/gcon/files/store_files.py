"""Edge stores as edges files: told by the ending `.csr` (`SUFFIX`), and opened only with the node ids that they were made for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from gcon.edges.store_format import damaged, new_checksum
from gcon.edges.stored import BUFFER_BYTES, StoredEdges
from gcon.privacy.boundary import Private

if TYPE_CHECKING:  # a store of numbered nodes needs nothing that reads tables
    from gcon.files.node_ids import NodeIds

AT_ONCE = 2**20


def ids_fingerprint(ids: NodeIds) -> str:
    """A checksum of the public ids in their order; numbers and strings never share one."""
    if ids.column.dtype.is_integer():
        return numbers_fingerprint(ids.column.to_numpy())
    checksum = new_checksum()
    checksum.update(b"strings")
    for start in range(0, len(ids), AT_ONCE):
        words = [word.encode() for word in ids.column[start : start + AT_ONCE].to_list()]
        checksum.update(np.array([len(word) for word in words], dtype="<i8"))
        checksum.update(b"".join(words))
    return str(checksum.hexdigest())


def numbers_fingerprint(numbers: NDArray[Any]) -> str:
    """The same of ids that are whole numbers: no table is needed for it, nor what reads tables."""
    checksum = new_checksum()
    checksum.update(b"numbers")
    checksum.update(np.ascontiguousarray(numbers, dtype="<i8"))
    return str(checksum.hexdigest())


def open_store(path: Path, *, ids: NodeIds | None, buffer_bytes: int = BUFFER_BYTES) -> StoredEdges:
    """Open a store (bare and private!) for the nodes that it was made for; without ids, for any.

    Raises:
        InputError: damaged, or made for other nodes.
    """
    store = StoredEdges(path, buffer_bytes)
    fix = "Use the nodes file that was written beside it, or convert the edges again."
    if ids is not None and store.num_nodes != len(ids):
        raise damaged(path, "must be made for the nodes of the nodes file", "another number of nodes", fix)
    if ids is not None and store.header.node_ids != ids_fingerprint(ids):
        raise damaged(path, "must be made for the nodes of the nodes file", "other ids, or another order of them", fix)
    return store


def private_store(
    path: Path, *, ids: NodeIds, buffer_bytes: int = BUFFER_BYTES, verify: bool = False
) -> Private[StoredEdges]:
    """Open private edges that stay on disk.

    Args:
        path: the store.
        ids: of the nodes that it must have been made for.
        buffer_bytes: for reading it.
        verify: read all of it now, for users that never make a whole pass.

    Privacy:
        The result is wrapped. Errors are fixed words.
    """
    store = open_store(path, ids=ids, buffer_bytes=buffer_bytes)
    if verify:
        store.verify()
    return Private(store, "stored edges of a simple undirected graph")


def store_chunks(path: Path, *, ids: NodeIds | None) -> Iterator[NDArray[Any]]:
    """Every edge once, as 2 x k rows of the nodes file (bare and private!)."""
    for block in open_store(path, ids=ids).blocks(torch.device("cpu")):
        rows = np.repeat(np.arange(block.nodes.start, block.nodes.stop), block.degrees.numpy())
        columns = block.columns.numpy()
        above = rows < columns
        yield np.stack([rows[above], columns[above]])
