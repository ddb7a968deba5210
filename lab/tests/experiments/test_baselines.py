"""The competitors' table in small: it resumes, repeats itself, names what it skips, and never chooses by exact edges."""

import dataclasses
import json
import time
from types import SimpleNamespace

import pytest
from rich.console import Console

from gcon.files.datasets.synthetic import social_circles
from gcon.methods.method import PrivateMethod
from gcon.privacy.budget import ONE_UNDIRECTED_EDGE
from gcon.privacy.randomness import SeededRandomness
from gcon_lab.experiments import baselines
from gcon_lab.experiments.baselines import Effort, page
from gcon_lab.experiments.grids import COMPETITORS, Competitor, competitor
from gcon_lab.mechanisms.neighbour_sums import gaussian_sums_plan
from gcon_lab.methods import GAP

FAR = 1e12
TINY = Competitor(
    name="gap",
    method=GAP,
    fixed={"epochs": 2},
    grid={"hops": (1, 2)},
    chosen_by="cached",
    shown=("cached", "own-edges"),
)
EFFORT = Effort(lines=("gap",), epsilons=(1.0,), final_runs=3)
GROUP = ("gap", "citeseer", 1.0)


@pytest.fixture
def small(monkeypatch):
    graph = social_circles(150, num_classes=3, per_class=8, num_validation=40, num_test=60, seed=1)
    monkeypatch.setattr(baselines, "open_graph", lambda dataset, run: SimpleNamespace(graph=graph))
    monkeypatch.setattr(baselines, "competitor", lambda name: TINY)


def without_seconds(folder):
    units = {path.name: json.loads(path.read_text()) for path in folder.iterdir()}
    for unit in units.values():
        for run in unit["runs"]:
            del run["seconds"]
    return units


def test_interrupted_work_resumes_and_equals_uninterrupted_work(small, tmp_path):
    assert baselines.finish_group(tmp_path / "whole", GROUP, FAR, EFFORT)
    assert not baselines.finish_group(tmp_path / "parts", GROUP, time.time() - 1, EFFORT)  # no time at all
    for name in ("search0", "final"):  # two units are there already, as after a kill
        unit = baselines.unit_name(GROUP, name)
        baselines.UnitStore(tmp_path / "parts").write(
            unit, json.loads((tmp_path / "whole" / f"{unit}.json").read_text())
        )
    assert baselines.finish_group(tmp_path / "parts", GROUP, FAR, EFFORT)
    assert without_seconds(tmp_path / "parts") == without_seconds(tmp_path / "whole")


def test_the_table_has_a_line_for_every_access(small, tmp_path):
    assert baselines.finish_group(tmp_path, GROUP, FAR, EFFORT)
    sheet = baselines.table(tmp_path, EFFORT, ["citeseer", "pubmed"])
    text = page(sheet)
    lines = sheet.splitlines()
    assert len(lines) == 3
    assert [line.split(",")[3] for line in lines[1:]] == ["cached", "own-edges"]
    assert "validation (cached)" in sheet
    assert "pubmed" not in text


def test_the_table_says_that_tuning_is_not_charged(small, tmp_path):
    assert baselines.finish_group(tmp_path, GROUP, FAR, EFFORT)
    sheet = baselines.table(tmp_path, EFFORT, ["citeseer"])
    before, *rows = page(sheet).split("\n| ")
    assert "This tuning is **not charged**" in before
    assert all("validation (cached), uncharged" in line for line in sheet.splitlines()[1:])
    assert len({row.split("\n")[0].count(" | ") for row in rows}) == 1


