"""The ledger in a file: every kind of tampering is noticed, and nothing is written over it."""

import copy
import json
import os

import pytest

from gcon.errors import LedgerError
from gcon.privacy.ledger import Outcome
from gcon.privacy.ledger_file import FileLedger
from gcon.privacy.ledger_lines import CANONICAL, HEAD_OF, Chain, read_ledger, write_request


@pytest.fixture
def assert_refused(release):
    def assert_refused(ledger, *, line_number=...):
        found = ledger.verify()
        assert not found.ok
        assert found.problem
        if line_number is not ...:
            assert found.line_number == line_number
        with pytest.raises(LedgerError):
            ledger.reserve(release(0.0, 0.0))
        return found

    return assert_refused


@pytest.fixture
def assert_noticed(assert_refused, release):
    """By verify, by every use, and nothing is written."""

    def assert_noticed(ledger, path, *, line_number=...):
        before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
        found = assert_refused(ledger, line_number=line_number)
        for use in (lambda: ledger.reserve(release(0.0, 0.0)), lambda: ledger.set_ceiling(None), ledger.total):
            with pytest.raises(LedgerError, match=r"Restore it and friendships.ledger.head together from a backup"):
                use()
        assert before == {file.name: file.read_bytes() for file in path.parent.iterdir()}
        return found

    return assert_noticed


def test_an_untouched_ledger_is_fine(path, small_ledger):
    ledger = small_ledger(path)
    found = ledger.verify()
    assert (found.ok, found.lines, found.problem, found.line_number, found.unfinished) == (True, 5, None, None, False)
    assert found.last_hash == json.loads(path.read_bytes().splitlines()[-1])["hash"]


def test_every_single_byte_edit_is_noticed(path, small_ledger, assert_refused):
    ledger = small_ledger(path)
    data = path.read_bytes()
    with path.open("r+b", buffering=0) as file:
        for position, byte in enumerate(data):
            line = data[:position].count(b"\n") + 1
            for other in {byte ^ 0x01, byte ^ 0x80, 0x0A} - {byte}:
                os.pwrite(file.fileno(), bytes([other]), position)
                assert_refused(ledger, line_number=line)
            os.pwrite(file.fileno(), bytes([byte]), position)
    assert ledger.verify().ok
    assert len(list(path.parent.iterdir())) == 3  # nothing was taken for a torn line


def test_every_inserted_or_removed_byte_is_noticed(path, head, small_ledger):
    small_ledger(path)
    data, known = path.read_bytes(), head(path).read_bytes()
    for position in range(len(data)):
        rest = data[position:]
        for changed in (rest[1:], b" " + rest, b"0" + rest, b"\0" + rest, b"\n" + rest):
            reading = read_ledger(data[:position] + changed, known)
            assert reading.problem or reading.unfinished == b"\n"  # a newline more at the end harms nothing


def test_every_edit_of_the_head_is_noticed(path, no_fsync, head, small_ledger, assert_noticed):
    ledger = small_ledger(path)
    data = head(path).read_bytes()
    for position, byte in enumerate(data[:-1]):  # the final newline means nothing
        head(path).write_bytes(data[:position] + bytes([byte ^ 0x01]) + data[position + 1 :])
        assert_noticed(ledger, path)


def test_moved_removed_and_repeated_lines_are_noticed(path, no_fsync, small_ledger, assert_noticed):
    ledger = small_ledger(path)
    lines = path.read_bytes().splitlines(keepends=True)
    for first in range(5):
        for second in range(first):
            moved = lines.copy()
            moved[first], moved[second] = moved[second], moved[first]
            path.write_bytes(b"".join(moved))
            assert_noticed(ledger, path, line_number=second + 1)
        path.write_bytes(b"".join(lines[:first] + lines[first + 1 :]))
        assert_noticed(ledger, path, line_number=first + 1)
        path.write_bytes(b"".join([*lines[: first + 1], *lines[first:]]))
        assert_noticed(ledger, path, line_number=first + 2)


@pytest.mark.parametrize("kept", [0, 1, 2, 3, 4])
def test_cut_off_lines_are_noticed_by_the_head(path, kept, release, small_ledger, assert_noticed):
    ledger = small_ledger(path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:kept]))
    found = assert_noticed(ledger, path, line_number=kept + 1)
    assert (found.lines, found.problem) == (kept, f"the file has {kept} whole lines, but its head knows 5.")
    with pytest.raises(LedgerError):  # opening again does not help, least of all to start anew
        FileLedger(path, data_set="friendships").reserve(release())


def test_a_cut_within_an_acknowledged_line_is_no_crash(path, no_fsync, torn, small_ledger, assert_noticed):
    ledger = small_ledger(path)
    data = path.read_bytes()
    for length in range(len(data) - 1, 0, -7):
        path.write_bytes(data[:length])
        assert_noticed(ledger, path)
        assert not torn(path).exists()


def test_a_lost_file_is_not_started_anew(path, head, small_ledger, assert_noticed):
    ledger = small_ledger(path)
    path.unlink()
    assert_noticed(ledger, path)
    with pytest.raises(LedgerError, match="empty or gone"):
        FileLedger(path, data_set="friendships")
    head(path).unlink()
    assert_noticed(ledger, path)


