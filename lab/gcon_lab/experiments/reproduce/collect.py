"""From stored scores and the competitors' table to points: nothing is trained again for a figure.

For every point of a figure, the settings with the best mean validation score. That is the paper's rule, and it is not charged.
Everything that a figure does not fix is chosen: encoder width, rows in the loss, loss, ridge and inference restart; in Fig. 1
also restart and steps. Only runs that are complete count.
"""

from __future__ import annotations

import csv
import io
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import polars as pl

from gcon.errors import InputError
from gcon_lab.experiments.reproduce.points import ANY, Kind, Point
from gcon_lab.experiments.sweep.graphs import READINGS
from gcon_lab.experiments.sweep.grid import ALL_RESTARTS, FIXED_BUDGET, Grid
from gcon_lab.experiments.sweep.models import ModelUnit, step_words
from gcon_lab.experiments.sweep.other_lines import PAID_SHARE, honest_unit, public_control_unit
from gcon_lab.experiments.units import Call, UnitStore

# Name in the table -> line of the figure. Where a method has several variants or accesses, the one with the best mean on the
# *test* nodes is drawn: generous to the competitor.
SPENDERS = {
    "dp-sgd": "DP-SGD",
    "dpgcn, LapGraph": "DPGCN",
    "dpgcn, EdgeRand": "DPGCN",
    "lpgnet": "LPGNet",
    "lpgnet, two": "LPGNet",
    "gap": "GAP",
    "progap": "ProGAP",
}
LEVEL: dict[tuple[str, str], tuple[str, Kind]] = {
    ("mlp", "none"): ("MLP", "control"),
    ("encoder", "none"): ("encoder", "control"),
    ("encoder, one hop", "own-edges"): ("encoder, one hop", "control"),
    ("self-training", "none"): ("self-training", "control"),
    ("self-training", "own-edges"): ("self-training, one hop", "control"),
    ("gcn", "full"): ("GCN (non-DP)", "non-private"),
    ("gpr-gnn", "full"): ("GPR-GNN (non-DP)", "non-private"),
}
PUBLIC_DELTA = "public: min(1e-5, 1/(10 n))"
NO_DELTA = "none: no promise is needed or made"
_NEEDED = {"graph", "epsilon", "method", "access", "mean", "standard deviation", "runs", "chosen by", "settings"}
Sheet = list[dict[str, str]]
SETTINGS = ("hidden", "expand", "restart", "steps", "loss", "ridge", "inference")
UNCHARGED = "validation, uncharged (the paper's rule)"
FREE_OR_PAID = f"free rehearsals without edges; inference restart paid with {PAID_SHARE:g} epsilon"
PAPER_DELTA = "1/|E|, the number of edges taken as public (the paper's)"


def read_sheet(text: str) -> Sheet:
    rows = list(csv.DictReader(io.StringIO(text)))
    if not rows or not set(rows[0]) >= _NEEDED:
        raise InputError(
            "competitors",
            rule=f"must be a CSV with the columns {', '.join(sorted(_NEEDED))}",
            got="another table",
            fix="Pass what gcon_lab.experiments.baselines wrote, for example docs/results/baselines.csv.",
        )
    kept = [row for row in rows if row["mean"]]  # a skipped group has no mean
    seen = set()
    for row in kept:
        place = row["graph"], row["epsilon"], row["method"], row["access"]
        rule = "must have one row for a graph, epsilon, method and access" if place in seen else ""
        if not _has_numbers(row):
            rule = "must have numbers for epsilon (or any), mean, standard deviation (from 0) and runs (from 1)"
        if rule:
            got = f"another row for {row['method']} on {row['graph']}"
            raise InputError("competitors", rule=rule, got=got, fix="Make the table again.")
        seen.add(place)
    return kept


