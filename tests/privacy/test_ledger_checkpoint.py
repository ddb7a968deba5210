"""A long ledger is checked by its checkpoint; what a checkpoint says is never believed against the lines."""

import json

import pytest

from gcon.errors import LedgerError
from gcon.privacy import ledger_file
from gcon.privacy.budget import Budget
from gcon.privacy.ledger import Outcome
from gcon.privacy.ledger_file import FileLedger
from gcon.privacy.ledger_lines import Chain


@pytest.fixture
def checkpoint(path):
    return path.with_name(f"{path.name}.checkpoint")


@pytest.fixture
def long_ledger(path, monkeypatch, release, checkpoint):
    """A checkpoint after every ten lines; one entry of every five stays reserved, one is withdrawn."""
    monkeypatch.setattr(ledger_file, "CHECKPOINT_EVERY", 10)
    ledger = FileLedger(path, data_set="friendships")
    ledger.set_ceiling(Budget(1000.0, 0.5))
    for number in range(25):
        reservation = ledger.reserve(release(0.1, 0.0))
        if number % 5:
            ledger.settle(reservation, Outcome.WITHDRAWN if number % 5 == 1 else Outcome.RELEASED)
    assert checkpoint.exists()
    return ledger


def test_an_entry_takes_only_the_lines_since_the_checkpoint_apart(long_ledger, path, release, monkeypatch):
    lines, add = [], Chain.add
    monkeypatch.setattr(Chain, "add", lambda chain, line: (lines.append(line), add(chain, line))[1])
    fresh = FileLedger(path)
    reservation = fresh.reserve(release(0.1, 0.0))
    fresh.settle(reservation, Outcome.RELEASED)
    assert len(lines) <= 2 * 12
    assert fresh.total() == Budget(2.1, 0.0)
    assert fresh.ceiling() == Budget(1000.0, 0.5)


def test_with_and_without_a_checkpoint_it_says_the_same(long_ledger, path, checkpoint, release):
    said = long_ledger.total(), long_ledger.ceiling(), long_ledger.entries()
    assert long_ledger.verify().ok
    checkpoint.unlink()
    again = FileLedger(path)
    assert (again.total(), again.ceiling(), again.entries()) == said
    still_open = tuple(entry for entry in said[2] if entry.outcome is Outcome.RESERVED)
    for found in (again.overview(), again.overview(history=False)):
        assert (found.total, found.ceiling) == said[:2]
        assert (found.count, found.unsettled) == (
            len(said[2]),
            still_open,
        )


def test_an_old_entry_is_settled_after_the_checkpoint_and_only_once(path, monkeypatch, release):
    monkeypatch.setattr(ledger_file, "CHECKPOINT_EVERY", 10)
    ledger = FileLedger(path, data_set="friendships")
    first, second = ledger.reserve(release(0.1, 0.0)), ledger.reserve(release(0.2, 0.0))
    for _ in range(20):
        ledger.reserve(release(0.1, 0.0))
    ledger.settle(first, Outcome.WITHDRAWN)
    ledger.settle(second, Outcome.RELEASED)
    assert ledger.total() == Budget(2.2, 0.0)
    for _ in range(20):
        ledger.reserve(release(0.1, 0.0))
    for each in (first, second):
        with pytest.raises(LedgerError, match="settled already"):
            ledger.settle(each, Outcome.RELEASED)
    assert ledger.verify().ok
    assert [entry.outcome for entry in ledger.entries()[:3]] == [Outcome.WITHDRAWN, Outcome.RELEASED, Outcome.RESERVED]


def test_a_changed_line_before_the_checkpoint_is_refused_at_once(long_ledger, path, release):
    path.write_bytes(path.read_bytes().replace(b'"epsilon":0.1', b'"epsilon":0.0', 1))
    for ledger in (long_ledger, FileLedger(path)):
        with pytest.raises(LedgerError, match="line 3 was edited"):
            ledger.reserve(release())
    assert not FileLedger(path).verify().ok


def test_lines_cut_off_before_the_checkpoint_are_refused(long_ledger, path, release):
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:5]))
    with pytest.raises(LedgerError, match="5 whole lines"):
        FileLedger(path).reserve(release())


@pytest.mark.parametrize("damage", [b"", b"{}", b"\xff", b'{"lines": 3}\n'])
def test_a_damaged_checkpoint_costs_time_only(long_ledger, path, checkpoint, damage, release):
    checkpoint.write_bytes(damage)
    FileLedger(path).reserve(release(0.1, 0.0))
    assert FileLedger(path).total() == Budget(2.1, 0.0)


@pytest.mark.parametrize(
    "forged", [{"epsilon": "1/10"}, {"lines": 999}, {"open": []}, {"ceiling": None}, {"entries": 3}]
)
def test_a_forged_checkpoint_is_found_by_whoever_reads_the_lines(long_ledger, path, checkpoint, forged):
    from gcon.privacy.ledger_lines import _seal

    fields = json.loads(checkpoint.read_bytes())
    del fields["seal"]
    fields |= forged
    checkpoint.write_text(json.dumps({**fields, "seal": _seal(fields)}))
    found = FileLedger(path).verify()
    assert not found.ok
    assert "says other sums than the lines" in found.problem


def test_a_head_that_is_one_line_behind_the_checkpoint_is_brought_level(path, monkeypatch, release, head):
    monkeypatch.setattr(ledger_file, "CHECKPOINT_EVERY", 10)
    ledger = FileLedger(path, data_set="friendships")
    for _ in range(10):
        ledger.reserve(release(0.1, 0.0))
    behind = head(path).read_bytes()
    ledger.reserve(release(0.1, 0.0))  # writes a checkpoint
    head(path).write_bytes(behind)
    assert FileLedger(path).verify().ok
    FileLedger(path).reserve(release(0.1, 0.0))
    assert FileLedger(path).total() == Budget(1.2, 0.0)
    assert FileLedger(path).verify().ok


def test_a_checkpoint_that_cannot_be_written_refuses_no_entry(path, monkeypatch, release, checkpoint):
    monkeypatch.setattr(ledger_file, "CHECKPOINT_EVERY", 10)
    checkpoint.mkdir()
    ledger = FileLedger(path, data_set="friendships")
    for _ in range(15):
        ledger.reserve(release(0.1, 0.0))
    assert ledger.total() == Budget(1.5, 0.0)
