"""`gcon ledger show`: both totals, rounded up, with their condition; it ends for every ledger."""

import json
import math
import os

import pytest

from gcon.mechanisms.gaussian_curve import gaussian_delta
from gcon.privacy.budget import Budget
from gcon.privacy.ledger import Kind, Outcome, Request
from gcon.privacy.ledger_file import FileLedger


@pytest.fixture
def show(run, monkeypatch, tmp_path):
    def call(*requests, more=()):
        monkeypatch.setattr(os, "fsync", lambda descriptor: None)
        path = tmp_path / "friends.ledger"
        ledger = FileLedger(path, data_set="friends")
        for cost, distance in requests:
            request = Request(kind=Kind.RELEASE, mechanism="m", purpose="p", cost=cost, gaussian_distance=distance)
            ledger.settle(ledger.reserve(request), Outcome.RELEASED)
        printed = []
        for form in ([], ["--json"]):
            code, out, _ = run("ledger", "show", path, *form, *more)
            assert code == 0
            printed.append(out)
        return printed[0], json.loads(printed[1])

    return call


@pytest.mark.parametrize("epsilon", [700.5, 746.0, 1000.0, 1e160, 1.7e308])
def test_it_ends_for_a_huge_epsilon(show, epsilon):
    _, found = show((Budget(epsilon, 0.0), None))
    assert found["total"]["epsilon"] == epsilon
    assert found["tighter_total"] is None


def test_it_ends_for_a_huge_distance(show):
    _, found = show((Budget(1.0, 0.5), 1e160), (Budget(1.0, 0.5), 1e308))
    assert found["tighter_total"] is None


def test_many_small_releases_beside_a_huge_one(show):
    _, found = show((Budget(1000.0, 0.0), None), *[(Budget(0.1, 0.0), None)] * 100)
    assert 1000 < found["tighter_total"]["epsilon"] < found["total"]["epsilon"] == 1010


def test_the_tighter_total_names_its_condition_and_is_rounded_up(show):
    words, found = show(*[(Budget(0.1, 0.0), None)] * 100)
    tighter = found["tighter_total"]
    assert (tighter["composition"], tighter["condition"]) == ("gaussian", "budgets fixed in advance")
    assert "budgets fixed in advance" in words
    printed = float(words.rsplit("epsilon ", 1)[1].split(",")[0])
    assert tighter["epsilon"] <= printed <= tighter["epsilon"] * 1.001
    assert f"{tighter['epsilon']:.4g}" != f"{printed:.4g}"  # to the nearest would be below, for these numbers


def test_the_sum_is_rounded_up_too(show):
    words, found = show((Budget(1.0000001, 1e-5), None))
    assert found["total"]["epsilon"] == 1.0000001
    assert "spent on 'friends': epsilon 1.00001, delta 1e-05" in words


def test_every_entry_shows_its_distance(show):
    cost = Budget(1.0, gaussian_delta(1.0, 0.3))
    _, found = show((cost, 0.3), (Budget(1.0, 1e-5), None))
    assert [entry["gaussian_distance"] for entry in found["entries"]] == [0.3, None]


def test_a_release_without_promise(show):
    words, found = show((Budget(math.inf, 0.0), None), (Budget(0.1, 0.0), None))
    assert found["total"]["epsilon"] == "inf"
    assert found["tighter_total"] is None
    assert "epsilon inf" in words


@pytest.mark.parametrize("verb", ["show", "verify"])
def test_edges_in_the_place_of_their_ledger_point_to_it(run, tmp_path, verb):
    (tmp_path / "edges.csv").write_text("source,target\n")
    FileLedger(tmp_path / "edges.csv.ledger", data_set="friends")
    code, _, said = run("ledger", verb, tmp_path / "edges.csv")
    assert code == 2
    assert said.endswith(f"edges.csv. Pass {tmp_path / 'edges.csv.ledger'}\n")
