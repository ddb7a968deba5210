"""`gcon reproduce beyond`: means, paired differences and targets on made-up numbers, and one tiny run end to end."""

import csv
import io

import polars as pl
import pytest
from rich.console import Console
from scipy.stats import ttest_rel

from gcon.errors import InputError
from gcon_lab.experiments.beyond import compared
from gcon_lab.experiments.beyond.build import GRAPHS, build_beyond
from gcon_lab.experiments.beyond.scores import beyond_units, measured_scores, scores_csv, take
from gcon_lab.experiments.beyond.summary import Difference, Mean, best_non_private, differences, means, means_csv
from gcon_lab.experiments.beyond.targets import check_targets, earlier_means
from gcon_lab.experiments.reproduce.build import Job
from gcon_lab.experiments.sweep.graphs import CIRCLES, open_graph
from gcon_lab.experiments.units import UnitStore

OURS = {0: 0.80, 1: 0.82, 2: 0.85}
CONTROL = {2: 0.80, 0: 0.78, 1: 0.81}


def frame(rows):
    names = ("graph", "run", "method", "epsilon", "access", "test")
    return pl.DataFrame([dict(zip(names, row, strict=True)) for row in rows])


@pytest.fixture
def scores():
    ours = [("cora-ml", run, "moments", "1", "none", test) for run, test in OURS.items()]
    control = [("cora-ml", run, "moments-without-edges", "any", "none", test) for run, test in CONTROL.items()]
    other_access = [("cora-ml", run, "gcn", "any", "full", 0.9) for run in OURS]
    other_budget = [("cora-ml", run, "gap", "4", "none", 0.1) for run in OURS]
    return frame([*ours, *control, *other_access, *other_budget])


def test_means_have_standard_errors_over_runs(scores):
    row = next(row for row in means(scores) if row.method == "moments")
    assert row.mean == pytest.approx(2.47 / 3)
    assert row.standard_error == pytest.approx(pl.Series(list(OURS.values())).std() / 3**0.5)
    assert row.runs == 3
    sheet = list(csv.DictReader(io.StringIO(means_csv(means(scores)))))
    assert sheet[0]["mean"] == "0.8233"


def test_differences_are_paired_by_run_and_keep_to_access_and_budget(scores):
    (found,) = differences(scores)  # not gcn (another access), not gap (another budget)
    assert found.other == "moments-without-edges"
    assert found.difference == pytest.approx((0.02 + 0.01 + 0.05) / 3)
    runs = sorted(OURS)
    assert found.p == pytest.approx(ttest_rel([OURS[run] for run in runs], [CONTROL[run] for run in runs]).pvalue)


def test_the_non_private_model_is_compared_with_own_edges():
    rows = [("pubmed", run, "moments", "1", "own-edges", 0.8) for run in range(2)]
    rows += [("pubmed", run, "gcn", "any", "full", 0.7) for run in range(2)]
    (found,) = differences(frame(rows))
    assert found.other == "gcn"
    assert found.p == 0.0  # the same gap in every run
    assert found.difference == pytest.approx(0.1)


def test_a_method_without_released_answers_is_compared_without_edges_and_one_with_both_is_not():
    rows = [("g", run, "moments", "1", "cached", 0.8) for run in range(2)]
    rows += [("g", run, "moments-without-edges", "any", "none", 0.7) for run in range(2)]
    for access, test in (("cached", 0.75), ("none", 0.1)):
        rows += [("g", run, "moments-without-validation", "1", access, test) for run in range(2)]
    found = {gap.other: (pytest.approx(gap.difference), gap.runs) for gap in differences(frame(rows))}
    assert found == {"moments-without-edges": (0.1, 2), "moments-without-validation": (0.05, 2)}


def test_the_best_non_private_model_is_one_of_three():
    rows = [("g", run, "moments", "1", "own-edges", 0.8) for run in range(2)]
    rows += [("g", run, "gcn", "any", "full", 0.7) for run in range(2)]
    rows += [("g", run, "gpr-gnn", "any", "full", 0.9) for run in range(2)]
    rows += [("g", run, "gap", "1", "own-edges", 0.99) for run in range(2)]  # private
    ours = [("g", run, "moments", "inf", "own-edges", 0.85 + 0.1 * run) for run in range(2)]
    for scores, name in ((frame(rows), "gpr-gnn"), (frame([*rows, *ours]), "gpr-gnn"), (frame(rows[:4]), "gcn")):
        assert best_non_private(means(scores))["g"][0] == name
    better = [(*row[:-1], row[-1] + 0.01) for row in ours]
    scores = frame([*rows, *better])
    assert best_non_private(means(scores))["g"][0] == "moments-without-noise"
    found = {gap.other: gap.difference for gap in differences(scores) if gap.epsilon == "1"}
    assert found == {
        "gcn": pytest.approx(0.1),
        "gpr-gnn": pytest.approx(-0.1),
        "gap": pytest.approx(-0.19),
        "moments-without-noise": pytest.approx(-0.11),
    }


