"""The tables travel with the package, say what the docs say, and are read as the module says."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from gcon.choose import expectations as table
from gcon.choose.advice import FEWER_RIGHT, LESS_GAINED
from gcon.choose.expectations import Place, expected, guess, intervals, measured
from gcon.choose.public_facts import PublicFacts
from gcon.choose.run_time import WITHIN, run_time, seconds_of

REAL = [graph for graph in measured() if not graph.name.startswith(table.MADE_UP)]
DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_table_holds_eight_real_graphs_and_a_grid():
    assert len({graph.group for graph in REAL}) == 8
    assert len(REAL) == 12
    assert len(measured()) == 12 + 4 * 4 * 2
    assert table.measured_epsilons() == (0.5, 1.0, 2.0, 3.0, 4.0)
    assert {graph.place.known for graph in measured()} == {"look"}
    for graph in measured():
        assert all(graph.gains["own-edges over free"][each] <= graph.gains["own-edges"][each] for each in (0.5, 1, 4))


def test_real_graphs_are_those_of_the_published_table():
    """Gains are the accuracies of docs/results/default/default.md less its control, to its three digits."""
    rows = [
        line.split(" | ") for line in (DOCS / "results/default/default.md").read_text().splitlines() if " | " in line
    ]
    accuracy = {(row[0].strip("| "), row[1]): [cell[:5] for cell in row[4:7]] for row in rows}
    for graph in REAL:
        control = float(accuracy[graph.name, "control, no edge"][0])
        for epsilon in table.measured_epsilons():
            cells = accuracy[graph.name, f"{epsilon:g}"]
            for access, cell in zip(("none", "cached", "own-edges"), cells, strict=True):
                assert float(cell) - control == pytest.approx(graph.gains[access][epsilon], abs=0.0012), graph.name


def test_every_interval_is_there_and_held_for_most_graphs_that_were_left_out():
    found = intervals()
    assert set(found) == {
        (known, *what)
        for known in ("nothing", "degree", "look")
        for what in [(access, "accuracy") for access in table.TARGETS[:3]]
        + [(table.over_free(access), "gain") for access in table.TARGETS[:3]]
    }
    for each in found.values():
        assert each.factor > 0
        assert 0.85 <= each.covered <= 1
        assert each.runs == 12 * 5 * 3


def test_docs_name_the_coverage():
    page = (DOCS / "choosing.md").read_text()
    for known, words in (("nothing", "nothing"), ("degree", "the mean degree"), ("look", "both")):
        held = [intervals()[known, access, "accuracy"] for access in table.TARGETS[:3]]
        cells = " | ".join(f"{100 * each.covered:.0f} %, ± {100 * each.width:.0f}" for each in held)
        assert f"| {words} | {cells} |" in page


def test_what_validation_nodes_are_worth_is_that_of_the_published_tables():
    """At epsilon 1: right answers lost without them, and gains over what is free, in points."""

    def rows(name):
        lines = [line.split(" | ") for line in (DOCS / f"results/default/{name}.md").read_text().splitlines()]
        return {
            (row[0].strip("| "), row[1]): [float(cell[:5]) for cell in row[4:7] if cell.strip()]
            for row in lines
            if len(row) > 6 and row[1] in ("1", "control, no edge")
        }

    with_them, without = rows("default"), rows("bare")

    def gains(table, graph):
        none, own = table[graph, "control, no edge"]
        return [mine - free for mine, free in zip(table[graph, "1"], (none, none, max(none, own)), strict=True)]

    graphs = {graph for graph, _ in with_them}
    assert len(graphs) == 12
    lost = [a - b for each in graphs for a, b in zip(with_them[each, "1"], without[each, "1"], strict=True)]
    less = [a - b for each in graphs for a, b in zip(gains(with_them, each), gains(without, each), strict=True)]
    assert round(100 * max(lost), 1) == FEWER_RIGHT
    assert round(100 * max(less), 1) == LESS_GAINED
    words = f"up to {FEWER_RIGHT} points fewer right answers at epsilon 1, and gained up to {LESS_GAINED} points less"
    assert words in (DOCS / "choosing.md").read_text()


def test_docs_name_the_gains():
    """docs/choosing.md: at epsilon 1, in points."""
    most = {target: max(graph.gains[target][1.0] for graph in REAL) for target in ("none", "cached")}
    lost = min(measured(), key=lambda graph: graph.gains["own-edges over free"][1.0])
    assert {target: round(100 * gain) for target, gain in most.items()} == {"none": 4, "cached": 33}
    assert round(100 * lost.gains["own-edges over free"][1.0]) == -22
    assert lost.place.mean_degree == pytest.approx(10)
    page = (DOCS / "choosing.md").read_text()
    assert "`cached` gained up to 33 points on real graphs at epsilon 1, `none` up to 4" in page
    assert "own edges lost up to 22 points at epsilon 1 (a made-up graph of mean degree 10)" in page


@pytest.mark.parametrize("target", table.TARGETS)
def test_a_graph_far_from_all_gets_the_mean_and_a_near_one_its_own(target):
    graph = next(each for each in REAL if "hopkins" in each.name)
    alone = guess(graph.place, 1.0, target, graphs=[graph])
    assert alone.gain == pytest.approx(graph.gains[target][1.0])
    assert (alone.spread, alone.distance) == (pytest.approx(0, abs=1e-12), 0.0)
    others = [each for each in measured() if each.group != graph.group]
    far = guess(replace(graph.place, mean_degree=1e30), 1.0, target, graphs=others)
    shares = [each.gains[target][1.0] / (1 - each.place.accuracy) for each in others]
    assert far.gain == pytest.approx((1 - graph.place.accuracy) * sum(shares) / len(shares), rel=0.2, abs=0.01)


def test_between_two_budgets_the_gain_lies_between_and_below_all_it_is_vague():
    place = Place(accuracy=0.5, strength=0.3, mean_degree=60.0, above_chance=0.5)
    gains = [guess(place, epsilon, "cached").gain for epsilon in (1.0, math.sqrt(2), 2.0, 4.0, 100.0)]
    assert gains[1] == pytest.approx((gains[0] + gains[2]) / 2)
    assert gains[4] == gains[3]
    half, tiny = (guess(place, epsilon, "cached") for epsilon in (0.5, 1e-6))
    assert tiny.gain == pytest.approx(half.gain / 2, rel=1e-3)
    assert tiny.spread > half.spread
    assert tiny.gain - tiny.spread < 0.01 < half.gain


def test_what_is_not_known_does_not_matter():
    unknown = Place(accuracy=0.5, strength=0.3)
    assert unknown.known == "nothing"
    assert guess(unknown, 1.0, "cached").distance is None
    at = [guess(replace(unknown, mean_degree=degree, above_chance=0.6), 1.0, "cached").gain for degree in (3, 80)]
    assert at[0] < guess(unknown, 1.0, "cached").gain < at[1]


def test_intervals_end_at_what_any_graph_showed():
    place = Place(accuracy=0.5, strength=0.3, mean_degree=60.0, above_chance=0.5)
    found = guess(place, 1.0, "cached")
    least, most = table.gain_ends(found, 100.0)
    assert (least, most) == (pytest.approx(found.lowest - 0.01), pytest.approx(found.highest + 0.01))
    narrow = table.gain_ends(found, 0.1)
    assert least < narrow[0] < found.gain < narrow[1] < most


def test_fewer_validation_nodes_make_a_wider_accuracy():
    place = Place(accuracy=0.5, strength=0.3)
    few, many = (expected(place, validation=number, epsilon=1.0, access="none") for number in (20, 5000))
    assert few.accuracy == many.accuracy
    assert few.accuracy_most - few.accuracy_least > 1.5 * (many.accuracy_most - many.accuracy_least)
    assert (few.least, few.most) == (many.least, many.most)


def test_no_graph_that_is_left_out_is_further_off_in_time_than_is_said():
    for graph in REAL:
        others = [each for each in measured() if each.group != graph.group]
        assert 1 / WITHIN <= graph.seconds / seconds_of(graph.sizes, others) <= WITHIN, graph.name


def test_larger_graphs_take_longer_and_tiny_ones_as_long_as_the_smallest():
    facts = PublicFacts(
        num_nodes=2000,
        num_features=64,
        num_classes=5,
        num_validation=500,
        labels_a_class=(20,) * 5,
        neighbours_agree=0.1,
        edge_free_accuracy=0.5,
        edge_free_strength=0.3,
        leading_variance=0.2,
    )
    usual, large, tiny = (run_time(replace(facts, num_nodes=nodes)) for nodes in (2000, 20000, 50))
    assert large.seconds > 3 * usual.seconds
    assert tiny == usual
    assert usual.least < usual.seconds < usual.most
    assert usual.largest == 19717


def test_the_range_of_real_graphs():
    least, most = table.real_range(1.0, "own-edges")
    gains = [graph.gains["own-edges"][1.0] for graph in REAL]
    assert (least, most) == (min(gains), max(gains))
