"""One measurement in a process of its own: python -m gcon_lab.bench.measurement TASK FOLDER REPEATS, one line of JSON.

Peak memory is what the process needs beyond what was resident before the graph was read: libraries do not count. On a GPU it is
what torch had allocated at most, on a cluster what its largest process needed in all. `host_bytes` is what the machine must have:
the whole process, on a cluster with all its workers. Times are the best of the repeats, of ten steps or of a whole training; of a
walk reading and preparing do not count, of a training making the graph does not. `load` is that of the machine, per core: above 1
other programs were at work too.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gcon.edges.edge_list import EdgeList
from gcon.edges.source import Edges
from gcon.privacy.boundary import Private
from gcon_lab.bench.contenders import CONTENDERS, Walk, features_of, ours
from gcon_lab.bench.graphs import load_edges, made_edges
from gcon_lab.bench.memory import forget_peak, resident
from gcon_lab.bench.run import OURS, STAGE, Measurement
from gcon_lab.bench.training import ALIKE, GCNS, kept_features, made_features, nodes_of, train_default


def main() -> int:
    task, folder, repeats = Measurement(**json.loads(sys.argv[1])), Path(sys.argv[2]), int(sys.argv[3])
    on_gpu, device = task.engine == "gpu", "cuda" if task.engine == "gpu" else "cpu"
    work = {"walk": _walk, "training": _training}[task.work]
    warm_up(task, device)
    before = forget_peak()
    with work(task, folder, device) as run:
        inputs = resident()
        if on_gpu:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        best, found = _best(run, repeats)
    workers = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024  # the largest process, libraries included
    peak = {"cluster": workers, "gpu": torch.cuda.max_memory_allocated() if on_gpu else 0}
    whole = resident("VmHWM")
    cores = len(os.sched_getaffinity(0))
    result = {
        **best,
        "peak_bytes": peak.get(task.engine, whole - before),
        "host_bytes": whole + (task.workers * workers if task.engine == "cluster" else 0),
        "inputs_bytes": inputs - before,
        "cores": cores,
        "gpus": int(on_gpu),
        "machine": f"{cores} cores" + (f", {torch.cuda.get_device_name()}" if on_gpu else ""),
        "load": os.getloadavg()[0] / (os.cpu_count() or 1),
        **({"right": found} if task.work == "training" else {}),
    }
    sys.stdout.write(json.dumps(result) + "\n")
    return 0


@contextmanager
def _walk(task: Measurement, folder: Path, device: str) -> Iterator[Walk]:
    """Ten steps."""
    features = features_of(task.nodes, device)
    if task.engine == "cluster":
        from gcon_lab.bench.stores import walk_on_workers  # a GPU machine may lack what it needs

        with walk_on_workers(folder / "edges.csr", features, task.workers) as walk:
            yield walk
        return
    edges = _edges(task, folder)
    prepare = CONTENDERS[task.contender] if isinstance(edges, EdgeList) else ours
    yield prepare(edges, features)  # type: ignore[arg-type]


@contextmanager
def _training(task: Measurement, folder: Path, device: str) -> Iterator[Callable[[], object]]:
    """Features and labels to a release, or to a trained GCN."""
    nodes, begun = nodes_of(_features(task, folder, device)), time.perf_counter()

    def told(stage: str) -> None:
        memory = f"{resident('VmHWM') / 2**30:.2f} GiB"
        memory += f", {torch.cuda.max_memory_allocated() / 2**30:.2f} on the GPU" if device == "cuda" else ""
        sys.stderr.write(f"{STAGE}{stage} ({time.perf_counter() - begun:.0f} s, {memory})\n")
        sys.stderr.flush()

    if task.engine == "cluster":
        from gcon_lab.bench.stores import stored_on_workers

        with stored_on_workers(folder / "edges.csr", task.workers) as on_workers:
            yield partial(train_default, nodes, on_workers, device, told)
        return
    edges = _edges(task, folder)
    if task.contender == OURS:
        yield partial(train_default, nodes, Private(edges, "made-up edges"), device, told)
    else:
        yield partial(GCNS[task.contender], nodes, edges, device, told)


def _best(work: Callable[[], object], repeats: int) -> tuple[dict[str, float], Any]:
    """The fastest of the repeats, in seconds on the clock and of the processor, and what came out last."""
    times, found = [], None
    for _ in range(repeats):
        found = None  # what came out before is not part of what the next run needs
        start, used = time.perf_counter(), time.process_time()
        found = work()
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        times.append((time.perf_counter() - start, time.process_time() - used))
    best = min(times)
    return {"seconds": best[0], "processor_seconds": best[1]}, found


def warm_up(task: Measurement, device: str) -> None:
    """Compile kernels and load libraries on a tiny graph."""
    edges = made_edges(1009, 10_000, device)
    if task.work == "walk":
        CONTENDERS[task.contender](edges, features_of(1009, device))()
        return
    nodes, quiet = nodes_of(made_features(1009, 8, device=device)), lambda stage: None
    if task.contender == OURS:
        train_default(nodes, Private(edges, "made-up edges"), device, quiet)
    else:
        GCNS[task.contender](nodes, edges, device, quiet)


def _features(task: Measurement, folder: Path, device: str) -> Tensor:
    if task.engine == "gpu":
        return made_features(task.nodes, task.columns, device=device)
    return kept_features(folder / "features.npy", mapped=task.engine != "cpu")


def _edges(task: Measurement, folder: Path) -> Edges:
    if task.engine == "gpu":
        return made_edges(task.nodes, task.entries, "cuda", alike=ALIKE if task.work == "training" else 0.0)
    if task.engine == "disk":
        from gcon.edges.stored import StoredEdges

        return StoredEdges(folder / "edges.csr", buffer_bytes=2**26)
    return load_edges(folder)


if __name__ == "__main__":
    sys.exit(main())
