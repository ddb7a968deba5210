"""What was spent on edges stays spent in every copy of them: converted ones carry their ledger, others are warned about."""

import json
import os
import shutil
import stat
from pathlib import Path

import pytest

from gcon.cli.ledger_place import has_ledger, warn_of_copies
from gcon.errors import PromiseWarning


@pytest.fixture
def folder(run, tmp_path):
    assert run("data", "make", "--out", tmp_path, "--nodes", 200, "--quiet")[0] == 0
    return tmp_path


def look(run, edges, nodes, *more):
    """The cheapest release; returns exit code and what was said."""
    code, _, said = run("advise", "--edges", edges, "--nodes", nodes, "--look", 0.1, *more)
    return code, said


def entries(run, ledger):
    return len(json.loads(run("ledger", "show", ledger, "--json")[1])["entries"])


@pytest.mark.parametrize("file_format", ["csr", "parquet", "npz"])
def test_converted_edges_pay_from_the_same_ledger(run, folder, file_format):
    assert look(run, folder / "edges.csv", folder / "nodes.csv")[0] == 0
    out = folder / "new"
    out.mkdir()
    files = ["--nodes", folder / "nodes.csv", "--edges", folder / "edges.csv"]
    assert run("data", "convert", *files, "--out", out, "--format", file_format, "--quiet")[0] == 0
    (edges,) = [each for each in out.glob("edges.*") if each.suffix in (".csr", ".parquet", ".npz")]
    assert look(run, edges, folder / "nodes.csv")[0] == 0
    assert entries(run, folder / "edges.csv.ledger") == 2
    assert not list(out.glob("*.ledger"))
    # They are as private as the original: nobody may declare them public.
    model = folder / "model"
    assert run("train", *files, "--epsilon", 1, "--out", model, "--quiet")[0] == 0
    public = ["--public-edges", edges, "--nodes", folder / "nodes.csv", "--access", "public-graph"]
    assert run("predict", model, *public, "--out", folder / "labels.csv")[0] == 5


def test_a_moved_store_keeps_its_ledger_and_says_where_it_should_be(run, folder):
    first, second = folder / "first", folder / "second"
    first.mkdir()
    for name in ("nodes.csv", "edges.csv"):
        shutil.move(folder / name, first / name)
    files = ["--nodes", first / "nodes.csv", "--edges", first / "edges.csv"]
    assert run("data", "convert", *files, "--out", folder, "--format", "csr", "--quiet")[0] == 0
    second.mkdir()
    store, nodes = second / "edges.csr", second / "nodes.csv"
    shutil.move(folder / "edges.csr", store)
    shutil.copy(first / "nodes.csv", nodes)
    assert look(run, store, nodes)[0] == 0
    assert (first / "edges.csv.ledger").is_file()
    shutil.rmtree(first)
    code, said = look(run, store, nodes)
    assert code == 2
    assert "--ledger: must be given where the ledger that edges.csr was converted with is gone" in said
    assert look(run, store, nodes, "--ledger", second / "own.ledger")[0] == 0


def test_a_copy_is_warned_about_and_nothing_readable_by_others_is_kept(run, folder):
    original, copy = folder / "edges.csv", folder / "copy.csv"
    shutil.copy(original, copy)
    assert "warning" not in look(run, original, folder / "nodes.csv")[1]
    code, said = look(run, copy, folder / "nodes.csv")
    assert code == 0
    assert f"warning: The edges in copy.csv have another ledger, {original}.ledger," in said
    assert f"Pass --ledger {original}.ledger" in said  # the copy's own ledger was new
    shutil.copy(original, folder / "third.csv")
    for edges, others in ((copy, (original,)), (folder / "third.csv", (copy, original))):
        said = look(run, edges, folder / "nodes.csv")[1]
        assert said.count("warning: ") == 1
        assert f"another ledger, {' and '.join(f'{other}.ledger' for other in others)}, and" in said
        assert "Pass --ledger" not in said  # whichever it were, it would not count what is in the others
        assert "lower its ceiling by what the others hold" in said
    copy.write_text(copy.read_text() + "0,1\n")
    assert f"{original}.ledger" not in look(run, copy, folder / "nodes.csv")[1]
    kept = Path(os.environ["XDG_STATE_HOME"]) / "gcon"
    assert sorted(each.name for each in kept.iterdir()) == ["edges.key", "edges.seen"]
    assert all(stat.S_IMODE(each.stat().st_mode) == 0o600 for each in kept.iterdir())


def test_the_fingerprint_needs_the_operators_key(run, folder):
    kept = Path(os.environ["XDG_STATE_HOME"]) / "gcon"
    marks = []
    for _ in range(2):
        assert look(run, folder / "edges.csv", folder / "nodes.csv")[0] == 0
        marks.append(json.loads((kept / "edges.seen").read_text())["mark"])
        shutil.rmtree(kept)
    assert marks[0] != marks[1]


def test_a_state_folder_that_cannot_be_written_stops_nothing(run, folder, monkeypatch):
    (folder / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "file"))
    assert look(run, folder / "edges.csv", folder / "nodes.csv")[0] == 0


def test_bytes_that_are_no_text_stop_nothing(run, folder):
    """In what was remembered, and in the names of the edges and their ledger."""
    odd = folder / os.fsdecode(b"odd-\xff")
    try:
        odd.mkdir()
    except OSError:
        pytest.skip("this file system takes text only")
    assert look(run, folder / "edges.csv", folder / "nodes.csv")[0] == 0
    seen = Path(os.environ["XDG_STATE_HOME"]) / "gcon" / "edges.seen"
    seen.write_bytes(b'{"ledger":"\xff","mark":"\xff"}\n' + seen.read_bytes())
    shutil.copy(folder / "edges.csv", odd / "edges.csv")
    warn_of_copies(folder / "edges.csv", folder / "edges.csv.ledger", folder=seen.parent)
    with pytest.warns(PromiseWarning, match="have another ledger"):
        warn_of_copies(odd / "edges.csv", odd / "edges.csv.ledger", folder=seen.parent)


def test_a_store_that_carries_a_ledger_inside_is_known_as_private(tmp_path):
    store, link = tmp_path / "edges.csr", tmp_path / "other.csr"
    store.mkdir()
    link.symlink_to(store)
    assert not has_ledger(store)
    (store / "ledger-path").write_text("/somewhere/edges.csv.ledger\n")
    assert has_ledger(store)
    assert has_ledger(link)
