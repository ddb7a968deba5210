"""Doing the units that are missing: several workers, a time limit, the time left on the screen, nothing done twice.

Every finished unit is on disk before the next one begins, so the work may be stopped in any way, kill -9 included.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import polars as pl
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from gcon.machine import keep_to_one_thread
from gcon_lab.experiments.sweep.store import ResultStore


class Unit(Protocol):
    """A piece of work whose result is kept."""

    @property
    def name(self) -> str:
        """Of the stored result: the same name must mean the same result."""

    @property
    def cost(self) -> float:
        """About how long it takes, in any measure that all units share."""

    def results(self) -> pl.DataFrame:
        """Do it."""


def run_units(units: Sequence[Unit], folder: Path, *, workers: int, deadline: float, console: Console) -> int:
    """Do what is missing until the deadline (`time.time()`); returns how many units are still missing."""
    store = ResultStore(folder)
    store.tidy()
    tasks = [
        Task(unit.name, unit.cost, None if store.has(unit.name) else partial(_finish, unit, folder, deadline))
        for unit in units
    ]
    return in_parallel(tasks, workers=workers, console=console)


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
    ResultStore(folder).write(unit.name, unit.results())
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
