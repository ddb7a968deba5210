"""Edges larger than memory: time, peak resident memory and disk of making an edge store, and of reading it block by block.

    .venv/bin/python benchmarks/edge_store.py [--edges 100000000 --nodes 5000000 --memory 536870912 --buffer 67108864]

Writes a Parquet file of random edges, then in fresh processes: `convert` (`gcon data convert --format csr`), `first` (a pass
over all blocks that compares checksums), `again` (a pass that does not). Peaks count the whole process, libraries included
(VmHWM). "bare" is what was resident before the work: libraries, nodes and, for the passes, row pointers.
Exits with 1 if a step needs more than a fifth beyond its allowance, which is the memory or buffer that was set and a fixed
amount for the reader of Parquet or the thread that reads ahead.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from gcon_lab.bench.memory import forget_peak, resident

READER = 300 * 2**20  # batches of a million rows, decoded and looked up
THREAD = 2**25  # the thread that reads ahead, and the row pointers of two blocks


def disk(folder: Path) -> int:
    """Bytes of all files in a folder that are there at this moment."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and path.exists())


def make(arguments: argparse.Namespace) -> dict[str, Any]:
    """Write nodes and edges, a million edges at a time."""
    import polars as pl
    import pyarrow.parquet  # type: ignore[import-untyped]

    rng, folder = np.random.default_rng(0), arguments.folder
    pl.DataFrame({"id": np.arange(arguments.nodes), "x": np.float32(1)}).write_parquet(folder / "nodes.parquet")
    with pyarrow.parquet.ParquetWriter(
        folder / "edges.parquet", pyarrow.schema([(name, pyarrow.int64()) for name in ("source", "target")])
    ) as writer:
        for start in range(0, arguments.edges, 10**6):
            count = min(10**6, arguments.edges - start)
            ends = rng.integers(0, arguments.nodes, (2, count))
            writer.write_table(pyarrow.table({"source": ends[0], "target": ends[1]}))
    return {"input": (folder / "edges.parquet").stat().st_size}


def convert(arguments: argparse.Namespace) -> dict[str, Any]:
    """What `gcon data convert --format csr` calls."""
    import pyarrow.parquet  # noqa: F401

    from gcon.files.node_files import read_raw_nodes
    from gcon.files.tables import convert_files

    table = read_raw_nodes(arguments.folder / "nodes.parquet")  # held, so that they count as there before
    bare, most, stages, out = forget_peak(), 0, {}, arguments.folder / "out"
    out.mkdir()
    done = threading.Event()

    def watch() -> None:
        nonlocal most
        while not done.wait(0.2):
            try:
                most = max(most, disk(out))
            except FileNotFoundError:
                continue

    watcher = threading.Thread(target=watch)
    watcher.start()
    start = time.perf_counter()

    def step(stage: str, share: float) -> None:
        stages[stage] = round(time.perf_counter() - start, 1)

    convert_files(
        arguments.folder / "nodes.parquet",
        arguments.folder / "edges.parquet",
        out=out,
        file_format="csr",
        memory_bytes=arguments.memory,
        step=step,
    )
    seconds = time.perf_counter() - start
    done.set()
    watcher.join()
    return {
        "seconds": seconds,
        "ends of stages": stages,
        "bare": bare,
        "peak": resident("VmHWM"),
        "most disk": most,
        "store": disk(out / "edges.csr"),
        "nodes": len(table.ids),
    }


def passes(arguments: argparse.Namespace) -> dict[str, Any]:
    """Two passes over the store; the blocks are looked at by nobody."""
    import torch

    from gcon.edges.stored import StoredEdges

    store = StoredEdges(arguments.folder / "out" / "edges.csr", arguments.buffer)
    bare, seconds, blocks = forget_peak(), [], 0
    for _ in range(2):
        start = time.perf_counter()
        blocks = sum(1 for _ in store.blocks(torch.device("cpu")))
        seconds.append(time.perf_counter() - start)
    return {"first": seconds[0], "again": seconds[1], "blocks": blocks, "bare": bare, "peak": resident("VmHWM")}


def main() -> None:
    """Run the steps in processes of their own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, default=100_000_000)
    parser.add_argument("--nodes", type=int, default=5_000_000)
    parser.add_argument("--memory", type=int, default=2**29)
    parser.add_argument("--buffer", type=int, default=2**26)
    parser.add_argument("--step", choices=["make", "convert", "passes"])
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    if arguments.step is not None:
        print(json.dumps({"make": make, "convert": convert, "passes": passes}[arguments.step](arguments)))
        return
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        for name in ("make", "convert", "passes"):
            sizes = [f"--{size}={getattr(arguments, size)}" for size in ("edges", "nodes", "memory", "buffer")]
            call = [sys.executable, __file__, "--step", name, "--folder", folder, *sizes]
            done = subprocess.run(call, check=True, capture_output=True, text=True)
            found[name] = json.loads(done.stdout)
            print(name, found[name], flush=True)
    allowed = {"convert": arguments.memory + READER, "passes": arguments.buffer + THREAD}
    for name, room in allowed.items():
        used = max(0, found[name]["peak"] - found[name]["bare"])
        print(f"{name}: {used / 2**20:.0f} MiB beyond bare, {room / 2**20:.0f} MiB allowed")
        if used > 1.2 * room:
            sys.exit(1)


if __name__ == "__main__":
    main()