def test_a_lost_or_old_head_is_noticed(path, head, small_ledger, assert_noticed):
    ledger = FileLedger(path, data_set="friendships")
    old = head(path).read_bytes()
    small_ledger(path)
    head(path).write_bytes(old)
    assert "its head knows only 1" in assert_noticed(ledger, path).problem
    head(path).unlink()
    assert "its head knows only 0" in assert_noticed(ledger, path).problem


def test_a_history_written_anew_is_noticed_by_the_head(path, head, small_ledger, assert_noticed):
    ledger = small_ledger(path)
    chain, forged = Chain(), b""
    for line in path.read_bytes().splitlines():
        content = json.loads(line)
        del content["hash"]
        if "request" in content:
            content["request"]["cost"]["epsilon"] = 0.001
        line = chain.render(content)
        chain.add(line)
        forged += line
    path.write_bytes(forged)
    assert_noticed(ledger, path, line_number=5)
    head(path).write_bytes(HEAD_OF.format(chain).encode())  # the limit that the documents name: both files written anew
    assert ledger.verify().ok


@pytest.mark.parametrize(
    "content",
    [
        {"line": "gift"},
        {"line": "header", "format": "gcon ledger", "version": 1, "data_set": "x"},
        {"line": "reserve", "number": 7, "time": "t", "request": {}},
        {"line": "reserve", "number": 2, "time": "t", "request": {}},
        {"line": "settle", "number": 5, "time": "t", "outcome": "released"},
        {"line": "settle", "number": 0, "time": "t", "outcome": "released"},
        {"line": "ceiling", "time": "t", "ceiling": {"epsilon": -1.0, "delta": 0.0}},
        {"line": "ceiling", "time": "t", "ceiling": {"epsilon": "nan", "delta": 0.0}},
        {"line": "ceiling", "time": "t", "ceiling": {"epsilon": 10**400, "delta": 0.0}},
        {},
    ],
)
def test_well_chained_nonsense_is_refused(path, head, content, small_ledger, assert_noticed):
    ledger = small_ledger(path)
    chain = read_ledger(path.read_bytes(), head(path).read_bytes()).chain
    path.write_bytes(path.read_bytes() + chain.render(content))
    assert_noticed(ledger, path, line_number=6)


@pytest.mark.parametrize("distance", ["inf", "0.5", -1.0, 0.0, True, [1.0], 10**400])
def test_a_line_with_another_gaussian_distance_is_refused(path, head, distance, release, small_ledger, assert_noticed):
    ledger = small_ledger(path)
    chain = read_ledger(path.read_bytes(), head(path).read_bytes()).chain
    fields = write_request(release(gaussian_distance=0.5))
    content = {"line": "reserve", "number": 2, "time": "t", "request": fields}
    Chain.add(copy.deepcopy(chain), chain.render(content))  # the line is good but for the distance
    path.write_bytes(path.read_bytes() + chain.render({**content, "request": {**fields, "gaussian": distance}}))
    assert_noticed(ledger, path, line_number=6)
    with pytest.raises(LedgerError):
        ledger.entries()


def test_another_data_sets_files_put_in_place_are_noticed(path, tmp_path, head, small_ledger, assert_noticed):
    ledger = small_ledger(path)
    FileLedger(tmp_path / "other", data_set="other")
    (tmp_path / "other").replace(path)
    (tmp_path / "other.head").replace(head(path))
    assert "another data set" in assert_noticed(ledger, path).problem


def test_a_settlement_is_refused_too(path, release):
    ledger = FileLedger(path, data_set="friendships")
    reservation = ledger.reserve(release())
    path.write_bytes(path.read_bytes().replace(b"noisy thing", b"noisy think"))
    with pytest.raises(LedgerError, match="line 2 was edited"):
        ledger.settle(reservation, Outcome.RELEASED)


def test_a_damaged_header_cannot_be_opened(path, small_ledger):
    small_ledger(path)
    path.write_bytes(b"#" + path.read_bytes()[1:])
    with pytest.raises(LedgerError, match="not the header"):
        FileLedger(path)


def test_an_edited_header_is_opened_by_its_name_and_refused_by_every_use(path, small_ledger, assert_noticed):
    small_ledger(path)
    path.write_bytes(path.read_bytes().replace(b'"created":"2', b'"created":"1', 1))
    ledger = FileLedger(path)
    assert ledger.data_set == "friendships"
    assert "line 1 was edited" in assert_noticed(ledger, path, line_number=1).problem


def test_the_head_is_one_canonical_line(path, head, small_ledger):
    small_ledger(path)
    lines = path.read_bytes().splitlines()
    known = {"lines": len(lines), "last_hash": json.loads(lines[-1])["hash"]}
    assert head(path).read_bytes() == CANONICAL.encode(known).encode("ascii") + b"\n"


def test_a_torn_line_in_the_middle_is_tampering(path, small_ledger, assert_noticed):
    ledger = small_ledger(path)
    lines = path.read_bytes().splitlines(keepends=True)
    for number in range(1, 4):
        cut = [*lines[:number], lines[number][:40], b"\n", *lines[number + 1 :]]
        path.write_bytes(b"".join(cut))
        assert_noticed(ledger, path, line_number=number + 1)
