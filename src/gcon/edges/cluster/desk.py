"""What a worker has on its desk during a computation: its rows of all matrices, and what it makes of them.

A desk is the result of a task, so that Dask lets go of it, with all that is on it, when a computation ends or its client is lost.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, final
from weakref import WeakValueDictionary

import torch
from distributed.protocol.serialize import Serialize
from distributed.utils import sync
from torch import Tensor

from gcon.edges.cluster.nearby import Lent, Segment, borrow
from gcon.edges.cluster.packing import LostError, Package, ask, pack, pieces, tensor_of
from gcon.edges.cluster.placed import Matrix, Partition
from gcon.edges.source import PART_NODES, block_slices
from gcon.edges.stored import StoredEdges
from gcon.errors import BoundaryError

BLOCK_ENTRIES = 2**24  # neighbours that are read at a time: 64 MiB
_ANSWERS = frozenset(
    {"ready", "keep", "keep_lent", "lent", "rows", "ends", "want", "wanted", "result", "outcome", "moved"}
)


class Pass(NamedTuple):
    """What all workers are told to do with their rows. Picklable.

    Attributes:
        work: of a block and the inputs (with `out`, if it writes rows); of the input alone, if it reads no edges.
        inputs: matrices of the workers, or small tensors as they are.
        exchanged: whether the rows of neighbours are needed, input by input; else a block's own rows are all that is there.
        result: the name of what comes out.
        width: of the rows that are written; None: whatever work returns is kept, block by block.
        dtype: of these rows.
        reads_edges: whether there is a block.
        forget: names of matrices that nobody needs any more.
    """

    work: Callable[..., Any]
    inputs: tuple[Matrix | Tensor, ...]
    exchanged: tuple[bool, ...]
    result: str
    width: tuple[int, ...] | None
    dtype: torch.dtype
    reads_edges: bool
    forget: tuple[str, ...]


Needs = tuple[Tensor, ...]
"""Which nodes of other workers stand beside one's own, worker by worker, rising: as private as the edges.

