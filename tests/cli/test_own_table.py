"""A table as people have it (names, categories, gaps, -1 for no label), from `gcon train` to every use of the model."""

import json
import re
import shutil

import numpy as np
import polars as pl
import pytest
from tests.command import gcon as command
from tests.release.forging import forge, put

import gcon
from gcon.cli.serve_inputs import read_table
from gcon.errors import AnswersWarning, InputError, ReleaseFormatError
from gcon.files.datasets.synthetic import social_circles_parts
from gcon.files.tables import write_edges
from gcon.release.read import load_release
from gcon.serve.served_release import read_served_release

NODES, EDGES = social_circles_parts(80, num_classes=3, mean_degree=5, num_features=3, per_class=10, seed=1)
COLUMNS = ["--drop", "name", "--categorical", "city"]


def table(nodes=NODES, seed=0):
    """Some of the features as categories, with gaps, and a column that says nothing."""
    draws = np.random.default_rng(seed)
    features = nodes.features.numpy()
    parts = {"train": nodes.train_mask, "test": nodes.test_mask}
    labels = nodes.labels.masked_fill(nodes.validation_mask, -1).tolist()
    split = np.select([mask.numpy() for mask in parts.values()], list(parts), "")
    return pl.DataFrame(
        {
            "id": [f"person {row}" for row in range(nodes.num_nodes)],
            "label": labels,
            "split": split,
            "name": [f"N. {row}" for row in range(nodes.num_nodes)],
            "city": [["Rome", "Oslo", None][number] for number in draws.integers(3, size=nodes.num_nodes)],
            "age": [None if draws.random() < 0.1 else 40 + float(value) for value in features[:, 0]],
            "x": features[:, 1],
            "y": features[:, 2],
        }
    )


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    place = tmp_path_factory.mktemp("own")
    frame = table()
    assert -1 in frame["label"]
    frame.write_csv(place / "nodes.csv")
    frame.select("y", "city", "id", "x", "age").write_csv(place / "others.csv")
    write_edges(place / "edges.csv", EDGES, num_nodes=80)
    lines = (place / "edges.csv").read_text().splitlines()
    (place / "edges.csv").write_text(
        "\n".join([lines[0], *(re.sub(r"(\d+)", r"person \1", line) for line in lines[1:])])
    )
    files = ["--nodes", place / "nodes.csv", "--edges", place / "edges.csv"]
    assert command("train", *files, *COLUMNS, "--epsilon", 4, "--out", place / "model", "--quiet") == 0
    return place


def test_text_is_refused_with_the_flag_before_anything_is_paid(world, run, tmp_path):
    (tmp_path / "edges.csv").write_bytes((world / "edges.csv").read_bytes())
    files = ["--nodes", world / "nodes.csv", "--edges", tmp_path / "edges.csv"]
    code, _, said = run("train", *files, "--epsilon", 1, "--out", tmp_path / "model")
    assert code == 2
    for flag in ("--categorical 'name'", "--drop 'name'", "--categorical 'city'", "--drop 'city'"):
        assert flag in " ".join(said.split())
    assert not (tmp_path / "edges.csv.ledger").exists()
    assert run("data", "check", *files)[0] == 2
    assert run("data", "check", *files, *COLUMNS)[0] == 0
    code, _, said = run("train", "cora-ml", "--drop", "name", "--epsilon", 1, "--out", tmp_path / "model")
    assert code == 2
    assert "is about a nodes file" in said


def test_the_release_says_what_was_done(world):
    said = json.loads((world / "model/release.json").read_text())["feature_columns"]
    assert said["names"] == ["city", "age", "x", "y"]
    assert said["categories"] == {"city": ["", "Oslo", "Rome"]}
    assert list(said["fill"]) == ["age"]
    assert said["drop"] == ["name"]
    card = (world / "model/README.md").read_text()
    assert "| city | one of 3 categories: missing, Oslo, Rome |" in card
    assert "-1" not in load_release(world / "model").class_names


def rows(path):
    return pl.read_csv(path).drop("audience")


