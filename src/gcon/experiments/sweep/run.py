"""Doing the units that are missing: several workers, a time limit, the time left on the screen, nothing done twice.

Every finished unit is on disk before the next one begins, so the work may be stopped in any way, kill -9 included.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Protocol

import polars as pl
import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from gcon.experiments.sweep.store import ResultStore


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
    missing = [unit for unit in units if not store.has(unit.name)]
    if not missing:
        return 0
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    unfinished = 0
    # New processes, not forked ones: no state of any generator is copied.
    context = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(min(workers, len(missing)), mp_context=context, initializer=_begin_worker) as pool,
        Progress(*columns, console=console, speed_estimate_period=600) as progress,
    ):
        task = progress.add_task("", total=sum(unit.cost for unit in units))
        progress.update(task, completed=sum(unit.cost for unit in units if store.has(unit.name)))
        waiting = {pool.submit(_finish, unit, folder, deadline): unit for unit in missing}
        for future in as_completed(waiting):
            unit, finished = waiting[future], future.result()
            unfinished += not finished
            progress.update(task, advance=unit.cost if finished else 0, description=unit.name)
    return unfinished


def _finish(unit: Unit, folder: Path, deadline: float) -> bool:
    if time.time() > deadline:
        return False
    ResultStore(folder).write(unit.name, unit.results())
    return True


def _begin_worker() -> None:
    torch.set_num_threads(1)
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: multiprocessing.process.BaseProcess) -> None:
    """A killed command must not leave workers behind that wait for it for ever."""
    parent.join()
    os._exit(1)
