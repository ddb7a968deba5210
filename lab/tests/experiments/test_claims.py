"""The paper's claims on made-up numbers: each one held, refuted, and left open; and the statistics behind them."""

import csv
import io
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from gcon_lab.experiments.reproduce.claims import check
from gcon_lab.experiments.reproduce.points import ANY, Point
from gcon_lab.experiments.reproduce.verdicts import (
    Comparison,
    above,
    combine,
    correct,
    holm,
    markdown,
    overall,
    to_csv,
    weigh,
)

HOLDS, FAILS, WITHOUT_CONTROLS, UNKNOWN = (
    "holds",
    "does not hold",
    "holds only without the controls",
    "no results yet",
)
HOMOPHILOUS = ("cora-ml", "citeseer", "pubmed")
EPSILONS = ("0.5", "1", "2", "3", "4")
STEPS = ("1", "2", "5", "10", "inf")
COMPETITORS = ("DP-SGD", "DPGCN", "LPGNet", "GAP", "ProGAP")
CONTROLS = ("MLP", "encoder", "encoder, one hop", "self-training", "self-training, one hop", "GCON without edges")
CLAIMS = ("1", "2a", "2b", "3", "4a", "4b", "5", "6", "7", "8", "9a", "9b", "10")


def point(figure, graph, line, place, mean, kind="gcon", reading="", deviation=0.005, runs=10):
    return Point(
        figure=figure,
        graph=graph,
        reading=reading,
        line=line,
        kind=kind,
        place=place,
        access="",
        mean=mean,
        deviation=deviation,
        runs=runs,
        delta="",
        chosen_by="",
        settings="",
    )


def papers_world():
    """Points for which every claim holds."""
    points = []
    for graph in (*HOMOPHILOUS, "actor"):
        base = 0.3 if graph == "actor" else 0.8
        spread = 0.02 if graph == "actor" else 0.1
        for place, epsilon in enumerate(EPSILONS):
            points.append(point("fig1", graph, "GCON", epsilon, base + 0.002 * place))
            for name in COMPETITORS:
                mean = base - spread - 0.05 + 0.01 * place
                points.append(point("fig1", graph, name, epsilon, mean, "competitor"))
        points += [point("fig1", graph, name, ANY, base - 0.03, "control") for name in CONTROLS]
        points.append(point("fig1", graph, "GCN (non-DP)", ANY, base + 0.01, "non-private"))
    for graph in HOMOPHILOUS:
        best = "0.4" if graph == "pubmed" else "0.8"
        for place, restart in enumerate(("0.2", "0.4", "0.6", "0.8")):
            line = f"restart {restart}"
            for epsilon in EPSILONS:
                points.append(point("fig4", graph, line, epsilon, 0.7 + 0.01 * place + 0.05 * (restart == best)))
            slope = {"0.2": -0.03, "0.4": -0.005}.get(restart, 0.0)
            points += [point("fig2", graph, line, step, 0.8 + slope * rank) for rank, step in enumerate(STEPS)]
            for reading in ("no private edge", "no edge of training nodes"):
                for rank, step in enumerate(STEPS):
                    points.append(point("fig3", graph, line, step, 0.8 + 0.01 * min(rank, 3), reading=reading))
    return points


def changed(points, means, **names):
    """The points with another mean where the names fit."""
    fits = [all(getattr(each, key) == value for key, value in names.items()) for each in points]
    assert any(fits)
    return [replace(each, mean=means) if fit else each for each, fit in zip(points, fits, strict=True)]


def without(points, **names):
    kept = [each for each in points if any(getattr(each, key) != value for key, value in names.items())]
    assert len(kept) < len(points)
    return kept


def by_claim(points):
    return {each.claim.partition(".")[0]: each for each in overall(check(points))}


def at(points, claim, where):
    (found,) = [each for each in check(points) if each.claim.startswith(f"{claim}.") and each.where == where]
    return found


@pytest.mark.parametrize("claim", CLAIMS)
def test_holds_on_the_papers_numbers(claim):
    assert by_claim(papers_world())[claim].verdict == HOLDS


