"""One command for all of it: measure what is missing, then write tables, figures, claims and the page."""

from __future__ import annotations

import csv
import io
import os
import platform
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console

from gcon.errors import InputError
from gcon.evaluate.report_figures import check_matplotlib
from gcon.experiments import baselines
from gcon.experiments.reproduce import claims
from gcon.experiments.reproduce.collect import Plan, points_of
from gcon.experiments.reproduce.competitors import Sheet, level_points, read_sheet, spending_points
from gcon.experiments.reproduce.figures import draw
from gcon.experiments.reproduce.page import Section, page
from gcon.experiments.reproduce.points import Point, to_csv
from gcon.experiments.reproduce.tables import dataset_rows, dataset_table, figure_rows, markdown, measure
from gcon.experiments.store import write_whole, write_whole_bytes
from gcon.experiments.sweep.graphs import MADE_UP, open_graph
from gcon.experiments.sweep.grid import PAPER_GRAPHS, paper_grid, quick_grid
from gcon.experiments.sweep.run import Unit, run_units
from gcon.experiments.sweep.store import ResultStore
from gcon.version import __version__

FIGURES = ("fig1", "fig2", "fig3", "fig4")
PARTS = ("table2", *FIGURES, "claims")
WHATS = (*PARTS, "all")
TITLES = {
    "fig1": "Fig. 1: accuracy against epsilon",
    "fig2": "Fig. 2: effect of the steps on a private test graph, epsilon 4",
    "fig3": "Fig. 3: effect of the steps on a public test graph, epsilon 4",
    "fig4": "Fig. 4: effect of the restart with two steps",
}
WORDS = {
    "fig1": (
        "Own edges at inference. GCON: the paper's grid, delta 1/|E| and choice by validation, not charged. GCON, honest: "
        "public delta, choices free or paid from epsilon. Of a competitor's variants and accesses the best on the test nodes is "
        "drawn, with a public delta and settings by validation, not charged."
    ),
    "fig2": "Own edges at inference; all other settings by validation, not charged.",
    "fig3": (
        "The model's propagation over public edges. The paper does not say which edges are left out: in one reading those of "
        "labelled nodes, in the other the nodes are split, the model is trained on one part and used on the other."
    ),
    "fig4": "Own edges at inference; all other settings by validation, not charged.",
}
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
        competitors: a competitors' table to reuse; None makes one.
        workers: processes.
        minutes: stop after so long, in good order.
    """

    what: str
    out: Path
    quick: bool = False
    graphs: tuple[str, ...] = PAPER_GRAPHS
    runs: int | None = None
    competitors: Path | None = None
    workers: int = 2
    minutes: float = 90.0

    def __post_init__(self) -> None:
        for name, values, known in (
            ("what", (self.what,), WHATS),
            ("graphs", self.graphs, (*PAPER_GRAPHS, MADE_UP)),
        ):
            for value in values:
                if value not in known:
                    raise InputError(
                        name, rule=f"must be one of {', '.join(known)}", got=value, fix="Check the spelling."
                    )
        for name, number in (("runs", self.number_of_runs), ("workers", self.workers)):
            if number < 1:
                raise InputError(name, rule="must be at least 1", got=number, fix="Leave it out for the default.")
        if not self.minutes > 0:
            raise InputError("minutes", rule="must be above 0", got=self.minutes, fix="Usual is 90.")
        if self.competitors is not None and not self.competitors.is_file():
            raise InputError(
                "competitors",
                rule="must be a file",
                got=str(self.competitors),
                fix="Pass docs/results/baselines.csv, or leave it out to make the table.",
            )

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts that are written."""
        return PARTS if self.what == "all" else (self.what,)

    @property
    def number_of_runs(self) -> int:
        """Ten, or what was asked for."""
        return (QUICK_RUNS if self.quick else FULL_RUNS) if self.runs is None else self.runs

    def plans(self) -> list[Plan]:
        """What is measured, graph by graph."""
        grid = quick_grid if self.quick else paper_grid
        return [Plan(graph=graph, grid=grid(graph), runs=self.number_of_runs) for graph in self.graphs]


@dataclass(frozen=True)
class Outcome:
    """What was done: units of work that are still missing, and the files that were written."""

    missing: int
    files: tuple[Path, ...]


