"""Edges in CSV and TSV. The first byte chooses ending, header, kind of ids and columns to ignore."""

from __future__ import annotations

from random import Random

from fuzz.contract import check, written
from fuzz.mutate import change_bytes, change_lines
from gcon.files.edge_files import read_edges
from gcon.files.node_ids import as_node_ids

SECRET = "zqsecret"
WORDS = as_node_ids(["p0", "p1", "p2", SECRET, "é", "e\u0301", "a\u200b", "007"])
NUMBERS = (as_node_ids([0, 1, 2, 3]), as_node_ids([-5, 7, 10**15]))


def seeds() -> list[bytes]:
    """Valid files."""
    words = b"source,target\np0,p1\nzqsecret,p2\n"
    numbers = b"source,target\n0,1\n2,3\n"
    return [
        b"\x00" + words,
        b"\x01" + words.replace(b",", b"\t"),
        b"\x02" + words.split(b"\n", 1)[1],
        b"\x04" + numbers,
        b"\x0c-5,7\n" + numbers.replace(b"source,target\n", b""),
        b"\x10source,target,weight\np0,p1,0.5\n",
    ]


def one(data: bytes) -> None:
    """Read one file."""
    choice, content = (data[0] if data else 0), data[1:]
    ids = NUMBERS[choice >> 3 & 1] if choice & 4 else WORDS
    first = content.replace(b"\r", b"\n").partition(b"\n")[0]
    secret = SECRET if SECRET.encode() not in first and b'"' not in content else None
    ignored = ("weight",) if choice & 16 else ()
    with written("edges.tsv" if choice & 1 else "edges.csv", content) as path:
        check(lambda: read_edges(path, ids=ids, header=not choice & 2, ignore_columns=ignored), secret=secret)


def change(data: bytes, random: Random) -> bytes:
    """Bytes, or lines and fields."""
    if random.random() < 0.4:
        return change_bytes(data, random)
    return data[:1] + change_lines(data[1:], random)
