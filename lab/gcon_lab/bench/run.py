"""All measurements of a run, one after another, each in a process of its own; what is done is kept and not measured again."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gcon.errors import InputError
from gcon.writing import write_whole
from gcon_lab.bench.contenders import COLUMNS, CONTENDERS
from gcon_lab.bench.graphs import ENTRIES_A_NODE, MadeRows, made_edges, save_edges

ENGINES = ("cpu", "disk", "cluster", "gpu")
_ALONE = ("disk", "cluster")  # nobody else works from an edge store
_OURS, _SKIPPED = "gcon", {"gpu": ("scipy",)}
_LIMIT = 3600  # seconds for one measurement


@dataclass(frozen=True, kw_only=True)
class Task:
    """One measurement.

    Attributes:
        engine: where: `cpu` (edges in memory), `disk` (an edge store, read through 64 MiB), `cluster` (two local Dask workers),
            `gpu`.
        contender: whose ten steps.
        nodes: so many.
        entries: both directions of all edges, about.
    """

    engine: str
    contender: str
    nodes: int
    entries: int

    @property
    def name(self) -> str:
        """For the file that keeps the result."""
        return f"{self.engine}-{self.contender.replace(' ', '-').replace(',', '')}-{self.nodes}-{self.entries}"


def tasks(engines: Sequence[str], entries: Sequence[int], *, nodes: int | None, rivals: bool) -> list[Task]:
    """What a run measures."""
    for engine in engines:
        if engine not in ENGINES:
            raise InputError("engines", rule=f"must be some of {', '.join(ENGINES)}", got=repr(engine), fix="Use cpu.")
    for count in entries:
        if not 10**3 <= count <= 10**10:
            raise InputError("entries", rule="must lie between 1e3 and 1e10", got=f"{count:g}", fix="Start with 1e7.")
    found = []
    for engine in engines:
        names = (
            [_OURS]
            if engine in _ALONE or not rivals
            else [name for name in CONTENDERS if name not in _SKIPPED.get(engine, ())]
        )
        for count in sorted(entries):
            size = count // ENTRIES_A_NODE if nodes is None else nodes
            found += [Task(engine=engine, contender=name, nodes=size, entries=count) for name in names]
    return found


def run_tasks(
    wanted: Sequence[Task], *, out: Path, scratch: Path, progress: Callable[[str], None], repeats: int = 2
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
        kept = out / f"{task.name}.json"
        folder = scratch / f"{task.nodes}-{task.entries}"
        if not kept.exists():
            progress(f"{task.engine}, {task.contender}, {task.entries:.0e} entries")
            _prepare(task, folder, progress)
            result = {**vars(task), "columns": COLUMNS, **_measured(task, folder, repeats)}
            write_whole(kept, json.dumps(result, indent=1) + "\n", mode=None)
        yield json.loads(kept.read_text())
        if not any((later.nodes, later.entries) == (task.nodes, task.entries) for later in wanted[place + 1 :]):
            shutil.rmtree(folder, ignore_errors=True)


def _prepare(task: Task, folder: Path, progress: Callable[[str], None]) -> None:
    """The graph on disk, for the processes that measure; a GPU makes its own."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "facts.json").write_text(json.dumps({"nodes": task.nodes, "entries": task.entries}))
    if task.engine == "cpu" and not (folder / "done.json").exists():
        progress(f"make {task.entries:.0e} entries")
        save_edges(made_edges(task.nodes, task.entries), folder)
    if task.engine in _ALONE and not (folder / "edges.csr").exists():
        from gcon_lab.bench.stores import write_rows

        progress(f"store {task.entries:.0e} entries")
        write_rows(MadeRows(task.nodes, task.entries), folder / "edges.csr")


def _measured(task: Task, folder: Path, repeats: int) -> dict[str, Any]:
    command = [
        sys.executable,
        "-m",
        "gcon_lab.bench.measurement",
        task.engine,
        task.contender,
        str(folder),
        str(repeats),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return {"failed": f"took more than {_LIMIT} s"}
    if done.returncode == 0:
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found
    words = done.stderr.strip().splitlines()[-1:] or [""]
    memory = done.returncode in (-9, 137) or "memory" in words[0].lower()
    return {"failed": "out of memory" if memory else words[0][:200]}
