"""The competitors' lines come from their table: the best variant on test, level lines everywhere, nothing invented."""

import csv
import io

import pytest

from gcon.errors import InputError
from gcon_lab.experiments.baselines import COLUMNS
from gcon_lab.experiments.grids import COMPETITORS
from gcon_lab.experiments.reproduce.collect import (
    LEVEL,
    NO_DELTA,
    PUBLIC_DELTA,
    SPENDERS,
    level_points,
    read_sheet,
    spending_points,
)


def sheet(*rows):
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def row(method, access, mean, *, graph="cora-ml", epsilon="1", **more):
    numbers = {"mean": mean, "standard deviation": "0.02", "runs": "10", "core seconds": "3"}
    words = {"chosen by": "validation (cached), uncharged", "settings": '{"hops": 2}'}
    return {"graph": graph, "epsilon": epsilon, "method": method, "access": access, **numbers, **words, **more}


def test_of_all_variants_and_accesses_the_best_on_test_is_drawn():
    rows = read_sheet(
        sheet(
            row("dpgcn, LapGraph", "cached", "0.31"),
            row("dpgcn, EdgeRand", "cached", "0.42"),
            row("dpgcn, EdgeRand", "own-edges", "0.39"),
            row("dpgcn, EdgeRand", "cached", "0.20", epsilon="4"),
            row("dpgcn, LapGraph", "cached", "0.50", epsilon="4"),
            row("gap", "cached", "0.60", graph="pubmed"),
            row("mlp", "none", "0.99", epsilon="any"),
        )
    )
    one, four = spending_points(rows, "fig1", "cora-ml")
    assert (one.line, one.place, one.mean, one.access) == ("DPGCN", "1", 0.42, "cached")
    assert (four.line, four.place, four.mean) == ("DPGCN", "4", 0.5)
    assert one.settings == 'dpgcn, EdgeRand {"hops": 2}'
    assert (one.kind, one.delta, one.chosen_by) == ("competitor", PUBLIC_DELTA, "validation (cached), uncharged")
    assert (one.deviation, one.runs, one.figure, one.graph) == (0.02, 10, "fig1", "cora-ml")


def test_level_lines_are_controls_and_non_private_models():
    rows = read_sheet(
        sheet(
            row("mlp", "none", "0.5", epsilon="any"),
            row("self-training", "none", "0.6", epsilon="any"),
            row("self-training", "own-edges", "0.7", epsilon="any"),
            row("gcn", "full", "0.8", epsilon="any"),
            row("mlp", "none", "0.1", graph="pubmed", epsilon="any"),
            row("gap", "cached", "0.9"),
        )
    )
    found = list(level_points(rows, "fig2", "cora-ml"))
    assert [(point.line, point.kind, point.mean) for point in found] == [
        ("MLP", "control", 0.5),
        ("self-training", "control", 0.6),
        ("self-training, one hop", "control", 0.7),
        ("GCN (non-DP)", "non-private", 0.8),
    ]
    assert {(point.place, point.delta, point.figure) for point in found} == {("any", NO_DELTA, "fig2")}


def test_every_line_of_the_table_has_a_place_in_the_figure():
    for entry in COMPETITORS:
        if entry.spends:
            assert entry.name in SPENDERS
        else:
            assert all((entry.name, access) in LEVEL for access in entry.shown), entry.name


def test_skipped_groups_are_left_out():
    skipped = {"graph": "pubmed", "epsilon": "1", "method": "gap", "runs": 0, "settings": "skipped: too large"}
    rows = read_sheet(sheet(skipped, row("gap", "cached", "0.6")))
    assert [found["graph"] for found in rows] == ["cora-ml"]
    assert list(spending_points(read_sheet(sheet(skipped)), "fig1", "pubmed")) == []


@pytest.mark.parametrize("column", [name for name in COLUMNS if name != "core seconds"])
def test_a_table_without_a_column_is_refused(column):
    with pytest.raises(InputError, match="must be a CSV with the columns"):
        read_sheet(sheet(row("gap", "cached", "0.6")).replace(column, "other", 1))


@pytest.mark.parametrize(
    "change",
    [
        {"mean": "much"},
        {"mean": "nan"},
        {"standard deviation": ""},
        {"standard deviation": "inf"},
        {"runs": "2.5"},
        {"runs": "ten"},
        {"runs": "0"},
        {"standard deviation": "-0.1"},
        {"epsilon": "all"},
    ],
)
def test_numbers_that_are_none_are_refused(change):
    good = row("gap", "cached", "0.6")
    assert len(read_sheet(sheet(good))) == 1
    with pytest.raises(InputError, match=r"must have numbers .* gap on cora-ml"):
        read_sheet(sheet(good, {**good, **change}))


def test_two_rows_for_one_place_are_refused():
    """Two answers to one question: choosing one quietly would decide a verdict."""
    good = row("mlp", "none", "0.6", epsilon="any")
    with pytest.raises(InputError, match=r"must have one row for .* mlp on cora-ml"):
        read_sheet(sheet(good, {**good, "mean": "0.7"}))
