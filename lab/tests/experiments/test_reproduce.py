"""The whole reproduction in small: every file, every line with its labels, nothing twice, and nothing made up."""

import csv
import dataclasses
import math
import shutil
import statistics

import polars as pl
import pytest
from rich.console import Console

from gcon.errors import InputError
from gcon_lab.experiments import baselines
from gcon_lab.experiments import units as run
from gcon_lab.experiments.reproduce.build import Job, reproduce
from gcon_lab.experiments.reproduce.collect import (
    FREE_OR_PAID,
    NO_DELTA,
    PAPER_DELTA,
    PUBLIC_DELTA,
    SETTINGS,
    UNCHARGED,
    MeasuringPlan,
    best,
    points_of,
)
from gcon_lab.experiments.reproduce.points import Point
from gcon_lab.experiments.sweep.graphs import MADE_UP, READINGS
from gcon_lab.experiments.sweep.grid import BUDGETS, Grid
from gcon_lab.experiments.units import UnitStore

QUIET = Console(quiet=True)
EPSILONS = [f"{epsilon:g}" for epsilon in BUDGETS]
STEPS = ["1", "2", "5", "10", "inf"]
RESTARTS = {"restart 0.2", "restart 0.4", "restart 0.6", "restart 0.8"}
SPENDERS = {"DP-SGD", "DPGCN", "LPGNet", "GAP", "ProGAP"}
LEVEL = {"MLP", "encoder", "encoder, one hop", "self-training", "self-training, one hop"}
NON_PRIVATE = {"GCN (non-DP)", "GPR-GNN (non-DP)"}
FILES = {
    *(f"fig{number}.{ending}" for number in (1, 2, 3, 4) for ending in ("csv", "md", "svg", "png")),
    *(f"{name}.{ending}" for name in ("table2", "claims") for ending in ("csv", "md")),
    "index.html",
    "results.md",
}


def read(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def points_in(folder, figure):
    rows = csv.DictReader((folder / f"{figure}.csv").read_text().splitlines())
    numbers = {"mean": float, "deviation": float, "runs": int}
    return [Point(**{**row, **{name: kind(row[name]) for name, kind in numbers.items()}}) for row in rows]


@pytest.fixture
def in_turn(monkeypatch):
    """Work in this process instead of workers; gives the names of what was done."""
    done = []

    def work(tasks, *, workers, console):
        given = [task for task in tasks if task.work is not None]
        finished = [task.name for task in given if task.work()]
        done.extend(finished)
        return len(given) - len(finished)

    monkeypatch.setattr(run, "in_parallel", work)
    monkeypatch.setattr(baselines, "in_parallel", work)
    return done


@pytest.mark.slow
def test_every_file_is_there(whole):
    job, outcome = whole
    assert outcome.missing == 0
    assert {path.name for path in outcome.files} == set(read(job.out)) == FILES
    assert all(path.parent == job.out for path in outcome.files)
    assert all(read(job.out).values())
    names = sorted(path.stem for path in (job.out / "store").iterdir())
    (plan,) = job.plans()
    units = [*plan.model_units(), *plan.honest_units(), *plan.control_units()]
    assert names == sorted(unit.name for unit in units)
    assert len(units) == 1 + 5 + 1


@pytest.mark.slow
def test_every_figure_has_all_lines_with_the_controls(whole):
    job, _ = whole
    fig1, fig2, fig3, fig4 = (points_in(job.out, f"fig{number}") for number in (1, 2, 3, 4))
    control = {"GCON without edges"}
    assert {p.line for p in fig1} == {"GCON", "GCON, honest"} | SPENDERS | LEVEL | control | NON_PRIVATE
    for points in (fig2, fig4):
        assert {p.line for p in points} == RESTARTS | LEVEL | control | NON_PRIVATE
    for reading in READINGS:
        lines = {p.line for p in fig3 if p.reading == reading}
        assert lines == RESTARTS | control | {"encoder, propagated", "self-training, propagated"}
    for points, places in ((fig1, EPSILONS), (fig2, STEPS), (fig3, STEPS), (fig4, EPSILONS)):
        for line in {p.line for p in points if p.kind == "gcon"}:
            for reading in {p.reading for p in points}:
                found = [p.place for p in points if p.line == line and p.reading in ("", reading)]
                assert [place for place in found if place != "any"] == places
        assert {p.place for p in points if p.kind in ("control", "non-private")} == {"any"}
    assert {p.reading for p in [*fig1, *fig2, *fig4]} == {""}
    assert {p.graph for p in [*fig1, *fig2, *fig3, *fig4]} == {MADE_UP}


@pytest.mark.slow
def test_every_line_says_which_promise_it_has_and_how_it_was_chosen(whole):
    job, _ = whole
    points = [point for number in (1, 2, 3, 4) for point in points_in(job.out, f"fig{number}")]
    for point in points:
        if point.kind in ("control", "non-private"):
            assert point.delta == NO_DELTA
        elif point.kind == "competitor" or point.line == "GCON, honest":
            assert point.delta == PUBLIC_DELTA
        else:
            assert point.delta == PAPER_DELTA
        if point.line == "GCON, honest":
            assert point.chosen_by == FREE_OR_PAID
        elif point.kind == "gcon" or point.line in ("GCON without edges", "encoder, propagated"):
            assert point.chosen_by == UNCHARGED
        assert 0 < point.mean < 1
        assert point.runs == (10 if point.chosen_by == "validation, uncharged" else 1)
    own = {point.access for point in points if point.figure != "fig3" and point.kind == "gcon"}
    assert (own, {point.access for point in points if point.figure == "fig3"}) == ({"own-edges"}, {"public-graph"})


@pytest.mark.slow
def test_points_are_the_stored_scores_of_the_best_on_validation(whole):
    job, _ = whole
    (plan,) = job.plans()
    rows = plan.scores(UnitStore(job.out / "store")).rows(named=True)
    own = [row for row in rows if row["access"] == "own-edges"]
    for figure, fits in (
        ("fig1", lambda row, p: row["epsilon"] == (math.inf if p.place == "any" else float(p.place))),
        ("fig2", lambda row, p: _restart(row, p) and row["steps"] == p.place and row["epsilon"] == 4.0),
        ("fig4", lambda row, p: _restart(row, p) and row["steps"] == "2" and f"{row['epsilon']:g}" == p.place),
    ):
        for point in points_in(job.out, figure):
            if point.line in ({"GCON", "GCON without edges"} if figure == "fig1" else RESTARTS):
                there = [row for row in own if fits(row, point)]
                top = max(round(row["validation"], 9) for row in there)
                equals = [row["test"] for row in there if round(row["validation"], 9) == top]
                assert any(point.mean == pytest.approx(score, abs=5e-5) for score in equals)


def _restart(row, point):
    return f"restart {row['restart']:g}" == point.line


@pytest.mark.slow
def test_a_second_call_computes_nothing_and_writes_the_same_bytes(whole, monkeypatch, tmp_path):
    def refuse(*_, **__):
        raise AssertionError("a worker was started")

    job, _ = whole
    shutil.copytree(job.out / "store", tmp_path / "store")
    times = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "store").iterdir()}
    monkeypatch.setattr(run, "ProcessPoolExecutor", refuse)
    again = reproduce(dataclasses.replace(job, out=tmp_path), QUIET)
    assert again.missing == 0
    assert read(tmp_path) == read(job.out)
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "store").iterdir()} == times