def _has_numbers(row: dict[str, str]) -> bool:
    """A number that is none would be found only when everything has been measured."""
    try:
        found = [float(row[name]) for name in ("mean", "standard deviation")]
        found.append(0.0 if row["epsilon"] == ANY else float(row["epsilon"]))
        return all(map(math.isfinite, found)) and found[1] >= 0 and row["runs"].isdigit() and int(row["runs"]) >= 1
    except (AttributeError, TypeError, ValueError):
        return False


def level_points(sheet: Sheet, figure: str, graph: str) -> Iterator[Point]:
    """Controls and non-private models of a graph, the same at every place."""
    for row in sheet:
        found = LEVEL.get((row["method"], row["access"]))
        if row["graph"] == graph and found is not None:
            line, kind = found
            yield _point_of_row(row, figure, line, kind, place=ANY, delta=NO_DELTA)


def spending_points(sheet: Sheet, figure: str, graph: str) -> Iterator[Point]:
    best: dict[tuple[str, str], dict[str, str]] = {}
    for row in sheet:
        if row["graph"] == graph and row["method"] in SPENDERS:
            place = (SPENDERS[row["method"]], row["epsilon"])
            if place not in best or float(row["mean"]) > float(best[place]["mean"]):
                best[place] = row
    for (line, epsilon), row in best.items():
        yield _point_of_row(row, figure, line, "competitor", place=epsilon, delta=PUBLIC_DELTA)


def _point_of_row(row: dict[str, str], figure: str, line: str, kind: Kind, *, place: str, delta: str) -> Point:
    chosen = Chosen(
        settings=f"{row['method']} {row['settings']}",
        access=row["access"],
        mean=float(row["mean"]),
        deviation=float(row["standard deviation"]),
        runs=int(row["runs"]),
    )
    return _point(figure, row["graph"], line, place, chosen, kind=kind, delta=delta, chosen_by=row["chosen by"])


@dataclass(frozen=True, kw_only=True)
class MeasuringPlan:
    """What is to be measured on one graph.

    Attributes:
        graph: its name.
        grid: the settings that are tried.
        runs: how many.
    """

    graph: str
    grid: Grid
    runs: int

    def model_units(self) -> list[ModelUnit]:
        return [unit for run in range(self.runs) for unit in self._run(run)]

    def honest_units(self) -> list[Call]:
        """The honest version of Fig. 1."""
        return [honest_unit(self.graph, run, epsilon) for run, epsilon in product(range(self.runs), self.grid.budgets)]

    def control_units(self) -> list[Call]:
        """Fig. 3's controls, where it is about this graph."""
        return [public_control_unit(self.graph, run) for run in range(self.runs if self.grid.public_test else 0)]

    def scores(self, store: UnitStore) -> pl.DataFrame:
        """The grid's scores of all complete runs."""
        names = [[unit.name for unit in self._run(run)] for run in range(self.runs)]
        return store.table(name for run in names if all(map(store.has, run)) for name in run)

    def _run(self, run: int) -> list[ModelUnit]:
        return [ModelUnit(graph=self.graph, run=run, hidden=hidden, grid=self.grid) for hidden in self.grid.hidden]


def points_of(plan: MeasuringPlan, store: UnitStore) -> Iterator[Point]:
    """All of our points of one graph, figure by figure; nothing for what is not measured yet."""
    scores = plan.scores(store)
    if scores.is_empty():
        return
    own = scores.filter(pl.col("access") == "own-edges")
    private, without = own.filter(pl.col("epsilon") < math.inf), own.filter(pl.col("epsilon") == math.inf)
    for epsilon in plan.grid.budgets:
        chosen = best(private.filter(pl.col("epsilon") == epsilon))
        yield _point("fig1", plan.graph, "GCON", f"{epsilon:g}", chosen)
    yield from _honest(plan, store)
    yield _control("fig1", plan.graph, best(without))
    if plan.graph == "actor":
        return
    for figure in ("fig2", "fig4"):
        yield _control(figure, plan.graph, best(without))
    for restart in ALL_RESTARTS:
        line, drawn = f"restart {restart:g}", private.filter(pl.col("restart") == restart)
        for steps in map(step_words, plan.grid.schemes):
            here = drawn.filter((pl.col("epsilon") == FIXED_BUDGET) & (pl.col("steps") == steps))
            yield _point("fig2", plan.graph, line, steps, best(here))
        for epsilon in plan.grid.budgets:
            here = drawn.filter((pl.col("epsilon") == epsilon) & (pl.col("steps") == "2"))
            yield _point("fig4", plan.graph, line, f"{epsilon:g}", best(here))
    yield from _public_test(plan, store, scores.filter(pl.col("access") == "public-graph"))


