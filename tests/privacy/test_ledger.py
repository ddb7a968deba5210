"""The ledger in memory: what it alone must show; what every ledger does is in test_ledger_manners.py."""

import copy
import math
import pickle
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcon import GCON
from gcon.errors import BoundaryError, BudgetExceededError, InputError
from gcon.privacy.budget import NOTHING, Budget, ExactTotal, compose
from gcon.privacy.ledger import Kind, MemoryLedger, Outcome, Request


def release(epsilon=1.0, delta=1e-5, **others):
    return Request(kind=Kind.RELEASE, mechanism="noisy thing", purpose="test", cost=Budget(epsilon, delta), **others)


@pytest.mark.parametrize("request_", [release(0.1, 2e-5), release(3.0, 1e-6)])
def test_either_part_can_pass_the_ceiling(request_):
    with pytest.raises(BudgetExceededError):
        MemoryLedger(ceiling=Budget(2.0, 1e-5)).reserve(request_)


def test_the_refusal_is_readable_where_epsilon_is_unlimited():
    ledger = MemoryLedger(ceiling=Budget(math.inf, 1e-5))
    ledger.reserve(release(math.inf, 1e-5))
    with pytest.raises(BudgetExceededError) as raised:
        ledger.reserve(release(1.0, 1e-5))
    assert "nan" not in str(raised.value)


@settings(max_examples=60, deadline=None)
@given(asks=st.lists(st.builds(Budget, st.floats(0, 2), st.floats(0, 1e-5)), max_size=12))
def test_no_sequence_of_asks_passes_the_ceiling(asks):
    ceiling = Budget(3.0, 2e-5)
    ledger, granted = MemoryLedger(ceiling=ceiling), []
    for ask in asks:
        try:
            ledger.reserve(release(ask.epsilon, ask.delta))
        except BudgetExceededError:
            assert not ceiling.covers(compose([*granted, ask])) or not ceiling.covers(compose([compose(granted), ask]))
        else:
            granted.append(ask)
    assert ceiling.covers(ledger.total())
    assert ledger.total() == compose(granted)


def test_a_total_under_a_ceiling():
    total = ExactTotal()
    total.add(Budget(0.5, 0.0))
    total.add(Budget(0.5, 0.1), ceiling=Budget(1.0, 0.1))
    assert total.rounded == Budget(1.0, 0.1)
    with pytest.raises(BudgetExceededError, match=re.escape("left epsilon=0, delta=0.1")):
        total.add(Budget(0.5, 0.0), ceiling=Budget(0.9, 0.2))
    assert total == ExactTotal(Fraction(1), Fraction(1, 10), 0, Budget(1.0, 0.1))  # nothing was added
    total.add(Budget(math.inf, 0.0), ceiling=None)
    assert total.rounded == Budget(math.inf, 0.1)
    total.add(Budget(math.inf, 0.0), -1)
    assert total.rounded == Budget(1.0, 0.1)


def test_threads_cannot_overspend():
    def slow_clock():
        time.sleep(0.0005)  # between the check and the entry: without a lock others would slip in
        return datetime(2024, 1, 1, tzinfo=UTC)

    ledger = MemoryLedger(ceiling=Budget(1.0, 1e-5), clock=slow_clock)
    start = threading.Barrier(16)

    def spend(_):
        start.wait()
        granted = 0
        for _ in range(10):
            try:
                ledger.settle(ledger.reserve(release(0.05, 0.0)), Outcome.RELEASED)
                granted += 1
            except BudgetExceededError:
                pass
        return granted

    with ThreadPoolExecutor(16) as pool:
        granted = sum(pool.map(spend, range(16)))
    assert granted == len(ledger.entries()) == 20
    assert ledger.total() == Budget(1.0, 0.0)
    assert [entry.number for entry in ledger.entries()] == list(range(20))


def test_the_time_is_that_of_the_reservation():
    times = iter([datetime(2031, 1, 1, tzinfo=UTC)])
    ledger = MemoryLedger(clock=lambda: next(times))  # asking again would raise: run time would show
    ledger.settle(ledger.reserve(release()), Outcome.RELEASED)
    assert ledger.entries()[0].time == "2031-01-01T00:00:00+00:00"


def test_entries_cannot_be_rewritten():
    ledger = MemoryLedger()
    ledger.reserve(release())
    entries = ledger.entries()
    assert isinstance(entries, tuple)
    with pytest.raises(FrozenInstanceError):
        entries[0].outcome = Outcome.RELEASED
    with pytest.raises(FrozenInstanceError):
        entries[0].request.cost = NOTHING


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps, lambda ledger: pickle.dumps(ledger, 0)])
def test_a_ledger_cannot_be_copied_or_stored(duplicate):
    ledger = MemoryLedger()
    with pytest.raises(BoundaryError, match="cannot be copied or stored"):
        duplicate(ledger)


def test_a_ledger_cannot_travel_inside_something_else():
    for duplicate in (copy.deepcopy, pickle.dumps):
        with pytest.raises(BoundaryError):
            duplicate(GCON(ledger=MemoryLedger()))


@pytest.mark.parametrize("distance", [math.inf, -math.inf, math.nan, -0.5, 0.0, 0, True, "0.5", 1j])
def test_a_gaussian_distance_is_a_positive_finite_number(distance):
    with pytest.raises(InputError, match="gaussian_distance"):
        Request(kind=Kind.RELEASE, mechanism="m", purpose="p", cost=Budget(1.0, 1e-5), gaussian_distance=distance)


def test_a_free_request_may_have_distance_zero():
    assert Request(kind=Kind.RELEASE, mechanism="m", purpose="p", gaussian_distance=0.0).gaussian_distance == 0.0


def test_the_ceiling_can_be_asked_for():
    assert MemoryLedger(ceiling=Budget(2.0, 1e-5)).ceiling() == Budget(2.0, 1e-5)
    assert MemoryLedger().ceiling() is None
