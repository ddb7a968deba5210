"""`kill -9` in the middle of the work: no process stays behind, and going on gives what an undisturbed run gives."""

import contextlib
import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

from gcon_lab.experiments.reproduce.build import reproduce
from gcon_lab.experiments.sweep.graphs import MADE_UP


def processes():
    """Of every process that runs: its number and start, and its parent's number."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if fields[0] not in "ZX":
            found[int(path.parent.name), fields[19]] = int(fields[1])
    return found


def descendants(number):
    running = processes()
    found, parents = set(), {number}
    while parents:
        new = {child for child, parent in running.items() if parent in parents} - found
        found |= new
        parents = {child for child, _ in new}
    return found


def wait_for(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "this took too long"
        time.sleep(0.01)


@pytest.mark.slow
def test_killed_work_leaves_no_process_and_resumes_to_the_same_bytes(whole, sheet_file, tmp_path):
    out, undisturbed = tmp_path / "killed", tmp_path / "undisturbed"
    command = [sys.executable, "-m", "gcon.cli.app", "reproduce", "fig1", "--graphs", MADE_UP, "--quick", "--runs", "1"]
    command += ["--workers", "2", "--competitors", str(sheet_file), "--out", str(out), "--json"]
    store, units = out / "store", 1 + 5
    begun = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        wait_for(lambda: begun.poll() is not None or list(store.glob("*.parquet")), 120)
        children = descendants(begun.pid)
        begun.kill()
        begun.wait()
        assert begun.returncode == -signal.SIGKILL
        assert len(children) >= 2
        wait_for(lambda: not children & set(processes()), 30)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(begun.pid, signal.SIGKILL)  # what a failed test leaves
    done = {path: path.stat().st_mtime_ns for path in store.glob("*.parquet")}
    assert 1 <= len(done) < units
    assert not (out / "fig1.csv").exists()
    (store / ".unit.parquet.abc.new").write_bytes(b"half")  # as a kill while writing leaves it

    resumed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert resumed.returncode == 0, resumed.stderr
    told = json.loads(resumed.stdout)
    assert (told["complete"], told["missing_units"]) == (True, 0)
    assert {path: path.stat().st_mtime_ns for path in done} == done  # none was done twice
    assert not list(store.glob(".*"))

    job, _ = whole
    shutil.copytree(job.out / "store", undisturbed / "store")
    assert reproduce(dataclasses.replace(job, what="fig1", out=undisturbed), Console(quiet=True)).missing == 0
    assert len(list(store.iterdir())) == units
    for path in store.iterdir():
        assert pl.read_parquet(path).equals(pl.read_parquet(undisturbed / "store" / path.name))
    files = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    assert files == {path.name: path.read_bytes() for path in undisturbed.iterdir() if path.is_file()}
    assert {"fig1.csv", "fig1.md", "fig1.svg", "results.md", "index.html"} <= set(files)
    assert sorted(told["files"]) == sorted(str(out / name) for name in files)
