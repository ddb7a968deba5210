"""The access log: whole lines, for good, whoever writes at the same time."""

import json
import os
import resource
import signal

import pytest

from gcon.errors import InputError, LedgerError
from gcon.serve.access_log import AccessLog


def lines(path):
    return [json.loads(line)["node"] for line in path.read_text().splitlines()]


def test_several_writers_lose_nothing(tmp_path):
    path = tmp_path / "log"
    logs = [AccessLog(path) for _ in range(3)]
    for turn in range(30):
        logs[turn % 3].record(f"n{turn}")
    AccessLog(path).record("later")
    assert lines(path) == [f"n{turn}" for turn in range(30)] + ["later"]
    assert path.stat().st_mode & 0o077 == 0


def test_flushed_to_the_disk(tmp_path, monkeypatch):
    flushed, log = [], AccessLog(tmp_path / "log")
    monkeypatch.setattr("gcon.serve.access_log.os.fsync", flushed.append)
    log.flush()
    assert flushed == []
    log.record("a")
    log.flush()
    log.flush()
    assert len(flushed) == 1


def test_a_line_that_was_cut_off_costs_no_other(tmp_path):
    """In a process of its own, where files may not grow beyond a hundred bytes for a while."""
    path = tmp_path / "log"
    log = AccessLog(path)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
        refused = 0
        for name in ("a", "b", "c"):
            try:
                log.record(name)
            except LedgerError:
                refused += 1
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        log.record("d")
        os._exit(refused)
    refused = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert refused >= 1
    found = path.read_text().splitlines()
    assert json.loads(found[0])["node"] == "a"
    assert json.loads(found[-1])["node"] == "d"


def test_open_to_others_or_not_writable(tmp_path):
    (tmp_path / "open").touch(mode=0o644)
    for path in (tmp_path / "open", tmp_path / "nowhere" / "log"):
        with pytest.raises(InputError, match="access_log"):
            AccessLog(path)


def test_a_log_that_was_moved_away_goes_on_in_a_new_file(tmp_path):
    path, log = tmp_path / "log", AccessLog(tmp_path / "log")
    log.record("a")
    path.rename(tmp_path / "old")
    log.record("b")
    log.reopen()
    log.record("c")
    assert (lines(tmp_path / "old"), lines(path)) == (["a", "b"], ["c"])
    path.rename(tmp_path / "older")
    path.touch(mode=0o644)
    with pytest.raises(InputError, match="chmod 600"):
        log.reopen()
    log.record("d")  # it goes on where it was
    assert lines(tmp_path / "older") == ["c", "d"]
