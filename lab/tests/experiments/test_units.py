"""Units of work: each is kept whole or not at all, none is done twice, and an error is told without losing the others."""

import os
import signal
import subprocess
import sys
import time

import polars as pl
import pytest
from rich.console import Console

from gcon.errors import InputError
from gcon_lab.experiments import units as run
from gcon_lab.experiments.sweep.graphs import MADE_UP
from gcon_lab.experiments.sweep.other_lines import honest_unit
from gcon_lab.experiments.units import Call, UnitStore, finished, run_units

QUIET = Console(quiet=True)
FAR = 1e12
FRAME = pl.DataFrame({"run": [0, 1], "test": [0.5, 0.25]})
# A script of its own: Ctrl-C goes to every process of the group, and must not reach the tests.
INTERRUPTED = """
import os, signal, sys, threading, time
from pathlib import Path
from rich.console import Console
from gcon_lab.experiments.sweep.other_lines import honest_unit
from gcon_lab.experiments.units import run_units

def interrupt():
    while not list(folder.glob("*.parquet")):
        time.sleep(0.01)
    os.killpg(os.getpgrp(), signal.SIGINT)  # as a terminal does

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    threading.Thread(target=interrupt, daemon=True).start()
    units = [honest_unit("made-up", run, 1.0) for run in range(40)]
    run_units(units, folder, workers=1, deadline=1e12, console=Console(quiet=True))
"""


def honest(run, epsilon=1.0):
    return honest_unit(MADE_UP, run, epsilon)


@pytest.fixture
def no_workers(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a worker was started")

    monkeypatch.setattr(run, "ProcessPoolExecutor", refuse)


class Broken(pl.DataFrame):
    """A frame that fails halfway."""

    def write_parquet(self, file, **_):
        file.write(b"half")
        file.flush()
        raise OSError("no space left")


def test_a_unit_is_written_whole_or_not_at_all(tmp_path):
    store = UnitStore(tmp_path / "deep" / "store")
    with pytest.raises(OSError, match="no space left"):
        store.write("unit", Broken())
    assert list((tmp_path / "deep" / "store").iterdir()) == []
    assert not store.has("unit")
    store.write("unit", FRAME)
    with pytest.raises(OSError, match="no space left"):
        store.write("unit", Broken())
    assert store.table(["unit"]).equals(FRAME)
    assert [path.name for path in (tmp_path / "deep" / "store").iterdir()] == ["unit.parquet"]


def test_reading_gives_what_there_is(tmp_path):
    store = UnitStore(tmp_path)
    assert store.table(["a", "b"]).is_empty()
    assert store.table([]).is_empty()
    store.write("b", FRAME)
    store.write("a", FRAME.reverse())
    assert store.table(["a", "missing", "b"]).rows() == [(1, 0.25), (0, 0.5), (0, 0.5), (1, 0.25)]
    assert pl.scan_parquet(tmp_path / "*.parquet").collect().height == 4  # any tool that reads Parquet


def test_a_damaged_unit_is_made_again(tmp_path):
    store = UnitStore(tmp_path)
    assert store.read("unit") is None
    store.write("unit", {"score": [0.5, 0.6]})
    assert store.read("unit") == {"score": [0.5, 0.6]}
    (tmp_path / "unit.json").write_text('{"score": [0.5')
    assert store.read("unit") is None
    assert not store.has("unit")


def test_what_was_kept_is_not_made_again(tmp_path, no_workers):
    units = [Call("one", int, ("1",)), Call("two", int, ("no number",))]
    for unit in units:
        UnitStore(tmp_path).write(unit.name, {"x": unit.name})
    assert finished(units, tmp_path, workers=1) == [{"x": "one"}, {"x": "two"}]


def test_what_is_missing_is_made_and_kept(tmp_path):
    units = [Call("one", int, ("1",)), Call("two", int, ("2",))]
    UnitStore(tmp_path).write("two", 7)
    assert finished(units, tmp_path, workers=1) == [1, 7]
    assert (tmp_path / "one.json").read_text() == "1"


def test_tidying_removes_what_was_left_half_written_and_nothing_else(tmp_path):
    store = UnitStore(tmp_path)
    store.write("unit", FRAME)
    (tmp_path / ".unit.parquet.abc.new").write_bytes(b"half")
    (tmp_path / "notes.txt").write_text("mine")
    store.tidy()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt", "unit.parquet"]


def test_after_the_deadline_nothing_is_done(tmp_path, monkeypatch):
    def here(tasks, *, workers, console):
        return sum(not task.work() for task in tasks if task.work is not None)

    monkeypatch.setattr(run, "in_parallel", here)
    units = [honest(0), honest(1)]
    UnitStore(tmp_path).write(units[0].name, FRAME)
    (tmp_path / ".unit.parquet.abc.new").write_bytes(b"half")
    assert run_units(units, tmp_path, workers=1, deadline=time.time() - 1, console=QUIET) == 1
    assert [path.name for path in tmp_path.iterdir()] == [f"{units[0].name}.parquet"]


def test_finished_units_are_not_done_again(tmp_path, no_workers):
    units = [honest(0), honest(1)]
    for unit in units:
        UnitStore(tmp_path).write(unit.name, FRAME)
    assert run_units(units, tmp_path, workers=2, deadline=FAR, console=QUIET) == 0
    assert run_units([], tmp_path, workers=2, deadline=FAR, console=QUIET) == 0
    with pytest.raises(AssertionError, match="a worker was started"):
        run_units([*units, honest(2)], tmp_path, workers=2, deadline=FAR, console=QUIET)


@pytest.mark.slow
def test_an_error_is_told_at_once_and_finished_units_stay(tmp_path):
    before, wrong = [honest(0), honest(1)], honest(0, epsilon=-1.0)
    after = [honest(run) for run in range(2, 14)]
    store = UnitStore(tmp_path)
    store.write(before[0].name, FRAME)
    with pytest.raises(InputError, match="epsilon"):
        run_units([*before, wrong, *after], tmp_path, workers=1, deadline=FAR, console=QUIET)
    assert store.table([before[0].name]).equals(FRAME)  # as it was
    assert store.table([before[1].name]).equals(before[1].results())  # in another process, the same
    assert not store.has(wrong.name)
    assert sum(store.has(unit.name) for unit in after) < len(after) / 2  # one that runs, two that are handed out
    assert not list(tmp_path.glob(".*"))


@pytest.mark.slow
def test_an_interrupt_ends_the_work_soon(tmp_path, interrupts):
    script = tmp_path / "work.py"
    script.write_text(INTERRUPTED)
    begun = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "store")], start_new_session=True, stderr=subprocess.DEVNULL
    )
    try:
        assert begun.wait(timeout=120) != 0
    finally:
        if begun.poll() is None:
            os.killpg(begun.pid, signal.SIGKILL)
            begun.wait()
    done = list((tmp_path / "store").glob("*.parquet"))
    assert 1 <= len(done) < 20  # of 40
    assert not list((tmp_path / "store").glob(".*"))
