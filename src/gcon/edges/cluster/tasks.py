"""What the workers do with a part of the edges: read it from the store by themselves, work on it, return what came out.

No exception leaves a task: what it says may depend on edges, and Dask would log it and send it around. A task that fails returns
a fixed word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from gcon.edges.cluster.packing import Package, pack
from gcon.edges.first_pass import SimpleGraphCheck
from gcon.edges.source import PART_NODES, RowBlock
from gcon.edges.store_format import COLUMNS, HEADER, file_checksum, new_checksum
from gcon.edges.stored import StoredEdges
from gcon.errors import InputError
from gcon.version import __version__

Failure = Literal["failed", "no certificate"]
FAILED: Failure = "failed"
NO_CERTIFICATE: Failure = "no certificate"
_PIECE_BYTES = 2**22
_Stamp = tuple[int, int, int]


class Store(NamedTuple):
    """An open store, and the checksum of its header, which no other store has.

    Privacy:
        As private as the edges.
    """

    edges: StoredEdges
    identity: str


def store_at(path: Path) -> Store:
    """The store in a folder: opened once per process, and again if it was replaced."""
    try:
        found = (path / HEADER).stat()
    except OSError:
        return _open(path)  # which says what is wrong
    return _opened(path, (found.st_mtime_ns, found.st_size, found.st_ino))


@lru_cache(maxsize=1)
def _opened(path: Path, stamp: _Stamp) -> Store:
    return _open(path)


def _open(path: Path) -> Store:
    edges = StoredEdges(path)
    return Store(edges, file_checksum(path / HEADER))


def check_store(path: Path) -> tuple[str, str, str]:
    """Whether this worker can read the store: words of a problem or nothing, the version of gcon, and which store it is."""
    try:
        return "", __version__, store_at(path).identity
    except InputError as error:
        return f"{error.rule}; got {error.got}", __version__, ""
    except Exception:
        return "must be readable; got an error", __version__, ""


class BlockWork(NamedTuple):
    """What to do with every block: a function of a block and of shared matrices. Picklable."""

    path: Path
    identity: str
    work: Callable[[RowBlock, Sequence[Tensor]], Any]


def work_on_block(rows: Package, *, order: Package, shared: Sequence[Package]) -> Package | Failure:
    """Read the neighbours of some nodes, and work on them.

    Args:
        rows: (first, one after the last) of the nodes.
        order: a `BlockWork`.
        shared: the matrices that it reads.

    Privacy:
        The result is as private as the edges.
    """
    try:
        first, stop = rows.unpack()
        path, identity, work = order.unpack()
        store = store_at(path)
        if store.identity != identity:
            return FAILED
        return pack(work(store.edges.block(slice(first, stop)), [matrix.unpack() for matrix in shared]))
    except Exception:
        return FAILED


def mapped(block: RowBlock, shared: Sequence[Tensor], *, work: Callable[..., Any]) -> list[Any]:
    """What `Edges.map_blocks` yields of a block: in parts whose results fit into little memory."""
    return [work(part, *shared) for part in block.parts(PART_NODES["cpu"])]


def filled(
    block: RowBlock, shared: Sequence[Tensor], *, work: Callable[..., None], width: Sequence[int], dtype: torch.dtype
) -> Tensor:
    """The rows of a block that `Edges.fill` writes."""
    rows = torch.empty(len(block.row_pointers) - 1, *width, dtype=dtype)
    work(block, *shared, out=rows)
    return rows


def check_chunks(chunks: Package, *, order: Package, shared: Sequence[Package] = ()) -> Package | Failure:
    """Compare some chunks of the columns with their checksums, and look whether their rows rise and have no loops.

    Returns:
        What they add to the sum that is 0 if every edge stands in the rows of both its ends (`gcon.edges.first_pass`).

    Privacy:
        The result is as private as the edges.
    """
    try:
        first, stop = chunks.unpack()
        path, identity, _ = order.unpack()
        store = store_at(path)
        header, graph = store.edges.header, SimpleGraphCheck(store.edges.row_pointers.numpy())
        kind, sound = header.column_type, store.identity == identity
        place = first * header.chunk_bytes // kind.itemsize
        with (path / COLUMNS).open("rb") as file:
            if place:
                file.seek((place - 1) * kind.itemsize)
                graph.goes_on_after(place - 1, int(np.frombuffer(file.read(kind.itemsize), kind)[0]))
            for expected in header.columns[first:stop]:
                checksum, left = new_checksum(), header.chunk_bytes
                while left and (piece := file.read(min(left, _PIECE_BYTES))):
                    checksum.update(piece)
                    left -= len(piece)
                    columns = np.frombuffer(piece, kind)
                    graph.update(place, columns)
                    place += len(columns)
                sound = sound and checksum.hexdigest() == expected
        return pack(graph.balance) if sound and graph.simple else FAILED
    except Exception:
        return FAILED
