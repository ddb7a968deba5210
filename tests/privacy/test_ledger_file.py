"""The ledger in a file: the same manners as in memory, across processes, crashes and tampering."""

import copy
import errno
import json
import math
import os
import pickle
import signal
import stat
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from gcon import GCON
from gcon.calibrate.composition import gaussian_total
from gcon.errors import BudgetExceededError, InputError, LedgerError
from gcon.privacy import ledger_file
from gcon.privacy.boundary import Private
from gcon.privacy.budget import NOTHING, Budget, compose
from gcon.privacy.ledger import Kind, MemoryLedger, Outcome, Request, Reservation
from gcon.privacy.ledger_file import FileLedger
from gcon.privacy.ledger_lines import Chain, read_ledger, render_head, write_request

SOURCE = Path(ledger_file.__file__).parents[2]
CLOCK = datetime(2031, 5, 6, 7, 8, 9, 10, tzinfo=UTC)


def release(epsilon=1.0, delta=1e-5, purpose="test", **others):
    return Request(kind=Kind.RELEASE, mechanism="noisy thing", purpose=purpose, cost=Budget(epsilon, delta), **others)


@pytest.fixture
def no_fsync(monkeypatch):
    """For tests that append very often; that entries reach the disk is tested on its own."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "friendships.ledger"


def head(path):
    return path.with_name(path.name + ".head")


def torn(path):
    return path.with_name(path.name + ".torn")


def small_ledger(path, *, settled=True):
    """Five lines: header, ceiling, two reservations, and the first one's end."""
    ledger = FileLedger(path, data_set="friendships", clock=lambda: CLOCK)
    ledger.set_ceiling(Budget(9.0, 1e-3))
    first = ledger.reserve(release(plan={"noise": [1.5, None, "words", math.inf]}))
    ledger.reserve(release(2.0, purpose="Übung"))
    if settled:
        ledger.settle(first, Outcome.RELEASED)
    return ledger


# --- what every ledger does -------------------------------------------------------------------------------------------


@pytest.fixture(params=["memory", "file"])
def make_ledger(request, tmp_path, no_fsync):
    made = []

    def make(data_set="friendships", *, ceiling=None, **options):
        if request.param == "memory":
            return MemoryLedger(data_set, ceiling=ceiling, **options)
        made.append(None)
        ledger = FileLedger(tmp_path / f"ledger-{len(made)}", data_set=data_set, **options)
        if ceiling is not None:
            ledger.set_ceiling(ceiling)
        return ledger

    return make


def test_reserve_then_settle(make_ledger):
    ledger = make_ledger()
    assert ledger.total() == NOTHING
    assert not ledger.entries()
    reservation = ledger.reserve(release(plan={"noise": 2.0}, randomness="operating system"))
    (entry,) = ledger.entries()
    assert entry.outcome is Outcome.RESERVED
    assert ledger.total() == Budget(1.0, 1e-5)
    settled = ledger.settle(reservation, Outcome.RELEASED)
    assert ledger.entries() == (settled,)
    assert settled.outcome is Outcome.RELEASED
    assert settled.data_set == ledger.data_set == "friendships"
    assert settled.request == release(plan={"noise": 2.0}, randomness="operating system")
    assert settled.request.composition == "basic"
    assert (settled.number, settled.time) == (entry.number, entry.time)


@pytest.mark.parametrize("outcome", [None, Outcome.RELEASED, Outcome.WITHHELD])
def test_everything_reserved_stays_charged(make_ledger, outcome):
    ledger = make_ledger(ceiling=Budget(1.0, 1e-5))
    reservation = ledger.reserve(release())
    if outcome is not None:  # None: the run died
        ledger.settle(reservation, outcome)
    assert ledger.total() == Budget(1.0, 1e-5)
    with pytest.raises(BudgetExceededError):
        ledger.reserve(release(0.01, 0.0))


