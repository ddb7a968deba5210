"""Edges on a cluster of local processes: the same bits as in one process, in how much time, with how many bytes moved.

    python benchmarks/cluster.py [--edges 50000000 --degree 50 --workers 1 2 4 --network 4 --pin --peaks 100000 200000 400000]

Makes an edge store of random edges with hubs in a scratch folder, or takes one (`--store`, made by gcon_lab.bench.stores). One
process with one thread computes edge moments, neighbour counts and the class sums of a walk from it; then clusters of local
processes, one thread each, do (with `--pin` each on a core of its own, and this process with the scheduler on what is left), in
the order that is given. Workers on one machine read each other's rows in place; for the numbers in `--network` everything is sent
and encrypted, as between machines, and the bytes that workers receive are compared with what the edges say, counted here by other
code. With the most workers one of them is killed in the middle of the walk, unless `--no-kill`. `--peaks` measures the
coordinator's tensors at their peak for graphs of so many nodes. `--out` is a folder in which what was measured so far is kept, so
that a run that is cut off keeps what it has. Exits with 1 if a bit or a byte differs, or if the kill came too late.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from gcon.edges.cluster.edges import ClusterEdges, connected, open_cluster
from gcon.edges.cluster.local import LocalCluster, local_cluster
from gcon.edges.schemes import Schemes
from gcon.edges.source import Edges
from gcon.edges.store_format import COLUMNS
from gcon.edges.stored import StoredEdges
from gcon.files.edge_store import write_edge_store
from gcon.mechanisms.counts import NeighbourCounts
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.statistic import Precise
from gcon.privacy.randomness import SystemRandomness
from gcon_lab.bench.live_tensors import LiveTensors
from gcon_lab.mechanisms.class_sums import ClassSums

CLASSES, AT_ONCE, LABELLED_ONE_IN = 8, 10**6, 100


def _second(processor: int) -> bool:
    """Whether it shares a core with one before it."""
    siblings = Path(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list")
    return siblings.exists() and int(re.split("[,-]", siblings.read_text())[0]) < processor


CORES = sorted(os.sched_getaffinity(0), key=lambda processor: (_second(processor), processor))


class Measured(Protocol):
    """What is measured."""

    def precisely(self, edges: Edges) -> Precise:
        """From all the edges."""


class Counts:
    """Neighbour counts without noise, as a statistic has them."""

    def __init__(self, nodes: int) -> None:
        self._counts = NeighbourCounts(codes=torch.arange(nodes) % CLASSES, num_codes=CLASSES, rate=math.inf)

    def precisely(self, edges: Edges) -> Precise:
        """The table, as it is released: whole numbers, and nothing beside them."""
        return Precise(self._counts.apply(edges, SystemRandomness()).value, torch.empty(0))


def measured(nodes: int, columns: int, steps: int) -> dict[str, Measured]:
    """Three statistics by name: two of one pass, and a walk."""
    rows = torch.randn(nodes, columns, generator=torch.Generator().manual_seed(0))
    targets = torch.eye(CLASSES)[torch.arange(nodes) % CLASSES]
    targets[torch.arange(nodes) % LABELLED_ONE_IN != 0] = 0
    walk = ClassSums(rows, targets, Schemes(restart=0.3, steps=(steps,)))
    return {"edge moments": EdgeMoments(rows), "neighbour counts": Counts(nodes), "class sums": walk}


def row_bytes(name: str, columns: int, steps: int) -> int:
    """Of one node's row that travels, in all passes."""
    return {"edge moments": 4 * columns, "neighbour counts": CLASSES, "class sums": 8 * columns * steps}[name]


def random_edges(edges: int, nodes: int) -> Iterator[NDArray[np.int64]]:
    """A million at a time; low numbers are hubs."""
    rng = np.random.default_rng(0)
    for start in range(0, edges, AT_ONCE):
        ends = rng.random((2, min(AT_ONCE, edges - start)))
        ends[0] **= 2
        yield (ends * nodes).astype(np.int64)


