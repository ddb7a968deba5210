"""All measurements of a run, one after another, each in a process of its own; what is done is kept and not measured again."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gcon.errors import InputError
from gcon.writing import write_whole
from gcon_lab.bench.contenders import COLUMNS, CONTENDERS
from gcon_lab.bench.graphs import ENTRIES_A_NODE, MadeRows, made_edges, save_edges
from gcon_lab.bench.training import ALIKE, FEATURES, GCNS, made_features

WORKS, ENGINES = ("walk", "training"), ("cpu", "disk", "cluster", "gpu")
STAGE = "stage: "  # how a line begins that tells what a measurement is doing
WORKERS = 2
_STORED = ("disk", "cluster")  # nobody else works from an edge store
OURS, _SKIPPED = "gcon", {"gpu": ("scipy",)}
_LIMIT = 3600  # seconds for one measurement
_LEAST_NODES = {"walk": 2, "training": 100}


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One measurement.

    Attributes:
        engine: where: `cpu` (edges in memory), `disk` (an edge store, read through 64 MiB), `cluster` (local Dask workers),
            `gpu`.
        contender: whose.
        nodes: so many.
        entries: both directions of all edges, about.
        work: `walk` (ten steps), or `training` (features and labels to a release).
        columns: of the walk, or features.
        workers: of a cluster.
    """

    engine: str
    contender: str
    nodes: int
    entries: int
    work: str = "walk"
    columns: int = COLUMNS
    workers: int = WORKERS

    @property
    def name(self) -> str:
        """For the file that keeps the result."""
        whose = self.contender.replace(" ", "-").replace(",", "")
        engine = f"cluster{self.workers}" if self.engine == "cluster" and self.workers != WORKERS else self.engine
        begin, end = ("", "") if self.work == "walk" else (f"{self.work}-", f"-{self.columns}")
        return f"{begin}{engine}-{whose}-{self.nodes}-{self.entries}{end}"

    @property
    def graph(self) -> str:
        """For the folder of its graph, which others share."""
        return f"{self.work}-{self.nodes}-{self.entries}-{self.columns}"


def tasks(
    engines: Sequence[str],
    entries: Sequence[int],
    *,
    nodes: int | None,
    rivals: bool,
    work: str = "walk",
    features: int = FEATURES,
    workers: int = WORKERS,
) -> list[Measurement]:
    """What a run measures."""
    if work not in WORKS:
        raise InputError("work", rule=f"must be one of {', '.join(WORKS)}", got=repr(work), fix="Use walk.")
    for engine in engines:
        if engine not in ENGINES:
            raise InputError("engines", rule=f"must be some of {', '.join(ENGINES)}", got=repr(engine), fix="Use cpu.")
    for count in entries:
        if not 10**3 <= count <= 10**10:
            raise InputError("entries", rule="must lie between 1e3 and 1e10", got=f"{count:g}", fix="Start with 1e7.")
        size, least = count // ENTRIES_A_NODE if nodes is None else nodes, _LEAST_NODES[work]
        if size < least:
            rule = f"must be at least {least} for a {work}"
            raise InputError("nodes", rule=rule, got=size, fix="Ask for more entries, or for --nodes.")
    columns, others = (COLUMNS, CONTENDERS) if work == "walk" else (features, {OURS: None, **GCNS})
    found = []
    for engine in engines:
        skipped = others.keys() - {OURS} if engine in _STORED or not rivals else _SKIPPED.get(engine, ())
        names = [name for name in others if name not in skipped]
        for count in sorted(entries):
            size = count // ENTRIES_A_NODE if nodes is None else nodes
            same = {"nodes": size, "entries": count, "work": work, "columns": columns, "workers": workers}
            found += [Measurement(engine=engine, contender=name, **same) for name in names]  # type: ignore[arg-type]
    return found


def run_tasks(
    wanted: Sequence[Measurement], *, out: Path, scratch: Path, progress: Callable[[str], None], repeats: int = 2
) -> Iterator[dict[str, Any]]:
    """Results one after another; those that are kept in `out` first come from there.

    Args:
        wanted: what to measure.
        out: a folder for results, one file each.
        scratch: a folder for graphs; they are deleted when they are not needed any more.
        progress: told what is being done.
        repeats: the best of so many runs counts.
    """
    out.mkdir(parents=True, exist_ok=True)
    for place, task in enumerate(wanted):
        kept, folder = out / f"{task.name}.json", scratch / task.graph
        if not kept.exists():
            words = f"{place + 1} of {len(wanted)}: {task.work}, {task.engine}, {task.contender}, {task.entries:.0e} entries"
            progress(words)
            _prepare(task, folder, progress)
            measured = _measured(task, folder, repeats, lambda stage, words=words: progress(f"{words}: {stage}"))  # type: ignore[misc]
            write_whole(kept, json.dumps({**asdict(task), "repeats": repeats, **measured}, indent=1) + "\n", mode=None)
        yield json.loads(kept.read_text())
        if not any(later.graph == task.graph for later in wanted[place + 1 :]):
            shutil.rmtree(folder, ignore_errors=True)


def _prepare(task: Measurement, folder: Path, progress: Callable[[str], None]) -> None:
    """The graph on disk, for the processes that measure; a GPU makes its own."""
    folder.mkdir(parents=True, exist_ok=True)
    alike = ALIKE if task.work == "training" else 0.0
    if task.engine == "gpu":
        return
    if task.engine == "cpu" and not (folder / "done.json").exists():
        progress(f"make {task.entries:.0e} entries")
        save_edges(made_edges(task.nodes, task.entries, alike=alike), folder)
    if task.engine in _STORED and not (folder / "edges.csr").exists():
        from gcon_lab.bench.stores import write_rows

        progress(f"store {task.entries:.0e} entries")
        write_rows(MadeRows(task.nodes, task.entries, alike=alike), folder / "edges.csr")
    if task.work == "training" and not (folder / "features.npy").exists():
        progress(f"make {task.nodes:.0e} rows of features")
        made_features(task.nodes, task.columns, file=folder / "unfinished.npy")
        (folder / "unfinished.npy").rename(folder / "features.npy")


def _measured(task: Measurement, folder: Path, repeats: int, progress: Callable[[str], None]) -> dict[str, Any]:
    """In a process of its own, which may run out of memory or of time."""
    command = [sys.executable, "-m", "gcon_lab.bench.measurement", json.dumps(asdict(task)), str(folder), str(repeats)]
    last, late = "", threading.Event()
    with (
        tempfile.TemporaryFile("w+") as answer,
        subprocess.Popen(command, stdout=answer, stderr=subprocess.PIPE, text=True, errors="replace") as child,
    ):

        def stop() -> None:
            late.set()
            child.kill()

        timer = threading.Timer(_LIMIT, stop)
        timer.start()
        try:
            assert child.stderr is not None
            for line in child.stderr:
                if line.startswith(STAGE):
                    progress(line.removeprefix(STAGE).strip())
                else:
                    last = line.strip() or last
            child.wait()
        except BaseException:
            child.kill()
            raise
        finally:
            timer.cancel()
        answer.seek(0)
        lines = answer.read().splitlines()
    if child.returncode == 0:
        found: dict[str, Any] = json.loads(lines[-1])
        return found
    if late.is_set():
        return {"failed": f"took more than {_LIMIT} s"}
    memory = child.returncode in (-9, 137) or "memory" in last.lower()
    return {"failed": "out of memory" if memory else last[:200]}