def test_settled_once(make_ledger):
    ledger = make_ledger()
    reservation = ledger.reserve(release())
    ledger.settle(reservation, Outcome.WITHHELD)
    for outcome in (Outcome.RELEASED, Outcome.WITHHELD):
        with pytest.raises(LedgerError, match="settled already"):
            ledger.settle(reservation, outcome)
    assert ledger.entries()[0].outcome is Outcome.WITHHELD


@pytest.mark.parametrize("number", [1, 7, -1])
def test_a_reservation_that_was_never_made(make_ledger, number):
    ledger = make_ledger()
    ledger.reserve(release())
    with pytest.raises(LedgerError, match="not made in this ledger"):
        ledger.settle(Reservation(number), Outcome.RELEASED)
    assert ledger.entries()[0].outcome is Outcome.RESERVED


def test_a_reservation_of_another_ledger(make_ledger):
    mine, theirs = make_ledger("mine"), make_ledger("theirs")
    mine.reserve(release())
    for foreign in (theirs.reserve(release()), MemoryLedger().reserve(release()), Reservation(0)):
        with pytest.raises(LedgerError, match="not made in this ledger"):
            mine.settle(foreign, Outcome.RELEASED)
    assert mine.entries()[0].outcome is Outcome.RESERVED


def test_reserved_is_no_outcome(make_ledger):
    ledger = make_ledger()
    with pytest.raises(LedgerError, match="settled as released or withheld"):
        ledger.settle(ledger.reserve(release()), Outcome.RESERVED)


def test_reservations_may_be_settled_in_any_order(make_ledger):
    ledger = make_ledger()
    first, second = ledger.reserve(release(1.0)), ledger.reserve(release(2.0))
    ledger.settle(second, Outcome.RELEASED)
    ledger.settle(first, Outcome.WITHHELD)
    assert [entry.outcome for entry in ledger.entries()] == [Outcome.WITHHELD, Outcome.RELEASED]
    assert [entry.number for entry in ledger.entries()] == [0, 1]
    assert ledger.total() == Budget(3.0, 2e-5)


def test_over_the_ceiling_nothing_is_charged(make_ledger):
    ledger = make_ledger(ceiling=Budget(2.0, 1e-4))
    ledger.reserve(release(1.25, 1e-5))
    with pytest.raises(BudgetExceededError) as raised:
        ledger.reserve(release(0.8, 2e-5))
    message = str(raised.value)
    assert "asked epsilon=0.8, delta=2e-05" in message
    assert "spent epsilon=1.25, delta=1e-05" in message
    assert "left epsilon=0.75, delta=9e-05" in message
    assert ledger.total() == Budget(1.25, 1e-5)
    ledger.reserve(release(0.75, 9e-5))
    assert ledger.total() == Budget(2.0, 1e-4)


def test_decimal_budgets_fill_the_ceiling_exactly(make_ledger):
    ledger = make_ledger(ceiling=Budget(1.0, 1e-5))
    for _ in range(10):
        ledger.reserve(release(0.1, 1e-6))
    assert ledger.total() == Budget(1.0, 1e-5)
    with pytest.raises(BudgetExceededError):
        ledger.reserve(release(1e-12, 0.0))


def test_without_a_ceiling_the_total_may_be_infinite(make_ledger):
    ledger = make_ledger()
    ledger.reserve(release(math.inf, 0.0))
    ledger.reserve(release(1.0, 1e-5))
    assert ledger.total() == Budget(math.inf, 1e-5)


def test_a_finite_ceiling_refuses_what_carries_no_promise(make_ledger):
    with pytest.raises(BudgetExceededError, match="carries no promise"):
        make_ledger(ceiling=Budget(1e300, 0.5)).reserve(release(math.inf, 0.0))


def test_what_costs_nothing_is_recorded_at_a_full_ceiling(make_ledger):
    ledger = make_ledger(ceiling=NOTHING)
    ledger.reserve(Request(kind=Kind.DELIVERY, mechanism="answers", purpose="test"))
    assert len(ledger.entries()) == 1
    assert ledger.total() == NOTHING