def target(asked, where, targets):
    (found,) = [each for each in targets if each.asked.startswith(asked) and each.where == where]
    return found


@pytest.mark.parametrize(("gap", "met"), [(0.071, "yes"), (0.069, "no")])
def test_a_target_is_met_at_its_margin(gap, met):
    mean = Mean("cora-ml", "moments", "1", "none", 0.8, 0.01, 10)
    difference = Difference("cora-ml", "1", "none", "mlp", gap, 0.001, 1e-6, 10)
    found = target("none, epsilon 1: at least 7 points above the MLP", "cora-ml", check_targets([mean], [difference]))
    assert found.met == met
    assert f"{gap:+.4f}" in found.numbers


@pytest.mark.parametrize(("p", "met"), [(0.04, "yes"), (0.06, "no")])
def test_significance_is_asked_where_it_is_promised(p, met):
    mean = Mean("citeseer", "moments", "1", "none", 0.74, 0.001, 10)
    difference = Difference("citeseer", "1", "none", "moments-without-edges", 0.002, 0.001, p, 10)
    assert target("none, epsilon 1: significantly", "citeseer", check_targets([mean], [difference])).met == met


def test_what_was_not_measured_is_not_met():
    assert {each.met for each in check_targets([], [])} == {"not measured"}


def test_a_fall_below_the_control_anywhere_is_named():
    low = Difference("actor", "0.5", "own-edges", "moments-without-edges", -0.006, 0.001, 0.01, 10)
    found = target("never more than half a point", "all graphs", check_targets([], [low]))
    assert found.met == "no"
    assert "actor own-edges epsilon 0.5" in found.numbers


def ours(graph, epsilon, access, mean):
    return Mean(graph, "moments", epsilon, access, mean, 0.001, 10)


@pytest.mark.parametrize(("reached", "met"), [(0.6901, "yes"), (0.6899, "no")])
def test_a_level_is_met_or_not(reached, met):
    rows = [ours("social/fb100-johns-hopkins", "1", "cached", reached)]
    assert target("cached, epsilon 1: at least 0.69", "social/fb100-johns-hopkins", check_targets(rows, [])).met == met


def test_levels_with_many_labels_belong_to_the_other_split():
    rows = [ours("social/twitch-de@many", "1", "own-edges", 0.7), ours("social/twitch-de", "1", "own-edges", 0.6)]
    found = check_targets(rows, [])
    assert target("own-edges, epsilon 1: at least 0.68", "social/twitch-de@many", found).met == "yes"
    assert target("own-edges, epsilon 1: at least 0.62", "social/twitch-de", found).met == "no"


def test_an_access_with_more_edges_may_not_be_worse():
    rows = [ours("g", "1", access, mean) for access, mean in (("own-edges", 0.796), ("cached", 0.8), ("none", 0.81))]
    rows += [ours("g", "inf", "own-edges", 0.1), ours("g", "inf", "cached", 0.9)]
    found = check_targets(rows, [])
    assert target("own-edges never", "all graphs", found).met == "yes"
    fall = target("cached never", "all graphs", found)
    assert (fall.met, fall.numbers) == ("no", "g epsilon 1: -0.0100")


@pytest.mark.parametrize(
    ("gaps", "met"),
    [
        ([(0.02, 0.001), (0.01, 0.04)], "yes"),
        ([(0.02, 0.001), (0.01, 0.06)], "level"),
        ([(0.02, 0.001), (-0.01, 0.06)], "level"),
        ([(0.02, 0.001), (-0.01, 0.04)], "no"),
    ],
)
def test_where_we_are_level_with_a_competitor_it_is_said(gaps, met):
    rows = [
        Difference("g", "1", "cached", other, gap, 0.001, p, 10)
        for other, (gap, p) in zip(("gap", "lpgnet"), gaps, strict=True)
    ]
    found = target("cached: above", "g", check_targets([], rows))
    assert found.met == met
    assert ("lpgnet at 1" in found.numbers) == (met != "yes")


