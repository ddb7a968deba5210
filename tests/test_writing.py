"""Files and folders appear whole or not at all, with the permissions that were asked for."""

import errno
import os
import signal
import stat
from pathlib import Path

import pytest

from gcon.errors import InputError
from gcon.writing import (
    move_together,
    uninterrupted,
    whole_file,
    whole_folder,
    work_folder,
    write_whole,
)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o027, 0o077])
def test_permissions(tmp_path, umask):
    before = os.umask(umask)
    try:
        write_whole(tmp_path / "below" / "owner", "words")
        write_whole(tmp_path / "public", b"bytes", mode=0o644)
        write_whole(tmp_path / "usual", "words", mode=None)
        with whole_folder(tmp_path / "folder") as new:
            (new / "file").write_bytes(b"x")
    finally:
        os.umask(before)
    found = {path.name: mode(path) for path in tmp_path.rglob("*") if path.name != "below"}
    usual = 0o666 & ~umask
    assert found == {"owner": 0o600, "public": 0o644, "usual": usual, "folder": 0o777 & ~umask, "file": usual}


@pytest.mark.parametrize("mode", [None, 0o600])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, mode):
    write_whole(tmp_path / "file", "old")

    def write_half():
        with whole_file(tmp_path / "file", mode=mode) as file:
            file.write(b"new")
            file.flush()
            assert len(os.listdir(tmp_path)) == 2
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert os.listdir(tmp_path) == ["file"]
    assert (tmp_path / "file").read_text() == "old"


def test_a_file_that_cannot_be_opened_says_why(tmp_path):
    with pytest.raises(FileNotFoundError), whole_file(tmp_path / "nowhere" / "file"):
        raise AssertionError


def test_an_older_folder_stays_unless_all_its_files_are_named(tmp_path):
    def write(**how):
        with whole_folder(tmp_path / "folder", **how) as new:
            (new / "a").write_bytes(b"new")

    write()
    (tmp_path / "folder" / "a").write_bytes(b"old")
    with pytest.raises(OSError, match="not empty"):
        write()
    write(keep_existing=True)
    assert (tmp_path / "folder" / "a").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["folder"]
    write(replaces=["a"])
    assert (tmp_path / "folder" / "a").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["folder"]
    (tmp_path / "folder" / "notes").write_text("mine")
    with pytest.raises(OSError, match="not empty"):
        write(replaces=["a"])
    (old,) = tmp_path.glob(".folder.*.old")
    assert (old / "notes").read_text() == "mine"  # never removed


def test_all_of_a_folder_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    synced, fsync = {}, os.fsync

    def watched(handle):
        synced[Path(os.readlink(f"/proc/self/fd/{handle}")).name] = (tmp_path / "folder").exists()
        fsync(handle)

    monkeypatch.setattr(os, "fsync", watched)
    with whole_folder(tmp_path / "folder") as new:
        (new / "below").mkdir()
        for path in (new / "a", new / "below" / "b"):
            path.write_bytes(b"x")
    assert synced == {"a": False, "below": False, "b": False, new.name: False, tmp_path.name: True}


def test_a_work_folder_is_private_emptied_and_removed(tmp_path):
    (tmp_path / ".target.unfinished" / "left").mkdir(parents=True)
    with work_folder(tmp_path / "target") as folder:
        assert (mode(folder), os.listdir(folder)) == (0o700, [".gcon"])
        with pytest.raises(InputError, match="one command at a time"), work_folder(tmp_path / "target"):
            raise AssertionError
        assert folder.is_dir()
        (folder / "run").write_bytes(b"private")
    assert os.listdir(tmp_path) == []


def test_what_killed_processes_left_beside_it_is_removed(tmp_path):
    for name in (".killed.unfinished", ".of another program.unfinished"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "edges").write_bytes(b"private")
    (tmp_path / ".killed.unfinished" / ".gcon").touch()
    with work_folder(tmp_path / "at work"), work_folder(tmp_path / "target"):
        assert sorted(os.listdir(tmp_path)) == [
            ".at work.unfinished",
            ".of another program.unfinished",
            ".target.unfinished",
        ]


def test_signals_wait_for_the_end_of_a_block(interrupts):
    steps = []
    with pytest.raises(KeyboardInterrupt), uninterrupted():
        signal.raise_signal(signal.SIGINT)
        steps.append("done")
    assert steps == ["done"]


def test_all_are_moved_or_none(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    with pytest.raises(FileNotFoundError):
        move_together([(tmp_path / "a", tmp_path / "c"), (tmp_path / "missing", tmp_path / "d")])
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]
    move_together([(tmp_path / "a", tmp_path / "c"), (tmp_path / "b", tmp_path / "d")])
    assert sorted(os.listdir(tmp_path)) == ["c", "d"]


def test_a_full_disk_names_the_file_that_it_has_no_room_for(tmp_path):
    with pytest.raises(OSError, match="file") as refused, whole_file(tmp_path / "file"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # as a write does: it knows a number alone
    assert (refused.value.filename, list(tmp_path.iterdir())) == (str(tmp_path / "file"), [])
