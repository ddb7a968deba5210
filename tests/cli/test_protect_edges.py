"""`gcon train --protect-edges K`: what is trained, told, charged and refused."""

import json
import sys

import pytest

from gcon.cli import app as cli
from gcon.mechanisms.mixed_release import mixed_plan_from
from gcon.release.read import load_release


def run(*arguments):
    """Exit code, and the one JSON object that was said."""
    with pytest.MonkeyPatch.context() as patch:
        said = []
        patch.setattr(sys, "argv", ["gcon", *map(str, arguments), "--json"])
        patch.setattr("sys.stdout.write", said.append)
        with pytest.raises(SystemExit) as stopped:
            cli.main()
    return stopped.value.code, json.loads("".join(said))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("several")
    assert run("data", "make", "--out", place, "--nodes", 120)[0] == 0
    return place


def train(place, *options):
    return run("train", "--edges", place / "edges.csv", "--nodes", place / "nodes.csv", "--epsilon", 2, *options)


def test_three_edges_from_training_to_the_statement(place):
    code, said = train(place, "--protect-edges", 3, "--out", place / "three")
    assert code == 0
    assert "(2, 1e-05)-differentially private for any 3 edges together" in " ".join(said["sentences"])
    code, fields = run("statement", place / "three")
    assert code == 0
    assert fields["protected_change"] == "any 3 undirected edges"
    assert fields["plan"]["protect_edges"] == 3
    receipt = load_release(place / "three").receipt
    stated = {entry["edges"]: (entry["epsilon"], entry["delta"]) for entry in fields["by_edges"]}
    plan = mixed_plan_from(receipt.plan, receipt.budget)
    assert stated == {edges: (budget.epsilon, budget.delta) for edges, budget in plan.by_edges().items()}
    assert list(stated) == [1, 2, 3, 5, 10]
    assert stated[3] == (2.0, 1e-05)
    assert 0.6 < stated[1][0] < 0.7
    words = "Edges that change together, wherever they are: "
    assert any(sentence.startswith(words) for sentence in fields["sentences"])
    code, ledger = run("ledger", "show", place / "edges.csv.ledger")
    assert ledger["total"]["epsilon"] == 2.0
    assert run("statement", place / "three", "--verify")[0] == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--protect-edges", 11], "from 1 to 10"),
        (["--protect-edges", 0], "from 1 to 10"),
        (["--protect-edges", 2, "--method", "paper"], "the default protects up to 10 edges together"),
    ],
)
def test_what_is_refused_before_anything_is_read(place, options, words):
    code, said = train(place, *options, "--out", place / "never")
    assert code == 2
    assert words in said["message"]
    assert not (place / "never").exists()