def test_the_clock_is_an_argument(make_ledger):
    ledger = make_ledger(clock=lambda: CLOCK)
    ledger.settle(ledger.reserve(release()), Outcome.RELEASED)
    assert ledger.entries()[0].time == "2031-05-06T07:08:09+00:00"


def test_the_default_clock_says_its_zone(make_ledger):
    ledger = make_ledger()
    ledger.reserve(release())
    assert datetime.fromisoformat(ledger.entries()[0].time).tzinfo is not None


def test_threads_cannot_overspend(make_ledger):
    ledger = make_ledger(ceiling=Budget(1.0, 1e-5))

    def spend(_):
        granted = 0
        for _ in range(6):
            try:
                ledger.settle(ledger.reserve(release(0.05, 0.0)), Outcome.RELEASED)
                granted += 1
            except BudgetExceededError:
                pass
        return granted

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(spend, range(8))) == len(ledger.entries()) == 20
    assert ledger.total() == Budget(1.0, 0.0)
    assert [entry.number for entry in ledger.entries()] == list(range(20))


def test_clones_of_an_estimator_share_the_ledger(make_ledger):
    ledger = make_ledger()
    assert clone(GCON(ledger=ledger)).ledger is ledger
    assert clone(ledger) is ledger


def test_entries_are_a_tuple(make_ledger):
    ledger = make_ledger()
    ledger.reserve(release())
    assert isinstance(ledger.entries(), tuple)


# --- what is kept in the file -----------------------------------------------------------------------------------------


def test_another_object_reads_what_the_first_wrote(path):
    ledger = small_ledger(path)
    again = FileLedger(path)
    assert again.data_set == "friendships"
    assert again.entries() == ledger.entries()
    assert again.ceiling() == Budget(9.0, 1e-3)
    assert again.total() == ledger.total() == Budget(3.0, 2e-5)
    assert again.entries()[0].request.plan == {"noise": [1.5, None, "words", math.inf]}
    assert again.entries()[1].request.purpose == "Übung"
    assert FileLedger(path, data_set="friendships").verify().ok


def test_the_lines(path):
    small_ledger(path)
    data = path.read_bytes()
    assert data.isascii()
    assert data.endswith(b"\n")
    lines = data.decode().splitlines()
    records = [json.loads(line) for line in lines]
    assert [record["line"] for record in records] == ["header", "ceiling", "reserve", "reserve", "settle"]
    for line, record in zip(lines, records, strict=True):
        assert line == json.dumps(record, sort_keys=True, separators=(",", ":"))
        assert len(record["hash"]) == 64
    assert records[0]["data_set"] == "friendships"
    assert records[0]["version"] == 1
    assert records[1]["ceiling"] == {"epsilon": 9.0, "delta": 1e-3}
    assert records[2]["number"] == records[4]["number"] == 0
    assert records[4]["outcome"] == "released"
    assert json.loads(head(path).read_bytes()) == {"lines": 5, "last_hash": records[-1]["hash"]}


def test_infinity_is_a_word(path):
    ledger = FileLedger(path, data_set="friendships")
    ledger.set_ceiling(Budget(math.inf, 1e-5))
    ledger.reserve(release(math.inf, 0.0))
    text = path.read_text()
    assert text.count('"epsilon":"inf"') == 2
    assert "Infinity" not in text
    assert FileLedger(path).ceiling() == Budget(math.inf, 1e-5)
    assert FileLedger(path).total() == Budget(math.inf, 0.0)


def test_the_settlement_does_not_show_the_run_time(path):
    times = iter([datetime(2031, 1, day, tzinfo=UTC) for day in (1, 2)])
    ledger = FileLedger(path, data_set="friendships", clock=lambda: next(times))  # asking a third time would raise
    ledger.settle(ledger.reserve(release()), Outcome.RELEASED)
    assert json.loads(path.read_bytes().splitlines()[-1])["time"] == "2031-01-02T00:00:00+00:00"


