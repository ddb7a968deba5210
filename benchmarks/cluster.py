"""Edges spread over local workers: the same bits as one process, also when a worker is killed in the middle; and the times.

    .venv/bin/python benchmarks/cluster.py [--edges 50000000 --degree 50 --columns 16 --workers 1 2 4 --json]

Makes an edge store of random edges with hubs in a scratch folder. One process with one thread computes edge moments and the class
sums of a walk of three steps from it; then clusters of local processes, one thread each, do. With the most workers one of them is
killed in the middle. Exits with 1 if a single bit differs, or if the kill came too late.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gcon.edges.cluster.edges import ClusterEdges, open_cluster
from gcon.edges.cluster.local import LocalCluster, local_cluster
from gcon.edges.schemes import Schemes
from gcon.edges.stored import StoredEdges
from gcon.files.edge_store import write_edge_store
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.exact_products import Precise
from gcon.mechanisms.statistic import Statistic
from gcon_lab.mechanisms.class_sums import ClassSums

STEPS, CLASSES, AT_ONCE = 3, 8, 10**6
SMALL: tuple[Statistic, ...] = (
    EdgeMoments(torch.ones(1000, 1)),
    ClassSums(torch.randn(1000, 1), torch.ones(1000, 1), Schemes(restart=0.3, steps=(1,))),
)


def random_edges(edges: int, nodes: int) -> Iterator[NDArray[np.int64]]:
    """A million at a time; low numbers are hubs."""
    rng = np.random.default_rng(0)
    for start in range(0, edges, AT_ONCE):
        ends = rng.random((2, min(AT_ONCE, edges - start)))
        ends[0] **= 2
        yield (ends * nodes).astype(np.int64)


def timed(compute: Callable[[], Precise]) -> tuple[float, Precise]:
    """Seconds and result."""
    start = time.perf_counter()
    found = compute()
    return time.perf_counter() - start, found


def same(found: Precise, expected: Precise) -> bool:
    """To the last bit."""
    return torch.equal(found.value, expected.value) and torch.equal(found.rest, expected.rest)


def warmed(cluster: LocalCluster, folder: Path, small: Path) -> ClusterEdges:
    """The edges on the cluster, after all workers have loaded what they need and compiled their kernels."""
    edges = open_cluster(cluster.address, small, security=cluster.security)
    for statistic in SMALL:
        edges.run(statistic.precisely)
    return open_cluster(cluster.address, folder, security=cluster.security)


def killed(cluster: LocalCluster, edges: ClusterEdges, statistic: Statistic, after: float) -> dict[str, Any]:
    """The same with a worker that dies after so many seconds."""
    victim, died = cluster.dask.workers[0].pid, threading.Event()

    def kill() -> None:
        os.kill(victim, signal.SIGKILL)
        died.set()

    timer = threading.Timer(after, kill)
    timer.start()
    seconds, found = timed(lambda: edges.run(statistic.precisely))
    in_time = died.is_set()
    timer.cancel()
    return {"seconds": seconds, "found": found, "killed in the middle": in_time}


def measure(arguments: argparse.Namespace, scratch: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """All times, and whether all results are the same."""
    nodes, folder, small = max(2, 2 * arguments.edges // arguments.degree), scratch / "edges.csr", scratch / "small.csr"
    say(f"write {arguments.edges:,} edges of {nodes:,} nodes")
    write_edge_store(random_edges(arguments.edges, nodes), folder, num_nodes=nodes)
    write_edge_store(random_edges(10_000, 1000), small, num_nodes=1000)
    rows = torch.randn(nodes, arguments.columns, generator=torch.Generator().manual_seed(0))
    targets = torch.eye(CLASSES)[torch.arange(nodes) % CLASSES]
    statistics: dict[str, Statistic] = {
        "edge moments": EdgeMoments(rows),
        "class sums": ClassSums(rows, targets, Schemes(restart=0.3, steps=(STEPS,))),
    }
    entries = StoredEdges(folder).header.num_entries
    lines: list[dict[str, Any]] = []
    expected: dict[str, Precise] = {}
    torch.set_num_threads(1)
    for statistic in SMALL:  # kernels are compiled before anything is timed
        statistic.precisely(StoredEdges(small))
    for name, statistic in statistics.items():
        say(f"one process: {name}")
        store = StoredEdges(folder)
        seconds, expected[name] = timed(lambda statistic=statistic, store=store: statistic.precisely(store))  # type: ignore[misc]
        lines.append({"where": "one process", "statistic": name, "seconds": seconds, "same bits": True})
    for workers in arguments.workers:
        with local_cluster(workers) as cluster:
            say(f"{workers} workers: start")
            edges = warmed(cluster, folder, small)
            for name, statistic in statistics.items():
                say(f"{workers} workers: {name}")
                seconds, found = timed(lambda statistic=statistic, edges=edges: edges.run(statistic.precisely))  # type: ignore[misc]
                line = {"where": f"{workers} workers", "statistic": name, "seconds": seconds}
                lines.append({**line, "same bits": same(found, expected[name])})
            if workers == max(arguments.workers) and workers > 1:
                say(f"{workers} workers, one killed: {name}")
                result = killed(cluster, edges, statistic, seconds / 2)
                line = {"where": f"{workers} workers, one killed", "statistic": name, "seconds": result["seconds"]}
                line["killed in the middle"] = result["killed in the middle"]
                lines.append({**line, "same bits": same(result["found"], expected[name])})
    sound = all(line["same bits"] and line.get("killed in the middle", True) for line in lines)
    sizes = {"edges": entries // 2, "nodes": nodes, "columns": arguments.columns, "steps": STEPS}
    return {**sizes, "cores": os.cpu_count(), "lines": lines, "sound": sound}


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, default=50_000_000)
    parser.add_argument("--degree", type=int, default=50)
    parser.add_argument("--columns", type=int, default=16)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument(
        "--scratch", type=Path, default=None, help="where to make the store; by default a temporary folder"
    )
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.scratch, prefix="gcon-cluster-benchmark-") as scratch:
        found = measure(arguments, Path(scratch), lambda words: print(words, file=sys.stderr, flush=True))
    if arguments.json:
        print(json.dumps(found))
    else:
        print(
            f"\n{found['edges']:,} edges, {found['nodes']:,} nodes, {found['columns']} columns, {found['cores']} cores\n"
        )
        print("| where | statistic | seconds | million edges per second and step | same bits |\n|---|---|---|---|---|")
        for line in found["lines"]:
            steps = STEPS if line["statistic"] == "class sums" else 1
            speed = found["edges"] * steps / line["seconds"] / 1e6
            late = "" if line.get("killed in the middle", True) else " (the kill came too late)"
            same_bits = "yes" if line["same bits"] else "NO"
            print(
                f"| {line['where']} | {line['statistic']} | {line['seconds']:.2f} | {speed:.1f} | {same_bits}{late} |"
            )
    return 0 if found["sound"] else 1


if __name__ == "__main__":
    sys.exit(main())
