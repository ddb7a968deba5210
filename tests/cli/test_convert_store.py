"""`gcon data convert --format csr` and what is done with the store: the same graph, private, whole or not at all."""

import errno
import json
import os
import stat
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from rich.console import Console
from tests.opened import open_private

from gcon.cli.checks import size_in_bytes
from gcon.cli.loading import load_features, load_graph, load_training
from gcon.cli.options import TrainingSource
from gcon.cli.output import Output
from gcon.cli.paying import open_payment
from gcon.edges.stored import StoredEdges
from gcon.errors import InputError
from gcon.files import convert_files
from gcon.files.tables import read_edges, read_nodes, read_public_edges
from gcon.learn.perceptron import EncoderSettings
from gcon.methods.moments import Moments
from gcon.methods.objective import Objective
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SeededRandomness

SECRET = "987654"
QUIET = Output(as_json=False, quiet=True, progress=Console(quiet=True))


@pytest.fixture
def source(run, tmp_path):
    """A made-up graph of 120 nodes, with ids that are words, and a folder to write to."""
    assert run("data", "make", "--out", tmp_path, "--nodes", 120, "--quiet")[0] == 0
    for name, columns in (("nodes.csv", ["id"]), ("edges.csv", ["source", "target"])):
        frame = pl.read_csv(tmp_path / name, infer_schema=False)
        frame.with_columns([("p" + pl.col(column)).alias(column) for column in columns]).write_csv(tmp_path / name)
    (tmp_path / "out").mkdir()
    return ["--nodes", tmp_path / "nodes.csv", "--edges", tmp_path / "edges.csv"], tmp_path / "out"


@pytest.fixture
def store(run, source):
    """The folder after a conversion."""
    files, out = source
    assert run("data", "convert", *files, "--out", out, "--format", "csr", "--quiet")[0] == 0
    return out


def written(out):
    return ["--nodes", out / "nodes.parquet", "--features", out / "features.npy", "--edges", out / "edges.csr"]


def graphs_of(source, out):
    files, _ = source
    before = read_nodes(files[1])
    after = read_nodes(out / "nodes.parquet", features_path=out / "features.npy")
    edges = open_private(read_edges(files[3], ids=before.ids)[0])
    return before, after, edges


def test_the_same_graph(run, source):
    files, out = source
    code, printed, _ = run("data", "convert", *files, "--out", out, "--format", "csr", "--memory", "1MiB", "--json")
    assert code == 0
    fields = json.loads(printed)
    names = {"nodes": "nodes.parquet", "features": "features.npy", "edges": "edges.csr"}
    assert {kind: Path(fields[kind]).name for kind in names} == names
    assert set(fields) == {*names, "features_narrowed", "ledger", "ledger_exists"}  # no count
    assert sorted(os.listdir(out)) == sorted(names.values())
    before, after, edges = graphs_of(source, out)
    assert after.ids.tolist() == before.ids.tolist()
    assert torch.equal(torch.as_tensor(after.nodes.features), before.nodes.features)
    assert torch.equal(after.nodes.labels, before.nodes.labels)
    assert np.load(out / "features.npy", mmap_mode="r").dtype == np.float32
    found, hygiene = read_edges(out / "edges.csr", ids=after.ids)
    assert torch.equal(open_private(found).columns, edges.columns)
    assert torch.equal(open_private(found).row_pointers, edges.row_pointers)
    assert open_private(hygiene) == open_private(read_edges(files[3], ids=before.ids)[1])
    assert torch.equal(read_public_edges(out / "edges.csr", ids=after.ids).columns, edges.columns)


def test_words_hold_no_count(run, source):
    files, out = source
    code, printed, errors = run("data", "convert", *files, "--out", out, "--format", "csr")
    counts = json.loads((out / "edges.csr" / "header.json").read_text())["cleaned"]
    told = (printed + errors).replace(str(out), "").replace(str(files[3].parent), "")
    assert code == 0
    assert not [count for count in counts.values() if count > 99 and (str(count) in told or f"{count:,}" in told)]
    assert "keep paying" in told or "there is no ledger" in told


