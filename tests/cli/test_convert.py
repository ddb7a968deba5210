"""Conversion of files: whatever the formats and the ids, the same graph is read back, and nothing is half written."""

import errno
import json
import stat
from pathlib import Path

import networkx
import numpy as np
import polars as pl
import pytest
import scipy.sparse
import torch
from tests.opened import open_private

from gcon.files.tables import read_edges, read_node_features, read_nodes

FORMATS = ["csv", "tsv", "parquet", "npz"]
RNG = np.random.default_rng(7)
IDS = {
    "rows": list(range(12)),
    "far apart": (RNG.permutation(12) * 10**14 - 10**14).tolist(),
    "strings": [f"user-{place}" for place in range(12)],
    "awkward": [*(f'{place},"é人"\t; x' for place in range(8)), '"', ",", "two\nlines", " blank "],
    "leading zeros": [f"{place:03}" for place in range(12)],
}
LABELS = ["a", "b", 'c,"d"', "a", "", "b", "unused", "", "a", "b", 'c,"d"', ""]
SPLITS = ["train", "train", "train", "val", "", "validation", "", "", "test", "test", "test", ""]
PAIRS = [(0, 1), (1, 0), (2, 2), (3, 4), (3, 4), (5, 6), (6, 7), (1, 7), (4, 0)]  # node 8 and up are isolated


@pytest.fixture
def convert(run):
    def call(*arguments):
        code, out, _ = run("data", "convert", *arguments, "--json")
        return code, json.loads(out)

    return call


def write_source(folder, ids, pairs=PAIRS, dtype=np.float32):
    """A Parquet pair: features as a list, ids as numbers or strings."""
    features = RNG.standard_normal((len(ids), 3)).astype(dtype)
    features[0, 0], features[1, 1] = -0.0, np.finfo(dtype).smallest_subnormal
    kind = pl.Float64 if dtype == np.float64 else pl.Float32
    columns = {"id": ids, "label": LABELS, "split": SPLITS, "features": features.tolist()}
    pl.DataFrame(columns, schema_overrides={"features": pl.List(kind)}).write_parquet(folder / "n.parquet")
    ends = [[ids[pair[end]] for pair in pairs] for end in (0, 1)]
    schema = dict.fromkeys(("source", "target"), pl.Int64 if isinstance(ids[0], int) else pl.String)
    pl.DataFrame(dict(zip(schema, ends, strict=True)), schema=schema).write_parquet(folder / "e.parquet")
    return {"nodes": folder / "n.parquet", "edges": folder / "e.parquet"}


def options(files):
    return [word for kind in ("nodes", "edges", "features") if kind in files for word in (f"--{kind}", files[kind])]


def graph(files, **how):
    table = read_nodes(files["nodes"], features_path=files.get("features"))
    return table, open_private(read_edges(files["edges"], ids=table.ids, **how)[0])


def assert_same(found, expected):
    (table, edges), (other, more) = found, expected
    assert table.ids.tolist() == other.ids.tolist()
    assert table.nodes.class_names == other.nodes.class_names
    for name in ("labels", "train_mask", "validation_mask", "test_mask"):
        assert torch.equal(getattr(table.nodes, name), getattr(other.nodes, name))
    features, wanted = table.nodes.features.numpy(), other.nodes.features.numpy()
    assert features.dtype == wanted.dtype
    assert features.tobytes() == wanted.tobytes()  # bit for bit: also the sign of zero
    assert torch.equal(edges.row_pointers, more.row_pointers)
    assert torch.equal(edges.columns, more.columns)


@pytest.mark.parametrize(
    "ids",
    [pytest.param(ids, id=name, marks=[] if name == "awkward" else pytest.mark.slow) for name, ids in IDS.items()],
)
def test_round_trip(convert, tmp_path, ids):
    """One way through the formats, from each into each."""
    files = write_source(tmp_path, ids)
    expected = graph(files)
    every_step = networkx.from_numpy_array(np.ones((len(FORMATS),) * 2), create_using=networkx.DiGraph)
    for place, (_, step) in enumerate(networkx.eulerian_circuit(every_step)):
        name = FORMATS[step]
        folder = tmp_path / str(place)
        folder.mkdir()
        code, files = convert(*options(files), "--out", folder, "--format", name)
        assert code == 0, files
        assert files["features_narrowed"] is False
        assert_same(graph(files), expected)
        beside = {"nodes.csv", "features.npz", "edges.npz"} if name == "npz" else {f"nodes.{name}", f"edges.{name}"}
        assert {path.name for path in folder.iterdir()} == beside | {f"edges.{name}.ledger-path"}


@pytest.mark.parametrize("name", FORMATS)
def test_a_graph_without_edges(convert, tmp_path, name):
    files = write_source(tmp_path, IDS["awkward"], pairs=[])
    (tmp_path / "e.csv").write_text("source,target\n")
    for edges in (files["edges"], tmp_path / "e.csv"):
        out = tmp_path / edges.suffix
        out.mkdir()
        code, found = convert(*options(files | {"edges": edges}), "--out", out, "--format", name)
        assert code == 0
        assert_same(graph(found), graph(files))


