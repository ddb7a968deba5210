"""Access public-graph on the command line: edges are public only if somebody says so; nothing is charged or recorded."""

import json
import shutil

import polars
import pytest
import torch
from tests.command import gcon

from gcon.files.tables import read_nodes, read_public_edges
from gcon.methods.public_graph import predict_on_public_graph
from gcon.privacy.ledger_file import FileLedger
from gcon.privacy.statement import ACCESS_PROMISES
from gcon.release.read import load_release

PUBLIC = ["--access", "public-graph"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A model trained on private edges, and another graph whose edges are public."""
    place = tmp_path_factory.mktemp("made")
    for name, seed in (("private", 0), ("open", 5)):
        (place / name).mkdir()
        assert gcon("data", "make", "--out", place / name, "--nodes", 200, "--seed", seed, "--quiet") == 0
    hidden = ["--edges", place / "private/edges.csv", "--nodes", place / "private/nodes.csv"]
    assert gcon("train", *hidden, "--epsilon", 4, "--out", place / "model", "--quiet") == 0
    return place


@pytest.fixture
def world(made, tmp_path):
    return shutil.copytree(made, tmp_path / "world")


def shown(folder):
    return ["--public-edges", folder / "open/edges.csv", "--nodes", folder / "open/nodes.csv"]


def everything(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_predictions_are_those_of_the_python_function_and_nothing_is_recorded(run, world):
    before = everything(world)
    code, out, _ = run("predict", world / "model", *shown(world), *PUBLIC, "--out", world / "p.parquet", "--json")
    told = json.loads(out)
    assert code == 0
    assert (told["access"], told["publishable"], told["nodes"]) == ("public-graph", True, 200)
    assert told["promise"] == ACCESS_PROMISES["public-graph"]
    assert everything(world).keys() - before.keys() == {world / "p.parquet"}
    assert everything(world).items() >= before.items()  # the ledger too is as it was

    table = read_nodes(world / "open/nodes.csv")
    edges = read_public_edges(world / "open/edges.csv", ids=table.ids)
    expected = predict_on_public_graph(load_release(world / "model"), table.nodes.features, edges)
    frame = polars.read_parquet(world / "p.parquet")
    assert frame["label"].to_list() == [str(label) for label in expected.labels]
    found = frame.select(f"probability_{name}" for name in expected.class_names).to_numpy()
    assert torch.equal(torch.from_numpy(found), expected.probabilities)
    assert set(frame["audience"]) == {"public"}


def test_evaluation(run, world):
    before = everything(world)
    code, out, _ = run("evaluate", world / "model", *shown(world), *PUBLIC, "--json")
    told = json.loads(out)
    assert (code, told["access"], told["publishable"]) == (0, "public-graph", True)
    assert told["note"] == ACCESS_PROMISES["public-graph"]
    assert everything(world) == before
    table = read_nodes(world / "open/nodes.csv")
    edges = read_public_edges(world / "open/edges.csv", ids=table.ids)
    found = predict_on_public_graph(load_release(world / "model"), table.nodes.features, edges)
    right = (found.classes == table.nodes.labels)[table.nodes.test_mask]
    assert told["micro_f1"] == pytest.approx(float(right.double().mean()), abs=1e-12)


@pytest.mark.parametrize("verb", [["predict", "--out", "p.csv"], ["evaluate"]], ids=["predict", "evaluate"])
def test_refusals(run, world, monkeypatch, verb):
    monkeypatch.chdir(world)
    hidden, nodes = world / "private/edges.csv", world / "open/nodes.csv"

    def call(*arguments):
        code, out, _ = run(verb[0], world / "model", *verb[1:], *arguments, "--json")
        return code, json.loads(out)["message"]

    before = everything(world)
    assert call(*PUBLIC, *shown(world), "--edges", hidden)[0] == 5  # both kinds of edges
    assert call(*PUBLIC, "--edges", hidden, "--nodes", nodes)[0] == 5  # private edges
    assert call("cora-ml", *PUBLIC)[0] == 5
    assert call("cora-ml", *PUBLIC, *shown(world))[0] == 5
    assert call(*PUBLIC, "--nodes", nodes)[0] == 2  # no edges
    assert call(*PUBLIC, "--public-edges", world / "open/edges.csv")[0] == 2  # no nodes
    assert call(*PUBLIC)[0] == 2
    code, message = call(*PUBLIC, "--public-edges", hidden, "--nodes", nodes)
    assert code == 5
    assert "ledger" in message  # this file was trained on
    for access in ("none", "own-edges"):
        assert call("--access", access, *shown(world))[0] == 2
    assert everything(world) == before


@pytest.mark.parametrize("verb", [["predict", "--out", "p.csv"], ["evaluate"]], ids=["predict", "evaluate"])
def test_the_training_nodes_are_refused_whatever_the_edges_are_called(run, world, monkeypatch, verb):
    monkeypatch.chdir(world)
    (world / "copy.csv").write_bytes((world / "private/edges.csv").read_bytes())
    given = ["--public-edges", world / "copy.csv", "--nodes", world / "private/nodes.csv"]
    code, out, _ = run(verb[0], world / "model", *verb[1:], *given, *PUBLIC, "--json")
    assert (code, json.loads(out)["error"]) == (5, "AccessRefusedError")
    assert not (world / "p.csv").exists()


@pytest.mark.parametrize("verb", [["predict", "--out", "p.csv"], ["evaluate"]], ids=["predict", "evaluate"])
def test_a_link_to_edges_with_a_ledger_is_refused(run, world, monkeypatch, verb):
    """By the link's own name and place no ledger lies beside it."""
    monkeypatch.chdir(world)
    (world / "pub.csv").symlink_to(world / "private/edges.csv")
    (world / "twice.csv").symlink_to("pub.csv")
    for link in ("pub.csv", "twice.csv"):
        given = ["--public-edges", link, "--nodes", world / "open/nodes.csv"]
        code, out, _ = run(verb[0], world / "model", *verb[1:], *given, *PUBLIC, "--json")
        assert code == 5
        assert "ledger" in json.loads(out)["message"]
    # A ledger beside the link itself counts too.
    (world / "named.csv").symlink_to(world / "open/edges.csv")
    (world / "named.csv.ledger").touch()
    given = ["--public-edges", "named.csv", "--nodes", world / "open/nodes.csv"]
    assert run(verb[0], world / "model", *verb[1:], *given, *PUBLIC, "--json")[0] == 5
    assert not (world / "p.csv").exists()


def test_nothing_can_be_paid_on_a_public_graph(run, world):
    assert run("evaluate", world / "model", *shown(world), *PUBLIC, "--paid", 1, "--json")[0] == 2


def test_columns_of_public_edges_can_be_named(run, world):
    edges = world / "open/edges.csv"
    edges.write_text(edges.read_text().replace("source,target", "from,to", 1))
    assert run("evaluate", world / "model", *shown(world), *PUBLIC, "--json")[0] == 2
    named = ["--source-column", "from", "--target-column", "to"]
    assert run("evaluate", world / "model", *shown(world), *PUBLIC, *named, "--json")[0] == 0


@pytest.mark.parametrize("verb", [["train", "--epsilon", 1, "--out", "m"], ["data", "check"], ["data", "convert"]])
def test_other_verbs_know_no_public_edges(run, world, verb):
    code, out, _ = run(*verb, *shown(world), "--json")
    assert (code, json.loads(out)["error"]) == (2, "UsageError")


def test_a_link_to_private_edges_pays_the_ledger_of_the_file_itself(run, world, monkeypatch):
    monkeypatch.chdir(world)
    (world / "alias.csv").symlink_to(world / "private/edges.csv")
    given = ["--edges", "alias.csv", "--nodes", world / "private/nodes.csv"]
    before = FileLedger(world / "private/edges.csv.ledger").total().epsilon
    assert run("train", *given, "--method", "paper", "--epsilon", 1, "--out", world / "second", "--quiet")[0] == 0
    assert FileLedger(world / "private/edges.csv.ledger").total().epsilon == before + 1
    assert not (world / "alias.csv.ledger").exists()