def test_nodes_alone(run, source):
    files, out = source
    assert run("data", "convert", *files[:2], "--out", out, "--format", "csr", "--json")[0] == 0
    assert sorted(os.listdir(out)) == ["features.npy", "nodes.parquet"]


def test_a_store_is_converted_back(run, source, store, tmp_path):
    back = tmp_path / "back"
    back.mkdir()
    (store / "edges.csr" / "header.json").chmod(0o640)
    assert run("data", "convert", *written(store), "--out", back, "--format", "csv", "--quiet")[0] == 0
    assert stat.S_IMODE((back / "edges.csv").stat().st_mode) == 0o640
    _, _, edges = graphs_of(source, store)
    table = read_nodes(back / "nodes.csv")
    assert torch.equal(open_private(read_edges(back / "edges.csv", ids=table.ids)[0]).columns, edges.columns)
    (tmp_path / "again").mkdir()
    assert run("data", "convert", *written(store), "--out", tmp_path / "again", "--format", "csr", "--quiet")[0] == 0
    columns = [(folder / "edges.csr" / "columns.bin").read_bytes() for folder in (store, tmp_path / "again")]
    assert columns[0] == columns[1]


def in_store(store, buffer="1KiB"):
    files = {"edges": store / "edges.csr", "nodes": store / "nodes.parquet", "features": store / "features.npy"}
    return TrainingSource(**files, buffer=buffer)


def loaded_training(where):
    with ExitStack() as until:
        return load_training(where, until=until)


def test_training_reads_the_store_through_its_buffer(source, store):
    _, _, edges = graphs_of(source, store)
    where = in_store(store)
    graph = loaded_training(where)
    on_disk = open_private(graph.edges)
    assert isinstance(on_disk, StoredEdges)
    assert on_disk.buffer_bytes == 1024
    assert repr(graph.edges) == "<private: stored edges of a simple undirected graph>"
    assert (graph.name, open_payment(where, QUIET).ledger.data_set) == ("edges", "edges")
    # The converted edges carry the path of their ledger: both pay from the same one.
    assert (store.parent / "edges.csv.ledger").is_file()
    assert not (store / "edges.csr.ledger").exists()
    in_memory = open_private(load_graph(where).edges)
    assert torch.equal(in_memory.columns, edges.columns)
    _, _, for_prediction = load_features(where, read_edges_too=True)
    assert torch.equal(open_private(for_prediction).columns, edges.columns)
    with pytest.raises(InputError, match="--buffer"):
        loaded_training(in_store(store, "12"))


@pytest.mark.slow
def test_training_from_disk_is_training_from_memory(source, store):
    """One seed, one node table, the edges here and there: the same numbers are released."""
    weights, statistics = [], []
    for graph in (load_graph(in_store(store)), loaded_training(in_store(store))):
        ledger = MemoryLedger("stored")
        settings = Objective(epsilon=1, delta=1e-4, encoder=EncoderSettings(hidden=4))
        weights.append(settings.train(graph.nodes, graph.edges, ledger=ledger, randomness=SeededRandomness(5)).weights)
        moments = Moments(epsilon=1, delta=1e-4)
        found = moments.train(graph.nodes, graph.edges, ledger=ledger, randomness=SeededRandomness(5))
        statistics.append([each.value for each in found.statistics])
    assert torch.equal(*weights)
    assert all(torch.equal(one, other) for one, other in zip(*statistics, strict=True))


def test_every_verb_takes_a_store(run, store, tmp_path):
    model = tmp_path / "model"
    code, _, errors = run("train", *written(store), "--epsilon", 1, "--out", model, "--quiet")
    assert code == 0, errors
    assert (tmp_path / "edges.csv.ledger").exists()
    assert (
        run("predict", model, *written(store), "--access", "own-edges", "--out", tmp_path / "p.csv", "--quiet")[0] == 0
    )
    assert run("evaluate", model, *written(store), "--access", "own-edges", "--quiet")[0] == 0
    assert run("data", "check", *written(store))[:2] == (0, "nothing is wrong\n")


