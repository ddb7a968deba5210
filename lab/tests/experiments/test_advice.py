"""The tables behind the advice: gains from runs, intervals checked on graphs that were left out, and the shipped files."""

import csv
from importlib.resources import files

import pytest

from gcon.choose.expectations import TARGETS, measured
from gcon_lab.experiments import advice
from gcon_lab.experiments.advice_tables import (
    expectation_lines,
    gains_of,
    graph_lines,
    interval_lines,
    measured_graphs,
)
from gcon_lab.tables import records

EPSILONS = (0.5, 1.0)


def run_of(none, own, gain):
    rows = [{"epsilon": 0.0, "none": none, "own-edges": own}]
    rows += [
        {"epsilon": epsilon, "none": none, "cached": none + gain * epsilon, "own-edges": own + gain}
        for epsilon in EPSILONS
    ]
    return [*rows, {"epsilon": float("inf"), "none": 1.0, "cached": 1.0, "own-edges": 1.0}]


def facts_of(**changes):
    usual = {
        "nodes": 100,
        "features": 5,
        "classes": 2,
        "labels": 10,
        "validation": 100,
        "edge_free_accuracy": 0.5,
        "edge_free_strength": 0.2,
        "mean_degree": 10.0,
        "homophily_above_chance": 0.5,
        "seconds": 1.0,
    }
    return usual | changes


def test_gains_are_over_what_is_free_and_without_noise_is_no_budget():
    gains = gains_of(run_of(0.5, 0.4, 0.2))
    assert set(gains) == set(EPSILONS)
    assert gains[1.0] == pytest.approx({"none": 0.0, "cached": 0.2, "own-edges": 0.1, "own-edges over free": 0.1})
    better = gains_of(run_of(0.5, 0.6, 0.2))[1.0]
    assert better["own-edges"] == pytest.approx(0.3)
    assert better["own-edges over free"] == pytest.approx(0.2)


def made(odd=0.1):
    names = ["a", "b", "c", "c@many", "odd"]
    facts = {name: [facts_of(mean_degree=8.0 + place)] for place, name in enumerate(names)}
    runs = {name: [run_of(0.5, 0.5, odd if name == "odd" else 0.1 + place / 1000)] for place, name in enumerate(names)}
    return facts, runs


def intervals_of(facts, runs):
    graphs = measured_graphs(facts, runs)
    lines = interval_lines(graphs, facts, runs, real=list(runs))
    return {(line["known"], line["target"], line["of"]): line for line in lines}


def test_graphs_that_are_alike_make_narrow_intervals_and_an_odd_one_is_not_covered():
    what = "look", "cached", "gain"
    alike, odd = intervals_of(*made())[what], intervals_of(*made(odd=0.45))[what]
    assert float(alike["width"]) < 0.01
    assert float(odd["covered"]) == pytest.approx(0.8)  # all but the two budgets of the odd one
    assert float(odd["factor"]) > 2 * float(alike["factor"])
    assert alike["runs"] == odd["runs"] == "10"


def test_one_graph_with_two_splits_is_left_out_whole():
    """If its other split stayed in the table, a graph unlike all others would be told by it."""
    facts, runs = made()
    for name in ("c", "c@many"):
        runs[name] = [run_of(0.5, 0.5, 0.45)]
    assert float(intervals_of(facts, runs)["look", "cached", "gain"]["covered"]) == pytest.approx(0.6)


def test_the_shipped_tables_have_the_columns_of_the_command_and_its_grid():
    for name, lines in (("graphs.csv", graph_lines), ("expectations.csv", expectation_lines)):
        assert records(list(lines(measured()))) == files("gcon.choose").joinpath(name).read_text()
    facts, runs = made()
    columns = next(csv.reader(files("gcon.choose").joinpath("intervals.csv").read_text().splitlines()))
    assert columns == list(next(iter(intervals_of(facts, runs).values())))
    names = {graph.name for graph in measured()}
    assert set(advice.GRID) | set(advice.REAL) == names
    assert len(TARGETS) == 4


@pytest.mark.slow
def test_facts_of_a_made_up_graph():
    found = advice.facts("grid-10-0.8-2", 0)
    assert found["mean_degree"] == pytest.approx(10, rel=0.05)
    assert found["homophily_above_chance"] == pytest.approx(0.75, abs=0.02)
    assert found["seconds"] > 0
    assert found["validation"] > 0
