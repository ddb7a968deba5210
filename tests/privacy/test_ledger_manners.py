"""What every ledger does, in memory and in a file."""

import math
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from sklearn.base import clone

from gcon import GCON
from gcon.errors import BudgetExceededError, LedgerError
from gcon.privacy.budget import NOTHING, Budget
from gcon.privacy.ledger import Kind, MemoryLedger, Outcome, Request, Reservation
from gcon.privacy.ledger_file import FileLedger

CLOCK = datetime(2031, 5, 6, 7, 8, 9, 10, tzinfo=UTC)


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


def test_reserve_then_settle(make_ledger, release):
    ledger = make_ledger()
    assert ledger.total() == NOTHING
    assert not ledger.entries()
    reservation = ledger.reserve(release(plan={"noise": 2.0}, randomness="operating system"))
    (entry,) = ledger.entries()
    assert entry.outcome is Outcome.RESERVED
    assert ledger.total() == Budget(1.0, 1e-5)
    ledger.settle(reservation, Outcome.RELEASED)
    (settled,) = ledger.entries()
    assert settled.outcome is Outcome.RELEASED
    assert settled.data_set == ledger.data_set == "friendships"
    assert settled.request == release(plan={"noise": 2.0}, randomness="operating system")
    assert settled.request.protected_change == "one undirected edge"
    assert settled.request.composition == "basic"
    assert (settled.number, settled.time) == (entry.number, entry.time)
    assert ledger.total() == Budget(1.0, 1e-5)


@pytest.mark.parametrize("outcome", [None, Outcome.RELEASED, Outcome.WITHHELD])
def test_everything_reserved_stays_charged(make_ledger, outcome, release):
    ledger = make_ledger(ceiling=Budget(1.0, 1e-5))
    reservation = ledger.reserve(release())
    if outcome is not None:  # None: the run died
        ledger.settle(reservation, outcome)
    assert ledger.total() == Budget(1.0, 1e-5)
    with pytest.raises(BudgetExceededError):
        ledger.reserve(release(0.01, 0.0))


def test_settled_once(make_ledger, release):
    ledger = make_ledger()
    reservation = ledger.reserve(release())
    ledger.settle(reservation, Outcome.WITHHELD)
    for outcome in (Outcome.RELEASED, Outcome.WITHHELD):
        with pytest.raises(LedgerError, match="settled already"):
            ledger.settle(reservation, outcome)
    assert ledger.entries()[0].outcome is Outcome.WITHHELD


@pytest.mark.parametrize("number", [1, 7, -1])
def test_a_reservation_that_was_never_made(make_ledger, number, release):
    ledger = make_ledger()
    ledger.reserve(release())
    with pytest.raises(LedgerError, match="not made in this ledger"):
        ledger.settle(Reservation(number), Outcome.RELEASED)
    assert ledger.entries()[0].outcome is Outcome.RESERVED


def test_a_reservation_of_another_ledger(make_ledger, release):
    mine, theirs = make_ledger("mine"), make_ledger("theirs")
    mine.reserve(release())
    for foreign in (theirs.reserve(release()), MemoryLedger().reserve(release()), Reservation(0)):
        with pytest.raises(LedgerError, match="not made in this ledger"):
            mine.settle(foreign, Outcome.RELEASED)
    assert mine.entries()[0].outcome is Outcome.RESERVED


def test_reserved_is_no_outcome(make_ledger, release):
    ledger = make_ledger()
    with pytest.raises(LedgerError, match="settled as released, withheld or withdrawn"):
        ledger.settle(ledger.reserve(release()), Outcome.RESERVED)


def test_reservations_may_be_settled_in_any_order(make_ledger, release):
    ledger = make_ledger()
    first, second = ledger.reserve(release(1.0)), ledger.reserve(release(2.0))
    ledger.settle(second, Outcome.RELEASED)
    ledger.settle(first, Outcome.WITHHELD)
    assert [entry.outcome for entry in ledger.entries()] == [Outcome.WITHHELD, Outcome.RELEASED]
    assert [entry.number for entry in ledger.entries()] == [0, 1]
    assert ledger.total() == Budget(3.0, 2e-5)