@pytest.mark.parametrize(
    ("claim", "names", "mean", "refuted"),
    [
        ("1", {"figure": "fig4", "graph": "pubmed", "line": "restart 0.6"}, 0.9, {"1"}),
        ("2a", {"figure": "fig4", "graph": "citeseer", "line": "restart 0.4", "place": "1"}, 0.6, {"2a"}),
        ("2b", {"figure": "fig4", "graph": "citeseer", "line": "restart 0.2", "place": "4"}, 0.8, {"2b"}),
        ("3: a slight one", {"figure": "fig2", "graph": "pubmed", "line": "restart 0.2", "place": "1"}, 0.72, {"3"}),
        ("3: a rapid one", {"figure": "fig2", "graph": "pubmed", "line": "restart 0.4", "place": "inf"}, 0.74, {"3"}),
        ("3: not stable", {"figure": "fig2", "graph": "pubmed", "line": "restart 0.8", "place": "inf"}, 0.78, {"3"}),
        ("4a", {"figure": "fig3", "graph": "cora-ml", "line": "restart 0.8", "place": "inf"}, 0.85, {"4a"}),
        ("4b: no rise", {"figure": "fig3", "graph": "cora-ml", "line": "restart 0.8", "place": "1"}, 0.83, {"4b"}),
        ("4b: a dip", {"figure": "fig3", "graph": "cora-ml", "line": "restart 0.8", "place": "5"}, 0.79, {"4b"}),
        ("5", {"figure": "fig1", "graph": "actor", "line": "GAP", "place": "4"}, 0.32, {"5", "10"}),
        ("6", {"figure": "fig1", "graph": "citeseer", "line": "GCN (non-DP)"}, 0.83, {"6"}),
        ("7", {"figure": "fig1", "graph": "citeseer", "line": "MLP"}, 0.8, {"7", "10"}),
        ("9a", {"figure": "fig1", "graph": "citeseer", "line": "GAP", "place": "0.5"}, 0.72, {"9a"}),
        ("9b", {"figure": "fig1", "graph": "actor", "line": "GCON", "place": "4"}, 0.33, {"9b"}),
    ],
)
def test_one_counterexample_refutes_its_claim_and_no_other(claim, names, mean, refuted):
    verdicts = by_claim(changed(papers_world(), mean, **names))
    assert {name for name, each in verdicts.items() if each.verdict == FAILS} == refuted


def test_a_gain_as_large_on_actor_refutes_claim_8():
    points = papers_world()
    for name in COMPETITORS:
        points = changed(points, 0.1, figure="fig1", graph="actor", line=name)
    assert by_claim(points)["8"].verdict == FAILS


def test_a_control_as_good_leaves_claims_5_7_and_10_only_without_controls():
    points = changed(papers_world(), 0.804, figure="fig1", graph="pubmed", line="encoder, one hop")
    verdicts = by_claim(points)
    assert {name for name, each in verdicts.items() if each.verdict == WITHOUT_CONTROLS} == {"5", "7", "10"}
    assert at(points, "5", "pubmed, epsilon 2").verdict == WITHOUT_CONTROLS  # the same mean is enough
    assert at(points, "5", "pubmed, epsilon 3").verdict == HOLDS
    assert "best control: encoder, one hop 0.8040" in at(points, "5", "pubmed, epsilon 2").numbers


def test_the_mlp_is_a_control_of_claim_5_and_the_rival_of_claim_7():
    points = changed(papers_world(), 0.9, figure="fig1", graph="pubmed", line="MLP")
    assert at(points, "5", "pubmed, epsilon 4").verdict == WITHOUT_CONTROLS
    assert at(points, "7", "pubmed, epsilon 4").verdict == FAILS


def test_higher_but_not_significantly_is_not_above():
    points = changed(papers_world(), 0.7999, figure="fig1", graph="cora-ml", line="GAP", place="0.5")
    found = at(points, "5", "cora-ml, epsilon 0.5")
    assert found.verdict == FAILS
    assert found.significance.startswith("not significant: GCON > GAP: p = ")


def test_a_rapid_fall_must_be_more_than_chance():
    points = [replace(each, deviation=0.3) if each.figure == "fig2" else each for each in papers_world()]
    verdicts = by_claim(points)
    assert {name for name, each in verdicts.items() if each.verdict == FAILS} == {"3"}
    assert at(points, "3", "pubmed, restart 0.2").verdict == FAILS
    assert at(points, "3", "pubmed, restart 0.4").verdict == HOLDS


def test_a_margin_is_kept_to_the_last_digit():
    assert 0.80 - 0.78 > 0.02  # in floats
    points = changed(papers_world(), 0.78, figure="fig1", graph="cora-ml", line="GCON", place="0.5")
    points = changed(points, 0.80, figure="fig1", graph="cora-ml", line="GCN (non-DP)")
    assert at(points, "6", "cora-ml, epsilon 0.5").verdict == HOLDS
    points = changed(points, 0.8001, figure="fig1", graph="cora-ml", line="GCN (non-DP)")
    assert at(points, "6", "cora-ml, epsilon 0.5").verdict == FAILS


