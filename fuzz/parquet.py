"""Nodes and edges in Parquet. The first byte chooses the reader; changes are of bytes, or of the table, written again."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fuzz.contract import check, written
from fuzz.edges_text import NUMBERS, SECRET, WORDS
from fuzz.mutate import change_bytes
from gcon.files.edge_files import read_edges
from gcon.files.node_files import read_node_features, read_nodes, read_raw_nodes

TYPES = (
    *(
        pa.int8(),
        pa.uint64(),
        pa.int64(),
        pa.float16(),
        pa.float32(),
        pa.float64(),
        pa.bool_(),
        pa.string(),
        pa.binary(),
    ),
    *(
        pa.large_string(),
        pa.string_view(),
        pa.binary(4),
        pa.decimal128(20, 3),
        pa.decimal256(50, 3),
        pa.date32(),
        pa.null(),
    ),
    *(pa.time64("ns"), pa.timestamp("us", "UTC"), pa.duration("s"), pa.dictionary(pa.int8(), pa.string())),
    *(pa.list_(pa.float32()), pa.list_(pa.int8(), 2), pa.large_list(pa.string()), pa.struct([("a", pa.int8())])),
    *(
        pa.map_(pa.string(), pa.int8()),
        pa.list_(pa.list_(pa.int8())),
        pa.struct([]),
        pa.list_(pa.struct([("b", pa.int8())])),
    ),
)
VALUES: tuple[Any, ...] = (
    None,
    0,
    1,
    -1,
    2**40,
    0.5,
    float("nan"),
    True,
    "p1",
    "train",
    "",
    b"\xff",
    [1, 2],
    [],
    [None],
    {"a": 1},
)
READERS: tuple[Callable[[Path], object], ...] = (
    lambda path: read_edges(path, ids=WORDS),
    lambda path: read_edges(path, ids=NUMBERS[0]),
    read_nodes,
    lambda path: read_nodes(path, num_classes=2, drop=("y",)),
    read_node_features,
    read_raw_nodes,
)


def seeds() -> list[bytes]:
    """Valid files."""
    edges = pa.table({"source": ["p0", SECRET], "target": ["p1", "p2"]})
    numbers = pa.table({"source": [0, 1, 2], "target": [1, 2, 3]})
    ids, label, split = ["p0", "p1", "p2"], ["a", "b", None], ["train", "train", ""]
    plain = pa.table({"id": ids, "label": label, "split": split, "x0": [0.5, 1.0, 2.0]})
    lists = pa.table({"id": [3, 4, 5], "label": [0, 1, 0], "features": [[1.0, 2.0]] * 3})
    return [
        b"\x00" + _file(edges),
        b"\x01" + _file(numbers),
        b"\x02" + _file(plain),
        b"\x03" + _file(lists),
        b"\x04" + _file(plain),
    ]


def one(data: bytes) -> None:
    """Read one file."""
    choice = data[0] if data else 0
    with written("table.parquet", data[1:]) as path:
        check(lambda: READERS[choice % len(READERS)](path))


def change(data: bytes, random: Random) -> bytes:
    """Bytes, or the table."""
    if not data or random.random() < 0.7:
        return change_bytes(data, random)
    try:
        table = pq.read_table(io.BytesIO(data[1:]))
        place = random.randrange(table.num_columns)
        kind = random.randrange(6)
        if kind <= 2:
            table = table.set_column(place, table.column_names[place], _column(table.num_rows, random))
        elif kind == 3:
            names = ("id", "label", "split", "source", "target", "features", "x", "", "x\x00")
            table = table.rename_columns(
                [random.choice(names) if p == place else n for p, n in enumerate(table.column_names)]
            )
        elif kind == 4:
            table = pa.concat_tables([table] * random.choice((0, 2, 3))) if random.random() < 0.8 else table.slice(0, 0)
        else:
            table = table.append_column(random.choice(("features", "y", "id")), _column(table.num_rows, random))
        options = {
            "compression": random.choice(("none", "snappy", "zstd", "gzip")),
            "use_dictionary": random.random() < 0.5,
            "row_group_size": random.choice((1, 2, 100)),
            "write_page_checksum": random.random() < 0.5,
        }
        return bytes([random.randrange(6)]) + _file(table, **options)
    except (Exception, pa.ArrowException):
        return change_bytes(data, random)


def _column(rows: int, random: Random) -> Any:
    kind = random.choice(TYPES)
    chosen = []
    for _ in range(rows):
        value = random.choice(VALUES) if not pa.types.is_map(kind) else random.choice((None, [("a", 1)]))
        try:
            chosen.append(pa.array([value], kind)[0].as_py())
        except Exception:
            chosen.append(None)
    return pa.array(chosen, kind)


def _file(table: Any, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()