def test_the_ceiling_can_be_changed_and_lifted(path):
    ledger = FileLedger(path, data_set="friendships")
    assert ledger.ceiling() is None
    ledger.reserve(release(3.0))
    ledger.set_ceiling(Budget(2.0, 1e-3))
    with pytest.raises(BudgetExceededError):
        FileLedger(path).reserve(release(0.1))
    ledger.set_ceiling(Budget(4.0, 1e-3))
    FileLedger(path).reserve(release(1.0))
    FileLedger(path).set_ceiling(None)
    ledger.reserve(release(50.0))
    assert ledger.total().epsilon == 54.0
    with pytest.raises(InputError, match="ceiling: must be a Budget or None"):
        ledger.set_ceiling(2.0)


def test_only_the_owner_may_read_the_files(path):
    path.touch(mode=0o666)
    small_ledger(path)
    path.write_bytes(path.read_bytes() + b"{")
    FileLedger(path).reserve(release())
    files = sorted(path.parent.iterdir())
    assert [file.name.removeprefix(path.name) for file in files] == ["", ".head", ".lock", ".torn"]
    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600] * 4


def test_an_entry_is_on_the_disk_before_it_is_acknowledged(path, monkeypatch):
    ledger = FileLedger(path, data_set="friendships")
    synced, fsync = [], os.fsync

    def watch(descriptor):
        synced.append((os.readlink(f"/proc/self/fd/{descriptor}"), os.fstat(descriptor).st_size))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watch)
    ledger.reserve(release())
    assert synced[0] == (str(path), path.stat().st_size)
    assert [name for name, _ in synced] == [str(path), str(head(path)) + ".new", str(path.parent)]


def test_a_reservation_may_be_settled_by_another_process(path):
    reservation = small_ledger(path).reserve(release())
    FileLedger(path).settle(pickle.loads(pickle.dumps(reservation)), Outcome.RELEASED)
    assert FileLedger(path).entries()[-1].outcome is Outcome.RELEASED


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda ledger: pickle.loads(pickle.dumps(ledger))])
def test_copies_pay_the_same_account(path, duplicate):
    ledger = small_ledger(path)
    other = duplicate(ledger)
    other.reserve(release(4.0))
    assert ledger.total().epsilon == 7.0
    assert other.entries() == ledger.entries()
    with pytest.raises(BudgetExceededError):
        ledger.reserve(release(3.0))


def test_a_pickle_holds_the_path_alone_and_never_starts_anew(path):
    stored = pickle.dumps(small_ledger(path))
    assert b"noisy thing" not in stored
    for file in path.parent.iterdir():
        file.unlink()
    with pytest.raises(InputError, match="no ledger at"):
        pickle.loads(stored)
    assert not list(path.parent.iterdir())


def test_the_repr_names_file_and_data(path):
    assert repr(small_ledger(path)) == f"FileLedger({str(path)!r}, data_set='friendships')"


@settings(max_examples=40, deadline=None)
@given(
    epsilon=st.floats(0) | st.just(math.inf),
    delta=st.floats(0, 1, exclude_max=True),
    purpose=st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=200).filter(
        str.strip
    ),
    plan=st.dictionaries(
        st.text(),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.just("words"),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
            max_leaves=5,
        ),
        max_size=4,
    ),
)
def test_what_is_written_is_what_is_read(epsilon, delta, purpose, plan):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        ledger = FileLedger(Path(folder) / "ledger", data_set=purpose)
        request = release(epsilon, delta, purpose, plan=plan)
        ledger.reserve(request)
        (entry,) = FileLedger(Path(folder) / "ledger").entries()
        assert entry.request == request
        assert entry.data_set == purpose
        assert ledger.total() == compose([request.cost])