@pytest.mark.parametrize(("lost", "met"), [(0.019, "yes"), (0.021, "no")])
def test_without_validation_nodes_little_may_be_lost(lost, met):
    rows = [
        Difference("cora-ml", epsilon, "none", "moments-without-validation", gap, 0.001, 0.01, 10)
        for epsilon, gap in (("1", lost), ("4", -0.1))
    ]
    assert target("without validation", "cora-ml", check_targets([], rows)).met == met


@pytest.mark.parametrize(("change", "met"), [(0.0, "yes"), (-0.001, "level"), (-0.1, "no")])
def test_numbers_are_held_against_those_before(change, met):
    rows = [ours(row.graph, row.epsilon, row.access, row.mean) for row in earlier_means() if row.graph == "pubmed"]
    rows[3] = ours(*[getattr(rows[3], name) for name in ("graph", "epsilon", "access")], rows[3].mean + change)
    found = target("not below what it was", "pubmed", check_targets(rows, []))
    assert found.met == met
    assert len(rows) == 15


def test_own_edges_are_held_against_the_best_non_private_model():
    rows = [ours("citeseer", "1", "own-edges", 0.75), Mean("citeseer", "gpr-gnn", "any", "full", 0.74, 0.001, 10)]
    rows.append(Mean("citeseer", "gcn", "any", "full", 0.70, 0.001, 10))
    gaps = [
        Difference("citeseer", "1", "own-edges", other, gap, 0.001, 0.01, 10)
        for other, gap in (("gcn", 0.05), ("gpr-gnn", 0.01))
    ]
    found = target("own-edges, epsilon 1: the best non-private model", "citeseer", check_targets(rows, gaps))
    assert (found.met, "minus gpr-gnn: +0.0100" in found.numbers) == ("yes", True)


def test_synthetic_graphs_span_what_they_say():
    degrees = [circles.degree for circles in CIRCLES.values()]
    homophilies = [circles.homophily for circles in CIRCLES.values()]
    assert min(degrees) <= 3
    assert max(degrees) >= 100
    assert min(homophilies) <= 0.1
    assert max(homophilies) >= 0.9
    first, second = (open_graph("circles-5-0.9-weak", run).edges for run in (0, 1))
    assert len(first.columns) == 2000 * 5
    assert not first.columns.equal(second.columns)  # every run draws a new graph


@pytest.mark.slow
def test_one_graph_end_to_end_is_kept_and_told(tmp_path, monkeypatch):
    monkeypatch.setattr(compared, "FREE", {"mlp": compared.FREE["mlp"], "gcn": compared.FREE["gcn"]})
    monkeypatch.setattr(compared, "PRIVATE", {"gap": (compared.GAP, [{"hops": hops, "epochs": 3} for hops in (1, 2)])})
    units = beyond_units(["made-up"], runs=[3], budgets=(4.0,))
    store = UnitStore(tmp_path / "store")
    for unit in units:
        store.write(unit.name, unit.results())
    missing, files = build_beyond(units, tmp_path, kept=None, workers=1, deadline=0.0, console=Console(quiet=True))
    assert missing == 0
    assert {path.name for path in files} == {"scores.csv", "beyond.csv", "differences.csv", "beyond.md"}
    methods = {row["method"] for row in csv.DictReader((tmp_path / "scores.csv").read_text().splitlines())}
    assert methods == {"moments", "moments-without-edges", "moments-without-validation", "mlp", "gcn", "gap", "gcon"}
    page = (tmp_path / "beyond.md").read_text()
    assert "| made-up | moments |" in page
    assert "## Against the best non-private model" in page
    assert "Runs, of every graph and budget: gap 1, gcn 1, gcon 1," in page


def test_of_several_settings_the_best_on_the_validation_nodes_counts_under_each_access(monkeypatch):
    scores = iter([[("none", (0.5, 0.6)), ("cached", (0.7, 0.1))], [("none", (0.4, 0.9)), ("cached", (0.8, 0.2))]])
    monkeypatch.setattr(compared, "_trained", lambda *_: ["one", "other"])
    monkeypatch.setattr(compared, "_shares", lambda *_: next(scores))
    assert compared.measured("g", 0, "gap", "1") == {"none": 0.6, "cached": 0.2}