def spoil_columns(store):
    text = bytearray((store / "columns.bin").read_bytes())
    text[40] ^= 1
    (store / "columns.bin").write_bytes(text)


BROKEN = {
    "columns": (spoil_columns, ("columns.bin must be as it was written", "rising"), False),
    "short": (lambda store: os.truncate(store / "columns.bin", 12), ("full size",), True),
    "header": (lambda store: (store / "header.json").write_text(f'{{"{SECRET}": 1}}'), ("must describe",), True),
    "pointers": (lambda store: (store / "row_pointers.bin").unlink(), ("complete edge store",), True),
}


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("more", [[], ["--json"]], ids=["words", "json"])
def test_a_damaged_store(run, store, tmp_path, kind, more):
    spoil, words, at_once = BROKEN[kind]
    spoil(store / "edges.csr")
    code, printed, errors = run("data", "check", *written(store), *more)
    assert code == 2
    assert any(each in printed + errors for each in words)
    assert SECRET not in printed + errors
    assert "edges.csr" in printed + errors
    code, printed, errors = run("train", *written(store), "--epsilon", 1, "--out", tmp_path / "model", *more)
    assert code in ((2,) if at_once else (2, 7))  # columns are read inside the computation, whose details are withheld
    assert SECRET not in printed + errors
    assert not (tmp_path / "model").exists()


def test_a_store_for_other_nodes(run, source, store, tmp_path):
    frame = pl.read_parquet(store / "nodes.parquet")
    for other, words in (
        (frame[::-1], "another order"),
        (frame.with_columns(id=pl.col("id") + "x"), "other ids"),
        (frame.head(119), "another number of nodes"),
    ):
        other.write_parquet(tmp_path / "n.parquet")
        np.save(tmp_path / "f.npy", np.load(store / "features.npy")[: other.height])
        files = ["--nodes", tmp_path / "n.parquet", "--features", tmp_path / "f.npy", "--edges", store / "edges.csr"]
        code, printed, _ = run("data", "check", *files)
        assert (code, words in printed) == (2, True)
        code, _, errors = run("train", *files, "--epsilon", 1, "--out", tmp_path / "model")
        assert (code, words in errors) == (2, True)
        assert not list(tmp_path.glob("**/*.ledger"))


def test_permissions_are_those_of_the_edges_file(run, source):
    files, out = source
    files[3].chmod(0o640)
    files[1].chmod(0o644)
    assert run("data", "convert", *files, "--out", out, "--format", "csr", "--quiet")[0] == 0
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in [*out.iterdir(), *(out / "edges.csr").iterdir()]}
    assert modes == {
        "nodes.parquet": 0o644,
        "features.npy": 0o644,
        "edges.csr": 0o750,
        "header.json": 0o640,
        "row_pointers.bin": 0o640,
        "columns.bin": 0o640,
        "ledger-path": 0o640,
    }


WRONG_EDGES = {
    "unknown id": (f"source,target\np0,p1\np0,{SECRET}\n", "every end must be an id"),
    "missing id": (f"source,target\np0,p1\n{SECRET},\n", "every edge needs two ids"),
    "further column": (f"source,target,weight\np0,p1,{SECRET}\n", "nothing else"),
    "ragged": (f"source,target\np0,p1\np0,p1,{SECRET}\n", "readable to its end"),
    "zero bytes": ("", "must not be empty"),
}


@pytest.mark.parametrize("kind", WRONG_EDGES)
def test_broken_edges_leave_nothing_and_are_not_quoted(run, source, kind):
    files, out = source
    text, words = WRONG_EDGES[kind]
    files[3].write_text(text)
    code, printed, errors = run("data", "convert", *files, "--out", out, "--format", "csr")
    assert (code, words in errors) == (2, True)
    assert SECRET not in printed + errors
    assert os.listdir(out) == []