@pytest.mark.slow
def test_partial_work_is_written_and_what_is_missing_is_counted(whole, in_turn, tmp_path):
    job, _ = whole
    shutil.copytree(job.out / "store", tmp_path / "store")
    more = reproduce(dataclasses.replace(job, out=tmp_path, what="fig1", runs=2, minutes=1e-9), QUIET)
    assert more.missing == 1 + 5
    assert in_turn == []
    assert set(read(tmp_path)) == {"fig1.csv", "fig1.md", "fig1.svg", "fig1.png", "index.html", "results.md"}
    assert read(tmp_path)["fig1.csv"] == read(job.out)["fig1.csv"]  # the second run is not there, the first one is


def test_nothing_measured_yet_is_said_and_not_made_up(in_turn, monkeypatch, tmp_path):
    monkeypatch.setattr(baselines, "QUICK", baselines.Effort(lines=("mlp", "gap"), epsilons=(1.0,), candidates=1))
    job = Job(what="all", out=tmp_path / "new", quick=True, graphs=(MADE_UP,), runs=1, minutes=1e-9)
    outcome = reproduce(job, QUIET)
    assert outcome.missing == 7 + 2
    assert set(read(job.out)) == FILES
    for number in (1, 2, 3, 4):
        assert points_in(job.out, f"fig{number}") == []
        assert "no results yet" in (job.out / f"fig{number}.svg").read_text()
    assert list((job.out / "store").iterdir()) == []


@pytest.mark.slow
def test_competitors_are_trained_where_no_table_is_given(whole, monkeypatch, tmp_path):
    effort = baselines.Effort(lines=("mlp", "gap"), epsilons=(1.0,), candidates=1, final_runs=1)
    monkeypatch.setattr(baselines, "QUICK", effort)
    job = dataclasses.replace(whole[0], out=tmp_path, what="fig1", competitors=None, workers=1)
    shutil.copytree(whole[0].out / "store", tmp_path / "store")
    assert reproduce(job, QUIET).missing == 0
    points = {point.line: point for point in points_in(tmp_path, "fig1")}
    assert set(points) == {"GCON", "GCON, honest", "GCON without edges", "MLP", "GAP"}
    assert (points["GAP"].place, points["GAP"].runs, points["GAP"].delta) == ("1", 1, PUBLIC_DELTA)
    assert points["GAP"].chosen_by == "nothing (defaults)"
    before = read(tmp_path)
    monkeypatch.setattr(run, "ProcessPoolExecutor", None)  # nothing is left to do
    assert reproduce(job, QUIET).missing == 0
    assert read(tmp_path) == before
    # Another figure takes the competitors that are there, and trains none.
    assert reproduce(dataclasses.replace(job, what="fig4"), QUIET).missing == 0
    assert "MLP" in {point.line for point in points_in(tmp_path, "fig4")}


