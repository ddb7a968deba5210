"""One command for all of it: measure what is missing, then write tables, figures, claims and the page."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from gcon.errors import InputError
from gcon.version import __version__
from gcon_lab.experiments import baselines
from gcon_lab.experiments.beyond.build import GRAPHS, build_beyond
from gcon_lab.experiments.beyond.scores import beyond_units
from gcon_lab.experiments.reproduce.collect import (
    MeasuringPlan,
    Sheet,
    level_points,
    points_of,
    read_sheet,
    spending_points,
)
from gcon_lab.experiments.reproduce.points import Point
from gcon_lab.experiments.reproduce.write import FIGURES, PARTS, write_parts
from gcon_lab.experiments.sweep.graphs import CIRCLES, MADE_UP
from gcon_lab.experiments.sweep.grid import BUDGETS, PAPER_GRAPHS, paper_grid, quick_grid
from gcon_lab.experiments.sweep.social import SOCIAL
from gcon_lab.experiments.units import Unit, UnitStore, run_units

BEYOND = "beyond"
WHATS = (*PARTS, "all", BEYOND)
QUICK_RUNS, FULL_RUNS = 2, 10


@dataclass(frozen=True, kw_only=True)
class Job:
    """What is asked for.

    Attributes:
        what: one of `WHATS`.
        out: the folder of results; work that is finished there is not done again.
        quick: a small grid, two runs, and competitors at their defaults.
        graphs: which ones.
        runs: how many; None for ten, or two with `quick`.
        first_run: of `beyond`: runs before it are left out.
        kept: of `beyond`: an earlier table of scores, of which all but ours is reused.
        competitors: of the paper's figures: a competitors' table to reuse; None makes one.
        workers: processes.
        minutes: stop after so long, in good order.
    """

    what: str
    out: Path
    quick: bool = False
    graphs: tuple[str, ...] = PAPER_GRAPHS
    runs: int | None = None
    first_run: int = 0
    kept: Path | None = None
    competitors: Path | None = None
    workers: int = 2
    minutes: float = 90.0

    def __post_init__(self) -> None:
        graphs = (*PAPER_GRAPHS, MADE_UP, *((*SOCIAL, *CIRCLES) if self.what == BEYOND else ()))
        for name, values, known in (("what", (self.what,), WHATS), ("graphs", self.graphs, graphs)):
            rule = f"must be one of {', '.join(known)}"
            if wrong := [value for value in values if value not in known]:
                raise InputError(name, rule=rule, got=wrong[0], fix="Check the spelling.")
        folders = (self.out, *self.out.parents)
        fix = "Pass docs/results/baselines.csv, or leave it out to make the table."
        for name, good, rule, got, way in (
            ("graphs", len(set(self.graphs)) == len(self.graphs) > 0, "must be some graphs, each once",
             ", ".join(self.graphs) or "none", "Leave out repeats."),
            ("runs", self.number_of_runs >= 1, "must be at least 1", self.number_of_runs, "Leave it out for the default."),
            ("first_run", self.first_run == 0 or (self.first_run > 0 and self.what == BEYOND),
             "must be at least 0, and is for `beyond`", self.first_run, "Leave it out."),
            ("kept", self.kept is None or (self.kept.is_file() and self.what == BEYOND),
             "must be a file, and is for `beyond`", str(self.kept), "Pass docs/results/beyond/scores.csv, or nothing."),
            ("workers", self.workers >= 1, "must be at least 1", self.workers, "Leave it out for the default."),
            ("minutes", self.minutes > 0, "must be above 0", self.minutes, "Usual is 90."),
            ("out", all(path.is_dir() or not path.exists() for path in folders), "must be a folder",
             str(self.out), "Name another one."),
            ("competitors", self.competitors is None or self.competitors.is_file(), "must be a file",
             str(self.competitors), fix),
        ):  # fmt: skip
            if not good:
                raise InputError(name, rule=rule, got=got, fix=way)

    @property
    def parts(self) -> tuple[str, ...]:
        return PARTS if self.what == "all" else (self.what,)

    @property
    def number_of_runs(self) -> int:
        return (QUICK_RUNS if self.quick else FULL_RUNS) if self.runs is None else self.runs

    def plans(self) -> list[MeasuringPlan]:
        grid = quick_grid if self.quick else paper_grid
        return [MeasuringPlan(graph=graph, grid=grid(graph), runs=self.number_of_runs) for graph in self.graphs]


@dataclass(frozen=True)
class Reproduction:
    """What was done: units of work that are still missing, and the files that were written."""

    missing: int
    files: tuple[Path, ...]


def reproduce(job: Job, console: Console) -> Reproduction:
    """Measure until the time is up, then write what there is."""
    if job.what == BEYOND:
        return _beyond(job, console)
    sheet = None if job.competitors is None else read_sheet(job.competitors.read_text(errors="replace"))
    work: dict[str, Any] = {"workers": job.workers, "deadline": time.time() + 60 * job.minutes, "console": console}
    missing = run_units(list(_units(job)), job.out / "store", **work)
    if sheet is None:
        folder = job.out / ("competitors-quick" if job.quick else "competitors")
        effort = baselines.QUICK if job.quick else baselines.FULL
        if "fig1" in job.parts:
            missing += baselines.finish_groups(folder, list(baselines.groups(effort, job.graphs)), effort, **work)
        sheet = _finished_competitors(folder, effort, job.graphs)
    points = all_points(job, sheet)
    return Reproduction(missing, tuple(write_parts(job.parts, points, job.graphs, job.out, facts=_facts(job))))


def _beyond(job: Job, console: Console) -> Reproduction:
    graphs = GRAPHS if job.graphs == PAPER_GRAPHS else job.graphs
    runs = range(job.first_run, job.first_run + job.number_of_runs)
    units = beyond_units(graphs, runs=runs, budgets=(1.0, 4.0) if job.quick else BUDGETS)
    work: dict[str, Any] = {"workers": job.workers, "deadline": time.time() + 60 * job.minutes, "console": console}
    missing, files = build_beyond(units, job.out, kept=job.kept, **work)
    return Reproduction(missing, tuple(files))


def _units(job: Job) -> Iterator[Unit]:
    """Figs. 2 and 4 are parts of Fig. 1's grid: what one of them measured serves the others."""
    for plan in job.plans():
        figures = [part for part in job.parts if part in FIGURES]
        if "fig1" in figures or (figures and plan.graph != "actor"):
            yield from plan.model_units()
        if "fig1" in figures:
            yield from plan.honest_units()
        if "fig3" in figures:
            yield from plan.control_units()