def _public_test(plan: MeasuringPlan, store: UnitStore, scores: pl.DataFrame) -> Iterator[Point]:
    controls = store.table(unit.name for unit in plan.control_units())
    for reading in READINGS:
        read = scores.filter(pl.col("reading") == reading)
        for restart, steps in product(ALL_RESTARTS, map(step_words, plan.grid.schemes)):
            here = read.filter((pl.col("restart") == restart) & (pl.col("steps") == steps))
            yield _point("fig3", plan.graph, f"restart {restart:g}", steps, best(here), reading=reading)
        without = best(read.filter(pl.col("epsilon") == math.inf))
        yield _control("fig3", plan.graph, without, reading=reading)
        for line in () if controls.is_empty() else controls["line"].unique(maintain_order=True):
            here = controls.filter((pl.col("line") == line) & (pl.col("reading") == reading))
            yield _control("fig3", plan.graph, best(here, ("settings",)), line=line, reading=reading)


def _honest(plan: MeasuringPlan, store: UnitStore) -> Iterator[Point]:
    scores = store.table(unit.name for unit in plan.honest_units())
    for epsilon in plan.grid.budgets if not scores.is_empty() else ():
        here = scores.filter(pl.col("epsilon") == epsilon)
        if here.is_empty():
            continue
        favourite = here["settings"].mode().sort()[0]
        chosen = summary(here["test"], access="own-edges", settings=f"every run its own; most often {favourite}")
        yield _point(
            "fig1", plan.graph, "GCON, honest", f"{epsilon:g}", chosen, delta=PUBLIC_DELTA, chosen_by=FREE_OR_PAID
        )


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The best settings, and what they score on the test nodes."""

    settings: str
    access: str
    mean: float
    deviation: float
    runs: int


def best(scores: pl.DataFrame, settings: Sequence[str] = SETTINGS) -> Chosen:
    """The settings with the best mean validation score over the runs; the first in order of equals."""
    means = (
        scores.group_by(settings)
        .agg(pl.col("validation").mean().round(9), pl.col("test").sort_by("run"))
        .sort([pl.col("validation"), *settings], descending=[True, *(False for _ in settings)])
    )
    first = means.row(0, named=True)
    words = " / ".join(f"{first[name]:g}" if isinstance(first[name], float) else str(first[name]) for name in settings)
    access = scores["access"][0] if "access" in scores.columns else "public-graph"
    return summary(pl.Series(first["test"]), access=access, settings=words)


def summary(scores: pl.Series, *, access: str, settings: str) -> Chosen:
    """Mean, standard deviation (0 for one run) and number of runs."""
    values = [float(score) for score in scores]
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return Chosen(settings=settings, access=access, mean=statistics.mean(values), deviation=spread, runs=len(values))


def _point(
    figure: str,
    graph: str,
    line: str,
    place: str,
    chosen: Chosen,
    *,
    reading: str = "",
    kind: Kind = "gcon",
    delta: str = PAPER_DELTA,
    chosen_by: str = UNCHARGED,
) -> Point:
    return Point(
        figure=figure,
        graph=graph,
        reading=reading,
        line=line,
        kind=kind,
        place=place,
        delta=delta,
        chosen_by=chosen_by,
        **vars(chosen),
    )


def _control(figure: str, graph: str, chosen: Chosen, *, line: str = "GCON without edges", reading: str = "") -> Point:
    return _point(figure, graph, line, ANY, chosen, reading=reading, kind="control", delta=NO_DELTA)