@pytest.mark.parametrize("distance", [0.1, 1 / 3, 5e-324, 1e300, np.float64(0.7), None])
def test_the_gaussian_distance_comes_back_exactly(path, distance):
    ledger = FileLedger(path, data_set="friendships")
    request = release(gaussian_distance=distance)
    ledger.settle(ledger.reserve(request), Outcome.WITHHELD)
    (entry,) = FileLedger(path).entries()
    assert entry.request == request
    assert entry.request.gaussian_distance == distance
    totals = [gaussian_total(books.entries(), extra_delta=1e-6) for books in (ledger, FileLedger(path))]
    assert totals[0] == totals[1]


def test_plans_with_numbers_of_numpy_and_tuples(path):
    ledger = FileLedger(path, data_set="friendships")
    ledger.reserve(release(np.float64(0.5), plan={"a": np.float32(0.5), "b": np.int64(3), "c": (1, 2)}))
    assert ledger.entries()[0].request.plan == {"a": 0.5, "b": 3, "c": [1, 2]}
    assert ledger.total() == Budget(0.5, 1e-5)


# --- bad input --------------------------------------------------------------------------------------------------------

BAD_WORDS = ["", "   ", "x" * 201, "two\nlines", "bell\a", "\x7f", "\u2028", "\ud800", 7, None]


@pytest.mark.parametrize("words", BAD_WORDS[:-1])
def test_the_data_sets_name_is_checked(path, words):
    with pytest.raises(InputError, match="data_set: must be 1 to 200 characters"):
        FileLedger(path, data_set=words)
    assert not list(path.parent.iterdir())


@pytest.mark.parametrize("words", BAD_WORDS)
@pytest.mark.parametrize("field", ["purpose", "randomness"])
def test_words_of_a_request_are_checked(path, field, words):
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
def test_a_plan_that_a_file_cannot_hold_is_refused_without_showing_it(path, plan):
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


def test_another_data_sets_ledger(path):
    small_ledger(path)
    with pytest.raises(InputError, match=r"data_set: must be the name in the ledger .*'friendships'; got 'enemies'"):
        FileLedger(path, data_set="enemies")


def test_a_file_of_no_bytes_is_a_new_ledger(path):
    path.touch()
    ledger = FileLedger(path, data_set="friendships")
    ledger.reserve(release())
    assert ledger.verify().ok


@pytest.mark.parametrize(
    "data",
    [b"1,2\n3,4\n", b"no newline", b"\x00\xff\xfe\n", b"[]\n", b"{}\n", b'{"format":"x"}\n', b"[" * 9999 + b"\n"],
)
def test_another_file_is_neither_read_nor_changed(path, data):
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


# --- tampering --------------------------------------------------------------------------------------------------------


def assert_refused(ledger, *, line_number=...):
    found = ledger.verify()
    assert not found.ok
    assert found.problem
    if line_number is not ...:
        assert found.line_number == line_number
    with pytest.raises(LedgerError):
        ledger.reserve(release(0.0, 0.0))
    return found


def assert_noticed(ledger, path, *, line_number=...):
    """By verify, by every use, and nothing is written."""
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    found = assert_refused(ledger, line_number=line_number)
    for use in (lambda: ledger.reserve(release(0.0, 0.0)), lambda: ledger.set_ceiling(None), ledger.total):
        with pytest.raises(LedgerError, match=r"Restore it and friendships.ledger.head together from a backup"):
            use()
    assert before == {file.name: file.read_bytes() for file in path.parent.iterdir()}
    return found


def test_an_untouched_ledger_is_fine(path):
    ledger = small_ledger(path)
    found = ledger.verify()
    assert (found.ok, found.lines, found.problem, found.line_number, found.unfinished) == (True, 5, None, None, False)
    assert found.last_hash == json.loads(path.read_bytes().splitlines()[-1])["hash"]


def test_every_single_byte_edit_is_noticed(path):
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


