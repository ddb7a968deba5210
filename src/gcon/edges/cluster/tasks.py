"""What the workers do with a part of the edges: read it from the store by themselves, work on it, return what came out.

No exception leaves a task: what it says may depend on edges, and Dask would log it and send it around. A task that fails returns
a fixed word.
"""

from __future__ import annotations

from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import distributed
import numpy as np
import torch

from gcon.edges.cluster.desk import Desk, Needs, Pass, desk_of, put_up, row_blocks
from gcon.edges.cluster.packing import LostError, Package
from gcon.edges.cluster.placed import Partition
from gcon.edges.first_pass import SimpleGraphCheck
from gcon.edges.store_format import COLUMNS, HEADER, damaged, file_checksum, new_checksum
from gcon.edges.stored import StoredEdges
from gcon.errors import InputError
from gcon.version import __version__

Failure = Literal["failed", "lost", "no certificate"]
FAILED: Failure = "failed"
LOST: Failure = "lost"  # another worker: it may work with others
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
    prepared: dict[tuple[Partition, int], tuple[int, Needs]]  # what was found in it, for one partition


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
    return Store(edges, file_checksum(path / HEADER), {})


def check_store(path: Path) -> tuple[str, str, str]:
    """Whether this worker can read the store: words of a problem or nothing, the version of gcon, and which store it is."""
    try:
        return "", __version__, store_at(path).identity
    except InputError as error:
        return f"{error.rule}; got {error.got}", __version__, ""
    except Exception:
        return "must be readable; got an error", __version__, ""


def open_desk(order: Package) -> Desk | Failure:
    """Make room for a computation on this worker. The desk itself is the result, which Dask keeps as long as it is wanted."""
    try:
        run, part, addresses, num_nodes, path = order.unpack()
        partition = Partition(num_nodes, len(addresses))
        desk = Desk(run, part, addresses, partition, path)
        put_up(distributed.get_worker(), desk)
        return desk
    except Exception:
        return FAILED


def at_desk(order: Package) -> None:
    """Do something at the desk of a run, and leave there what came of it: a result, or a fixed word.

    Args:
        order: (run, name of the outcome, (`prepare` or `pass_over`, what it is given)).
    """
    try:
        run, name, (function, given) = order.unpack()
        desk = desk_of(run)
    except Exception:
        return  # nobody finds an outcome: the run is lost
    outcome: Any = FAILED
    try:
        outcome = function(desk, given)
    except LostError:
        outcome = LOST
    except Exception:
        outcome = FAILED
    desk.outcomes[name] = outcome


def prepare(desk: Desk, identity: str) -> int:
    """Check a part of the store, find out which rows of others are needed here, and tell them.

    A worker does this once for a store and a partition, and remembers it as long as the store stays as it is.

    Args:
        desk: whose part.
        identity: checksum of the store's header, the same on all workers.

    Returns:
        What this part adds to the sum that is 0 if every edge stands in the rows of both its ends (`gcon.edges.first_pass`).

    Privacy:
        The result is as private as the edges.
    """
    store, key = store_at(desk.path), (desk.partition, desk.part)
    if store.identity != identity or store.edges.num_nodes != desk.partition.num_nodes:  # kernels do not look
        raise damaged(desk.path, "must be the same on all workers, and as it was opened", "another one")
    found = store.prepared.get(key)  # held here: another computation on this worker may put its own in its place
    if found is None:
        chunks, parts = len(store.edges.header.columns), desk.partition.parts
        balance = chunk_balance(store.edges, desk.part * chunks // parts, (desk.part + 1) * chunks // parts)
        store.prepared.clear()  # of another number of workers
        found = store.prepared[key] = balance, needed_rows(store.edges, desk.partition, desk.part)
    balance, needs = found
    desk.share_needs(distributed.get_worker(), needs)
    return balance


def pass_over(desk: Desk, order: Pass) -> None:
    """One pass over the rows of this worker.

    Privacy:
        What comes out stays on the desk, as private as the edges.
    """
    worker = distributed.get_worker()
    key = worker.get_current_task()
    desk.work(worker, order, store_at(desk.path).edges, partial(is_wanted, worker, key))


def is_wanted(worker: Any, key: Any) -> bool:
    """Whether the task with this key is still wanted: a client that was interrupted or lost wants nothing."""
    task = worker.state.tasks.get(key)
    return task is not None and task.state in ("executing", "long-running", "resumed")


def needed_rows(edges: StoredEdges, partition: Partition, part: int) -> Needs:
    """The neighbours of one's own nodes that others have, by their owners."""
    seen = torch.zeros(edges.num_nodes, dtype=torch.bool)
    for chunk in partition.chunks(part):
        for nodes in row_blocks(edges, chunk.nodes):
            seen[edges.block(nodes).columns.long()] = True
    for chunk in partition.chunks(part):
        seen[chunk.nodes] = False
    others = seen.nonzero()[:, 0]
    narrow, owners = torch.int32 if edges.num_nodes < 2**31 else torch.int64, partition.owners(others)
    return tuple(others[owners == owner].to(narrow) for owner in range(partition.parts))


def chunk_balance(edges: StoredEdges, first: int, stop: int) -> int:
    """Compare some chunks of the columns with their checksums, and look whether their rows rise and have no loops.

    Returns:
        What they add to the sum that is 0 if every edge stands in the rows of both its ends.

    Raises:
        InputError: they are damaged, or the graph is not simple.
    """
    header, graph = edges.header, SimpleGraphCheck(edges.row_pointers.numpy())
    kind, sound = header.column_type, True
    place = first * header.chunk_bytes // kind.itemsize
    with (edges.path / COLUMNS).open("rb") as file:
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
    if not (sound and graph.simple):
        raise damaged(edges.path, f"{COLUMNS} must be as it was written, with rising rows", "others")
    return graph.balance