def test_units_hold_the_numbers_of_the_noise_plan(small, tmp_path):
    assert baselines.finish_group(tmp_path, GROUP, FAR, EFFORT)
    units = without_seconds(tmp_path)
    assert len(units) == 4  # the defaults, two draws of the grid, and the final runs
    for unit in units.values():
        (release,) = unit["releases"]
        hops = unit["settings"].get("hops", 2)
        assert (release["epsilon"], release["delta"]) == (1.0, 1e-5)
        assert release["releases"] == release["plan"]["rounds"] == hops
        assert release["noise"] == release["plan"]["scale"]
        assert release["noise"] == pytest.approx(gaussian_sums_plan(1.0, 1e-5, hops).scale)
        assert release["sensitivity"] == "sqrt(2)"
        assert release["protected_change"] == ONE_UNDIRECTED_EDGE.name
        assert release["keeps_promise"] is False  # the noise of an experiment is seeded


@pytest.mark.parametrize("entry", COMPETITORS, ids=lambda entry: entry.name)
def test_every_private_line_records_its_plan(small, entry):
    quick = {"epochs": 1, "steps": 2, "rounds": 0}
    known = {field.name for field in dataclasses.fields(entry.method)}
    settings = {**entry.fixed, **{name: value for name, value in quick.items() if name in known}}
    epsilon = 1.0 if entry.spends else None
    found = baselines.score(entry, "citeseer", epsilon, settings, range(1), "unit")
    assert ("releases" in found) == entry.method.private
    assert len(found.get("releases", [])) == entry.spends
    for release in json.loads(json.dumps(found, allow_nan=False)).get("releases", []):
        assert release["epsilon"] == 1.0
        assert release["noise"] > 0
        assert release["releases"] >= 1
        assert release["sensitivity"]
        assert release["protected_change"] == ONE_UNDIRECTED_EDGE.name


def test_older_units_without_plans_are_still_read(small, tmp_path):
    assert baselines.finish_group(tmp_path, GROUP, FAR, EFFORT)
    expected = baselines.table(tmp_path, EFFORT, ["citeseer"])
    for path in tmp_path.iterdir():
        unit = json.loads(path.read_text())
        del unit["releases"]
        path.write_text(json.dumps(unit))
    assert baselines.finish_group(tmp_path, GROUP, 0.0, EFFORT)  # nothing is left to do
    assert baselines.table(tmp_path, EFFORT, ["citeseer"]) == expected


def test_every_run_of_every_unit_draws_its_own_noise(small, monkeypatch, tmp_path):
    seeds = []

    def recording(seed):
        seeds.append(seed)
        return SeededRandomness(seed)

    monkeypatch.setattr(baselines, "SeededRandomness", recording)
    assert baselines.finish_group(tmp_path, GROUP, FAR, EFFORT)
    assert len(seeds) == 3 * baselines.SEARCH_RUNS + 3
    assert len(set(seeds)) == len(seeds)


def test_the_choice_goes_by_the_named_access_and_by_validation():
    def unit(hops, cached, own):
        validation, test = {"cached": cached, "own-edges": own}, {"cached": 1 - cached, "own-edges": 1 - own}
        return {"settings": {"hops": hops}, "runs": [{"validation": validation, "test": test}]}

    searched = [unit(1, 0.7, 0.1), unit(2, 0.6, 0.9)]
    assert baselines.chosen(TINY, searched, [{}]) == {"hops": 1}
    skipped = {"settings": {"hops": 3}, "skipped": "too large", "runs": []}
    assert baselines.chosen(TINY, [skipped, *searched], [{}]) == {"hops": 1}
    assert baselines.chosen(TINY, [skipped], [{"hops": 4}]) == {"hops": 4}


def test_what_does_not_fit_is_skipped_and_named(small, monkeypatch, tmp_path):
    large = Competitor(
        name="flips",
        method=competitor("dpgcn, EdgeRand").method,
        fixed={"variant": "random-flips", "most_pairs": 10},
        chosen_by="cached",
        shown=("cached",),
    )
    monkeypatch.setattr(baselines, "competitor", lambda name: large)
    effort = dataclasses.replace(EFFORT, lines=("flips",))
    assert baselines.finish_group(tmp_path, ("flips", "citeseer", 1.0), FAR, effort)
    assert "skipped" in baselines.table(tmp_path, effort, ["citeseer"])


