"""What the system refuses is told as that: no traceback, no advice about something else."""

import errno
import json
import os
import subprocess
import sys
from functools import partial
from types import SimpleNamespace

import pytest

from gcon.cli import app, handlers, output
from gcon.privacy.ledger_file import FileLedger


@pytest.mark.parametrize(
    "failure",
    [
        ImportError("libarrow.so: failed to map segment from shared object"),
        ImportError("libarrow.so: cannot allocate memory in static TLS block"),
        MemoryError(),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
    ],
    ids=repr,
)
def test_out_of_memory_is_said_as_such(run, tmp_path, monkeypatch, failure):
    def refuse(*_, **__):
        raise failure

    monkeypatch.setattr("gcon.cli.data.write_nodes", refuse)
    code, said, _ = run("data", "make", "--out", tmp_path, "--json")
    assert code == 10
    assert json.loads(said)["message"].startswith("out of memory.")
    assert not list(tmp_path.iterdir())


def test_a_bug_after_a_charge_says_what_was_charged(run, tmp_path, monkeypatch):
    def bug(*_):
        raise ZeroDivisionError("a bug")

    run("data", "make", "--out", tmp_path, "--nodes", 60, "--classes", 2)
    files = ["--edges", tmp_path / "edges.csv", "--nodes", tmp_path / "nodes.csv", "--method", "paper", "--hidden", 0]
    monkeypatch.setattr("gcon.cli.paying.save_release", bug)
    warned = []
    monkeypatch.setattr(output.Output, "warn", lambda _, words: warned.append(words))
    with pytest.raises(ZeroDivisionError):
        run("train", *files, "--epsilon", 1, "--out", tmp_path / "model")
    assert warned[0].startswith("Charged: epsilon 1, delta 1e-05, entry 0 (reserved) of")


@pytest.mark.parametrize("when", ["made", "paid"])
def test_a_ledger_on_a_full_disk_says_that_nothing_was_charged(run, tmp_path, monkeypatch, when):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    run("data", "make", "--out", tmp_path, "--nodes", 60, "--classes", 2)
    files = ["--edges", tmp_path / "edges.csv", "--nodes", tmp_path / "nodes.csv", "--method", "paper", "--hidden", 0]
    if when == "paid":
        FileLedger(tmp_path / "edges.csv.ledger", data_set="edges")
    monkeypatch.setattr("gcon.privacy.ledger_file._write", full)
    code, said, _ = run("train", *files, "--epsilon", 1, "--out", tmp_path / "model", "--json")
    told = json.loads(said)
    assert (code, told["error"]) == (10, "LedgerRefusedError")
    assert "(No space left on device)" in told["message"]
    assert told["message"].endswith("Nothing was charged.")
    monkeypatch.undo()
    assert FileLedger(tmp_path / "edges.csv.ledger", data_set="edges").total().epsilon == 0