@pytest.mark.parametrize("name", FORMATS)
def test_features_of_64_bits(convert, tmp_path, name):
    files = write_source(tmp_path, IDS["rows"], dtype=np.float64)
    (tmp_path / "out").mkdir()
    code, found = convert(*options(files), "--out", tmp_path / "out", "--format", name)
    text = name in ("csv", "tsv")
    assert (code, found["features_narrowed"]) == (0, text)
    features = graph(found)[0].nodes.features
    assert features.dtype == (torch.float32 if text else torch.float64)
    assert torch.equal(features, graph(files)[0].nodes.features.to(features.dtype))


def test_columns_keep_their_names_and_labels_outside_the_splits_stay(convert, tmp_path):
    (tmp_path / "n.csv").write_text("id,label,split,age,größe\n0,a,train,1,0.5\n1,b,train,2,1.5\n2,later,,3,2.5\n")
    out = tmp_path / "out"
    out.mkdir()
    for name in ("parquet", "tsv"):
        assert convert("--nodes", tmp_path / "n.csv", "--out", out, "--format", name)[0] == 0
    frame = pl.read_parquet(out / "nodes.parquet")
    assert frame.schema == {
        "id": pl.Int64,
        "label": pl.String,
        "split": pl.String,
        "age": pl.Float32,
        "größe": pl.Float32,
    }
    assert frame["label"].to_list() == ["a", "b", "later"]
    assert (out / "nodes.tsv").read_text().splitlines()[0] == "id\tlabel\tsplit\tage\tgröße"
    assert not list(out.glob("edges*"))


def test_nodes_for_prediction_need_neither_labels_nor_splits(convert, tmp_path):
    (tmp_path / "n.csv").write_text("id,x\nb,1\na,2\n")
    assert convert("--nodes", tmp_path / "n.csv", "--out", tmp_path, "--format", "npz")[0] == 0
    ids, features = read_node_features(tmp_path / "nodes.csv", features_path=tmp_path / "features.npz")
    assert (ids.tolist(), features.tolist()) == (["b", "a"], [[1.0], [2.0]])


WAYS = {
    "other columns": ("a;b", ["--source-column", "a", "--target-column", "b"], "a,b\n{}"),
    "ignored": ("", ["--ignore-column", "when"], "source,when,target\n{}"),
    "no header": ("", ["--no-header"], "{}"),
}


@pytest.mark.parametrize("way", WAYS)
def test_options_of_the_edges_file(convert, tmp_path, way):
    _, more, text = WAYS[way]
    files = write_source(tmp_path, IDS["rows"])
    between = ",now," if way == "ignored" else ","
    (tmp_path / "e.csv").write_text(text.format("".join(f"{one}{between}{two}\n" for one, two in PAIRS)))
    (tmp_path / "out").mkdir()
    given = options(files | {"edges": tmp_path / "e.csv"})
    code, found = convert(*given, *more, "--out", tmp_path / "out", "--format", "csv")
    assert code == 0
    assert_same(graph(found), graph(files))


def test_arrays_of_any_kind_are_read(convert, tmp_path):
    files = write_source(tmp_path, IDS["strings"])
    index = np.array(PAIRS).T
    np.savez(tmp_path / "i.npz", edge_index=index.astype(np.uint64))
    scipy.sparse.save_npz(
        tmp_path / "s.npz", scipy.sparse.coo_array((np.ones(9), tuple(index)), shape=(12, 12)).tocsr()
    )
    for edges in ("i.npz", "s.npz"):
        for name in FORMATS:
            out = tmp_path / f"{edges}-{name}"
            out.mkdir()
            code, found = convert(*options(files | {"edges": tmp_path / edges}), "--out", out, "--format", name)
            assert code == 0
            assert_same(graph(found), graph(files))


def test_an_edge_that_is_repeated_256_times_stays(convert, tmp_path):
    files = write_source(tmp_path, IDS["rows"], pairs=[(0, 1)] * 256)
    assert convert(*options(files), "--out", tmp_path, "--format", "npz")[0] == 0
    assert graph({"nodes": files["nodes"], "edges": tmp_path / "edges.npz"})[1].neighbours(0).tolist() == [1]


@pytest.mark.parametrize("name", FORMATS)
def test_edges_are_streamed(convert, tmp_path, monkeypatch, name):
    files = write_source(tmp_path, IDS["strings"])
    monkeypatch.setattr("gcon.files.table_files.BATCH", 2)
    monkeypatch.setattr("gcon.files.convert_files.BATCH", 1)
    (tmp_path / "out").mkdir()
    code, found = convert(*options(files), "--out", tmp_path / "out", "--format", name)
    assert code == 0
    assert_same(graph(found), graph(files))


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_is_replaced(convert, tmp_path, name):
    files = write_source(tmp_path, IDS["rows"])
    out = tmp_path / "out"
    out.mkdir()
    (out / f"edges.{name}").write_text("mine")
    code, found = convert(*options(files), "--out", out, "--format", name)
    assert (code, found["error"]) == (2, "InputError")
    assert [path.name for path in out.iterdir()] == [f"edges.{name}"]
    assert (out / f"edges.{name}").read_text() == "mine"