def test_missing_edges_and_other_refusals(run, source):
    files, out = source
    convert = ["data", "convert", "--out", out, "--format", "csr"]
    for edges, words in (("none.csv", "no such file"), ("none.csr", "no such folder"), ("e.txt", ".npz, .csr")):
        code, _, errors = run(*convert, *files[:2], "--edges", out.parent / edges)
        assert (code, words in errors) == (2, True), errors
    for memory in ("12", "1KiB", "-1GiB", "1XB", "GiB", "1e9B", ""):
        code, _, errors = run(*convert, *files, "--memory", memory)
        assert (code, "--memory" in errors) == (2, True)
    assert os.listdir(out) == []
    (out / "edges.csr").mkdir()
    code, _, errors = run(*convert, *files)
    assert (code, "may not hold these files yet" in errors) == (2, True)
    assert os.listdir(out) == ["edges.csr"]


@pytest.mark.parametrize("file_format", ["csr", "csv"])
def test_a_full_disk_leaves_nothing(run, source, monkeypatch, file_format):
    files, out = source

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        code, printed, _ = run("data", "convert", *files, "--out", out, "--format", file_format, "--json")
    assert (code, json.loads(printed)["error"]) == (2, "InputError")
    assert "No space left" in printed
    assert "Nothing was written" in printed
    assert os.listdir(out) == []


@pytest.mark.parametrize("file_format", ["csr", "csv"])
def test_an_interrupted_or_killed_conversion(run, source, monkeypatch, file_format):
    files, out = source
    convert = ["data", "convert", *files, "--out", out, "--format", file_format]
    with monkeypatch.context() as patch:
        patch.setattr(convert_files, "_write_nodes", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert run(*convert)[0] != 0
    assert os.listdir(out) == []
    left = out / f".edges.{file_format}.unfinished"
    (left / "store").mkdir(parents=True)  # as a kill leaves it
    (left / "store" / "columns.bin").write_bytes(b"private")
    assert run(*convert)[0] == 0
    names = {
        "csr": ["edges.csr", "features.npy", "nodes.parquet"],
        "csv": ["edges.csv", "edges.csv.ledger-path", "nodes.csv"],
    }
    assert sorted(os.listdir(out)) == names[file_format]


def test_what_cannot_be_put_in_place_leaves_nothing(run, source, monkeypatch):
    files, out = source
    rename = Path.rename

    def refuse(path, target):
        if target == out / "edges.csr":
            raise PermissionError(errno.EACCES, "Permission denied")
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", refuse)
        assert run("data", "convert", *files, "--out", out, "--format", "csr")[0] == 2
    assert os.listdir(out) == []


def test_too_little_space(run, source, monkeypatch):
    files, out = source
    monkeypatch.setattr("gcon.files.edge_store.shutil.disk_usage", lambda _: _Free)
    code, _, errors = run("data", "convert", *files, "--out", out, "--format", "csr")
    assert (code, "needs free space" in errors) == (2, True)
    assert os.listdir(out) == []


class _Free:
    free = 1000


def test_about_how_many_edges(tmp_path):
    frame = pl.DataFrame({"source": range(1000), "target": range(1000, 2000)})
    for name in ("e.csv", "e.tsv", "e.parquet"):
        getattr(frame, "write_parquet" if name == "e.parquet" else "write_csv")(tmp_path / name)
        assert abs(convert_files._expected_edges(tmp_path / name) - 1000) <= 1
    assert convert_files._expected_edges(tmp_path / "e.npz") is None
    (tmp_path / "bad.parquet").write_bytes(b"PAR1")
    assert convert_files._expected_edges(tmp_path / "bad.parquet") is None


@pytest.mark.parametrize(("text", "size"), [("1GiB", 2**30), ("1.5 KiB", 1536), ("4gb", 4 * 10**9), ("64B", 64)])
def test_sizes(text, size):
    assert size_in_bytes("--memory", text, least="B") == size