def test_the_best_restart_needs_no_significance_but_says_so():
    points = changed(papers_world(), 0.7799, figure="fig4", graph="cora-ml", line="restart 0.6")
    found = at(points, "1", "cora-ml")
    assert found.verdict == HOLDS
    assert found.significance.startswith("not significant: restart 0.8 > restart 0.6: p = ")
    assert at(papers_world(), "1", "cora-ml").significance.startswith("significant: ")


def test_without_points_nothing_is_said():
    verdicts = check([])
    assert {each.verdict for each in verdicts} == {UNKNOWN}
    assert tuple(by_claim([])) == CLAIMS


@pytest.mark.parametrize(
    ("names", "unknown"),
    [
        ({"figure": "fig1", "graph": "pubmed", "line": "GAP", "place": "0.5"}, {"5", "8", "9a", "10"}),
        ({"figure": "fig1", "graph": "pubmed", "line": "encoder"}, {"5", "7", "10"}),
        ({"figure": "fig1", "line": "GCN (non-DP)"}, {"6"}),
        ({"figure": "fig1", "graph": "actor", "line": "GCON", "place": "4"}, {"5", "6", "7", "8", "9b", "10"}),
        ({"figure": "fig2", "graph": "pubmed", "line": "restart 0.2", "place": "inf"}, {"3", "4a"}),
        ({"figure": "fig3", "graph": "pubmed", "line": "restart 0.2", "place": "2"}, {"4b"}),
        ({"figure": "fig4", "graph": "pubmed", "line": "restart 0.4", "place": "3"}, {"1", "2b"}),
        ({"figure": "fig4", "graph": "pubmed", "line": "restart 0.2", "place": "0.5"}, {"1", "2a"}),
    ],
)
def test_a_missing_point_leaves_its_claims_open_and_is_named(names, unknown):
    points = without(papers_world(), **names)
    verdicts = by_claim(points)
    assert {name for name, each in verdicts.items() if each.verdict == UNKNOWN} == unknown
    assert {each.verdict for name, each in verdicts.items() if name not in unknown} == {HOLDS}
    rows = [each for each in check(points) if each.verdict == UNKNOWN and not each.claim.startswith("10.")]
    assert all(f"missing: {names['line']}" in each.numbers for each in rows)


def test_a_counterexample_needs_no_other_point():
    points = changed(papers_world(), 0.9, figure="fig1", graph="pubmed", line="GAP", place="0.5")
    points = without(points, figure="fig1", graph="pubmed", line="DPGCN")
    assert at(points, "5", "pubmed, epsilon 0.5").verdict == FAILS
    assert at(points, "5", "pubmed, epsilon 1").verdict == UNKNOWN


def test_a_single_run_shows_nothing_but_a_counterexample():
    points = [replace(each, runs=1, deviation=math.nan) for each in papers_world()]
    found = at(points, "5", "pubmed, epsilon 1")
    assert found.verdict == UNKNOWN
    assert found.significance.startswith("not tested: ")
    assert "cannot be tested, a single run" in found.significance
    points = changed(points, 0.9, figure="fig1", graph="pubmed", line="GAP")
    assert at(points, "5", "pubmed, epsilon 1").verdict == FAILS


def test_runs_without_spread_are_decided_by_their_means():
    points = [replace(each, deviation=0.0) for each in papers_world()]
    assert {each.verdict for each in by_claim(points).values()} == {HOLDS}
    assert "no spread in the runs" in at(points, "5", "pubmed, epsilon 1").significance
    tied = changed(points, 0.8, figure="fig1", graph="pubmed", line="GAP", place="0.5")
    assert at(tied, "5", "pubmed, epsilon 0.5").verdict == FAILS


@pytest.mark.parametrize("sizes", [(10, 10), (3, 17)])
@pytest.mark.parametrize("shift", [-0.01, 0.0, 0.02])
def test_welch_agrees_with_scipy_on_the_runs_themselves(sizes, shift):
    random = np.random.default_rng(5)
    first, second = random.normal(0.8 + shift, 0.01, sizes[0]), random.normal(0.8, 0.03, sizes[1])
    summaries = [
        point("fig1", "pubmed", name, "1", each.mean(), deviation=each.std(ddof=1), runs=len(each))
        for name, each in (("A", first), ("B", second))
    ]
    expected = stats.ttest_ind(first, second, equal_var=False, alternative="greater").pvalue
    assert above(*summaries).p == pytest.approx(expected, rel=1e-6)
    from_summaries = stats.ttest_ind_from_stats(
        *(value for each in summaries for value in (each.mean, each.deviation, each.runs)),
        equal_var=False,
        alternative="greater",
    ).pvalue
    assert above(*summaries).p == pytest.approx(from_summaries, rel=1e-6)


