"""How edges are stored on disk as compressed sparse rows: a folder `NAME.csr` with three files.

| file               | what it holds                                                                                     |
|--------------------|---------------------------------------------------------------------------------------------------|
| `header.json`      | version, sizes, a fingerprint of the node ids, what cleaning removed, checksums of all, its own too |
| `row_pointers.bin` | one more than nodes, 64-bit little-endian; rising from 0 to the number of entries                 |
| `columns.bin`      | neighbours, rising in every row, both directions of every edge; 32-bit, or 64-bit from 2^31 nodes |

Checksums are BLAKE2b of 32 bytes: one for the row pointers, one for every chunk of the columns. They find damage, not malice:
people who may write to the folder can write a new header too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gcon.errors import InputError

SUFFIX = ".csr"
HEADER, POINTERS, COLUMNS = "header.json", "row_pointers.bin", "columns.bin"
FORMAT, VERSION = "gcon edge store", 1
CHUNK_BYTES = 2**26
MOST_HEADER_BYTES = 2**28  # a chunk needs some 70 bytes in it: enough for 2^48 bytes of columns
WIDE = 2**31  # nodes from which on a column needs 64 bits
AGAIN = "Convert the edges again (gcon data convert --format csr)."


@dataclass(frozen=True, kw_only=True)
class StoreHeader:
    """What a store says about itself.

    Attributes:
        num_nodes: the public number of nodes.
        num_entries: neighbours in total, twice the number of edges.
        node_ids: fingerprint of the public node ids in their order.
        cleaned: what cleaning removed, by the names of `EdgeHygiene`.
        row_pointers: their checksum.
        chunk_bytes: size of a chunk of columns; the last may be shorter.
        columns: the checksum of every chunk.

    Privacy:
        As private as the edges: it counts them.
    """

    num_nodes: int
    num_entries: int
    node_ids: str
    cleaned: Mapping[str, int]
    row_pointers: str
    chunk_bytes: int
    columns: tuple[str, ...]

    @property
    def column_type(self) -> np.dtype[Any]:
        return column_type(self.num_nodes)


def column_type(num_nodes: int) -> np.dtype[Any]:
    """32 bits while node numbers fit."""
    return np.dtype("<i4" if num_nodes < WIDE else "<i8")


def damaged(path: Path, rule: str, got: str, fix: str = AGAIN) -> InputError:
    """A refusal in fixed words: nothing from the store is in it."""
    return InputError(f"edges file {path.name!r}", rule=rule, got=got, fix=fix)


def new_checksum() -> Any:
    """An empty BLAKE2b of the size that stores use."""
    return hashlib.blake2b(digest_size=32)


def as_bytes(array: NDArray[Any]) -> memoryview:
    """The memory of a contiguous array, nothing copied."""
    return array.reshape(-1).view(np.uint8).data


def file_checksum(path: Path) -> str:
    """The checksum of a whole file, read in pieces."""
    checksum = new_checksum()
    with path.open("rb", buffering=0) as file:
        while piece := file.read(2**22):
            checksum.update(piece)
    return str(checksum.hexdigest())


class ChunkChecksums:
    """Checksums of consecutive chunks of a stream of bytes, however it is cut into pieces."""

    def __init__(self, chunk_bytes: int) -> None:
        self._finished: list[str] = []
        self._size, self._current, self._filled = chunk_bytes, new_checksum(), 0

    def update(self, piece: memoryview) -> None:
        start = 0
        while start < len(piece):
            part = piece[start : start + self._size - self._filled]
            self._current.update(part)
            start += len(part)
            self._filled += len(part)
            if self._filled == self._size:
                self._finish()

    def all(self) -> tuple[str, ...]:
        """All checksums; the last chunk may be short."""
        if self._filled:
            self._finish()
        return tuple(self._finished)

    def _finish(self) -> None:
        self._finished.append(self._current.hexdigest())
        self._current, self._filled = new_checksum(), 0


def render_header(header: StoreHeader) -> str:
    fields = {"format": FORMAT, "version": VERSION, **asdict(header), "columns": list(header.columns)}
    return json.dumps({**fields, "checksum": _checksum(fields)}, indent=1) + "\n"


def read_header(path: Path) -> StoreHeader:
    """The header of the store in a folder, checked by itself and against the sizes of the files.

    Raises:
        InputError: no store, another version, or damaged; in fixed words.
    """
    try:
        if not path.is_dir():
            raise damaged(path, "must be a folder that gcon data convert --format csr wrote", "no such folder")
        with (path / HEADER).open("rb") as file:
            text = file.read(MOST_HEADER_BYTES + 1)
        sizes = {name: (path / name).stat().st_size for name in (POINTERS, COLUMNS)}
    except OSError as error:
        raise damaged(path, "must be a complete edge store", error.strerror or "an unreadable file") from None
    fields = _fields(path, text)
    if sizes[POINTERS] != 8 * (fields.num_nodes + 1):
        raise damaged(path, "every file must have its full size", f"a longer or shorter {POINTERS}")
    if sizes[COLUMNS] != fields.num_entries * fields.column_type.itemsize:
        raise damaged(path, "every file must have its full size", f"a longer or shorter {COLUMNS}")
    return fields


def _fields(path: Path, text: bytes) -> StoreHeader:
    try:
        found = json.loads(text)
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise ValueError
    except (ValueError, RecursionError):
        raise damaged(path, f"{HEADER} must describe an edge store", "something else") from None
    if found.get("version") != VERSION:
        fix = "Use the version of gcon that wrote it, or convert the edges again."
        raise damaged(path, f"the version of the format must be {VERSION}", "another one", fix)
    if found.pop("checksum", None) != _checksum(found):
        raise damaged(path, f"{HEADER} must be as it was written", "another checksum")
    try:
        header = StoreHeader(
            **{name: value for name, value in found.items() if name not in ("format", "version", "columns")},
            columns=tuple(found["columns"]),
        )
        sound = _is_sound(header)
    except (TypeError, KeyError):
        sound = False
    if not sound:
        raise damaged(path, f"{HEADER} must describe an edge store", "fields that do not fit together")
    return header


def _is_sound(header: StoreHeader) -> bool:
    counts = (header.num_nodes, header.num_entries, header.chunk_bytes, *header.cleaned.values())
    words = (header.node_ids, header.row_pointers, *header.columns)
    whole = all(isinstance(count, int) and not isinstance(count, bool) and count >= 0 for count in counts)
    if not whole or not all(isinstance(word, str) for word in words):
        return False
    if not header.chunk_bytes or header.chunk_bytes % header.column_type.itemsize:  # a chunk holds whole columns
        return False
    num_bytes = header.num_entries * header.column_type.itemsize
    names = {"given", "self_loops", "duplicates", "kept"}
    return set(header.cleaned) == names and len(header.columns) == -(-num_bytes // header.chunk_bytes)


def _checksum(fields: Mapping[str, object]) -> str:
    checksum = new_checksum()
    checksum.update(json.dumps(fields, sort_keys=True).encode())
    return str(checksum.hexdigest())