@pytest.mark.parametrize("graph", ["circles-5-0.9-weak", "social/twitch-de", "social/twitch-de@many"])
def test_these_graphs_are_for_beyond_only(tmp_path, graph):
    Job(what="beyond", out=tmp_path, graphs=(graph,), first_run=70)
    with pytest.raises(InputError, match="graphs"):
        Job(what="fig1", out=tmp_path, graphs=(graph,))


@pytest.mark.parametrize(
    "options", [{"what": "fig1", "first_run": 1}, {"what": "beyond", "first_run": -1}, {"what": "beyond", "kept": "x"}]
)
def test_what_is_for_beyond_only_or_is_not_there_is_refused(tmp_path, options):
    wrong = "kept" if "kept" in options else "first_run"
    with pytest.raises(InputError, match=wrong):
        Job(out=tmp_path, **{**options, **({"kept": tmp_path / "x"} if wrong == "kept" else {})})


def test_a_missing_social_graph_is_said_before_anything_is_measured(tmp_path, monkeypatch):
    monkeypatch.setenv("GCON_DATA", str(tmp_path))
    work = beyond_units(["made-up", "social/twitch-de@many"], runs=[0], budgets=(1.0,))
    with pytest.raises(InputError, match=r"no file .*social/twitch-de\.npz"):
        build_beyond(work, tmp_path / "out", kept=None, workers=1, deadline=0.0, console=Console(quiet=True))
    assert not (tmp_path / "out").exists()


def test_every_method_is_a_unit_of_its_own_and_the_slowest_comes_last():
    work = beyond_units(GRAPHS, runs=[70, 71], budgets=(1.0, 4.0))
    names = [unit.name for unit in work]
    spending = len(compared.PRIVATE) + 1
    bare = 4 + 4  # the paper's graphs, and social ones with few labels
    assert len(set(names)) == len(names) == 2 * (23 * (1 + len(compared.FREE) + 2 * spending) + bare)
    assert not any("/" in name for name in names)
    assert all(name.startswith("dpgcn-") for name in names[-2 * 2 * 23 :])
    assert not any("run71" in name for name in names[: names.index(next(name for name in names if "run71" in name))])


OWN = [
    {"epsilon": 0.0, "none": 0.5, "own-edges": 0.6},
    {"epsilon": 1.0, "none": 0.7, "cached": 0.8, "own-edges": 0.9, "calibration": 0.01, "tables": 1.0},
    {"epsilon": float("inf"), "none": 0.7, "cached": 0.85, "own-edges": 0.95, "calibration": 0.01, "tables": 1.0},
]


def test_scores_are_kept_as_a_table_and_all_but_ours_are_taken_from_it_again(tmp_path):
    units = beyond_units(["social/twitch-de"], runs=[70], budgets=(1.0,))
    first, second = UnitStore(tmp_path / "first"), UnitStore(tmp_path / "second")
    for unit in units:
        own = unit.name.startswith("social")
        rows = OWN[:2] if "bare" in unit.name else OWN
        first.write(unit.name, rows if own else {"own-edges": 0.25, "public-graph": 1 / 3})
    found = measured_scores(units, first)
    assert found["social/twitch-de", 70, "moments", "1"] == {"none": 0.7, "cached": 0.8, "own-edges": 0.9}
    assert found["social/twitch-de", 70, "moments", "inf"]["own-edges"] == 0.95
    assert found["social/twitch-de", 70, "moments-without-edges", "any"] == {"none": 0.5, "own-edges": 0.6}
    assert found["social/twitch-de", 70, "moments-without-validation", "1"]["cached"] == 0.8
    kept = tmp_path / "scores.csv"
    kept.write_text(scores_csv(found))
    second.write("gap-social-twitch-de-run70-epsilon-1", {"none": 0.1})  # measured here: it stays
    take(kept, units, second)
    again = measured_scores(units, second)
    assert not any(method.startswith("moments") for _, _, method, _ in again)
    assert again["social/twitch-de", 70, "gap", "1"] == {"none": 0.1}
    assert again["social/twitch-de", 70, "gcn", "any"] == {"own-edges": 0.25, "public-graph": 0.333333}
    assert {*again} == {key for key in found if not key[2].startswith("moments")}


def test_another_table_is_not_taken(tmp_path):
    kept = tmp_path / "beyond.csv"
    kept.write_text("graph,method\n")
    with pytest.raises(InputError, match="kept"):
        take(kept, [], UnitStore(tmp_path / "store"))
