"""Edges and features as NumPy's arrays. The first byte chooses the reader; members are changed and packed again."""

from __future__ import annotations

import io
import zipfile
from random import Random

import numpy as np
import scipy.sparse

from fuzz.contract import check, written
from fuzz.edges_text import NUMBERS
from fuzz.mutate import change_bytes
from gcon.files.edge_files import read_edges
from gcon.files.file_problems import raise_problems
from gcon.files.node_features import features_of_arrays
from gcon.files.node_ids import as_node_ids

FOUR = as_node_ids(["a", "b", "c", "d"])
NAMES = (
    *(
        "edge_index.npy",
        "edge_index",
        "features.npy",
        "features",
        "x.npy",
        "format.npy",
        "shape.npy",
        "data.npy",
        "row.npy",
    ),
    *(
        "indices.npy",
        "indptr.npy",
        "col.npy",
        "offsets.npy",
        "_is_array.npy",
        "coords.npy",
        "blocksize.npy",
        "",
        "a/b.npy",
    ),
)
KINDS = (
    "<i8",
    "<i4",
    ">i8",
    "|u1",
    "<u8",
    "<f8",
    "<f4",
    "<f2",
    "|b1",
    "<c16",
    "|S3",
    "<U3",
    "|O",
    "<M8[s]",
    "|V4",
    "[('a','<i4')]",
    "x",
)
SIZES = (
    "()",
    "(0,)",
    "(1,)",
    "(2,)",
    "(4,)",
    "(5,)",
    "(2, 0)",
    "(2, 3)",
    "(4, 4)",
    "(4, 1)",
    "(2, 2, 2)",
    "(-1,)",
    "(1000000000, 1000000000)",
)


def _saved(**arrays: object) -> bytes:
    sink = io.BytesIO()
    np.savez(sink, **arrays)  # type: ignore[arg-type]
    return sink.getvalue()


def _sparse(form: str) -> bytes:
    sink = io.BytesIO()
    entries = np.array([[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0]], dtype=np.int8)
    scipy.sparse.save_npz(sink, scipy.sparse.csr_array(entries).asformat(form), compressed=False)
    return sink.getvalue()


def seeds() -> list[bytes]:
    """Valid files."""
    array = io.BytesIO()
    np.save(array, np.ones((4, 2)))
    sparse = [
        bytes([place % 3]) + _sparse(form) for place, form in enumerate(("csr", "csc", "coo", "dia", "bsr", "csr"))
    ]
    index = _saved(edge_index=np.array([[0, 1], [1, 2]]))
    return [
        b"\x00" + index,
        b"\x01" + index,
        b"\x02" + _saved(features=np.ones((4, 2))),
        b"\x03" + array.getvalue(),
        *sparse,
    ]


def one(data: bytes) -> None:
    """Read one file."""
    choice, content = (data[0] if data else 0) % 4, data[1:]
    with written("arrays.npy" if choice == 3 else "arrays.npz", content) as path:
        if choice < 2:
            check(lambda: read_edges(path, ids=FOUR if choice else NUMBERS[0]))
        else:
            check(lambda: _features(path))


def _features(path: object) -> None:
    _, problems = features_of_arrays(path, 4)  # type: ignore[arg-type]
    if problems:
        raise_problems(problems)


def change(data: bytes, random: Random) -> bytes:
    """Bytes, or one member of the archive."""
    if not data or random.random() < 0.3:
        return change_bytes(data, random)
    try:
        with zipfile.ZipFile(io.BytesIO(data[1:])) as archive:
            members = [(entry.filename, archive.read(entry)) for entry in archive.infolist()]
    except Exception:
        return bytes([random.randrange(4)]) + _header(data[1:], random)
    place, kind = random.randrange(len(members) or 1), random.randrange(6)
    if kind == 0:
        members.insert(place, (random.choice(NAMES), members[place][1] if members else b"PK"))
    elif members:
        name, content = members[place]
        changed = {
            1: lambda: (random.choice(NAMES), content),
            2: lambda: (name, _header(content, random)),
            3: lambda: (name, content[:128] + change_bytes(content[128:], random)),
            4: lambda: (name, change_bytes(content, random)),
            5: lambda: (name, _value(content, random)),
        }
        members[place] = changed[kind]()
        if random.randrange(20) == 0:
            del members[place]
    sink = io.BytesIO()
    packing = random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(sink, "w", packing) as archive:
        for name, content in {name or "a": content for name, content in members}.items():
            archive.writestr(name, content)
    return bytes([random.choice((data[0], random.randrange(4)))]) + sink.getvalue()


def _header(content: bytes, random: Random) -> bytes:
    """The same numbers under another type or shape."""
    kind = random.choice(KINDS)
    quoted = kind if kind.startswith("[") else repr(kind)
    text = f"{{'descr': {quoted}, 'fortran_order': {random.random() < 0.2}, 'shape': {random.choice(SIZES)}, }}"
    return b"\x93NUMPY\x01\x00v\x00" + text.encode().ljust(117) + b"\n" + content[128:]


def _value(content: bytes, random: Random) -> bytes:
    """One whole number among the values is another."""
    if len(content) < 132:
        return content
    place = 128 + 4 * random.randrange((len(content) - 128) // 4)
    number = random.choice((0, 1, 2, 3, 4, 5, 100, -1, 2**31 - 1, -(2**31)))
    return content[:place] + number.to_bytes(4, "little", signed=True) + content[place + 4 :]
