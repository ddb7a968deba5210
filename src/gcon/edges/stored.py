"""Edges in a folder on disk, larger than memory if need be, read block by block with a buffer of fixed size."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcon.edges.edge_list import EdgeHygiene, EdgeList
from gcon.edges.first_pass import SimpleGraphCheck
from gcon.edges.source import LocalEdges, RowBlock, block_slices
from gcon.edges.store_format import (
    COLUMNS,
    HEADER,
    POINTERS,
    WIDE,
    ChunkChecksums,
    as_bytes,
    damaged,
    new_checksum,
    read_header,
)
from gcon.errors import InputError, check_number

BUFFER_BYTES = 2**28
CPU = torch.device("cpu")


@final
class StoredEdges(LocalEdges):
    """A simple undirected graph in an edge store (`gcon.edges.store_format`). In memory: row pointers and a buffer.

    Opening checks the header, the sizes of the files and the row pointers with their checksum. The first pass over all blocks
    checks the columns against their checksums, and that they are a simple undirected graph: what it gave out may be used only if
    it came to its end. Every read checks that columns are nodes: no kernel reads out of bounds.

    Args:
        path: the folder, made by `gcon data convert --format csr`.
        buffer_bytes: for columns; two blocks share it, one is read ahead while the other is worked on. A node with more
            neighbours than fit is a block by itself, in memory of its own, which is let go with the next one: where such nodes
            follow each other, three of them at most. Blocks on a GPU are there besides.

    Raises:
        InputError: no store, another version, or damaged; in fixed words.

    Privacy:
        A bare one is public. Private edges exist only as `Private[StoredEdges]`. Pickling keeps path and buffer alone.
    """

    def __init__(self, path: str | Path, buffer_bytes: int = BUFFER_BYTES) -> None:
        rule, fix = "must be at least 64", "256 MiB is usual."
        check_number("buffer_bytes", buffer_bytes, allowed=lambda value: value >= 64, rule=rule, fix=fix, whole=True)
        self.path, self.buffer_bytes = Path(path).absolute(), int(buffer_bytes)
        self.header = read_header(self.path)
        self.num_nodes = self.header.num_nodes
        self._type = self.header.column_type
        self._identity = _identity(self.path)
        self.row_pointers = torch.from_numpy(self._pointers())
        self._checked = False  # whether a pass has compared the columns with their checksums

    def __reduce__(self) -> tuple[object, ...]:
        """Where it is, not what it holds: the process that gets it opens it again."""
        return (StoredEdges, (self.path, self.buffer_bytes))

    @property
    def degrees(self) -> Tensor:
        return self.row_pointers.diff()

    @property
    def hygiene(self) -> EdgeHygiene:
        """What cleaning removed when the store was made."""
        return EdgeHygiene(**self.header.cleaned)

    def blocks(self, device: torch.device) -> Iterator[RowBlock]:
        """Consecutive blocks that cover all nodes; each is valid until the next one is asked for."""
        room = max(1, self.buffer_bytes // 2 // self._type.itemsize)
        buffers = [self._buffer(min(room, self.header.num_entries), pinned=device.type == "cuda") for _ in range(2)]
        first_pass = None if self._checked else _FirstPass(self)
        with self._open() as file, ThreadPoolExecutor(1, thread_name_prefix="read-ahead") as reader:
            before: Future[RowBlock] | None = None
            for place, nodes in enumerate(block_slices(self.row_pointers, most_entries=room)):
                coming = reader.submit(self._read, file, nodes, buffers[place % 2], first_pass)
                if before is not None:
                    yield before.result().to(device)
                before = coming
            if before is not None:
                yield before.result().to(device)
        if first_pass is not None:
            first_pass.finish()
            self._checked = True

    def block(self, nodes: slice) -> RowBlock:
        """The neighbours of consecutive nodes, read by themselves into memory of their own; checked to be nodes only."""
        with self._open() as file:
            return self._read(file, nodes, self._buffer(0), None)

    def neighbour_array(self, node: int) -> NDArray[np.int32 | np.int64]:
        """The ids that one node shares an edge with, as they are stored."""
        found: NDArray[np.int32 | np.int64] = self.block(slice(node, node + 1)).columns.numpy()
        return found

    def load(self) -> EdgeList:
        """All of it in memory: for what cannot work block by block."""
        columns = torch.empty(self.header.num_entries, dtype=_torch_type(self._type))
        for block in self.blocks(CPU):
            columns[int(self.row_pointers[block.nodes.start]) : int(self.row_pointers[block.nodes.stop])] = (
                block.columns
            )
        wide = max(self.num_nodes, columns.numel()) >= WIDE
        return EdgeList(self.row_pointers, columns.long() if wide else columns, self.num_nodes)

    def verify(self) -> None:
        """Read all of it, and check what the first pass checks.

        Raises:
            InputError: it is damaged, or no simple undirected graph; in fixed words.
        """
        self._checked = False
        for _ in self.blocks(CPU):
            pass

    def _pointers(self) -> NDArray[np.int64]:
        pointers: NDArray[np.int64] = np.empty(self.num_nodes + 1, dtype=np.int64)
        with self._open(POINTERS) as file:
            _fill(self.path, file, as_bytes(pointers))
        checksum = new_checksum()
        checksum.update(as_bytes(pointers))
        if checksum.hexdigest() != self.header.row_pointers:
            raise damaged(self.path, f"{POINTERS} must be as it was written", "another checksum")
        ends = int(pointers[0]) == 0 and int(pointers[-1]) == self.header.num_entries
        if not ends or bool((pointers[1:] < pointers[:-1]).any()):
            raise damaged(self.path, f"{POINTERS} must rise from 0 to the number of entries", "other numbers")
        return pointers

    def _read(self, file: BinaryIO, nodes: slice, buffer: Tensor, first_pass: _FirstPass | None) -> RowBlock:
        pointers = self.row_pointers[nodes.start : nodes.stop + 1]
        first, count = int(pointers[0]), int(pointers[-1] - pointers[0])
        columns = (self._buffer(count) if count > len(buffer) else buffer)[:count]
        if count:
            view = as_bytes(columns.numpy())
            file.seek(first * self._type.itemsize)
            _fill(self.path, file, view)
            low, high = torch.aminmax(columns)
            if int(low) < 0 or int(high) >= self.num_nodes:
                raise damaged(self.path, f"{COLUMNS} must hold nodes", "a number that is none")
            if first_pass is not None:
                first_pass.update(first, columns.numpy())
        return RowBlock(nodes, pointers - first, columns, self.num_nodes)

    def _open(self, name: str = COLUMNS) -> BinaryIO:
        try:
            file = (self.path / name).open("rb", buffering=0)  # raw: straight into the buffer
        except OSError as error:
            raise damaged(self.path, "must be readable", error.strerror or "an unreadable file") from None
        # After it is open: what is exchanged later changes nothing, and what was exchanged before is seen. Other columns under
        # these row pointers would be the neighbours of other nodes.
        try:
            same = _identity(self.path) == self._identity
        except InputError:
            file.close()
            raise
        if not same:
            file.close()
            raise damaged(self.path, "must stay as it is while it is in use", "another store in its place")
        return file

    def _buffer(self, entries: int, *, pinned: bool = False) -> Tensor:
        return torch.empty(entries, dtype=_torch_type(self._type), pin_memory=pinned)


class _FirstPass:
    """What the first pass over all blocks compares: checksums, and that this is a simple undirected graph."""

    def __init__(self, store: StoredEdges) -> None:
        self._path, self._expected = store.path, store.header.columns
        self._checksums = ChunkChecksums(store.header.chunk_bytes)
        self._graph = SimpleGraphCheck(store.row_pointers.numpy())

    def update(self, first: int, columns: NDArray[Any]) -> None:
        self._checksums.update(as_bytes(columns))
        self._graph.update(first, columns)

    def finish(self) -> None:
        """Raise `InputError` unless all is well."""
        if self._checksums.all() != self._expected:
            raise damaged(self._path, f"{COLUMNS} must be as it was written", "another checksum")
        if not self._graph.simple:
            raise damaged(self._path, "must hold rising neighbour lists without loops", "others")
        if self._graph.balance:
            raise damaged(self._path, "every edge must stand in the rows of both ends", "one that does not")


def _identity(path: Path) -> tuple[int, ...]:
    """Tells the files of a store from others under the same names."""
    try:
        facts = [(path / name).stat() for name in (HEADER, POINTERS, COLUMNS)]
    except OSError as error:
        raise damaged(path, "must be readable", error.strerror or "an unreadable file") from None
    return tuple(number for each in facts for number in (each.st_dev, each.st_ino, each.st_size, each.st_mtime_ns))


def _torch_type(column_type: np.dtype[Any]) -> torch.dtype:
    return torch.int32 if column_type.itemsize == 4 else torch.int64


def _fill(path: Path, file: BinaryIO, view: memoryview) -> None:
    """Read until the view is full; the system may give less at a time."""
    done = 0
    while done < len(view):
        try:
            got = file.readinto(view[done:])  # type: ignore[attr-defined]  # a raw file has it
        except OSError as error:
            raise damaged(path, "must be readable to its end", error.strerror or "an error of the disk") from None
        if not got:
            raise damaged(path, "every file must have its full size", "one that has become shorter")
        done += got