def test_every_inserted_or_removed_byte_is_noticed(path):
    small_ledger(path)
    data, known = path.read_bytes(), head(path).read_bytes()
    for position in range(len(data)):
        rest = data[position:]
        for changed in (rest[1:], b" " + rest, b"0" + rest, b"\0" + rest, b"\n" + rest):
            reading = read_ledger(data[:position] + changed, known)
            assert reading.problem or reading.unfinished == b"\n"  # a newline more at the end harms nothing


def test_every_edit_of_the_head_is_noticed(path, no_fsync):
    ledger = small_ledger(path)
    data = head(path).read_bytes()
    for position, byte in enumerate(data[:-1]):  # the final newline means nothing
        head(path).write_bytes(data[:position] + bytes([byte ^ 0x01]) + data[position + 1 :])
        assert_noticed(ledger, path)


def test_moved_removed_and_repeated_lines_are_noticed(path, no_fsync):
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
def test_cut_off_lines_are_noticed_by_the_head(path, kept):
    ledger = small_ledger(path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:kept]))
    found = assert_noticed(ledger, path, line_number=kept + 1)
    assert (found.lines, found.problem) == (kept, f"the file has {kept} whole lines, but its head knows 5.")
    with pytest.raises(LedgerError):  # opening again does not help, least of all to start anew
        FileLedger(path, data_set="friendships").reserve(release())


def test_a_cut_within_an_acknowledged_line_is_no_crash(path, no_fsync):
    ledger = small_ledger(path)
    data = path.read_bytes()
    for length in range(len(data) - 1, 0, -7):
        path.write_bytes(data[:length])
        assert_noticed(ledger, path)
        assert not torn(path).exists()


def test_a_lost_file_is_not_started_anew(path):
    ledger = small_ledger(path)
    path.unlink()
    assert_noticed(ledger, path)
    with pytest.raises(LedgerError, match="empty or gone"):
        FileLedger(path, data_set="friendships")
    head(path).unlink()
    assert_noticed(ledger, path)


def test_a_lost_or_old_head_is_noticed(path):
    ledger = FileLedger(path, data_set="friendships")
    old = head(path).read_bytes()
    small_ledger(path)
    head(path).write_bytes(old)
    assert "its head knows only 1" in assert_noticed(ledger, path).problem
    head(path).unlink()
    assert "its head knows only 0" in assert_noticed(ledger, path).problem


def test_a_history_written_anew_is_noticed_by_the_head(path):
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
    head(path).write_bytes(render_head(chain))  # the limit that the documents name: both files written anew
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
def test_well_chained_nonsense_is_refused(path, content):
    ledger = small_ledger(path)
    chain = ledger._read().chain
    path.write_bytes(path.read_bytes() + chain.render(content))
    assert_noticed(ledger, path, line_number=6)


@pytest.mark.parametrize("distance", ["inf", "0.5", -1.0, 0.0, True, [1.0], 10**400])
def test_a_line_with_another_gaussian_distance_is_refused(path, distance):
    ledger = small_ledger(path)
    chain = ledger._read().chain
    fields = write_request(release(gaussian_distance=0.5))
    content = {"line": "reserve", "number": 2, "time": "t", "request": fields}
    Chain.add(copy.deepcopy(chain), chain.render(content))  # the line is good but for the distance
    path.write_bytes(path.read_bytes() + chain.render({**content, "request": {**fields, "gaussian": distance}}))
    assert_noticed(ledger, path, line_number=6)
    with pytest.raises(LedgerError):
        ledger.entries()


def test_another_data_sets_files_put_in_place_are_noticed(path, tmp_path):
    ledger = small_ledger(path)
    FileLedger(tmp_path / "other", data_set="other")
    (tmp_path / "other").replace(path)
    (tmp_path / "other.head").replace(head(path))
    assert "another data set" in assert_noticed(ledger, path).problem


def test_a_settlement_is_refused_too(path):
    ledger = FileLedger(path, data_set="friendships")
    reservation = ledger.reserve(release())
    path.write_bytes(path.read_bytes().replace(b"noisy thing", b"noisy think"))
    with pytest.raises(LedgerError, match="line 2 was edited"):
        ledger.settle(reservation, Outcome.RELEASED)


