"""One measurement in a process of its own: python -m gcon_lab.bench.measurement ENGINE CONTENDER FOLDER, one line of JSON.

Peak memory is what the process needs beyond what was resident before the graph was read: libraries do not count. On a GPU it is
what torch had allocated at most, on a cluster what its largest process needed in all. Times are of ten steps, the best of the
repeats; reading and preparing do not count.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

import torch

from gcon.edges.edge_list import EdgeList
from gcon.edges.source import Edges
from gcon_lab.bench.contenders import CONTENDERS, Walk, features_of, ours
from gcon_lab.bench.graphs import load_edges, made_edges


def main() -> int:
    engine, contender, folder, repeats = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
    facts = json.loads((folder / "facts.json").read_text())
    warm_up(engine, contender)
    before = resident("VmRSS:")
    forget_peak()
    features = features_of(facts["nodes"], "cuda" if engine == "gpu" else "cpu")
    if engine == "cluster":
        from gcon_lab.bench.workers import walk_on_workers  # a GPU machine may lack what it needs

        with walk_on_workers(folder / "edges.csr", features) as walk:
            best = _best(walk, repeats)
        peak = (
            resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        )  # of the largest process, libraries included
    else:
        edges = _edges(engine, folder, facts)
        prepare = CONTENDERS[contender] if isinstance(edges, EdgeList) else ours
        best = _best(prepare(edges, features), repeats)  # type: ignore[arg-type]
        peak = torch.cuda.max_memory_allocated() if engine == "gpu" else resident("VmHWM:") - before
    sys.stdout.write(json.dumps({"seconds": best, "peak_bytes": peak}) + "\n")
    return 0


def _best(walk: Walk, repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        walk()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return min(times)


def warm_up(engine: str, contender: str) -> None:
    """Compile kernels and load libraries on a tiny graph."""
    device = "cuda" if engine == "gpu" else "cpu"
    edges = made_edges(1009, 10_000, device)
    CONTENDERS[contender](edges, features_of(1009, device))()


def _edges(engine: str, folder: Path, facts: dict[str, int]) -> Edges:
    if engine == "gpu":
        edges = made_edges(facts["nodes"], facts["entries"], "cuda")
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        return edges
    if engine == "disk":
        from gcon.edges.stored import StoredEdges

        return StoredEdges(folder / "edges.csr", buffer_bytes=2**26)
    return load_edges(folder)


def resident(name: str) -> int:
    """Bytes of this process in memory: now (VmRSS:), or at most (VmHWM:) since the peak was forgotten."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def forget_peak() -> None:
    """Start to measure the peak anew, where the system can."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


if __name__ == "__main__":
    sys.exit(main())
