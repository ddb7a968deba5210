"""Streaming edges from Parquet: time and peak resident memory of `read_edges`, against reading the whole table.

    .venv/bin/python benchmarks/ingest.py [--edges 100000000 --nodes 1000000 --ids shuffled --repeats 1]

Writes a file of random edges, then reads it in fresh processes, one way after the other, `--repeats` times:
- stream: `gcon.files.tables.read_edges`;
- plain: the whole table at once with polars, the same lookup of ids on whole columns, the same cleaning.
"read" is until all ends are rows of the nodes file; "all" includes the cleaning (`simple_undirected`). Peaks count the
whole process, libraries included (VmHWM). Exits with 1 if streaming passes 8 GiB or the two graphs differ.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from gcon_lab.bench.memory import resident

LIMIT = 8 * 2**30
peak = partial(resident, "VmHWM")  # unlike ru_maxrss, nothing of its parent


def node_ids(arguments: argparse.Namespace) -> Any:
    """The public ids in row order."""
    rows = np.random.default_rng(1).permutation(arguments.nodes)
    if arguments.ids == "rows":
        return np.arange(arguments.nodes)
    return rows if arguments.ids == "shuffled" else [f"user-{row}" for row in rows.tolist()]


def make(arguments: argparse.Namespace) -> dict[str, Any]:
    """Write the file, in row groups of a million."""
    import polars as pl

    rng = np.random.default_rng(0)
    ends = {name: pl.Series(rng.integers(0, arguments.nodes, arguments.edges)) for name in ("source", "target")}
    frame = pl.DataFrame(ends)
    if arguments.ids == "strings":
        frame = frame.select((pl.lit("user-") + pl.col(name).cast(pl.String)).alias(name) for name in ends)
    frame.write_parquet(arguments.file, row_group_size=1_000_000)
    return {"bytes": arguments.file.stat().st_size}


def stream(arguments: argparse.Namespace) -> dict[str, Any]:
    """Read batch by batch."""
    from gcon.edges.edge_list import simple_undirected
    from gcon.files import edge_files
    from gcon.files.node_ids import as_node_ids

    ids, before = as_node_ids(node_ids(arguments)), peak()
    start = time.perf_counter()
    marks: dict[str, Any] = {}

    def marked(*given: Any) -> Any:
        marks.update(read_seconds=time.perf_counter() - start, read_peak=peak())
        return simple_undirected(*given)

    with mock.patch.object(edge_files, "simple_undirected", marked):
        edges, _ = edge_files.read_edges(arguments.file, ids=ids)
    return {"before": before, **marks, "seconds": time.perf_counter() - start, "peak": peak(), "graph": digest(edges)}


def plain(arguments: argparse.Namespace) -> dict[str, Any]:
    """Read all at once."""
    import polars as pl
    import torch

    from gcon.edges.edge_list import private_edges
    from gcon.files.node_ids import as_node_ids, row_finder

    ids, before = as_node_ids(node_ids(arguments)), peak()
    start = time.perf_counter()
    frame = pl.read_parquet(arguments.file)
    if ids.column.dtype.is_integer():
        find = row_finder(ids)
        ends = [find(frame[name])[0] for name in ("source", "target")]
    else:
        known = pl.DataFrame({"id": ids.column, "row": np.arange(len(ids))})
        joined = (
            frame.select(pl.col(name).alias("id")).join(known, on="id", how="left", maintain_order="left")
            for name in ("source", "target")
        )
        ends = [part["row"].to_numpy() for part in joined]
    index = torch.from_numpy(np.stack(ends).astype(np.int64))
    marks = {"read_seconds": time.perf_counter() - start, "read_peak": peak()}
    del frame, ends
    edges, _ = private_edges(index, arguments.nodes)
    return {"before": before, **marks, "seconds": time.perf_counter() - start, "peak": peak(), "graph": digest(edges)}


def digest(edges: Any) -> str:
    """A checksum of a synthetic graph, to see that both ways read the same one."""
    from gcon.privacy.gates import declassify
    from gcon.privacy.ledger import MemoryLedger

    graph = declassify(edges, reason="benchmark on a synthetic graph", ledger=MemoryLedger())
    found = hashlib.sha256(graph.row_pointers.numpy().data)
    found.update(graph.columns.numpy().data)
    return found.hexdigest()


def main() -> int:
    """Print the table; 1 if a threshold is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, default=100_000_000)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--ids", choices=["rows", "shuffled", "strings"], default="shuffled")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--part", choices=["make", "stream", "plain"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part:
        print(json.dumps({"make": make, "stream": stream, "plain": plain}[arguments.part](arguments)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        arguments.file = Path(folder) / "edges.parquet"
        size = _part("make", arguments)["bytes"]
        print(f"{arguments.edges:,} edges, {arguments.nodes:,} nodes, ids: {arguments.ids}; {size / 2**20:,.0f} MiB")
        runs: dict[str, list[dict[str, Any]]] = {"stream": [], "plain": []}
        for _ in range(arguments.repeats):
            for way, done in runs.items():
                done.append(_part(way, arguments))
    for way, done in runs.items():
        read, whole = ([run[key] for run in done] for key in ("read_seconds", "seconds"))
        print(
            f"{way:>7}: read {_span(read)} s, all {_span(whole)} s; "
            f"peak {max(run['read_peak'] for run in done) / 2**30:.2f} GiB reading, "
            f"{max(run['peak'] for run in done) / 2**30:.2f} GiB in all "
            f"({max(run['before'] for run in done) / 2**30:.2f} before)"
        )
    same = len({run["graph"] for done in runs.values() for run in done}) == 1
    fits = max(run["peak"] for run in runs["stream"]) < LIMIT
    print(f"same graph: {same}; streaming below 8 GiB: {fits}; load of the machine: {os.getloadavg()[0]:.1f}")
    return 0 if same and fits else 1


def _part(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    given = [f"--{key}={getattr(arguments, key)}" for key in ("edges", "nodes", "ids", "file")]
    command = [sys.executable, __file__, f"--part={name}", *given]
    result: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return result


def _span(values: list[float]) -> str:
    return f"{statistics.median(values):.1f} ({min(values):.1f}-{max(values):.1f})"


if __name__ == "__main__":
    sys.exit(main())