def test_one_side_without_spread_is_a_test_against_a_constant():
    runs = np.array([0.80, 0.82, 0.81, 0.85])
    spread = point("fig1", "pubmed", "A", "1", runs.mean(), deviation=runs.std(ddof=1), runs=4)
    level = point("fig1", "pubmed", "B", "1", 0.80, deviation=0.0)
    expected = stats.ttest_1samp(runs, 0.80, alternative="greater").pvalue
    assert above(spread, level).p == pytest.approx(expected, rel=1e-6)


def test_tiny_deviations_do_not_underflow():
    low, high = (point("fig1", "pubmed", "A", "1", mean, deviation=1e-100) for mean in (0.7, 0.8))
    assert above(high, low).p == pytest.approx(0.0, abs=1e-12)
    assert above(low, low).p == pytest.approx(0.5)


def test_a_false_alarm_of_a_sum_of_four_is_as_rare_as_it_says():
    random = np.random.default_rng(11)
    runs = random.normal(0.8, [[[0.01]], [[0.02]], [[0.03]], [[0.04]]], (4, 2000, 8))
    means, deviations = runs.mean(2), runs.std(2, ddof=1)
    weights = (1.0, -1.0, -1.0, 1.0)
    alarms = 0
    for trial in range(2000):
        terms = [
            (weight, point("fig1", "pubmed", "A", "1", means[k, trial], deviation=deviations[k, trial], runs=8))
            for k, weight in enumerate(weights)
        ]
        alarms += weigh("sum", terms).significant
    # Five standard errors of a binomial of 2000 tries at 0.05: 49 either way.
    assert abs(alarms - 100) <= 49


def test_holm_by_hand():
    # Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1: 0.02, 0.03, 0.06, 0.04; the last is raised to the one before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


def test_what_cannot_be_tested_counts_in_the_family():
    family = [Comparison("a", 0.1, 0.03), Comparison("b", 0.1, None)]
    assert [each.p for each in correct(family)] == [pytest.approx(0.06), None]


def test_correction_is_within_a_claim():
    # Alone p = 0.03: significant as the weakest of a hundred comparisons, not as one of the three weakest.
    points = changed(papers_world(), 0.7955, figure="fig1", graph="cora-ml", line="GAP", place="0.5")
    pair = [each for each in points if (each.graph, each.place) == ("cora-ml", "0.5") and each.figure == "fig1"]
    gcon, gap = (next(each for each in pair if each.line == line) for line in ("GCON", "GAP"))
    assert above(gcon, gap).significant
    assert at(points, "5", "cora-ml, epsilon 0.5").verdict == HOLDS  # last of the family: its own p-value stays
    for graph in HOMOPHILOUS:
        points = changed(points, 0.7955, figure="fig1", graph=graph, line="GAP", place="0.5")
    assert at(points, "5", "cora-ml, epsilon 0.5").verdict == FAILS  # three of them: three times its own
    assert at(points, "9a", "cora-ml, GAP").verdict == FAILS


def test_verdicts_are_combined_by_what_is_certain():
    assert combine([HOLDS, FAILS, UNKNOWN]) == FAILS
    assert combine([HOLDS, WITHOUT_CONTROLS, UNKNOWN]) == UNKNOWN
    assert combine([HOLDS, WITHOUT_CONTROLS]) == WITHOUT_CONTROLS
    assert combine([HOLDS]) == HOLDS
    assert combine([]) == UNKNOWN


def test_tables_hold_every_row_once():
    points = changed(papers_world(), 0.9, figure="fig1", graph="pubmed", line="GAP", place="0.5")
    points = [replace(each, reading=each.reading.replace("no ", "a|b ")) for each in points]
    verdicts = check(points)
    rows = list(csv.DictReader(io.StringIO(to_csv(verdicts))))
    assert len(rows) == len(verdicts) + len(CLAIMS)
    assert [row["verdict"] for row in rows if row["where"] == "overall"] == [each.verdict for each in overall(verdicts)]
    lines = markdown(verdicts).splitlines()
    assert len(lines) == len(rows) + 7  # headers, rules, the legend and two empty lines
    assert {line.replace("\\|", "").count("|") for line in lines if line.startswith("|")} == {5, 6}
    assert "does not hold: 1 of 20 ([pubmed, epsilon 0.5])" in markdown(verdicts)
