"""The ledger in a file: words, plans, paths and files that it refuses."""

import math
import os

import pytest
import torch

from gcon.errors import InputError, LedgerError
from gcon.privacy import ledger_file
from gcon.privacy.boundary import Private
from gcon.privacy.ledger import Kind, Request
from gcon.privacy.ledger_file import FileLedger

BAD_WORDS = ["", "   ", "x" * 201, "two\nlines", "bell\a", "\x7f", "\u2028", "\ud800", 7, None]


@pytest.mark.parametrize("words", BAD_WORDS[:-1])
def test_the_data_sets_name_is_checked(path, words):
    with pytest.raises(InputError, match="data_set: must be 1 to 200 characters"):
        FileLedger(path, data_set=words)
    assert not list(path.parent.iterdir())


@pytest.mark.parametrize("words", BAD_WORDS)
@pytest.mark.parametrize("field", ["purpose", "randomness"])
def test_words_of_a_request_are_checked(path, field, words, release):
    ledger = FileLedger(path, data_set="friendships")
    before = path.read_bytes()
    with pytest.raises(InputError, match=f"{field}: must be 1 to 200 characters") as raised:
        ledger.reserve(release(**{field: words}))
    assert str(raised.value).isprintable()
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "plan",
    [
        {"x": math.nan},
        {"x": "inf"},
        {"x": Private([1, 2], "edges")},
        {"x": torch.tensor(3.0)},
        {"x": {1: 2}},
        {3: "x"},
        {"x": [b"bytes"]},
        {"x": {1, 2}},
        [("x", 1)],
    ],
)
def test_a_plan_that_a_file_cannot_hold_is_refused_without_showing_it(path, plan, release):
    ledger = FileLedger(path, data_set="friendships")
    with pytest.raises(InputError, match="plan: must be made of public numbers") as raised:
        ledger.reserve(release(plan=plan))
    assert "3.0" not in str(raised.value)
    assert ledger.verify().lines == 1


def test_an_unknown_kind_is_refused(path):
    ledger = FileLedger(path, data_set="friendships")
    with pytest.raises(InputError, match="kind"):
        ledger.reserve(Request(kind="gift", mechanism="m", purpose="p"))
    ledger.reserve(Request(kind="release", mechanism="m", purpose="p"))
    assert ledger.entries()[0].request.kind is Kind.RELEASE


def test_the_folder_must_exist(tmp_path):
    with pytest.raises(InputError, match="folder does not exist"):
        FileLedger(tmp_path / "nowhere" / "ledger", data_set="friendships")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="folder does not exist"):
        FileLedger(tmp_path / "file" / "ledger", data_set="friendships")


def test_paths_that_are_no_files(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for bad in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(InputError, match="which is not a file"):
            FileLedger(bad, data_set="friendships")
    for bad in (None, 3, b"bytes", "nul\0"):
        with pytest.raises(InputError, match="path: must be a file"):
            FileLedger(bad, data_set="friendships")


def test_a_new_ledger_needs_a_name_so_a_mistyped_path_is_noticed(path):
    with pytest.raises(InputError, match="data_set: must be given for a new ledger"):
        FileLedger(path)
    assert not list(path.parent.iterdir())


def test_another_data_sets_ledger(path, small_ledger):
    small_ledger(path)
    with pytest.raises(InputError, match=r"data_set: must be the name in the ledger .*'friendships'; got 'enemies'"):
        FileLedger(path, data_set="enemies")


def test_a_file_of_no_bytes_is_a_new_ledger(path, release):
    path.touch()
    ledger = FileLedger(path, data_set="friendships")
    ledger.reserve(release())
    assert ledger.verify().ok


@pytest.mark.parametrize(
    "data",
    [b"1,2\n3,4\n", b"no newline", b"\x00\xff\xfe\n", b"[]\n", b"{}\n", b'{"format":"x"}\n', b"[" * 9999 + b"\n"],
)
def test_another_file_is_neither_read_nor_changed(path, data, head):
    path.write_bytes(data)
    for name in (None, "friendships"):
        with pytest.raises(LedgerError, match="first line is not the header of a gcon ledger"):
            FileLedger(path, data_set=name)
    assert path.read_bytes() == data
    assert not head(path).exists()


def test_a_newer_version_is_told_apart(path):
    line = b'{"data_set":"friendships","format":"gcon ledger","line":"header","version":2}\n'
    path.write_bytes(line)
    with pytest.raises(LedgerError, match=r"is of version 2; this gcon reads up to 1: update gcon"):
        FileLedger(path)
    assert path.read_bytes() == line


def test_without_file_locks_there_is_no_file_ledger(path, monkeypatch):
    monkeypatch.setattr(ledger_file, "fcntl", None)
    with pytest.raises(LedgerError, match="needs file locks"):
        FileLedger(path, data_set="friendships")
    assert not list(path.parent.iterdir())
