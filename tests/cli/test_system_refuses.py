"""What the system refuses is told as that: no traceback, no advice about something else."""

import json
from types import SimpleNamespace

import pytest

from gcon.cli import output


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
    def refuse(name):
        raise failure

    monkeypatch.setattr("gcon.files.file_problems.importlib", SimpleNamespace(import_module=refuse))
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


def test_a_closed_pipe_without_a_charge_is_no_error_to_talk_about(run, monkeypatch, capsys):
    def closed(*_):
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(output.sys, "stdout", SimpleNamespace(write=closed))
    code, _, said = run("version")
    assert (code, said) == (10, "")
