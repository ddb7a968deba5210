"""The ledger in a file: writers that die, full disks and missing permissions."""

import errno
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from gcon.errors import LedgerError
from gcon.privacy.ledger import Outcome
from gcon.privacy.ledger_file import FileLedger

# --- crashes ----------------------------------------------------------------------------------------------------------


def writes(ledger, number, request):
    return [
        lambda: ledger.reserve(request),
        lambda: ledger.settle(number, Outcome.WITHHELD),
        lambda: ledger.set_ceiling(None),
    ]


@pytest.mark.parametrize("kind", ["reserve", "settle", "ceiling"])
def test_a_writer_that_dies_at_any_byte_leaves_a_good_ledger(path, kind, no_fsync, release, head, torn, small_ledger):
    ledger = small_ledger(path, settled=False)
    reservation = ledger.reserve(release(0.5))
    before, known = path.read_bytes(), head(path).read_bytes()
    entries, ceiling = ledger.entries(), ledger.ceiling()
    dict(zip(("reserve", "settle", "ceiling"), writes(ledger, reservation, release(4.0)), strict=True))[kind]()
    line = path.read_bytes()[len(before) :]
    for length in range(len(line) + 1):
        path.write_bytes(before + line[:length])
        head(path).write_bytes(known)
        torn(path).unlink(missing_ok=True)
        found = ledger.verify()
        whole = length == len(line)
        assert found.ok
        assert found.unfinished == (0 < length < len(line))
        assert found.lines == 5 + whole
        if not whole:  # never acknowledged: nothing was opened, and an outcome that was not written is not known
            assert ledger.entries() == entries
            assert ledger.ceiling() == ceiling
        assert path.read_bytes() == before + line[:length]  # looking changes nothing
        ledger.reserve(release(0.25))
        assert path.read_bytes().startswith(before + (line if whole else b""))
        assert torn(path).exists() == found.unfinished
        if found.unfinished:
            assert torn(path).read_bytes() == line[:length] + b"\n"
        after = FileLedger(path)
        assert after.verify().ok
        assert after.verify().lines == 6 + whole
        assert after.total().epsilon == 3.75 + (4.0 if whole and kind == "reserve" else 0.0)


def test_a_last_line_of_rubbish_is_kept_aside(path, release, torn, small_ledger):
    ledger = small_ledger(path)
    good = path.read_bytes()
    for rubbish in (b"\0" * 50, b'{"hash": \n', b"\xff\xfe\n"):
        path.write_bytes(path.read_bytes() + rubbish)
        assert ledger.verify().unfinished
        ledger.reserve(release(0.5))
    assert torn(path).read_bytes() == b"\0" * 50 + b"\n" + b'{"hash": \n' + b"\xff\xfe\n"
    assert path.read_bytes().startswith(good)
    assert ledger.verify().lines == 8


def test_a_writer_that_dies_before_the_head_is_written(path, monkeypatch, release):
    def fail(*_):
        raise OSError(errno.EIO, "Input/output error")

    ledger = FileLedger(path, data_set="friendships")
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        for _ in range(3):  # the second and third already fail to bring the head level, and write no line
            with pytest.raises(LedgerError, match="refused to write"):
                ledger.reserve(release(1.0))
    assert ledger.total().epsilon == 1.0  # written, so charged
    assert ledger.verify().ok
    ledger.reserve(release(2.0))
    assert ledger.total().epsilon == 3.0
    assert ledger.verify().lines == 3


def test_a_creator_that_dies_leaves_nothing_or_a_ledger(path, monkeypatch, release):
    replace, calls = os.replace, []

    def die_at(step):
        def die(*arguments):
            calls.append(arguments)
            if len(calls) == step:
                raise OSError(errno.EIO, "Input/output error")
            replace(*arguments)

        return die

    for step in (1, 2):
        calls.clear()
        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", die_at(step))
            with pytest.raises(LedgerError, match="Input/output error"):
                FileLedger(path, data_set="friendships")
        assert path.exists() == (step == 2)
    ledger = FileLedger(path, data_set="friendships")
    ledger.reserve(release())
    assert ledger.verify().ok


@pytest.mark.parametrize("written", [0, 30])
def test_a_full_disk_charges_nothing(path, monkeypatch, written, release, small_ledger):
    ledger = small_ledger(path)
    before, write, room = path.read_bytes(), os.write, iter([written] if written else [])

    def full(descriptor, data):
        for some in room:
            return write(descriptor, data[:some])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(LedgerError, match="No space left on device"):
            ledger.reserve(release())
    assert path.read_bytes() == before
    assert ledger.verify().ok
    ledger.reserve(release())
    assert ledger.total().epsilon == 4.0


# --- permissions ------------------------------------------------------------------------------------------------------


@contextmanager
def ordinary_user():
    """File permissions do not bind the superuser; become somebody else for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_path():
    """A path in a folder that an ordinary user reaches."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        if os.geteuid() == 0:
            os.chown(folder, 65534, -1)
        yield Path(folder) / "friendships.ledger"


def test_a_file_that_may_only_be_read(open_path, release, small_ledger):
    with ordinary_user():
        ledger = small_ledger(open_path)
        reservation = ledger.reserve(release())
        before = open_path.read_bytes()
        open_path.chmod(0o400)
        for use in (lambda: ledger.reserve(release()), lambda: ledger.settle(reservation, Outcome.RELEASED)):
            with pytest.raises(LedgerError, match=r"refused to write it \(Permission denied\)"):
                use()
        assert open_path.read_bytes() == before
        assert FileLedger(open_path).total().epsilon == 4.0
        assert ledger.verify().ok


def test_a_file_that_may_not_be_read(open_path, release, small_ledger):
    with ordinary_user():
        ledger = small_ledger(open_path)
        open_path.chmod(0)
        with pytest.raises(LedgerError, match=r"refused to read it \(Permission denied\)"):
            FileLedger(open_path)
        with pytest.raises(LedgerError, match=r"Permission denied"):
            ledger.reserve(release())


def test_a_folder_that_may_only_be_read(open_path, small_ledger):
    with ordinary_user():
        small_ledger(open_path)
        open_path.parent.chmod(0o500)
        try:
            assert FileLedger(open_path).total().epsilon == 3.0
            with pytest.raises(LedgerError, match=r"Permission denied"):
                FileLedger(open_path.with_name("new"), data_set="new")
        finally:
            open_path.parent.chmod(0o700)