def test_a_damaged_header_cannot_be_opened(path):
    small_ledger(path)
    path.write_bytes(b"#" + path.read_bytes()[1:])
    with pytest.raises(LedgerError, match="not the header"):
        FileLedger(path)


# --- crashes ----------------------------------------------------------------------------------------------------------


def writes(ledger, number):
    return [
        lambda: ledger.reserve(release(4.0)),
        lambda: ledger.settle(number, Outcome.WITHHELD),
        lambda: ledger.set_ceiling(None),
    ]


@pytest.mark.parametrize("kind", ["reserve", "settle", "ceiling"])
def test_a_writer_that_dies_at_any_byte_leaves_a_good_ledger(path, kind, no_fsync):
    ledger = small_ledger(path, settled=False)
    reservation = ledger.reserve(release(0.5))
    before, known = path.read_bytes(), head(path).read_bytes()
    entries, ceiling = ledger.entries(), ledger.ceiling()
    dict(zip(("reserve", "settle", "ceiling"), writes(ledger, reservation), strict=True))[kind]()
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


def test_a_last_line_of_rubbish_is_kept_aside(path):
    ledger = small_ledger(path)
    good = path.read_bytes()
    for rubbish in (b"\0" * 50, b'{"hash": \n', b"\xff\xfe\n"):
        path.write_bytes(path.read_bytes() + rubbish)
        assert ledger.verify().unfinished
        ledger.reserve(release(0.5))
    assert torn(path).read_bytes() == b"\0" * 50 + b"\n" + b'{"hash": \n' + b"\xff\xfe\n"
    assert path.read_bytes().startswith(good)
    assert ledger.verify().lines == 8


def test_a_torn_line_in_the_middle_is_tampering(path):
    ledger = small_ledger(path)
    lines = path.read_bytes().splitlines(keepends=True)
    for number in range(1, 4):
        cut = [*lines[:number], lines[number][:40], b"\n", *lines[number + 1 :]]
        path.write_bytes(b"".join(cut))
        assert_noticed(ledger, path, line_number=number + 1)


def test_a_writer_that_dies_before_the_head_is_written(path, monkeypatch):
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


def test_a_creator_that_dies_leaves_nothing_or_a_ledger(path, monkeypatch):
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
def test_a_full_disk_charges_nothing(path, monkeypatch, written):
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


def test_a_file_that_may_only_be_read(open_path):
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


def test_a_file_that_may_not_be_read(open_path):
    with ordinary_user():
        ledger = small_ledger(open_path)
        open_path.chmod(0)
        with pytest.raises(LedgerError, match=r"refused to read it \(Permission denied\)"):
            FileLedger(open_path)
        with pytest.raises(LedgerError, match=r"Permission denied"):
            ledger.reserve(release())


def test_a_folder_that_may_only_be_read(open_path):
    with ordinary_user():
        small_ledger(open_path)
        open_path.parent.chmod(0o500)
        try:
            assert FileLedger(open_path).total().epsilon == 3.0
            with pytest.raises(LedgerError, match=r"Permission denied"):
                FileLedger(open_path.with_name("new"), data_set="new")
        finally:
            open_path.parent.chmod(0o700)


# --- many processes ---------------------------------------------------------------------------------------------------

# The children load the ledger without the rest of the package, which takes seconds to import.
CHILD = f"""
import sys, types
package = types.ModuleType("gcon")
package.__path__ = [{str(SOURCE / "gcon")!r}]
sys.modules["gcon"] = package
from gcon.errors import BudgetExceededError
from gcon.privacy.budget import Budget
from gcon.privacy.ledger import Kind, Outcome, Request
from gcon.privacy.ledger_file import FileLedger
path, times = sys.argv[1], int(sys.argv[2])
ledger = FileLedger(path, data_set="friendships")
print("ready", flush=True)
sys.stdin.readline()
for _ in range(times):
    try:
        cost = Budget(0.1, 1e-6)
        reservation = ledger.reserve(Request(kind=Kind.RELEASE, mechanism="m", purpose="p", cost=cost))
        print("granted", flush=True)
        ledger.settle(reservation, Outcome.RELEASED)
    except BudgetExceededError:
        print("refused", flush=True)
"""


