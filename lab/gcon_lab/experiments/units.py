"""Units of work: several workers, a time limit, the time left on the screen, nothing done twice.

Every finished unit is a file, whole or not there, before the next one begins: work may be stopped in any way, kill -9 included,
and the same command goes on from there. A table is kept as Parquet, which any tool can ask
(`polars.scan_parquet("OUT/store/grid-*.parquet")`), anything else as JSON.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import polars as pl
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from gcon.machine import keep_to_one_thread
from gcon.writing import UNFINISHED, whole_file, write_whole


class UnitStore:
    """Finished units in a folder.

    Example:
        >>> import tempfile
        >>> store = UnitStore(Path(tempfile.mkdtemp()))
        >>> store.write("run-0", {"score": 0.5})
        >>> store.read("run-0"), store.has("run-1")
        ({'score': 0.5}, False)
        >>> store.write("table", pl.DataFrame({"test": [0.5]}))
        >>> store.table(["table", "another"]).height
        1
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def has(self, name: str) -> bool:
        return self._parquet(name).exists() or self.read(name) is not None

    def write(self, name: str, results: Any) -> None:
        if isinstance(results, pl.DataFrame):
            with whole_file(self._parquet(name)) as file:
                results.write_parquet(file, statistics=False)
        else:
            write_whole(self._folder / f"{name}.json", json.dumps(results))

    def read(self, name: str) -> Any | None:
        """What is no table; None if it is not finished (a damaged file counts as unfinished)."""
        try:
            return json.loads((self._folder / f"{name}.json").read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return None

    def table(self, names: Iterable[str]) -> pl.DataFrame:
        """The finished ones of these tables, one below the other."""
        paths = [path for name in names if (path := self._parquet(name)).exists()]
        return pl.concat([pl.read_parquet(path) for path in paths]) if paths else pl.DataFrame()

    def tidy(self) -> None:
        """Remove what a killed run left half written. Not while another run writes here."""
        for path in self._folder.glob(UNFINISHED):
            path.unlink(missing_ok=True)

    def _parquet(self, name: str) -> Path:
        return self._folder / f"{name}.parquet"


class Unit(Protocol):
    """A piece of work whose result is kept."""

    @property
    def name(self) -> str:
        """Of the stored result: the same name must mean the same result."""

    @property
    def cost(self) -> float:
        """About how long it takes, in any measure that all units share."""

    def results(self) -> Any:
        """Do it: a table, or what JSON can hold."""


@dataclass(frozen=True)
class Call:
    """A unit that is one call of a function."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    cost: float = 1.0

    def results(self) -> Any:
        return self.function(*self.arguments)


def finished(units: Sequence[Unit], folder: Path, *, workers: int) -> list[Any]:
    """What all these units give, none of them a table; those that are kept in the folder are not done again."""
    run_units(units, folder, workers=workers)
    return [UnitStore(folder).read(unit.name) for unit in units]


def run_units(
    units: Sequence[Unit], folder: Path, *, workers: int, deadline: float = float("inf"), console: Console | None = None
) -> int:
    """Do what is missing until the deadline (`time.time()`); returns how many units are still missing."""
    store = UnitStore(folder)
    store.tidy()
    tasks = [
        Task(unit.name, unit.cost, None if store.has(unit.name) else partial(_finish, unit, folder, deadline))
        for unit in units
    ]
    return in_parallel(tasks, workers=workers, console=console or Console(stderr=True))


@dataclass(frozen=True)
class Task:
    """A named piece of work; `work` says whether it was finished, and is None where it was done before."""

    name: str
    cost: float
    work: Callable[[], bool] | None


def in_parallel(tasks: Sequence[Task], *, workers: int, console: Console) -> int:
    """Do tasks in processes of their own, with the time left on the screen; returns how many were not finished."""
    waiting = [task for task in tasks if task.work is not None]
    if not waiting:
        return 0
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    unfinished = 0
    # New processes, not forked ones: no state of any generator is copied.
    context = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(min(workers, len(waiting)), mp_context=context, initializer=_begin_worker) as pool,
        Progress(*columns, console=console, speed_estimate_period=600) as progress,
    ):
        bar = progress.add_task("", total=sum(task.cost for task in tasks))
        progress.update(bar, completed=sum(task.cost for task in tasks if task.work is None))
        futures = {pool.submit(task.work): task for task in waiting if task.work is not None}
        try:
            for future in as_completed(futures):
                task, finished = futures[future], future.result()
                unfinished += not finished
                progress.update(bar, advance=task.cost if finished else 0, description=task.name)
        except BaseException:
            # An error or Ctrl-C is told now, not after all that is waiting; what has begun may end.
            pool.shutdown(cancel_futures=True)
            raise
    return unfinished


def _finish(unit: Unit, folder: Path, deadline: float) -> bool:
    if time.time() > deadline:
        return False
    UnitStore(folder).write(unit.name, unit.results())
    return True


def _begin_worker() -> None:
    keep_to_one_thread()
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: multiprocessing.process.BaseProcess) -> None:
    """A killed command must not leave workers behind that wait for it for ever."""
    parent.join()
    os._exit(1)