def test_over_the_ceiling_nothing_is_charged(make_ledger, release):
    ledger = make_ledger(ceiling=Budget(2.0, 1e-4))
    ledger.reserve(release(1.25, 1e-5))
    with pytest.raises(BudgetExceededError) as raised:
        ledger.reserve(release(0.8, 2e-5))
    message = str(raised.value)
    assert "asked epsilon=0.8, delta=2e-05" in message
    assert "spent epsilon=1.25, delta=1e-05" in message
    assert "left epsilon=0.75, delta=9e-05" in message
    assert "of epsilon=2, delta=0.0001" in message
    assert len(ledger.entries()) == 1
    assert ledger.total() == Budget(1.25, 1e-5)
    ledger.reserve(release(0.75, 9e-5))
    assert ledger.total() == Budget(2.0, 1e-4)


def test_asking_first_charges_nothing_and_says_what_paying_would(make_ledger, release):
    ledger = make_ledger(ceiling=Budget(1.0, 1e-5))
    ledger.check(release())
    assert (ledger.total(), tuple(ledger.entries())) == (NOTHING, ())
    with pytest.raises(BudgetExceededError, match=r"asked epsilon=1\.1"):
        ledger.check(release(1.1))
    ledger.reserve(release())
    with pytest.raises(BudgetExceededError, match="left epsilon=0, delta=0"):
        ledger.check(release(0.1, 0.0))
    assert ledger.total() == Budget(1.0, 1e-5)


def test_decimal_budgets_fill_the_ceiling_exactly(make_ledger, release):
    ledger = make_ledger(ceiling=Budget(1.0, 1e-5))
    for _ in range(10):
        ledger.reserve(release(0.1, 1e-6))
    assert ledger.total() == Budget(1.0, 1e-5)
    with pytest.raises(BudgetExceededError):
        ledger.reserve(release(1e-12, 0.0))


def test_without_a_ceiling_the_total_may_be_infinite(make_ledger, release):
    ledger = make_ledger()
    ledger.reserve(release(math.inf, 0.0))
    ledger.reserve(release(1.0, 1e-5))
    assert ledger.total() == Budget(math.inf, 1e-5)


def test_a_finite_ceiling_refuses_what_carries_no_promise(make_ledger, release):
    with pytest.raises(BudgetExceededError, match="carries no promise"):
        make_ledger(ceiling=Budget(1e300, 0.5)).reserve(release(math.inf, 0.0))


def test_what_costs_nothing_is_recorded_at_a_full_ceiling(make_ledger):
    ledger = make_ledger(ceiling=NOTHING)
    ledger.reserve(Request(kind=Kind.DELIVERY, mechanism="answers", purpose="test"))
    assert len(ledger.entries()) == 1
    assert ledger.total() == NOTHING


def test_the_clock_is_an_argument(make_ledger, release):
    ledger = make_ledger(clock=lambda: CLOCK)
    ledger.settle(ledger.reserve(release()), Outcome.RELEASED)
    assert ledger.entries()[0].time == "2031-05-06T07:08:09+00:00"


def test_the_default_clock_says_its_zone(make_ledger, release):
    ledger = make_ledger()
    ledger.reserve(release())
    assert datetime.fromisoformat(ledger.entries()[0].time).tzinfo is not None


def test_threads_cannot_overspend(make_ledger, release):
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
    assert clone(clone(GCON(ledger=ledger))).get_params()["ledger"] is ledger
    assert clone(ledger) is ledger


def test_entries_are_a_tuple(make_ledger, release):
    ledger = make_ledger()
    ledger.reserve(release())
    assert isinstance(ledger.entries(), tuple)