@contextmanager
def children(path, *, number, times):
    command = [sys.executable, "-W", "error", "-c", CHILD, str(path), str(times)]
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(number)
    ]
    try:
        yield started
    finally:
        for child in started:
            child.kill()
            child.communicate()


def test_processes_cannot_overspend(path):
    with children(path, number=4, times=10) as started:  # all four may find no file, and make one
        for child in started:
            assert child.stdout.readline() == "ready\n"
        FileLedger(path).set_ceiling(Budget(2.5, 1e-3))
        for child in started:
            child.stdin.write("\n")
            child.stdin.flush()
        answers = "".join(child.communicate(timeout=60)[0] for child in started).split()
        assert [child.returncode for child in started] == [0] * 4
    ledger = FileLedger(path)
    assert answers.count("granted") == 25
    assert answers.count("refused") == 15
    assert ledger.total() == Budget(2.5, 2.5e-5)
    assert [entry.number for entry in ledger.entries()] == list(range(25))
    assert {entry.outcome for entry in ledger.entries()} == {Outcome.RELEASED}
    assert ledger.verify().lines == 2 + 50


@pytest.mark.parametrize("after", [1, 4, 9])
def test_a_killed_process_stays_charged_and_holds_nobody_up(path, after):
    with children(path, number=1, times=10**6) as (child,):
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline() == "ready\n"
        acknowledged = 0
        while acknowledged < after:
            assert child.stdout.readline() == "granted\n"
            acknowledged += 1
        child.send_signal(signal.SIGKILL)
        acknowledged += child.communicate()[0].count("granted\n")
    ledger = FileLedger(path)
    assert ledger.verify().ok
    assert acknowledged <= len(ledger.entries()) <= acknowledged + 1
    assert compose([Budget(0.1, 1e-6)] * len(ledger.entries())) == ledger.total()
    ledger.reserve(release())
    assert ledger.verify().ok


def test_a_link_to_the_file_shares_its_lock(path, tmp_path):
    small_ledger(path)
    (tmp_path / "folder").mkdir()
    link = tmp_path / "folder" / "link"
    link.symlink_to(path)
    FileLedger(link).reserve(release())
    assert FileLedger(path).total().epsilon == 4.0
    assert [file.name for file in link.parent.iterdir()] == ["link"]


def test_a_lock_file_that_was_removed_is_made_again(path):
    ledger = small_ledger(path)
    path.with_name(path.name + ".lock").unlink()
    ledger.reserve(release())
    assert path.with_name(path.name + ".lock").exists()


# --- together with the rest -------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings(r"ignore:`torch\.jit\.script` is deprecated:DeprecationWarning")
def test_an_estimator_pays_into_the_file(path):
    ledger = FileLedger(path, data_set="friendships")
    features = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32)
    labels, edges = np.arange(20) % 2, [(0, 1), (1, 2)]
    model = GCON(epsilon=0.5, epochs=1, hidden=None, expand="labelled", ledger=ledger)
    model.fit(features, labels, edges=edges)
    assert model.model_.receipt.total == FileLedger(path).total() == ledger.entries()[0].request.cost
    assert ledger.entries()[0].request.plan == model.model_.receipt.plan
    pickle.loads(pickle.dumps(clone(model))).set_params(epsilon=math.inf).fit(features, labels, edges=edges)
    assert ledger.total().epsilon == math.inf
    ledger.set_ceiling(Budget(1.0, 0.1))
    with pytest.raises(BudgetExceededError):
        model.fit(features, labels, edges=edges)
    assert {entry.outcome for entry in ledger.entries()} == {Outcome.RELEASED}
    assert ledger.verify().ok