def test_a_ledger_that_may_have_been_charged_does_not_say_that_nothing_was(run, tmp_path, monkeypatch):
    """Only the head could not be written: the line stands."""

    def fail(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    run("data", "make", "--out", tmp_path, "--nodes", 60, "--classes", 2)
    files = ["--edges", tmp_path / "edges.csv", "--nodes", tmp_path / "nodes.csv", "--method", "paper", "--hidden", 0]
    books = FileLedger(tmp_path / "edges.csv.ledger", data_set="edges")
    monkeypatch.setattr("gcon.privacy.ledger_file.replace_file", fail)
    code, said, _ = run("train", *files, "--epsilon", 1, "--out", tmp_path / "model", "--json")
    monkeypatch.undo()
    assert (code, books.total().epsilon) == (9, 1.0)
    assert "is charged then" in json.loads(said)["message"]
    assert "Nothing was charged" not in said


def test_a_closed_pipe_without_a_charge_is_no_error_to_talk_about(run, monkeypatch, capsys):
    def closed(*_):
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(output.sys, "stdout", SimpleNamespace(write=closed, flush=closed))
    code, _, said = run("version")
    assert (code, said) == (10, "")


def gcon(*words, **files):
    """`gcon ...` in a process of its own; gives its exit code and what it said on standard error."""
    call = "import sys; from gcon.cli import main; sys.argv[0] = 'gcon'; main()"
    call_it = [sys.executable, "-c", call, *map(str, words)]
    ended = subprocess.run(call_it, check=False, **{"stderr": subprocess.PIPE, **files})
    return ended.returncode, (ended.stderr or b"").decode()


@pytest.mark.parametrize("words", [("--version",), ("--help",), ("predict", "--help")], ids=" ".join)
def test_help_that_cannot_be_printed_is_no_traceback(words):
    with open("/dev/full", "wb") as full:
        code, said = gcon(*words, stdout=full)
    assert code == 10
    assert said == (
        "error: the system refused: standard output (No space left on device). Check permissions and free space.\n"
    )


def test_a_wrong_call_that_cannot_be_told_as_an_object_is_told_in_words():
    with open("/dev/full", "wb") as full:
        code, said = gcon("bogus", "--json", stdout=full)
    assert (code, said.startswith("error: No such command 'bogus'."), "Traceback" in said) == (2, True, False), said


def test_a_verb_that_is_nearly_right_is_asked_about():
    assert gcon("trian") == (2, "error: No such command 'trian'. Did you mean 'train'? See gcon --help.\n")


def test_a_closed_output_is_told_and_its_number_taken_by_no_other_file(tmp_path):
    books = tmp_path / "edges.csv.ledger"
    FileLedger(books, data_set="friends")
    code, said = gcon("ledger", "show", books, preexec_fn=partial(os.closerange, 0, 2))
    assert (code, "standard output (Bad file descriptor)" in said) == (10, True), said
    assert "free space" not in said  # that is no way out
    code, _ = gcon("ledger", "set-ceiling", books, "--none", "-q", stderr=None, preexec_fn=partial(os.closerange, 0, 3))
    assert code == 0
    numbers = "import os; from gcon import cli; cli._open_standard_files(); os._exit(os.open(os.devnull, os.O_RDONLY))"
    assert subprocess.call([sys.executable, "-c", numbers], preexec_fn=partial(os.closerange, 0, 3)) > 2


def test_without_a_standard_error_a_verb_works_and_its_progress_is_heard_by_nobody(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    with output.reporting(as_json=False, quiet=False) as told, told.progress.status("read"):
        told.progress.print("half of it")
    assert not told.gone


@pytest.mark.parametrize("kind", ["csv", "npz"])
@pytest.mark.parametrize(
    "failure", [MemoryError(), OSError("Failed to launch worker thread: Resource temporarily unavailable")], ids=repr
)
def test_edges_that_do_not_fit_into_memory_are_not_called_damaged(run, tmp_path, monkeypatch, kind, failure):
    def refuse(*_, **__):
        raise failure

    run("data", "make", "--out", tmp_path, "--nodes", 60, "--classes", 2)
    edges = (tmp_path / "edges.csv").rename(tmp_path / f"e.{kind}")
    reader = {"csv": "gcon.files.edge_files.open_table", "npz": "gcon.files.edge_files.load_archive"}[kind]
    monkeypatch.setattr(reader, refuse)
    code, said, _ = run("data", "check", "--edges", edges, "--nodes", tmp_path / "nodes.csv")
    assert (code, "got out of memory" in said, "Write the file again" in said) == (2, True, False), said


@pytest.mark.parametrize("name", ["nodes", "features"])
def test_tables_that_do_not_fit_into_memory_are_not_called_damaged(run, tmp_path, monkeypatch, name):
    def refuse(*_, **__):
        raise MemoryError

    run("data", "make", "--out", tmp_path, "--nodes", 60, "--classes", 2)
    (tmp_path / "x.npy").write_bytes(b"anything")
    monkeypatch.setattr(
        {"nodes": "gcon.files.node_files.open_table", "features": "numpy.lib.format.open_memmap"}[name], refuse
    )
    words = ["--features", tmp_path / "x.npy"] if name == "features" else []
    code, _, said = run("data", "check", "--nodes", tmp_path / "nodes.csv", *words)
    assert (code, said.startswith("error: out of memory.")) == (10, True), said


def test_a_verb_that_cannot_be_loaded_for_want_of_memory_says_so(run, monkeypatch):
    def refuse(name):
        raise ImportError("libtorch_cpu.so: failed to map segment from shared object")

    monkeypatch.setattr("gcon.cli.app.import_module", refuse)
    code, said, _ = run("version", "--json")
    assert (code, json.loads(said)["message"].startswith("out of memory.")) == (10, True)


@pytest.mark.parametrize("begun", [False, True])
def test_nothing_is_claimed_once_a_verb_has_begun(monkeypatch, capsys, begun):
    """Memory may end while an error is told, after a charge."""

    def end(**_):
        raise MemoryError

    monkeypatch.setattr(app, "program", end)
    monkeypatch.setattr(app.sys, "argv", ["gcon"])
    if not begun:
        monkeypatch.setitem(handlers, 0, None)
    with pytest.raises(SystemExit):
        app.main()
    said = capsys.readouterr().err
    assert ("out of memory" in said, "Nothing was read or charged" in said) == (True, not begun)