def _finished_competitors(folder: Path, effort: baselines.Effort, graphs: Sequence[str]) -> Sheet:
    if not folder.exists():
        return []
    text = baselines.table(folder, effort, graphs)
    return read_sheet(text) if len(text.splitlines()) > 1 else []


def all_points(job: Job, sheet: Sheet) -> list[Point]:
    """Every point of every figure that has been measured."""
    store, points = UnitStore(job.out / "store"), []
    for plan in job.plans():
        points += list(points_of(plan, store))
        points += list(spending_points(sheet, "fig1", plan.graph))
        for figure in ("fig1", "fig2", "fig4") if plan.graph != "actor" else ("fig1",):
            points += list(level_points(sheet, figure, plan.graph))
    return points


def _facts(job: Job) -> dict[str, str]:
    """How it was made; no dates and times, so that equal results are equal files."""
    options = ["--quick"] if job.quick else []
    options += [] if job.graphs == PAPER_GRAPHS else [f"--graphs {','.join(job.graphs)}"]
    options += [] if job.runs is None else [f"--runs {job.runs}"]
    options += [] if job.competitors is None else [f"--competitors {job.competitors.name}"]
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    models = sum(plan.grid.num_models * plan.runs for plan in job.plans())
    return {
        "command": " ".join(["gcon reproduce", job.what, *options, "--out OUT"]),
        "private models in the grid": f"{models:,}",
        "runs": f"{job.number_of_runs} a graph, each with its own encoder seed and noise (Actor: five splits)",
        "noise": "seeded, so none of these models keeps a promise",
        "versions": f"gcon {__version__}, torch {torch.__version__}, Python {platform.python_version()}",
        "machine": f"{os.cpu_count()} cores, {pages:.0f} GiB, {job.workers} workers",
    }