@pytest.mark.parametrize("access", ["none", "own-edges"])
def test_predict_does_it_again_without_being_told(world, tmp_path, access):
    given = ["--edges", world / "edges.csv"] if access == "own-edges" else []
    found = []
    for name in ("nodes", "others"):  # as it was; without labels and in another order
        out = tmp_path / f"{name}.csv"
        nodes = world / f"{name}.csv"
        assert (
            command("predict", world / "model", "--nodes", nodes, *given, "--access", access, "--out", out, "-q") == 0
        )
        found.append(rows(out))
    assert found[0].equals(found[1])
    frame, model = table(), gcon.load(world / "model")
    edges = [tuple(edge) for edge in EDGES.T.tolist()] if given else None
    answers = model.predict_proba(frame.select("name", *model.feature_names_in_), access=access, edges=edges)
    assert np.allclose(answers, found[0].drop("id", "label").to_numpy(), atol=1e-6)
    without_name = model.predict(frame.select(model.feature_names_in_.tolist()), access=access, edges=edges)
    assert [str(label) for label in without_name] == [str(label) for label in found[0]["label"]]


def test_evaluate_site_and_tokens_do_it_too(world, run, tmp_path):
    nodes = ["--nodes", world / "nodes.csv"]
    for more in ([], ["--access", "own-edges", "--edges", world / "edges.csv"]):
        code, out, _ = run("evaluate", world / "model", *nodes, *more, "--json")
        assert code == 0
        assert json.loads(out)["nodes"] == int(NODES.test_mask.sum())
    assert run("site", world / "model", *nodes, "--out", tmp_path / "site")[0] == 0
    assert run("serve", "tokens", "issue", tmp_path / "t", *nodes, "--out", tmp_path / "t.csv")[0] == 0


def test_a_service_does_it_too_and_refuses_a_release_with_other_columns(world, tmp_path):
    known = load_release(world / "model").feature_columns
    read = read_table(world / "others.csv", None, known)
    held, _ = read_served_release(world / "model", table=read.table)
    frame = table().select(known.names)
    assert np.allclose(held.without_edges(7), gcon.load(world / "model").predict_proba(frame)[7], atol=1e-6)
    more = table().with_columns(city=pl.lit("Rome"))
    more.write_csv(tmp_path / "nodes.csv")
    files = ["--nodes", tmp_path / "nodes.csv", "--edges", world / "edges.csv", "--ledger", tmp_path / "ledger"]
    paper = ["--method", "paper", "--hidden", 2, "--epsilon", 4]
    assert command("train", *files, *COLUMNS, *paper, "--out", tmp_path / "model", "-q") == 0
    with pytest.raises(InputError, match="other columns or categories"):
        read_served_release(tmp_path / "model", table=read.table)


def test_a_public_graph_is_read_alike(world, tmp_path):
    others, edges = social_circles_parts(30, num_classes=3, mean_degree=4, num_features=3, per_class=4, seed=7)
    table(others, seed=7).write_csv(tmp_path / "open.csv")
    write_edges(tmp_path / "open-edges.csv", edges, num_nodes=30)
    text = (tmp_path / "open-edges.csv").read_text()
    (tmp_path / "open-edges.csv").write_text(re.sub(r"(\d+)", r"person \1", text))
    files = ["--nodes", tmp_path / "open.csv", "--public-edges", tmp_path / "open-edges.csv"]
    out = tmp_path / "out.csv"
    assert command("predict", world / "model", *files, "--access", "public-graph", "--out", out, "-q") == 0
    model = gcon.load(world / "model")
    frame = table(others, seed=7).select(model.feature_names_in_.tolist())
    public = gcon.public_graph(frame, edges, feature_columns=model.model_.feature_columns)
    found = model.predict_proba(public, access="public-graph")
    assert np.allclose(found, rows(out).drop("id", "label").to_numpy(), atol=1e-6)