def reproduce(job: Job, console: Console) -> Outcome:
    """Measure until the time is up, then write what there is."""
    check_matplotlib()
    given = None if job.competitors is None else read_sheet(job.competitors.read_text())
    deadline = time.time() + 60 * job.minutes
    missing = run_units(list(_units(job)), job.out / "store", workers=job.workers, deadline=deadline, console=console)
    sheet: Sheet = given or []
    if given is None and "fig1" in job.parts:
        sheet, unfinished = _competitors(job, deadline, console)
        missing += unfinished
    elif given is None:
        sheet = _finished_competitors(job)
    return Outcome(missing, tuple(_write(job, sheet)))


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


def _competitors(job: Job, deadline: float, console: Console) -> tuple[Sheet, int]:
    folder, effort = _competitors_folder(job), _effort(job)
    work = list(baselines.groups(effort, job.graphs))
    unfinished = baselines.finish_groups(folder, work, effort, workers=job.workers, deadline=deadline, console=console)
    return _finished_competitors(job), unfinished


def _finished_competitors(job: Job) -> Sheet:
    folder = _competitors_folder(job)
    if not folder.exists():
        return []
    text = baselines.table(folder, _effort(job), job.graphs)
    return read_sheet(text) if len(text.splitlines()) > 1 else []


def _competitors_folder(job: Job) -> Path:
    return job.out / ("competitors-quick" if job.quick else "competitors")


def _effort(job: Job) -> baselines.Effort:
    return baselines.QUICK if job.quick else baselines.FULL


def all_points(job: Job, sheet: Sheet) -> list[Point]:
    """Every point of every figure that has been measured."""
    store, points = ResultStore(job.out / "store"), []
    for plan in job.plans():
        points += list(points_of(plan, store))
        points += list(spending_points(sheet, "fig1", plan.graph))
        for figure in ("fig1", "fig2", "fig4") if plan.graph != "actor" else ("fig1",):
            points += list(level_points(sheet, figure, plan.graph))
    return points


def _write(job: Job, sheet: Sheet) -> Iterator[Path]:
    points, sections, notes = all_points(job, sheet), [], []
    if "table2" in job.parts:
        rows = [measure(open_graph(graph, 0).graph) for graph in job.graphs if graph != MADE_UP]
        columns, cells = dataset_rows(rows)
        text = _csv([columns, *cells])
        sections.append(
            Section(
                anchor="table2",
                title="The datasets",
                words="Published and measured.",
                columns=columns,
                rows=cells,
                csv_name="table2.csv",
                csv=text,
            )
        )
        notes.append(f"## The datasets\n\n{dataset_table(rows)}")
        yield from _files(job.out, {"table2.csv": text, "table2.md": dataset_table(rows)})
    for figure in FIGURES:
        if figure in job.parts:
            own = [point for point in points if point.figure == figure]
            drawing, picture = draw(figure, own)
            columns, cells = figure_rows(own)
            section = Section(
                anchor=figure,
                title=TITLES[figure],
                words=WORDS[figure],
                svg=drawing,
                columns=columns,
                rows=cells,
                csv_name=f"{figure}.csv",
                csv=to_csv(own),
            )
            sections.append(section)
            notes.append(
                f"## {TITLES[figure]}\n\n{WORDS[figure]}\n\n![{TITLES[figure]}]({figure}.svg)\n\n{markdown(own)}"
            )
            texts = {f"{figure}.csv": to_csv(own), f"{figure}.md": markdown(own), f"{figure}.svg": drawing}
            yield from _files(job.out, texts)
            yield write_whole_bytes(job.out / f"{figure}.png", picture)
    if "claims" in job.parts:
        found = claims.check(points)
        verdicts = [(each.claim, each.verdict, each.numbers) for each in claims.overall(found)]
        sections.append(
            Section(
                anchor="claims",
                title="What the paper claims",
                words="Tested on these numbers.",
                columns=("claim", "verdict", "numbers"),
                rows=verdicts,
                csv_name="claims.csv",
                csv=claims.to_csv(found),
            )
        )
        notes.append(f"## What the paper claims\n\n{claims.markdown(found)}")
        yield from _files(job.out, {"claims.csv": claims.to_csv(found), "claims.md": claims.markdown(found)})
    facts = _facts(job)
    heads = "\n".join(f"- {name}: {words}" for name, words in facts.items())
    whole = "# The paper's figures and table, made again\n\n" + "\n\n".join([heads, *notes]) + "\n"
    yield from _files(job.out, {"index.html": page(sections, facts=facts), "results.md": whole})


def _files(folder: Path, texts: dict[str, str]) -> Iterator[Path]:
    for name, text in texts.items():
        write_whole(folder / name, text)
        yield folder / name


def _csv(rows: Sequence[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


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
