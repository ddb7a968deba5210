"""Training from an edge store that is several times larger than the memory that training may use, and the same from memory.

    .venv/bin/python benchmarks/disk.py [--gib 8 --nodes 1000000 --limit-gib 2] [--scratch FOLDER]

1. Writes nodes, features and an edge store of so many GiB (a made-up graph; neighbours at fixed random distances).
2. `gcon train --method paper` on it, in a process of its own: its peak resident memory, libraries included, is measured.
3. The same training with all edges in memory, in another process.

Exits with 1 if the first needs more memory than allowed, or if a weight of the two models differs in any bit. Both use one seed,
so neither model carries a promise.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

SEED, COLUMNS, CLASSES = 7, 16, 5
GIB = 2**30


class Ring:
    """Node i is joined to i + s and i - s (mod n) for many random distances s: rows are made in order, without sorting edges."""

    def __init__(self, num_nodes: int, entries: int) -> None:
        self.num_nodes = num_nodes
        distances = np.random.default_rng(0).choice(
            np.arange(1, num_nodes // 2), entries // num_nodes // 2, replace=False
        )
        self._offsets = np.sort(np.concatenate([distances, num_nodes - distances]))

    def chunks(self):  # type: ignore[no-untyped-def]  # noqa: ANN201
        """Consecutive rows: numbers of neighbours, and these, rising."""
        step = max(1, 2**22 // len(self._offsets))
        for start in range(0, self.num_nodes, step):
            nodes = np.arange(start, min(start + step, self.num_nodes))
            columns = (nodes[:, None] + self._offsets) % self.num_nodes
            columns.sort(axis=1)
            degrees = torch.full((len(nodes),), len(self._offsets))
            yield degrees, torch.from_numpy(columns.astype(np.int32).ravel())


def make(folder: Path, num_nodes: int, entries: int) -> None:
    """Nodes, features and the store."""
    import polars as pl

    from gcon_lab.bench.stores import write_rows

    rng = np.random.default_rng(1)
    labels = rng.integers(0, CLASSES, num_nodes)
    centres = rng.normal(size=(CLASSES, COLUMNS)).astype(np.float32)
    features = np.lib.format.open_memmap(folder / "features.npy", "w+", np.float32, (num_nodes, COLUMNS))
    for start in range(0, num_nodes, 2**18):
        part = slice(start, min(start + 2**18, num_nodes))
        features[part] = centres[labels[part]] + rng.normal(size=(part.stop - part.start, COLUMNS))
    features.flush()
    split = np.where(rng.random(num_nodes) < 0.01, "train", "")
    table = pl.DataFrame({"id": np.arange(num_nodes), "label": labels, "split": split})
    table.write_parquet(folder / "nodes.parquet")
    write_rows(Ring(num_nodes, entries), folder / "edges.csr")  # type: ignore[arg-type]


def from_disk(folder: Path) -> dict[str, float]:
    """`gcon train` on the store."""
    start = time.perf_counter()
    subprocess.run(
        [
            *(sys.executable, "-m", "gcon.cli.app", "train", "--method", "paper", "--expand", "labelled"),
            *(
                "--nodes",
                folder / "nodes.parquet",
                "--features",
                folder / "features.npy",
                "--edges",
                folder / "edges.csr",
            ),
            *("--buffer", "64MiB", "--epsilon", "1", "--seed", str(SEED), "--device", "cpu"),
            *("--ledger", folder / "ledger", "--out", folder / "model", "--quiet"),
        ],
        check=True,
    )
    return {
        "seconds": time.perf_counter() - start,
        "peak_gib": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20,
    }


def from_memory(folder: Path) -> dict[str, float]:
    """The same with all edges in memory; compares the weights."""
    from gcon.cli.loading import load_graph
    from gcon.cli.options import GraphSource
    from gcon.learn.perceptron import EncoderSettings
    from gcon.methods.objective import Objective, ObjectiveModel
    from gcon.privacy.ledger import MemoryLedger
    from gcon.privacy.randomness import SeededRandomness
    from gcon.release.read import load_release

    start = time.perf_counter()
    where = GraphSource(edges=folder / "edges.csr", nodes=folder / "nodes.parquet", features=folder / "features.npy")
    graph = load_graph(where)
    settings = Objective(epsilon=1, encoder=EncoderSettings(), expand="labelled", device="cpu")
    here = settings.train(graph.nodes, graph.edges, ledger=MemoryLedger(), randomness=SeededRandomness(SEED))
    there = load_release(folder / "model")
    assert isinstance(there, ObjectiveModel)
    same = torch.equal(here.weights, there.weights) and bool(here.weights.abs().sum() > 0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"seconds": time.perf_counter() - start, "peak_gib": peak, "same": float(same)}


def main() -> int:
    """Measure, print, and say whether the targets are met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gib", type=float, default=8.0)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--limit-gib", type=float, default=2.0)
    parser.add_argument("--scratch", type=Path)
    parser.add_argument("--memory-of", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_of:
        print(json.dumps(from_memory(arguments.memory_of)))
        return 0
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as name:
        folder = Path(name)
        start = time.perf_counter()
        make(folder, arguments.nodes, int(arguments.gib * GIB / 4))
        size = (folder / "edges.csr" / "columns.bin").stat().st_size / GIB
        print(f"store of {size:.2f} GiB made in {time.perf_counter() - start:.0f} s", flush=True)
        disk = from_disk(folder)
        print(f"from disk   {disk['seconds']:7.1f} s  peak {disk['peak_gib']:.2f} GiB, libraries included", flush=True)
        done = subprocess.run(
            [sys.executable, __file__, "--memory-of", str(folder)],
            check=True,
            capture_output=True,
            text=True,
            env=os.environ,
        )
        memory = json.loads(done.stdout.splitlines()[-1])
    print(f"from memory {memory['seconds']:7.1f} s  peak {memory['peak_gib']:.2f} GiB")
    same, fits = bool(memory["same"]), disk["peak_gib"] <= arguments.limit_gib
    print(f"the same weights bit for bit: {same}; edges over the memory allowed: {size / arguments.limit_gib:.1f}")
    print("all targets met" if same and fits else "a target is MISSED")
    return 0 if same and fits else 1


if __name__ == "__main__":
    sys.exit(main())
