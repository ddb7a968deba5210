"""`gcon train` as it is by default: moments, end to end on small CSV files, and the way to the paper's method."""

import json
import sys
import tomllib

import numpy as np
import polars
import pytest

from gcon.choose.expectations import real_range
from gcon.cli import app as cli
from gcon.files.tables import read_nodes
from gcon.methods.moments import MomentsModel
from gcon.methods.no_edges import predict_without_edges
from gcon.methods.objective import ObjectiveModel
from gcon.release.read import load_release


@pytest.fixture(scope="module")
def run():
    """Run `gcon ... --json` in this process; gives exit code and what was said."""

    def call(*arguments):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["gcon", *map(str, arguments), "--json"])
            said = []
            patch.setattr("sys.stdout.write", said.append)
            with pytest.raises(SystemExit) as stopped:
                cli.main()
        return stopped.value.code, json.loads("".join(said))

    return call


@pytest.fixture(scope="module")
def world(run, tmp_path_factory):
    """A private graph, a model trained on it by default, and another graph whose edges are public."""
    place = tmp_path_factory.mktemp("world")
    for name, seed in (("mine", 0), ("open", 5)):
        (place / name).mkdir()
        assert run("data", "make", "--out", place / name, "--nodes", 160, "--seed", seed)[0] == 0
    code, said = run("train", *files(place), "--epsilon", 4, "--out", place / "model")
    assert code == 0
    (place / "said.json").write_text(json.dumps(said))
    return place


def files(place):
    return ["--edges", place / "mine/edges.csv", "--nodes", place / "mine/nodes.csv"]


def ledger(run, place):
    return run("ledger", "show", place / "mine/edges.csv.ledger")[1]


def test_the_default_is_moments_and_says_what_it_promises(run, world):
    model = load_release(world / "model")
    assert isinstance(model, MomentsModel)
    assert model.receipt.keeps_promise
    said = json.loads((world / "said.json").read_text())
    assert said["statement"]["mechanism"] == "mixed release (moments)"
    assert (said["statement"]["epsilon"], said["statement"]["promise"]) == (4.0, True)
    code, stated = run("statement", world / "model")
    assert code == 0
    assert stated["sentences"] == said["sentences"] == list(model.statement().sentences)
    first = ledger(run, world)["entries"][0]
    assert (first["kind"], first["mechanism"], first["outcome"]) == (
        "release",
        "mixed release (moments)",
        "released",
    )
    assert run("ledger", "verify", world / "mine/edges.csv.ledger")[0] == 0


@pytest.mark.parametrize("access", ["none", "cached"])
def test_without_edges_nothing_is_recorded_and_all_may_be_published(run, world, access, tmp_path):
    before = (world / "mine/edges.csv.ledger").read_bytes()
    nodes = ["--nodes", world / "mine/nodes.csv"]  # the edges need not be named
    code, said = run("predict", world / "model", *nodes, "--access", access, "--out", tmp_path / "p.parquet")
    assert (code, said["access"], said["publishable"], said["nodes"]) == (0, access, True, 160)
    table = read_nodes(world / "mine/nodes.csv")
    expected = predict_without_edges(load_release(world / "model"), table.nodes.features, access=access)
    frame = polars.read_parquet(tmp_path / "p.parquet")
    found = frame.select(f"probability_{name}" for name in expected.class_names).to_numpy()
    assert np.array_equal(found, expected.probabilities.numpy())
    assert set(frame["audience"]) == {"public"}
    code, scored = run("evaluate", world / "model", *files(world), "--access", access)
    right = (expected.classes == table.nodes.labels)[table.nodes.test_mask]
    assert (code, scored["access"], scored["publishable"]) == (0, access, True)
    assert scored["micro_f1"] == pytest.approx(float(right.double().mean()), abs=1e-12)
    assert (world / "mine/edges.csv.ledger").read_bytes() == before


def test_own_edges_are_recorded_and_a_score_can_be_bought(run, world, tmp_path):
    entries, own = len(ledger(run, world)["entries"]), ["--access", "own-edges"]
    code, said = run("predict", world / "model", *files(world), *own, "--out", tmp_path / "own.csv")
    assert (code, said["publishable"]) == (0, False)
    assert set(polars.read_csv(tmp_path / "own.csv")["audience"]) == {"owner only"}
    assert run("evaluate", world / "model", *files(world), *own)[1]["publishable"] is False
    paid = run("evaluate", world / "model", *files(world), *own, "--paid", 0.5)[1]
    assert (paid["publishable"], paid["epsilon"]) == (True, 0.5)
    shown = ledger(run, world)
    assert [entry["kind"] for entry in shown["entries"][entries:]] == ["delivery", "diagnostic", "release"]
    assert shown["total"]["epsilon"] == 4.5


def test_nodes_never_seen(run, world, tmp_path):
    there = ["--nodes", world / "open/nodes.csv"]
    shown = [*there, "--public-edges", world / "open/edges.csv", "--access", "public-graph"]
    before = (world / "mine/edges.csv.ledger").read_bytes()
    for name, more in (("none", [*there, "--access", "none"]), ("shown", shown)):
        code, said = run("predict", world / "model", *more, "--out", tmp_path / f"{name}.csv")
        assert (code, said["publishable"], said["nodes"]) == (0, True, 160)
    assert (tmp_path / "none.csv").read_bytes() != (tmp_path / "shown.csv").read_bytes()
    assert run("evaluate", world / "model", *shown)[1]["micro_f1"] >= 0
    code, said = run("predict", world / "model", *there, "--access", "cached", "--out", tmp_path / "cached.csv")
    assert (code, said["exit_code"]) == (2, 2)
    assert "access='none'" in said["message"]
    assert not (tmp_path / "cached.csv").exists()
    (tmp_path / "copy.csv").write_bytes((world / "mine/edges.csv").read_bytes())
    mine = ["--nodes", world / "mine/nodes.csv", "--public-edges", tmp_path / "copy.csv"]
    code, said = run("predict", world / "model", *mine, "--access", "public-graph", "--out", tmp_path / "mine.csv")
    assert code == 5
    assert "its edges are private" in said["message"]
    assert (world / "mine/edges.csv.ledger").read_bytes() == before
    assert not (world / "open/edges.csv.ledger").exists()


