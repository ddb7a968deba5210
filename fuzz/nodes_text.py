"""Nodes in CSV and TSV. The first byte chooses ending, reader and class list."""

from __future__ import annotations

from fuzz.contract import check, written
from fuzz.edges_text import change
from gcon.files.node_files import read_node_features, read_nodes, read_raw_nodes

__all__ = ["change", "one", "seeds"]


def seeds() -> list[bytes]:
    """Valid files."""
    words = b"id,label,split,x0\np0,a,train,0.5\np1,b,train,1\np2,a,test,2\np3,,,3\n"
    numbers = b"id,label,x0,x1\n0,0,0.5,1\n1,1,0.5,1e3\n7,,0,0\n"
    return [
        b"\x00" + words,
        b"\x01" + words.replace(b",", b"\t"),
        b"\x02" + words,
        b"\x04" + numbers,
        b"\x08" + numbers,
    ]


def one(data: bytes) -> None:
    """Read one file."""
    choice = data[0] if data else 0
    with written("nodes.tsv" if choice & 1 else "nodes.csv", data[1:]) as path:
        if choice & 2:
            check(lambda: read_node_features(path))
        elif choice & 8:
            check(lambda: read_raw_nodes(path))
        else:
            check(lambda: read_nodes(path, num_classes=2 if choice & 4 else None))
