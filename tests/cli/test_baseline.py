"""`gcon baseline`: every method from the shell, what it pays, and what is refused before anything is read or paid."""

import json
import sys

import pytest

from gcon.baselines import METHODS
from gcon.baselines.interface import PrivateMethod
from gcon.cli import app as cli

QUICK = {
    "self-training": [],
    "encoder": [],
    "encoder-one-hop": [],
    "dp-sgd": ["--set", "steps=5"],
}


@pytest.fixture
def run(capsys, monkeypatch):
    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["gcon", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        printed = capsys.readouterr()
        return stopped.value.code, printed.out, printed.err

    return call


@pytest.fixture
def files(run, tmp_path):
    assert run("data", "make", "--out", tmp_path, "--nodes", 200, "--quiet")[0] == 0
    return ["--edges", tmp_path / "edges.csv", "--nodes", tmp_path / "nodes.csv"]


def test_the_list_says_what_each_promises(run):
    code, out, _ = run("baseline", "list", "--json")
    listed = json.loads(out)["methods"]
    assert code == 0
    assert [entry["name"] for entry in listed] == list(METHODS)
    assert all(entry["about"] for entry in listed)
    assert {entry["name"] for entry in listed if not entry["private"]} == {"gcn", "gpr-gnn"}


@pytest.mark.parametrize("name", METHODS)
def test_every_method_trains_pays_and_is_scored(run, files, tmp_path, name):
    spends = issubclass(METHODS[name], PrivateMethod)
    options = [*(["--epsilon", 1] if spends else []), *QUICK.get(name, ["--set", "epochs=3"])]
    code, out, _ = run("baseline", name, *files, *options, "--json")
    assert code == 0
    told = json.loads(out)
    assert {entry["access"] for entry in told["scores"]} <= {"none", "cached", "own-edges", "full"}
    assert all(entry["publishable"] == (entry["access"] in ("none", "cached")) for entry in told["scores"])
    shown = json.loads(run("ledger", "show", tmp_path / "edges.csv.ledger", "--json")[1])
    total = shown["total"]["epsilon"]
    assert total == ("inf" if name in ("gcn", "gpr-gnn") else 1.0 if spends else 0.0)
    assert [entry["kind"] for entry in shown["entries"]].count("diagnostic") == sum(
        entry["access"] == "own-edges" for entry in told["scores"]
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["atlantis"], "must be one of"),
        (["gap"], "is needed by gap"),
        (["mlp", "--epsilon", "1"], "is not spent by mlp"),
        (["gap", "--epsilon", "0"], "epsilon"),
        (["gap", "--epsilon", "1", "--set", "hop=1"], "must name a setting of gap"),
        (["gap", "--epsilon", "1", "--set", "hops=0"], "hops"),
        (["gap", "--epsilon", "1", "--set", "hops=many"], "hops"),
        (["lpgnet", "--epsilon", "1", "--set", "stacked=3"], "stacked"),
        (["gap", "--epsilon", "1", "--seed", "-1"], "random_state"),
    ],
)
def test_wrong_calls_are_refused_before_anything_is_paid(run, files, tmp_path, arguments, words):
    before = sorted(tmp_path.iterdir())
    code, out, _ = run("baseline", arguments[0], *files, *arguments[1:], "--json")
    assert code == 2
    assert words in json.loads(out)["message"]
    assert sorted(tmp_path.iterdir()) == before


def test_a_ceiling_refuses_what_is_not_private(run, files, tmp_path):
    ledger = tmp_path / "edges.csv.ledger"
    assert run("baseline", "gap", *files, "--epsilon", 1, "--set", "epochs=2", "--quiet")[0] == 0
    assert run("ledger", "set-ceiling", ledger, "--epsilon", 2, "--delta", 1e-4)[0] == 0
    assert run("baseline", "gcn", *files, "--set", "epochs=2", "--json")[0] == 3
    assert json.loads(run("ledger", "show", ledger, "--json")[1])["total"]["epsilon"] == 1.0


def test_a_seed_promises_nothing(run, files, tmp_path):
    options = ["--epsilon", 1, "--set", "epochs=2", "--seed", 5, "--quiet"]
    assert run("baseline", "gap", *files, *options)[0] == 0
    assert json.loads(run("ledger", "show", tmp_path / "edges.csv.ledger", "--json")[1])["total"]["epsilon"] == "inf"
