"""Honest releases verify, whatever their budget and settings; releases without a promise do not."""

import json
import math
import shutil
from dataclasses import replace

import pytest
import torch

import gcon.learn.sample
from gcon.edges.schemes import Schemes
from gcon.files.datasets.synthetic import social_circles_parts
from gcon.privacy.randomness import SeededRandomness
from gcon.verify.verify import verify_release


def failed(folder):
    found = verify_release(folder)
    return [step.words for step in found.steps if not step.holds]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("sparse", [True, False])
def test_moments(moments_release, epsilon, sparse):
    folder = moments_release(epsilon, sparse=sparse)
    found = verify_release(folder)
    assert failed(folder) == []
    assert (found.holds, found.epsilon, found.delta) == (True, epsilon, 1e-5)
    assert f"({epsilon:g}, 1e-05)-differentially private" in found.verdict


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("loss", ["soft-margin", "pseudo-huber:0.20"])
def test_paper(paper_release, epsilon, loss):
    assert failed(paper_release(epsilon, loss=loss)) == []


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 1e-3},
        {"epsilon": 40.0},
        {"epsilon": 0.5, "delta": 1e-12},
        {"epsilon": 0.5, "delta": 0.1},
        {"epsilon": 1.0, "ridge": 1e-4, "margin": 1e-3},
        {"epsilon": 1.0, "ridge": 1e-4},
        {"epsilon": 1.0, "noise_share": 0.999999},
        {"epsilon": 1.0, "noise_share": 0.01},
        {"epsilon": 1.0, "schemes": Schemes(0.2, (10,))},
        {"epsilon": 1.0, "schemes": Schemes(0.0, (3, 5))},
        {"epsilon": 1.0, "schemes": Schemes(0.3, (2,), 0.1)},
        {"epsilon": 1.0, "schemes": Schemes(0.3, (7,)), "influence": "paper"},
        {"epsilon": 1.0, "schemes": Schemes(0.6, (2, math.inf)), "influence": "sharp"},
        {"epsilon": 1.0, "schemes": Schemes(0.6, (1000, math.inf)), "influence": "simple"},
        {"epsilon": 1.0, "expand": "labelled"},
    ],
    ids=str,
)
def test_paper_with_unusual_settings(paper_release, options):
    assert failed(paper_release(**options)) == []


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"epsilon": 1e-3}, {"epsilon": 60.0}, {"epsilon": 0.5, "delta": 1e-12}], ids=str)
@pytest.mark.parametrize("asked", [True, False])
def test_moments_with_unusual_budgets(moments_release, unasked, options, asked):
    assert failed(moments_release(**options, parts=None if asked else unasked)) == []


@pytest.mark.parametrize("epsilon", [2.0, 8.0])
def test_two_tables(moments_release, vague, epsilon):
    assert failed(moments_release(epsilon, parts=vague, sparse=False)) == []


def test_nobody_to_ask(moments_release, unasked):
    folder = moments_release(8.0, parts=unasked, sparse=False, tables=1)
    assert failed(folder) == []
    assert not any("count of right answers has" in step.words for step in verify_release(folder).steps)


@pytest.mark.parametrize("sparse", [True, False])
def test_everybody_is_labelled_and_judges_are_set_aside(moments_release, circles, sparse, monkeypatch):
    """Judges have public labels too, so there may be more of them than nodes without one."""
    monkeypatch.setattr(gcon.learn.sample, "_ENOUGH", 1)
    monkeypatch.setattr(gcon.learn.sample, "_ENOUGH_PER_CLASS", 1)
    nodes, edges = circles
    nobody = torch.zeros_like(nodes.train_mask)
    known = replace(nodes, train_mask=~nobody, validation_mask=nobody, test_mask=nobody)
    assert failed(moments_release(8.0, parts=(known, edges), sparse=sparse)) == []


@pytest.mark.parametrize("schemes", [Schemes(1.0, (2,)), Schemes(0.5, (0,))])
@pytest.mark.parametrize("seed", [None, 3])
def test_a_release_that_reads_no_edge(paper_release, schemes, seed):
    randomness = None if seed is None else SeededRandomness(seed)
    folder = paper_release(schemes=schemes, randomness=randomness)
    assert failed(folder) == []
    assert "nothing in this release depends on any edge" in verify_release(folder).verdict


def test_a_seed_or_no_noise_is_no_promise(moments_release, paper_release):
    for folder in (
        moments_release(randomness=SeededRandomness(1)),
        paper_release(randomness=SeededRandomness(1)),
        moments_release(math.inf),
        paper_release(math.inf),
    ):
        found = verify_release(folder)
        assert not found.holds
        assert "promise" in failed(folder)[0]
        assert found.claim == "this release makes no promise"
        assert "NOT VERIFIED" in found.verdict


def test_what_cannot_be_checked_is_said(releases):
    for name, words in (("moments", "lengths"), ("counts", "by the codes"), ("paper", "edge influence")):
        found = verify_release(releases[name])
        said = " ".join(found.not_checked)
        for part in (words, "noise was drawn", "ledger's total is complete", "no signature", "training_nodes"):
            assert part in said
            assert all(line in str(found) for line in found.not_checked)


def test_what_else_lies_in_the_folder_is_named(paper_release):
    folder = paper_release()
    assert not any("what else lies" in words for words in verify_release(folder).not_checked)
    (folder / "edges.csv").write_text("source,target\n")
    (folder / "more\x1b[2J").mkdir()
    found = verify_release(folder)
    (words,) = [words for words in found.not_checked if "what else lies" in words]
    assert words.endswith("'edges.csv', 'more\\x1b[2J'")
    assert words in str(found)
    for number in range(30):
        (folder / f"file{number}").touch()
    (words,) = [words for words in verify_release(folder).not_checked if "what else lies" in words]
    assert words.endswith("and 12 more")


def test_edges_that_tell_nothing(moments_release, forger):
    """Owners are answered without them, and whoever claims that they are used, or gained something, is found out."""
    shape = {"num_classes": 3, "num_features": 12, "feature_signal": 3.0, "per_class": 20, "num_validation": 0}
    parts = social_circles_parts(300, mean_degree=30, homophily=1 / 3, seed=5, **shape)
    for _ in range(10):  # noise may say that they tell something
        one = forger(moments_release(8.0, parts=parts, sparse=False))
        settings = one.document()["settings"]
        if not settings["own_edges"]:
            break
        shutil.rmtree(one.folder)
    assert settings["own_edges"] is False
    assert settings["gain"] < 0.02
    assert failed(one.folder) == []
    assert "own edges are left out" in (one.folder / "README.md").read_text().lower()
    for changed in ({"own_edges": True}, {"gain": 0.5}, {"homophily": 0.9}):
        one.put_consistently(one.document() | {"settings": settings | changed})
        assert any("what was released says" in words for words in failed(one.folder))
        one.restore()


def test_of_many_classes_labelled_neighbours_are_not_counted_alone(moments_release):
    """Owners ask at counts of all: of so many classes few labelled neighbours are of one."""
    shape = {"num_classes": 12, "num_features": 12, "feature_signal": 0.3, "per_class": 15, "num_validation": 0}
    parts = social_circles_parts(300, mean_degree=40, homophily=0.2, seed=6, **shape)
    folder = moments_release(8.0, parts=parts, sparse=False)
    document = json.loads((folder / "release.json").read_text())
    assert document["receipt"]["plan"]["one_way"] is True
    assert [entry.get("one_way") for entry in document["settings"]["tables"]] == [None]
    assert failed(folder) == []