@pytest.mark.parametrize(
    "option",
    [
        ["--restart", "0.5"],
        ["--steps", "2"],
        ["--loss", "soft-margin"],
        ["--ridge", "1"],
        ["--noise-share", "0.5"],
        ["--influence", "auto"],
        ["--hidden", "0"],
        ["--expand", "all"],
        ["--inference-restart", "0.5"],
        ["--centre"],
        ["--no-centre"],
    ],
    ids=" ".join,
)
def test_an_option_of_the_other_method_names_both(run, world, option, tmp_path):
    before = (world / "mine/edges.csv.ledger").read_bytes()
    for chosen in ([], ["--method", "moments"]):
        code, said = run("train", *files(world), "--epsilon", 1, "--out", tmp_path / "new", *chosen, *option)
        assert (code, said["exit_code"]) == (2, 2)
        for words in (option[0].removeprefix("--").removeprefix("no-centre") or "centre", "--method paper"):
            assert words in said["message"]
        assert "--method moments" in said["message"]
    assert not (tmp_path / "new").exists()
    assert (world / "mine/edges.csv.ledger").read_bytes() == before


def test_the_papers_method_by_name_has_no_cache(run, world, tmp_path):
    books = ["--ledger", tmp_path / "ledger"]
    paper = ["--method", "paper", "--restart", 0.5, "--hidden", 4]
    assert run("train", *files(world), *books, *paper, "--epsilon", 1, "--out", tmp_path / "model")[0] == 0
    model = load_release(tmp_path / "model")
    assert isinstance(model, ObjectiveModel)
    assert model.schemes.restart == 0.5
    nodes = ["--nodes", world / "mine/nodes.csv", "--access", "cached"]
    assert run("predict", tmp_path / "model", *nodes, "--out", tmp_path / "p.csv")[0] == 5
    assert not (tmp_path / "p.csv").exists()


def test_the_old_name_of_the_option_works_for_a_while_and_says_so(run, world, tmp_path, capfd):
    books = ["--ledger", tmp_path / "ledger"]
    toml = tmp_path / "old.toml"
    toml.write_text('mechanism = "paper"\nepsilon = 1.0\nhidden = 4\n')
    for name, old in (("option", ["--epsilon", 1, "--hidden", 4, "--mechanism", "paper"]), ("key", ["--config", toml])):
        assert run("train", *files(world), *books, *old, "--out", tmp_path / name)[0] == 0
        assert isinstance(load_release(tmp_path / name), ObjectiveModel)
        assert "--mechanism is now called --method" in capfd.readouterr().err
    code, said = run("train", *files(world), *old, "--method", "moments", "--out", tmp_path / "both")
    assert (code, said["exit_code"]) == (2, 2)
    assert "--mechanism: is the old name of --method" in said["message"]
    capfd.readouterr()
    assert (
        run("train", *files(world), "--epsilon", 0, "--mechanism", "paper", "--out", tmp_path / "q", "--quiet")[0] == 2
    )
    assert capfd.readouterr().err == ""


def test_what_tune_writes_trains_the_papers_method(run, world, tmp_path, monkeypatch):
    monkeypatch.setattr("gcon.cli.tune.combinations", lambda base: [base])
    monkeypatch.setattr("gcon.choose.settings.combinations", lambda base: [base])
    toml = tmp_path / "settings.toml"
    assert run("tune", "--nodes", world / "mine/nodes.csv", "--epsilon", 1, "--draws", 1, "--out", toml)[0] == 0
    assert tomllib.loads(toml.read_text())["method"] == "paper"
    face = " ".join(line.removeprefix("# ") for line in toml.read_text().splitlines() if line.startswith("#"))
    least, most = real_range(1.0, "own-edges")
    assert face.startswith("Settings of the paper's method. The default (gcon train without --method) has none")
    assert (
        f"and {100 * least:+.1f} to {100 * most:+.1f} with own edges. What to expect on this graph: gcon advise."
        in face
    )
    books = ["--ledger", tmp_path / "ledger"]
    assert run("train", *files(world), *books, "--config", toml, "--out", tmp_path / "model")[0] == 0
    assert isinstance(load_release(tmp_path / "model"), ObjectiveModel)


def test_a_seed_and_infinite_epsilon_carry_no_promise(run, world, tmp_path):
    for name, more in (("seeded", ["--epsilon", 1, "--seed", 987654]), ("inf", ["--epsilon", "inf"])):
        books = ["--ledger", tmp_path / f"{name}.ledger"]
        code, said = run("train", *files(world), *books, *more, "--out", tmp_path / name)
        assert (code, said["statement"]["promise"]) == (0, False)
        scored = run("evaluate", tmp_path / name, *files(world), "--access", "cached")[1]
        assert scored["publishable"] is False
        for path in [*(tmp_path / name).iterdir(), tmp_path / f"{name}.ledger"]:
            assert b"987654" not in path.read_bytes()
