"""Edge stores whose making is killed or disturbed: nothing half made, nothing left, and the same bytes after another run."""

import os
import signal
import stat
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from tests.files.stores import assert_same, random_pairs, write

from gcon.files import edge_store, external_sort

LEFT = ".edges.csr.unfinished"


class Stop(BaseException):
    """No exception that anybody catches."""


PLACES = {
    "a run": (external_sort, "as_bytes", 5),
    "a piece of the merge": (edge_store, "as_bytes", 6),
    "a sync": (os, "fsync", 3),
    "a rename": (os, "rename", 1),
}


def contents(store):
    return {path.name: path.read_bytes() for path in store.iterdir()}


@pytest.mark.parametrize("place", PLACES)
def test_stopped_anywhere_it_leaves_nothing(tmp_path, monkeypatch, place):
    """Stopped at the first such call, then at the second, and so on, until one run comes through."""
    pairs, target = random_pairs(40, 600), tmp_path / "edges.csr"
    monkeypatch.setattr(external_sort, "EDGE_BYTES", 30)  # five runs
    monkeypatch.setattr(external_sort, "KEY_BYTES", 30)
    owner, name, least = PLACES[place]
    real = getattr(owner, name)
    for fatal in range(1, 1000):
        calls = 0

        def stops(*arguments, fatal=fatal):
            nonlocal calls
            calls += 1
            if calls == fatal:
                raise Stop
            return real(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(owner, name, stops)
            try:
                write(target, pairs, 40)
                break
            except Stop:
                assert os.listdir(tmp_path) == []
    assert fatal > least
    assert_same(target, pairs, 40)
    assert os.listdir(tmp_path) == ["edges.csr"]


KILLED = """
    import os, signal, sys
    import numpy as np
    from pathlib import Path
    from gcon.files import edge_store
    pairs = np.random.default_rng(3).integers(0, 99, (2, 4000))
    stage = sys.argv[2]
    def chunks():
        yield pairs[:, :2500]
        if stage == "sort":
            os.kill(os.getpid(), signal.SIGKILL)
        yield pairs[:, 2500:]
    def step(name, share):
        if name == edge_store.MERGING and stage == "merge" and share > 0.5:
            os.kill(os.getpid(), signal.SIGKILL)
    edge_store.write_edge_store(chunks(), Path(sys.argv[1]), num_nodes=99, memory_bytes=4096, step=step)
"""


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["sort", "merge"])
def test_after_a_kill_the_next_run_leaves_nothing_and_makes_the_same_bytes(tmp_path, stage):
    pairs, target = np.random.default_rng(3).integers(0, 99, (2, 4000)), tmp_path / "edges.csr"
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(KILLED), str(target), stage], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert os.listdir(tmp_path) == [LEFT]
    assert stat.S_IMODE((tmp_path / LEFT).stat().st_mode) == 0o700
    assert (tmp_path / LEFT / "run-000000.bin").exists()
    write(target, pairs, 99, size=700, memory_bytes=8192)  # cut otherwise
    assert os.listdir(tmp_path) == ["edges.csr"]
    write(tmp_path / "undisturbed.csr", pairs, 99)
    assert contents(target) == contents(tmp_path / "undisturbed.csr")
    assert_same(target, pairs, 99)


def test_what_was_left_goes_even_if_the_next_input_is_refused(tmp_path):
    (tmp_path / LEFT / "store").mkdir(parents=True)
    (tmp_path / LEFT / "store" / "columns.bin").write_bytes(b"private")
    (tmp_path / "mine").mkdir()
    (tmp_path / LEFT / "link").symlink_to(tmp_path / "mine")
    with pytest.raises(ValueError, match="node numbers"):
        write(tmp_path / "edges.csr", np.array([[0], [9]]), 9)
    assert os.listdir(tmp_path) == ["mine"]


def test_a_run_that_the_disk_lost_is_noticed(tmp_path, monkeypatch):
    real = external_sort.EdgeSorter.finish

    def lose(sorter):
        left = real(sorter)
        os.truncate(tmp_path / LEFT / "run-000001.bin", 24)
        return left

    monkeypatch.setattr(external_sort.EdgeSorter, "finish", lose)
    with pytest.raises(OSError, match="Input/output error"):
        write(tmp_path / "edges.csr", random_pairs(40, 600), 40)
    assert os.listdir(tmp_path) == []