BROKEN = {
    "unknown id": "source,target\n0,1\n0,987654\n",
    "missing id": "source,target\n0,1\n0,\n",
    "not a number": "source,target\n0,1\n0,secret-987654\n",
    "further column": "source,target,weight\n0,1,987654\n",
    "other columns": "from,to\n0,1\n",
    "ragged": "source,target\n0,1\n0,1,987654\n",
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_broken_edges_leave_nothing_and_are_not_quoted(convert, tmp_path, text, name):
    files = write_source(tmp_path, IDS["rows"])
    (tmp_path / "e.csv").write_text(text)
    out = tmp_path / "out"
    out.mkdir()
    code, found = convert(*options(files | {"edges": tmp_path / "e.csv"}), "--out", out, "--format", name)
    assert code == 2
    assert "987654" not in json.dumps(found)
    assert list(out.iterdir()) == []


def test_a_full_disk_leaves_nothing(convert, tmp_path, monkeypatch):
    files = write_source(tmp_path, IDS["rows"])
    out = tmp_path / "out"
    out.mkdir()

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("gcon.files.convert_files.os.fsync", full)
    code, found = convert(*options(files), "--out", out, "--format", "csv")
    assert (code, found["error"]) == (2, "InputError")
    assert "No space left" in found["message"]
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_that_cannot_be_put_in_place_takes_the_others_away(convert, tmp_path, monkeypatch, name):
    files = write_source(tmp_path, IDS["rows"])
    out = tmp_path / "out"
    out.mkdir()
    rename = Path.rename

    def refuse_edges(path, target):
        if target == out / f"edges.{name}":
            raise PermissionError(errno.EACCES, "Permission denied")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuse_edges)
    code, found = convert(*options(files), "--out", out, "--format", name)
    assert (code, found["error"]) == (2, "InputError")
    assert "Permission denied" in found["message"]
    assert list(out.iterdir()) == []


def test_other_refusals(convert, tmp_path):
    files = write_source(tmp_path, IDS["rows"])
    assert convert(*options(files), "--out", tmp_path / "nowhere", "--format", "csv")[0] == 2
    assert convert(*options(files), "--out", tmp_path, "--format", "xlsx")[0] == 2
    assert convert("--edges", files["edges"], "--out", tmp_path, "--format", "csv")[0] == 2  # what are its ids?
    assert convert(*options(files | {"nodes": tmp_path / "none.csv"}), "--out", tmp_path, "--format", "csv")[0] == 2
    assert convert("cora-ml", "--out", tmp_path, "--format", "csv")[0] == 2  # files only
    (tmp_path / "n.csv").write_text("id,label,split,x\n0,a,training,1\n0,b,train,much\n")
    message = convert("--nodes", tmp_path / "n.csv", "--out", tmp_path, "--format", "csv")[1]["message"]
    assert "training" in message
    assert "repeated" in message
    assert "'x'" in message
    assert {path.name for path in tmp_path.iterdir()} == {"n.parquet", "e.parquet", "n.csv"}


def test_the_edges_keep_their_permissions_and_their_ledger(convert, run, tmp_path):
    files = write_source(tmp_path, IDS["rows"])
    files["edges"].chmod(0o600)
    out = tmp_path / "out"
    out.mkdir()
    _, found = convert(*options(files), "--out", out, "--format", "csv")
    assert stat.S_IMODE((out / "edges.csv").stat().st_mode) == 0o600
    books = Path(f"{files['edges']}.ledger")
    assert (found["ledger"], found["ledger_exists"]) == (str(books), False)
    assert not list(tmp_path.glob("**/*.ledger"))  # nothing was released, so nothing is recorded

    def words(*more):
        for path in out.iterdir():
            path.unlink()
        return run("data", "convert", *options(files), "--out", out, "--format", "csv", *more)[1]

    said = words()
    assert f"there is no ledger {books}" in said
    assert "If they were paid for from another one" in said
    assert f"--ledger {books}" in said
    books.touch()
    said = words()
    assert f"keep paying from --ledger {books}" in said
    assert "no ledger" not in said
    assert json.loads(words("--json"))["ledger_exists"] is True


def test_other_column_names_in_every_verb(run, tmp_path):
    assert run("data", "make", "--out", tmp_path, "--nodes", 200, "--quiet")[0] == 0
    edges = tmp_path / "edges.csv"
    edges.write_text(edges.read_text().replace("source,target", "from,to", 1))
    files = ["--nodes", tmp_path / "nodes.csv", "--edges", edges]
    named = [*files, "--source-column", "from", "--target-column", "to"]
    model = tmp_path / "model"
    assert run("data", "check", *files)[0] == 2
    assert run("data", "check", *named)[0] == 0
    assert run("train", *files, "--epsilon", 1, "--out", model)[0] == 2
    assert run("train", *named, "--epsilon", 1, "--out", model)[0] == 0
    assert run("predict", model, *named, "--access", "own-edges", "--out", tmp_path / "p.csv")[0] == 0
    assert run("evaluate", model, *named, "--access", "own-edges")[0] == 0