def test_no_private_method_is_chosen_by_exact_edges():
    for entry in COMPETITORS:
        assert entry.chosen_by in (("none", "cached") if entry.method.private else ("full",))
        assert len(entry.candidates()) <= 20
        assert entry.spends == issubclass(entry.method, PrivateMethod)


def test_candidates_build_and_are_the_same_everywhere():
    for entry in COMPETITORS:
        candidates = entry.candidates()
        assert candidates == entry.candidates()
        assert len({json.dumps(settings, sort_keys=True) for settings in candidates}) == len(candidates)
        for settings in candidates:
            entry.build(settings, epsilon=1.0 if entry.spends else None, seed=0)


def test_no_two_units_share_their_noise(small, monkeypatch):
    seeds = []
    monkeypatch.setattr(baselines, "SeededRandomness", seeds.append)
    fitted = SimpleNamespace(receipts=(), trained=SimpleNamespace(score_functions={}))
    monkeypatch.setattr(baselines, "fit", lambda method, graph, *, randomness: fitted)
    method = SimpleNamespace(private=False)
    entry = SimpleNamespace(method=method, build=lambda settings, *, epsilon, seed: method)
    names = [
        baselines.unit_name(("gap", dataset, epsilon), stage)
        for dataset in ("a", "b")
        for epsilon in (1.0, 2.0)
        for stage in ("search0", "search1", "final")
    ]
    for name in names:
        baselines.score(entry, "a", 1.0, {}, range(12), name)
    assert len(set(seeds)) == len(seeds) == 12 * len(names)


def test_all_groups_are_named_and_only_spenders_have_budgets():
    effort = Effort(lines=("mlp", "gap"), epsilons=(1.0, 4.0))
    assert list(baselines.groups(effort, ["a", "b"])) == [
        ("mlp", "a", None), ("mlp", "b", None),
        ("gap", "a", 1.0), ("gap", "a", 4.0), ("gap", "b", 1.0), ("gap", "b", 4.0),
    ]  # fmt: skip
    assert set(baselines.FULL.lines) == {entry.name for entry in COMPETITORS}
    assert (baselines.FULL.epsilons, baselines.FULL.final_runs) == ((0.5, 1.0, 2.0, 3.0, 4.0), 10)


def test_one_candidate_means_the_defaults_without_a_search(small, tmp_path):
    effort = dataclasses.replace(EFFORT, candidates=1, final_runs=1)
    assert baselines.finish_group(tmp_path, GROUP, FAR, effort)
    (unit,) = without_seconds(tmp_path).values()
    assert unit["settings"] == TINY.candidates()[0]
    sheet = baselines.table(tmp_path, effort, ["citeseer"])
    assert "nothing (defaults)" in sheet
    assert "validation" not in sheet


def test_finished_groups_are_not_given_out_again(small, monkeypatch, tmp_path):
    given = []

    def in_turn(tasks, *, workers, console):
        given.append([task.name for task in tasks if task.work is not None])
        return sum(not task.work() for task in tasks if task.work is not None)

    monkeypatch.setattr(baselines, "in_parallel", in_turn)
    effort = dataclasses.replace(EFFORT, candidates=1, final_runs=1)
    one, both = [GROUP], [GROUP, ("gap", "pubmed", 1.0)]
    options = {"workers": 1, "console": Console(quiet=True)}
    assert baselines.finish_groups(tmp_path, both, effort, deadline=0.0, **options) == 2
    assert baselines.finish_groups(tmp_path, one, effort, deadline=FAR, **options) == 0
    assert baselines.finish_groups(tmp_path, both, effort, deadline=FAR, **options) == 0
    first, second = "gap citeseer 1.0", "gap pubmed 1.0"
    assert given == [[first, second], [first], [second]]