def same(found: Precise, expected: Precise) -> bool:
    """To the last bit."""
    return torch.equal(found.value, expected.value) and torch.equal(found.rest, expected.rest)


def warmed(cluster: LocalCluster, folder: Path, small: Path) -> ClusterEdges:
    """The edges on the cluster, after all workers have loaded what they need and compiled their kernels."""
    edges = open_cluster(cluster.address, small, security=cluster.security)
    for statistic in measured(1000, 16, 1).values():
        edges.run(statistic.precisely)
    return open_cluster(cluster.address, folder, security=cluster.security)


def stay_on(cores: list[int]) -> None:
    """All threads of this process, and processes that it starts."""
    for thread in os.listdir("/proc/self/task"):
        with suppress(ProcessLookupError):  # it has ended meanwhile
            os.sched_setaffinity(int(thread), cores)


def pin(cluster: LocalCluster) -> None:
    """Every worker on a core of its own, as far as there are cores; this process, with the scheduler, on the others."""
    with connected(cluster.address, cluster.security) as client:
        addresses = sorted(client.nthreads())
        for place, address in enumerate(addresses):
            client.run(stay_on, [CORES[place % len(CORES)]], workers=[address])
    stay_on(CORES[len(addresses) :] or CORES)


def processor_seconds(cluster: LocalCluster) -> dict[str, float]:
    """Of every worker so far: what it takes where other programs are at work too."""
    with connected(cluster.address, cluster.security) as client:
        return dict(client.run(time.process_time))


def with_traffic(statistic: Measured) -> Callable[[Edges], tuple[Precise, list[int]]]:
    """The statistic, and how many bytes every worker received for it."""

    def compute(edges: Any) -> tuple[Precise, list[int]]:
        return statistic.precisely(edges), edges._team.ask_all("moved")

    return compute


def with_peak(statistic: Measured) -> Callable[[Edges], int]:
    """How many bytes the coordinator's tensors took at most."""

    def compute(edges: Edges) -> int:
        with LiveTensors() as live:
            statistic.precisely(edges)
        return int(live.peak)

    return compute


