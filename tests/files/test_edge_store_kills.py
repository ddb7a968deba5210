"""Edge stores whose making is killed or disturbed: nothing half made, nothing lost."""

import json
import os
import signal
import stat
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from tests.files.stores import assert_same, random_pairs, write

from gcon.errors import InputError
from gcon.files import edge_store, external_sort, sort_progress
from gcon.files.edge_store import work_folder, write_edge_store


class Killed(BaseException):
    """No exception that anybody catches."""


PLACES = {
    "a write": (external_sort, "write_all"),
    "a sync": (os, "fsync"),
    "noting progress": (sort_progress.SortProgress, "save"),
    "a rename": (os, "rename"),
}


@pytest.mark.parametrize("place", PLACES)
def test_killed_anywhere_and_run_again(tmp_path, monkeypatch, place):
    """Killed at the first such call, run again and killed at the second, and so on, until one run comes through."""
    pairs, target = random_pairs(40, 600), tmp_path / "edges.csr"
    monkeypatch.setattr(external_sort, "BYTES_AN_EDGE", 30)  # five runs
    monkeypatch.setattr(external_sort, "BYTES_A_KEY", 30)
    monkeypatch.setattr(edge_store, "CHUNK_BYTES", 400)
    monkeypatch.setattr(edge_store, "CHECKPOINT_BYTES", 300)
    owner, name = PLACES[place]
    real, told, kills = getattr(owner, name), [], 0
    for fatal in range(1, 1000):
        calls = 0

        def dies(*arguments, fatal=fatal):
            nonlocal calls
            calls += 1
            if calls == fatal:
                if name == "write_all":
                    real(arguments[0], arguments[1][: len(arguments[1]) // 2])  # half of it gets through
                raise Killed
            return real(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(owner, name, dies)
            if name == "write_all":
                patch.setattr(edge_store, name, dies)
            try:
                write(target, pairs, 40, notice=told.append)
                break
            except Killed:
                kills += 1
                assert not target.exists()
                assert stat.S_IMODE(work_folder(target).stat().st_mode) == 0o700
    assert kills >= (1 if place == "a rename" else 6)
    assert_same(target, pairs, 40)
    assert os.listdir(tmp_path) == ["edges.csr"]
    assert any("going on from there" in words for words in told)


def test_finished_runs_are_not_sorted_again(tmp_path, monkeypatch):
    pairs, target = random_pairs(40, 600), tmp_path / "edges.csr"
    real, sorted_runs = external_sort._finish_run, []

    def finish(keys, folder, progress, **counts):
        if len(progress.runs) == 4 and len(sorted_runs) == 4:
            raise Killed
        sorted_runs.append(len(progress.runs))
        real(keys, folder, progress, **counts)

    monkeypatch.setattr(external_sort, "_finish_run", finish)
    with pytest.raises(Killed):
        write(target, pairs, 40)
    sorted_runs.append("killed")
    write(target, pairs, 40, memory_bytes=8192)  # another amount of memory is no other input
    assert sorted_runs == [0, 1, 2, 3, "killed", 4]
    assert_same(target, pairs, 40)


def interrupted(tmp_path, monkeypatch, pairs, identity):
    """A workplace that a kill in the merge left behind."""
    with monkeypatch.context() as patch:
        patch.setattr(edge_store, "_checkpoint", lambda *_: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            write(tmp_path / "edges.csr", pairs, 40, identity=identity)
    return work_folder(tmp_path / "edges.csr")


def test_another_input_starts_over(tmp_path, monkeypatch):
    interrupted(tmp_path, monkeypatch, random_pairs(40, 600), {"size": 1})
    told, pairs = [], random_pairs(40, 500, seed=1)
    write(tmp_path / "edges.csr", pairs, 40, identity={"size": 2}, notice=told.append)
    assert told == ["An unfinished conversion of another input or with other settings was found: starting over."]
    assert_same(tmp_path / "edges.csr", pairs, 40)


def spoil_progress(folder):
    (folder / "progress.json").write_text('{"identity": {')


def spoil_fields(folder):
    (folder / "progress.json").write_text('{"identity": {}, "unheard": 3}')


def spoil_run(folder):
    (folder / "run-000001.bin").write_bytes(b"short")


def spoil_missing(folder):
    (folder / "run-000002.bin").unlink()


@pytest.mark.parametrize("spoil", [spoil_progress, spoil_fields, spoil_run, spoil_missing])
def test_a_damaged_workplace_starts_over(tmp_path, monkeypatch, spoil):
    pairs, told = random_pairs(40, 600), []
    spoil(interrupted(tmp_path, monkeypatch, pairs, {}))
    write(tmp_path / "edges.csr", pairs, 40, notice=told.append)
    assert told == ["An unfinished conversion was found, but it is damaged: starting over."]
    assert_same(tmp_path / "edges.csr", pairs, 40)


def test_columns_that_were_lost_are_noticed(tmp_path, monkeypatch):
    pairs = random_pairs(40, 600)
    folder = interrupted(tmp_path, monkeypatch, pairs, {})
    noted = json.loads((folder / "progress.json").read_text())
    (folder / "progress.json").write_text(json.dumps(noted | {"entries": 10**6}))
    with pytest.raises(InputError, match="became shorter"):
        write(tmp_path / "edges.csr", pairs, 40)
    assert os.listdir(tmp_path) == []
    write(tmp_path / "edges.csr", pairs, 40)
    assert_same(tmp_path / "edges.csr", pairs, 40)


def test_input_that_became_shorter_is_noticed(tmp_path):
    pairs, target = random_pairs(40, 600), tmp_path / "edges.csr"

    def stops():
        yield pairs
        raise Killed

    with pytest.raises(Killed):
        write_edge_store(stops, target, num_nodes=40, memory_bytes=4096)
    with pytest.raises(InputError, match="must stay the same"):
        write(target, pairs[:, :100], 40)
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
def test_a_kill_that_nobody_can_catch(tmp_path):
    code = """
        import os, signal, sys
        import numpy as np
        from pathlib import Path
        from gcon.files import edge_store
        pairs = np.random.default_rng(3).integers(0, 99, (2, 4000))
        def chunks():
            yield pairs[:, :2500]
            if sys.argv[2] == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            yield pairs[:, 2500:]
        edge_store.write_edge_store(chunks, Path(sys.argv[1]), num_nodes=99, memory_bytes=4096, notice=print)
    """
    run = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "edges.csr")]
    assert subprocess.run([*run, "kill"], check=False).returncode == -signal.SIGKILL
    assert os.listdir(tmp_path) == [".edges.csr.unfinished"]
    done = subprocess.run([*run, "live"], check=True, capture_output=True, text=True)
    assert "going on from there" in done.stdout
    assert_same(tmp_path / "edges.csr", np.random.default_rng(3).integers(0, 99, (2, 4000)), 99)
    assert os.listdir(tmp_path) == ["edges.csr"]
