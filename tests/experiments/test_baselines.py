"""The competitors' table in small: it resumes, repeats itself, names what it skips, and never chooses by exact edges."""

import json
import time

import pytest

from gcon.baselines import GAP
from gcon.baselines.interface import PrivateMethod
from gcon.datasets.synthetic import social_circles
from gcon.experiments import baselines
from gcon.experiments.grids import COMPETITORS, Competitor, competitor

FAR = 1e12
TINY = Competitor(
    name="gap",
    method=GAP,
    fixed={"epochs": 2},
    grid={"hops": (1, 2)},
    chosen_by="cached",
    shown=("cached", "own-edges"),
)


@pytest.fixture
def small(monkeypatch):
    graph = social_circles(150, num_classes=3, per_class=8, num_validation=40, num_test=60, seed=1)
    monkeypatch.setattr(baselines, "_graph", lambda dataset, split: graph)
    monkeypatch.setattr(baselines, "competitor", lambda name: TINY)
    monkeypatch.setattr(baselines, "COMPETITORS", (TINY,))
    monkeypatch.setattr(baselines, "EPSILONS", (1.0,))
    monkeypatch.setattr(baselines, "FINAL_RUNS", 3)


def without_seconds(folder):
    units = {path.name: json.loads(path.read_text()) for path in folder.iterdir()}
    for unit in units.values():
        for run in unit["runs"]:
            del run["seconds"]
    return units


def test_interrupted_work_resumes_and_equals_uninterrupted_work(small, tmp_path):
    group = ("gap", "citeseer", 1.0)
    assert baselines.finish_group(tmp_path / "whole", group, FAR)
    assert not baselines.finish_group(tmp_path / "parts", group, time.time() - 1)  # no time at all
    for name in ("search0", "final"):  # two units are there already, as after a kill
        unit = baselines.unit_name(group, name)
        baselines.UnitStore(tmp_path / "parts").write(
            unit, json.loads((tmp_path / "whole" / f"{unit}.json").read_text())
        )
    assert baselines.finish_group(tmp_path / "parts", group, FAR)
    assert without_seconds(tmp_path / "parts") == without_seconds(tmp_path / "whole")


def test_the_table_has_a_line_for_every_access(small, tmp_path):
    assert baselines.finish_group(tmp_path, ("gap", "citeseer", 1.0), FAR)
    sheet, text = baselines.table(tmp_path, ["gap"], ["citeseer", "pubmed"])
    lines = sheet.splitlines()
    assert len(lines) == 3
    assert [line.split(",")[3] for line in lines[1:]] == ["cached", "own-edges"]
    assert "validation (cached)" in sheet
    assert "pubmed" not in text


def test_what_does_not_fit_is_skipped_and_named(small, monkeypatch, tmp_path):
    large = Competitor(
        name="flips",
        method=competitor("dpgcn, EdgeRand").method,
        fixed={"variant": "random-flips", "most_pairs": 10},
        chosen_by="cached",
        shown=("cached",),
    )
    monkeypatch.setattr(baselines, "competitor", lambda name: large)
    monkeypatch.setattr(baselines, "COMPETITORS", (large,))
    assert baselines.finish_group(tmp_path, ("flips", "citeseer", 1.0), FAR)
    assert "skipped" in baselines.table(tmp_path, ["flips"], ["citeseer"])[0]


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


def test_no_two_runs_share_their_noise():
    names = [
        baselines.unit_name(("gap", dataset, 1.0), stage) for dataset in ("a", "b") for stage in ("search0", "final")
    ]
    seeds = [baselines._noise_seed(name, run) for name in names for run in range(12)]
    assert len(set(seeds)) == len(seeds)