def test_convert_takes_numbers_only_and_says_so(world, run, tmp_path):
    nodes = ["--nodes", world / "nodes.csv", "--out", tmp_path, "--format", "parquet"]
    code, _, said = run("data", "convert", *nodes)
    assert code == 2
    assert "--drop 'name'" in " ".join(said.split())
    drop = [word for name in ("name", "city", "age") for word in ("--drop", name)]
    assert run("data", "convert", *nodes, *drop)[0] == 0
    assert pl.read_parquet(tmp_path / "nodes.parquet").columns == ["id", "label", "split", "x", "y"]


def test_an_edge_store_goes_with_the_table_as_it_is(world, tmp_path):
    files = ["--nodes", world / "nodes.csv", "--edges", world / "edges.csv"]
    drop = [word for name in ("name", "city", "age") for word in ("--drop", name)]
    assert command("data", "convert", *files, *drop, "--out", tmp_path, "--format", "csr", "-q") == 0
    files = ["--nodes", world / "nodes.csv", "--edges", tmp_path / "edges.csr", "--ledger", tmp_path / "ledger"]
    paper = ["--method", "paper", "--hidden", 2, "--epsilon", 4]
    assert command("train", *files, *COLUMNS, *paper, "--out", tmp_path / "model", "-q") == 0
    assert load_release(tmp_path / "model").feature_columns == load_release(world / "model").feature_columns
    arrays = ["--nodes", tmp_path / "nodes.parquet", "--features", tmp_path / "features.npy"]
    assert command("predict", tmp_path / "model", *arrays, "--out", tmp_path / "out.csv", "-q") == 2


def test_the_card_runs(world, monkeypatch, capsys):
    block = re.search(r"```python\n(.*?)```", (world / "model/README.md").read_text(), flags=re.DOTALL)[1]
    monkeypatch.chdir(world)
    names = {"features": table().select("city", "age", "x", "y")}
    exec(block.replace("path/to/this/folder", "model"), names)
    assert names["labels"].shape == (80,)
    assert "differentially private" in capsys.readouterr().out


FORGED = {
    "names": (["city", "age", "x", "y", "z"], "do not give the features"),
    "fill": ({"age": "much"}, "breaks the rules of its fields"),
    "categories": ({"city": ["Rome", "Rome", "Oslo"]}, "out of range"),
}


@pytest.mark.parametrize("part", FORGED)
def test_columns_that_cannot_be_are_refused(world, tmp_path, part):
    folder, (value, words) = tmp_path / "forged", FORGED[part]
    shutil.copytree(world / "model", folder)
    forge(folder, put(f"feature_columns.{part}", value))
    with pytest.raises(ReleaseFormatError, match=words):
        load_release(folder)


def test_a_report_and_pages_read_the_table_as_training_did(run, world, tmp_path):
    report = tmp_path / "report.html"
    code, out, _ = run("report", world / "model", "--nodes", world / "nodes.csv", "--out", report)
    assert code == 0
    assert "The control, which spends nothing" in out  # so these are the nodes of the training, column by column
    assert run("site", world / "model", "--nodes", world / "nodes.csv", "--out", tmp_path / "pages")[0] == 0


def test_columns_of_very_different_scales_are_told_before_training(run, world, tmp_path):
    """In the shell and in Python; nothing else changes."""
    frame = table().drop("name", "city", "age").with_columns(income=pl.Series(np.linspace(1e4, 1e6, 80)))
    frame.write_csv(tmp_path / "nodes.csv")
    files = ["--nodes", tmp_path / "nodes.csv", "--edges", world / "edges.csv", "--ledger", tmp_path / "ledger"]
    call = ["train", *files, "--method", "paper", "--hidden", 0, "--epsilon", 1, "--out", tmp_path / "model"]
    code, _, said = run(*call)
    assert code == 0
    assert "warning: features: columns should differ in scale by at most 1000 times" in said
    with pytest.warns(AnswersWarning, match="'income' reaches 1e\\+06"):
        gcon.GCON(epochs=1).fit(frame["x", "y", "income"].to_pandas(), frame["label"].to_numpy())