def rows_needed(folder: Path, workers: int) -> list[int]:
    """How many rows of others stand beside the nodes of every worker, counted from the edges."""
    store = StoredEdges(folder)
    size, pointers = -(-store.num_nodes // (workers * 16)), store.row_pointers.numpy()
    columns = np.memmap(folder / COLUMNS, dtype=store.header.column_type, mode="r")
    beside = np.zeros((workers, store.num_nodes), dtype=bool)
    for chunk, start in enumerate(range(0, store.num_nodes, size)):
        beside[chunk % workers, columns[pointers[start] : pointers[min(start + size, store.num_nodes)]]] = True
    owners = np.arange(store.num_nodes) // size % workers
    return [int((beside[part] & (owners != part)).sum()) for part in range(workers)]


def send_everything() -> None:
    """Have a process lend no memory, as if it were on another machine than the others."""
    with suppress(AttributeError):
        del os.memfd_create


def peaks(arguments: argparse.Namespace, scratch: Path, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """The coordinator's tensors at their peak, as a function of the number of nodes."""
    lines: list[dict[str, Any]] = []
    if not arguments.peaks:
        return lines
    with local_cluster(2) as cluster:
        for nodes in arguments.peaks:
            say(f"peaks with {nodes:,} nodes")
            folder = scratch / f"peaks-{nodes}.csr"
            write_edge_store(random_edges(2 * nodes, nodes), folder, num_nodes=nodes)
            edges = open_cluster(cluster.address, folder, security=cluster.security)
            for name, statistic in measured(nodes, arguments.columns, arguments.steps).items():
                lines.append({"nodes": nodes, "statistic": name, "peak bytes": edges.run(with_peak(statistic))})
    return lines


def with_a_kill(cluster: LocalCluster, edges: ClusterEdges, statistic: Measured, after: float) -> dict[str, Any]:
    """The same with a worker that dies after so many seconds."""
    victim, died = cluster.dask.workers[0].pid, threading.Event()

    def kill() -> None:
        os.kill(victim, signal.SIGKILL)
        died.set()

    timer = threading.Timer(after, kill)
    timer.start()
    start = time.perf_counter()
    found = edges.run(statistic.precisely)
    in_time = died.is_set()
    timer.cancel()
    return {"seconds": time.perf_counter() - start, "found": found, "killed in the middle": in_time}


def on_workers(
    arguments: argparse.Namespace,
    step: tuple[int, bool],
    stores: tuple[Path, Path],
    statistics: dict[str, Measured],
    expected: dict[str, Precise],
) -> Iterator[dict[str, Any]]:
    """Lines of the table for one number of workers, and whether they send everything."""
    (workers, network), (folder, small) = step, stores
    where = f"{workers} workers" + (", all sent" if network else "")
    needed = rows_needed(folder, workers) if network else [0] * workers
    stay_on(CORES)
    with local_cluster(workers) as cluster:
        if arguments.pin:
            pin(cluster)
        if network:
            send_everything()
            with connected(cluster.address, cluster.security) as client:
                client.run(send_everything)
        edges = warmed(cluster, folder, small)
        for name, statistic in statistics.items():
            times, used, here = [], [], []
            for _ in range(1 + arguments.repeats):  # the first of all checks the store and looks which rows are needed
                before, start, own = processor_seconds(cluster), time.perf_counter(), time.process_time()
                found, moved = edges.run(with_traffic(statistic))
                times.append(time.perf_counter() - start)
                here.append(time.process_time() - own)
                used.append(sorted(after - before[place] for place, after in processor_seconds(cluster).items()))
            line: dict[str, Any] = {"where": where, "workers": workers, "network": network, "statistic": name}
            line |= {
                "seconds": median(times[1:]),
                "all": times[1:],
                "first": times[0],
                "processor": median(each[-1] for each in used[1:]),
            }
            line |= {"least processor": median(each[0] for each in used[1:]), "here": median(here[1:]), "moved": moved}
            line["calculated"] = [rows * row_bytes(name, arguments.columns, arguments.steps) for rows in needed]
            yield {**line, "same bits": same(found, expected[name])}
        if not network and workers == max(arguments.workers) > 1 and not arguments.no_kill:
            result = with_a_kill(cluster, edges, statistic, times[-1] / 2)
            line = {"where": f"{where}, one killed", "statistic": name}
            bits = same(result.pop("found"), expected[name])
            yield {**line, **result, "same bits": bits}


def measure(arguments: argparse.Namespace, scratch: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """All times, and whether all results are the same."""
    small, folder = scratch / "small.csr", arguments.store or scratch / "edges.csr"
    if not arguments.store:
        nodes = max(2, 2 * arguments.edges // arguments.degree)
        say(f"write {arguments.edges:,} edges of {nodes:,} nodes")
        write_edge_store(random_edges(arguments.edges, nodes), folder, num_nodes=nodes)
    write_edge_store(random_edges(10_000, 1000), small, num_nodes=1000)
    torch.set_num_threads(1)
    lending = getattr(os, "memfd_create", None)
    for statistic in measured(1000, 16, 1).values():  # kernels are compiled before anything is timed
        statistic.precisely(StoredEdges(small))
    store, expected = StoredEdges(folder), {}
    lines: list[dict[str, Any]] = []
    found: dict[str, Any] = {"edges": store.header.num_entries // 2, "nodes": store.num_nodes}
    found |= {
        "columns": arguments.columns,
        "steps": arguments.steps,
        "cores": os.cpu_count(),
        "lines": lines,
        "peaks": [],
    }
    found["kernel"] = "numba" if "numba" in sys.modules else "torch"

    def keep(line: dict[str, Any]) -> None:
        lines.append(line)
        spent = f", {line['processor']:.2f} s of the processor" if "processor" in line else ""
        say(f"{line['where']}, {line['statistic']}: {line['seconds']:.2f} s{spent}")
        found["speed-ups"] = speed_ups(lines)
        write()

    def write() -> None:
        if arguments.out:
            arguments.out.mkdir(parents=True, exist_ok=True)
            (arguments.out / "cluster.json").write_text(json.dumps(found, indent=1) + "\n")

    say(f"kernel: {found['kernel']}")
    statistics = measured(store.num_nodes, arguments.columns, arguments.steps)
    store.verify()  # the first pass would do it
    for name, statistic in statistics.items():
        before, start = time.process_time(), time.perf_counter()
        expected[name] = statistic.precisely(store)
        line = {"where": "one process", "statistic": name, "seconds": time.perf_counter() - start}
        keep({**line, "processor": time.process_time() - before, "same bits": True})
    steps = [(workers, False) for workers in arguments.workers] + [(workers, True) for workers in arguments.network]
    for step in steps:
        try:
            for line in on_workers(arguments, step, (folder, small), statistics, expected):
                keep(line)
        finally:
            if lending is not None:
                os.memfd_create = lending
    found["peaks"] = peaks(arguments, scratch, say)
    found["sound"] = all(
        line["same bits"] and line.get("killed in the middle", True) and line.get("moved") == line.get("calculated")
        for line in lines
    )
    write()
    return found


def speed_ups(lines: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """How many times faster than one worker on this machine, statistic by statistic."""
    found: dict[str, dict[str, float]] = {}
    alone = {line["statistic"]: line["seconds"] for line in lines if line["where"] == "1 workers"}
    for line in lines:
        if "workers" in line and line["statistic"] in alone:
            found.setdefault(line["statistic"], {})[line["where"]] = alone[line["statistic"]] / line["seconds"]
    return found


def show(found: dict[str, Any]) -> None:
    """The tables."""
    print(f"\n{found['edges']:,} edges, {found['nodes']:,} nodes, {found['columns']} columns, {found['cores']} cores\n")
    columns = [
        "where",
        "statistic",
        "seconds",
        "the first",
        "processor seconds of the busiest worker",
        "of the laziest",
    ]
    columns += ["of this process, with the scheduler", "MB that each worker receives", "calculated", "same bits"]
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    for line in found["lines"]:
        sizes = [", ".join(f"{size / 1e6:.2f}" for size in line.get(name, ())) for name in ("moved", "calculated")]
        late = "" if line.get("killed in the middle", True) else " (the kill came too late)"
        cells = [line["where"], line["statistic"], f"{line['seconds']:.2f}", f"{line.get('first', 0):.2f}"]
        cells += [
            f"{line[name]:.2f}" if name in line else "" for name in ("processor", "least processor", "here")
        ] + sizes
        print(f"| {' | '.join(cells)} | {'yes' if line['same bits'] else 'NO'}{late} |")
    for statistic, ratios in found.get("speed-ups", {}).items():
        print(f"{statistic}, times faster than 1 worker: {', '.join(f'{at} {by:.2f}' for at, by in ratios.items())}")
    for line in found["peaks"]:
        print(f"{line['nodes']:>12,} nodes, {line['statistic']}: {line['peak bytes'] / 1e6:,.2f} MB at the coordinator")


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, default=50_000_000)
    parser.add_argument("--degree", type=int, default=50)
    parser.add_argument("--columns", type=int, default=16)
    parser.add_argument("--steps", type=int, default=3, help="of the walk")
    parser.add_argument(
        "--store", type=Path, help="an edge store that is there already; instead of --edges and --degree"
    )
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--network", type=int, nargs="*", default=[], help="numbers of workers that send everything")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--pin", action="store_true", help="every worker on a core of its own")
    parser.add_argument("--peaks", type=int, nargs="*", default=[], help="numbers of nodes")
    parser.add_argument(
        "--scratch", type=Path, default=None, help="where to make the store; by default a temporary folder"
    )
    parser.add_argument("--no-kill", action="store_true")
    parser.add_argument("--out", type=Path, help="a folder for what was measured, written after every line")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.scratch, prefix="gcon-cluster-benchmark-") as scratch:
        found = measure(arguments, Path(scratch), lambda words: print(words, file=sys.stderr, flush=True))
    show(found)
    return 0 if found["sound"] else 1


if __name__ == "__main__":
    sys.exit(main())
