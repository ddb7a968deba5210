"""A place for a ledger file, what lies beside it, and what is written there."""

import math
import os
from datetime import UTC, datetime

import pytest

from gcon.privacy.budget import Budget
from gcon.privacy.ledger import Kind, Outcome, Request
from gcon.privacy.ledger_file import FileLedger

CLOCK = datetime(2031, 5, 6, 7, 8, 9, 10, tzinfo=UTC)


@pytest.fixture
def no_fsync(monkeypatch):
    """For tests that append very often; that entries reach the disk is tested on its own."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "friendships.ledger"


@pytest.fixture(scope="session")
def release():
    """Makes a request for a release."""

    def release(epsilon=1.0, delta=1e-5, purpose="test", **others):
        return Request(
            kind=Kind.RELEASE, mechanism="noisy thing", purpose=purpose, cost=Budget(epsilon, delta), **others
        )

    return release


@pytest.fixture(scope="session")
def head():
    """Where the head of the ledger at a path lies."""
    return lambda path: path.with_name(path.name + ".head")


@pytest.fixture(scope="session")
def torn():
    """Where the torn lines of the ledger at a path are kept."""
    return lambda path: path.with_name(path.name + ".torn")


@pytest.fixture(scope="session")
def small_ledger(release):
    """Makes a ledger of five lines: header, ceiling, two reservations, and the first one's end."""

    def small_ledger(path, *, settled=True):
        ledger = FileLedger(path, data_set="friendships", clock=lambda: CLOCK)
        ledger.set_ceiling(Budget(9.0, 1e-3))
        first = ledger.reserve(release(plan={"noise": [1.5, None, "words", math.inf]}))
        ledger.reserve(release(2.0, purpose="Übung"))
        if settled:
            ledger.settle(first, Outcome.RELEASED)
        return ledger

    return small_ledger