It stays on this worker, and every other one learns which of its own rows are asked for.
"""


@final
class Desk:
    """One worker's part of a computation.

    Args:
        run: its random name.
        part: which part of the partition this worker has.
        addresses: of the workers, part by part.
        partition: whose rows are whose.
        path: of the store.

    Privacy:
        As private as the edges. It cannot be pickled.
    """

    def __init__(self, run: str, part: int, addresses: tuple[str, ...], partition: Partition, path: Path) -> None:
        self.run, self.part, self.addresses, self.partition, self.path = run, part, addresses, partition, path
        self.outcomes: dict[str, Any] = {}  # of tasks, by their names
        self._moved = 0
        self._sign = Segment(0)  # who can open it is near
        self._near: frozenset[int] = frozenset()  # parts whose workers are
        self._kept: dict[str, Tensor] = {}
        self._segments: dict[str, Segment] = {}  # in which these lie
        self._lent: list[Package] = []  # results of the last pass
        self._copying = threading.Lock()
        self._whole: dict[str, Tensor] = {}  # matrices of somebody near, all rows of them
        self._results: dict[tuple[str, int], Any] = {}
        self._asked: dict[int, Tensor] = {}
        # Inputs of the last pass, by their places, and whether they hold the rows of others.
        self._tables: dict[int, tuple[Matrix, bool, Tensor]] = {}
        self._needs: Needs | None = None

    def __reduce__(self) -> NoReturn:
        raise BoundaryError("What a worker has on its desk stays there.")

    # What others may ask.

    def ready(self) -> Lent | None:
        """It is there; and who is near can open this."""
        return self._sign.lent

    def keep(self, name: str, first: int, rows: Tensor) -> None:
        """Take in some of one's own rows of a matrix."""
        if name not in self._kept:
            self._room(name, tuple(rows.shape[1:]), rows.dtype)
        self._kept[name][first : first + len(rows)] = rows

    def keep_lent(self, name: str, lent: Lent, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        """Take in a matrix that somebody near has, with the rows of all nodes: it stays where it is, and is only read."""
        self._whole[name] = borrowed(lent, shape, dtype)

    def lent(self, name: str) -> tuple[Lent | None, tuple[int, ...], torch.dtype]:
        """Where somebody near finds one's own rows of a matrix."""
        kept = self._own(name)
        return self._segments[name].lent, tuple(kept.shape), kept.dtype

    def rows(self, matrix: Matrix, places: slice | Tensor) -> Tensor:
        """Some of one's own rows, by their places."""
        return self._stored(matrix, places).to(matrix.dtype)

    def ends(self, matrix: Matrix) -> tuple[Tensor, Tensor] | None:
        """The largest and the smallest entry of every column; None without a row."""
        own = self.rows(matrix, slice(None))
        if not len(own):
            return None
        least, most = torch.aminmax(own, dim=0)
        return most, least

    def want(self, part: int, places: Tensor) -> None:
        """Remember which rows another worker needs."""
        self._asked[part] = places

    def wanted(self, matrix: Matrix, part: int, which: slice) -> Tensor:
        """Some of the rows that another worker needs."""
        return self._stored(matrix, self._asked[part][which].long())

    def result(self, name: str, chunk: int, near: bool) -> Package:
        """What came out for a chunk, handed out once."""
        package = pack(self._results.pop((name, chunk)))
        if near:
            package = package.lend()
            self._lent.append(package)
        return package

    def outcome(self, name: str) -> Any:
        """What a task has left here, handed out once."""
        return self.outcomes.pop(name)

    def moved(self) -> int:
        """How many bytes of rows came here from other workers: for benchmarks, as private as the edges."""
        return self._moved

    # What it does.

    def share_needs(self, worker: Any, needs: Needs) -> None:
        """Tell all others which of their rows are needed here; those near need not know, because their rows are read in place."""

        async def tell(address: str, nodes: Tensor) -> bool:
            near = borrow(await ask(worker.rpc, address, self.run, "ready")) is not None
            if len(nodes) and not near:
                places = self.partition.places(nodes).to(nodes.dtype)
                await ask(worker.rpc, address, self.run, "want", self.part, places)
            return near

        async def tell_all() -> list[int]:
            others = [part for part in range(len(needs)) if part != self.part]
            found = await asyncio.gather(*(tell(self.addresses[part], needs[part]) for part in others))
            return [part for part, near in zip(others, found, strict=True) if near]

        self._near, self._needs = frozenset(sync(worker.loop, tell_all)), needs

    def work(self, worker: Any, order: Pass, edges: StoredEdges, is_wanted: Callable[[], bool]) -> None:
        """One pass over one's own rows.

        Raises:
            LostError: another worker is gone, or nobody wants the result.
        """
        self._lent.clear()
        for name in order.forget:
            self._kept.pop(name, None)
            self._segments.pop(name, None)
            self._whole.pop(name, None)
        if not order.reads_edges:
            (matrix,) = order.inputs
            assert isinstance(matrix, Matrix)
            rows = order.work(self.rows(matrix, slice(None)).contiguous())
            self._room(order.result, tuple(rows.shape[1:]), rows.dtype).copy_(rows)
            return
        shared = self._inputs(worker, order)
        writes = order.width is not None
        out = torch.empty(0) if order.width is None else self._room(order.result, order.width, order.dtype)
        for number, chunk in enumerate(self.partition.chunks(self.part)):
            found: list[Any] = []
            for nodes in row_blocks(edges, chunk.nodes):
                if not is_wanted():
                    raise LostError
                block = edges.block(nodes)
                if writes:
                    first = chunk.rows.start + nodes.start - chunk.nodes.start
                    order.work(block, *shared, out=out[first : first + nodes.stop - nodes.start])
                else:
                    found += [order.work(part, *shared) for part in block.parts(PART_NODES["cpu"])]
            if not writes:
                self._results[order.result, number] = found

    def _room(self, name: str, width: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """Rows to be written, in memory that others who are near can read."""
        shape = (self.partition.count(self.part), *width)
        self._segments[name] = Segment(math.prod(shape) * dtype.itemsize)
        self._kept[name] = tensor_of(self._segments[name].bytes, shape, dtype)
        return self._kept[name]

    def _stored(self, matrix: Matrix, which: slice | Tensor) -> Tensor:
        """As it is kept, which may be narrower than what it is read as."""
        kept = self._own(matrix.name)
        return kept[which, matrix.columns] if kept.dim() > 1 else kept[which]

    def _own(self, name: str) -> Tensor:
        """One's own rows of a matrix; those of one that somebody near has are copied when they are first asked for."""
        with self._copying:  # several threads answer
            if name not in self._kept:
                whole = self._whole[name]
                own = self._room(name, tuple(whole.shape[1:]), whole.dtype)
                for chunk in self.partition.chunks(self.part):
                    own[chunk.rows] = whole[chunk.nodes]
            return self._kept[name]

    def _inputs(self, worker: Any, order: Pass) -> list[Tensor]:
        """One row for every node, of which those are filled that the blocks of this worker read; the others take no memory."""
        before, self._tables, found = self._tables, {}, []
        for place, (given, exchanged) in enumerate(zip(order.inputs, order.exchanged, strict=True)):
            if not isinstance(given, Matrix):
                found.append(given)
                continue
            if given.name in self._whole:
                known = before.get(place)
                whole = known[2] if known and known[0] == given else read_as(self._whole[given.name], given)
                self._tables[place] = given, True, whole
                found.append(whole)
                continue
            shape = (self.partition.num_nodes, *self.rows(given, slice(0, 0)).shape[1:])
            stood, fetched, table = before.get(place, (None, False, None))
            if table is None or table.shape != shape or table.dtype != given.dtype:
                stood, table = None, torch.empty(shape, dtype=given.dtype)
            if stood != given:
                fetched = False
                for chunk in self.partition.chunks(self.part):
                    table[chunk.nodes] = self.rows(given, chunk.rows)
            if exchanged and not fetched:  # the same matrix may have stood here before without the rows of others
                sync(worker.loop, self._fetch, worker.rpc, given, table)
                fetched = True
            self._tables[place] = given, fetched, table
            found.append(table)
        return found

    async def _fetch(self, rpc: Any, matrix: Matrix, table: Tensor) -> None:
        """The rows of all nodes of others that are needed here, from all of them at the same time."""
        assert self._needs is not None
        row_bytes = table[:1].nbytes

        async def from_one(part: int, address: str, nodes: Tensor) -> None:
            if part in self._near:
                await asyncio.to_thread(
                    self._read_nearby, part, matrix, table, *await ask(rpc, address, self.run, "lent", matrix.name)
                )
                return
            for which in pieces(slice(0, len(nodes)), row_bytes):
                found = await ask(rpc, address, self.run, "wanted", matrix, self.part, which)
                self._moved += found.nbytes
                await asyncio.to_thread(table.index_copy_, 0, nodes[which].long(), found.to(table.dtype))

        parts = range(len(self.addresses))
        await asyncio.gather(*map(from_one, parts, self.addresses, self._needs))

    def _read_nearby(
        self, part: int, matrix: Matrix, table: Tensor, lent: Lent, shape: tuple[int, ...], dtype: torch.dtype
    ) -> None:
        """All rows of a worker on this machine: which of them are needed would take longer to look up."""
        rows = borrowed(lent, shape, dtype)
        rows = rows[:, matrix.columns] if rows.dim() > 1 else rows
        for chunk in self.partition.chunks(part):
            table[chunk.nodes] = rows[chunk.rows]


def read_as(whole: Tensor, matrix: Matrix) -> Tensor:
    """These columns in this type; without a copy where they are all there are, and have it."""
    return (whole[:, matrix.columns] if whole.dim() > 1 else whole).to(matrix.dtype).contiguous()


def borrowed(lent: Lent, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """A matrix of somebody near.

    Raises:
        LostError: that process has ended.
    """
    found = borrow(lent)
    if found is None:
        raise LostError
    return tensor_of(found, shape, dtype)


def row_blocks(edges: StoredEdges, nodes: slice) -> Iterator[slice]:
    """Consecutive nodes whose neighbours are read at a time."""
    for block in block_slices(edges.row_pointers[nodes.start : nodes.stop + 1], BLOCK_ENTRIES):
        yield slice(nodes.start + block.start, nodes.start + block.stop)


_desks: WeakValueDictionary[str, Desk] = WeakValueDictionary()


def desk_of(run: str) -> Desk:
    """The desk of a run.

    Raises:
        LostError: there is none (any more).
    """
    found = _desks.get(run)
    if found is None:
        raise LostError
    return found


def put_up(worker: Any, desk: Desk) -> None:
    _desks[desk.run] = desk
    worker.handlers["gcon_ask"] = answer


async def answer(order: Package) -> Any:
    """The answer to a question from another machine; None if there is none. What goes wrong is not told."""
    try:
        return Serialize(await asyncio.to_thread(_answer, order))  # type: ignore[no-untyped-call]
    except Exception:
        return None


def _answer(order: Package) -> Package:
    run, method, given = order.unpack()
    if method not in _ANSWERS:
        raise LostError
    return pack(getattr(desk_of(run), method)(*given))