def test_runs_that_are_not_complete_are_left_out(tmp_path):
    plan = MeasuringPlan(graph=MADE_UP, grid=Grid(hidden=(8, 16)), runs=3)
    store = UnitStore(tmp_path)
    assert list(points_of(plan, store)) == []
    for unit in plan.model_units():
        if (unit.run, unit.hidden) != (1, 16):
            store.write(unit.name, pl.DataFrame({"run": [unit.run], "hidden": [unit.hidden]}))
    assert set(plan.scores(store).rows()) == {(0, 8), (0, 16), (2, 8), (2, 16)}


def frame(rows):
    """Scores: (restart, inference, run, validation, test)."""
    fixed = {"hidden": 16, "expand": "all", "steps": "2", "loss": "soft-margin", "ridge": 1.0, "access": "own-edges"}
    names = ("restart", "inference", "run", "validation", "test")
    return pl.DataFrame([{**fixed, **dict(zip(names, row, strict=True))} for row in rows])


def test_the_best_is_chosen_by_mean_validation_and_never_by_test():
    rows = [(0.2, "0.1", 0, 0.9, 0.1), (0.2, "0.1", 1, 0.5, 0.3), (0.4, "0.1", 0, 0.8, 0.6), (0.4, "0.1", 1, 0.7, 0.5)]
    found = best(frame(rows))
    assert found.settings == "16 / all / 0.4 / 2 / soft-margin / 1 / 0.1"
    assert (found.mean, found.runs, found.access) == (pytest.approx(0.55), 2, "own-edges")
    assert found.deviation == pytest.approx(statistics.stdev([0.6, 0.5]))
    for score in (0.0, 1.0):  # whatever the others score on the test nodes
        assert best(frame([*((*row[:4], score) for row in rows[:2]), *rows[2:]])) == found
    assert best(frame(rows[2:3])).deviation == 0.0


def test_of_equals_the_first_setting_is_taken_in_any_order_of_rows():
    rows = [(0.4, "0.9", 0, 0.7, 0.1), (0.4, "0.1", 0, 0.7, 0.2), (0.2, "0.9", 0, 0.7 + 1e-12, 0.3)]
    rows += [(0.8, "0.1", 0, 0.6999, 0.9)]
    for order in (rows, rows[::-1], rows[1:] + rows[:1]):
        assert best(frame(order)).mean == 0.3
    assert best(frame(rows[:2])).settings.endswith("/ 0.1")
    assert "test" not in SETTINGS


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"what": "fig5"}, "what: must be one of table2, fig1"),
        ({"graphs": ("cora-ml", "atlantis")}, "graphs: must be one of cora-ml"),
        ({"graphs": ("",)}, "graphs"),
        ({"graphs": ()}, "each once"),
        ({"graphs": (MADE_UP, MADE_UP)}, "each once"),
        ({"runs": 0}, "runs: must be at least 1"),
        ({"workers": 0}, "workers: must be at least 1"),
        ({"minutes": 0.0}, "minutes: must be above 0"),
        ({"minutes": math.nan}, "minutes: must be above 0"),
        ({"competitors": "nowhere.csv"}, "competitors: must be a file"),
        ({"out": "taken"}, "out: must be a folder"),
        ({"out": "taken/below"}, "out: must be a folder"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_written(tmp_path, change, words):
    (tmp_path / "taken").write_text("a file")
    paths = {name: tmp_path / value for name, value in change.items() if name in ("out", "competitors")}
    with pytest.raises(InputError, match=words):
        Job(**{"what": "fig1", "out": tmp_path / "out", "graphs": (MADE_UP,), **change, **paths})
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"\xff\xfe\x00\x01", b"graph,epsilon\ncora-ml,1\n"])
def test_a_wrong_competitors_table_is_refused_before_anything_is_written(tmp_path, content):
    (tmp_path / "sheet.csv").write_bytes(content)
    job = Job(what="fig1", out=tmp_path / "out", graphs=(MADE_UP,), competitors=tmp_path / "sheet.csv")
    with pytest.raises(InputError, match="competitors: must be a CSV with the columns"):
        reproduce(job, QUIET)
    assert [path.name for path in tmp_path.iterdir()] == ["sheet.csv"]
