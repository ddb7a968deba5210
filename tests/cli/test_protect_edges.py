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
        (["--protect-edges", 11, "--method", "paper"], "from 1 to 10"),
    ],
)
def test_what_is_refused_before_anything_is_read(place, options, words):
    code, said = train(place, *options, "--out", place / "never")
    assert code == 2
    assert words in said["message"]
    assert not (place / "never").exists()


def test_the_papers_method_from_planning_to_the_verifier(place):
    code, said = train(place, "--method", "paper", "--hidden", 4, "--protect-edges", 5, "--out", place / "paper")
    assert code == 0
    assert "(2, 1e-05)-differentially private for any 5 edges together" in " ".join(said["sentences"])
    code, fields = run("statement", place / "paper")
    assert fields["protected_change"] == "any 5 undirected edges"
    stated = {entry["edges"]: entry["epsilon"] for entry in fields["by_edges"]}
    assert stated[5] == 2.0
    assert 0.4 < stated[1] < 0.41
    assert 3.9 < stated[10] < 4.0
    assert {entry["delta"] for entry in fields["by_edges"]} == {1e-5}
    assert run("statement", place / "paper", "--verify")[0] == 0
    numbers = ["--epsilon", 2, "--method", "paper", "--classes", 4, "--dim", 4, "--labelled", 120]
    planned = {edges: run("plan", *numbers, "--protect-edges", edges)[1] for edges in (1, 5)}
    assert planned[5]["edge_influence"] == pytest.approx(5 * planned[1]["edge_influence"])
    assert planned[5]["noise_rate"] < planned[1]["noise_rate"] / 5
    assert planned[5]["by_edges"]["5"] == [2.0, 1e-5]
