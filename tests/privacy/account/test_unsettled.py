"""A ledger that refuses: before the work if it can be known, and never to the loss of what was paid for."""

import errno
import os

import pytest

from gcon.errors import BudgetExceededError, LedgerError, UnsettledWarning
from gcon.methods import moments, objective
from gcon.methods.moments import Moments
from gcon.methods.objective import Objective
from gcon.privacy.account import release_once
from gcon.privacy.budget import Budget
from gcon.privacy.deferred_ledger import DeferredLedger
from gcon.privacy.gates import diagnose
from gcon.privacy.ledger import Kind, MemoryLedger, Outcome, Request
from gcon.privacy.ledger_file import FileLedger
from gcon.privacy.randomness import SystemRandomness


@pytest.fixture
def ledger(tmp_path):
    return FileLedger(tmp_path / "circles.ledger", data_set="circles")


@pytest.fixture
def full(monkeypatch):
    """From now on the disk is full."""

    def full():
        def write(*_):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "write", write)

    return full


def outcomes(ledger):
    return [entry.outcome for entry in ledger.entries()]


def test_what_was_released_is_handed_out_when_the_ledger_cannot_be_told(kit, ledger, full):
    mechanism = kit.mechanism()
    apply = type(mechanism).apply

    def applied(*arguments):
        value = apply(mechanism, *arguments)
        full()
        return value

    object.__setattr__(mechanism, "apply", applied)
    with pytest.warns(UnsettledWarning, match="Entry 0 stays reserved instead of released, which counts as spent"):
        released = release_once(mechanism, kit.graph.edges, ledger=ledger, randomness=SystemRandomness(), purpose="p")
    assert released.receipt.total == Budget(1.0, 1e-5) == ledger.total()
    assert outcomes(ledger) == [Outcome.RESERVED]


def test_the_same_for_a_number_for_the_operator(kit, ledger, full):
    with pytest.warns(UnsettledWarning):
        assert diagnose(lambda edges: full() or 7, kit.graph.edges, ledger=ledger, purpose="p") == 7


def test_a_deferred_ledger_settles_when_told(kit, ledger):
    books = DeferredLedger(ledger)
    release_once(kit.mechanism(), kit.graph.edges, ledger=books, randomness=SystemRandomness(), purpose="p")
    assert outcomes(ledger) == [Outcome.RESERVED]
    assert "Charged: epsilon 1, delta 1e-05, entry 0 (reserved) of" in books.in_words()
    assert books.finish({"answer": 0.5}) is None
    assert outcomes(ledger) == [Outcome.RELEASED]
    assert ledger.entries()[0].result == {"answer": 0.5}
    assert books.finish() is None  # once


def test_a_deferred_ledger_withholds_at_once_and_forgets_what_was_withdrawn(kit, ledger):
    books = DeferredLedger(ledger)
    with pytest.raises(ZeroDivisionError), books_block(kit, books):
        1 / 0  # noqa: B018
    assert (books.in_words(), outcomes(ledger)) == ("", [Outcome.WITHDRAWN])


def test_a_deferred_ledger_settles_once_and_only_what_it_reserved(ledger):
    books, other = DeferredLedger(ledger), MemoryLedger("circles")
    request = Request(kind=Kind.RELEASE, mechanism="m", purpose="p", cost=Budget(1.0, 1e-5))
    before, mine, foreign = ledger.reserve(request), books.reserve(request), [other.reserve(request) for _ in range(2)]
    for reservation in (before, *foreign):
        for outcome in (Outcome.RELEASED, Outcome.WITHDRAWN):
            with pytest.raises(LedgerError, match="not made in this ledger"):
                books.settle(reservation, outcome)
    books.settle(mine, Outcome.RELEASED)
    for outcome in (Outcome.RELEASED, Outcome.WITHDRAWN):
        with pytest.raises(LedgerError, match="settled already"):
            books.settle(mine, outcome)
    assert books.finish() is None
    assert (outcomes(ledger), ledger.total().epsilon) == ([Outcome.RESERVED, Outcome.RELEASED], 2.0)


def books_block(kit, books):
    from gcon.privacy.account import spend
    from gcon.privacy.plan import SingleRelease

    return spend(
        kit.graph.edges, SingleRelease(kit.mechanism()), ledger=books, randomness=SystemRandomness(), purpose="p"
    )


@pytest.mark.parametrize(
    ("method", "module", "work"),
    [(Moments, moments, "learn_without_edges"), (Objective, objective, "train_encoder")],
)
def test_what_the_ledger_refuses_is_refused_before_the_work(kit, ledger, monkeypatch, method, module, work):
    def worked(*_, **__):
        raise AssertionError("worked")

    monkeypatch.setattr(module, work, worked)
    low = MemoryLedger("circles", ceiling=Budget(0.5, 1e-5))
    damaged = FileLedger(ledger.path)
    ledger.path.write_bytes(ledger.path.read_bytes() + b'{"line":"ceiling"}\n')
    for books, refusal in ((low, BudgetExceededError), (damaged, LedgerError)):
        with pytest.raises(refusal):
            method(epsilon=1.0).train(kit.graph.nodes, kit.graph.edges, ledger=books, randomness=SystemRandomness())
    assert low.entries() == ()


def test_and_again_when_charging(kit, monkeypatch):
    books = MemoryLedger("circles", ceiling=Budget(1.5, 1e-4))
    learn = objective.train_encoder

    def meanwhile(*arguments, **options):
        release_once(kit.mechanism(), kit.graph.edges, ledger=books, randomness=SystemRandomness(), purpose="other")
        return learn(*arguments, **options)

    monkeypatch.setattr(objective, "train_encoder", meanwhile)
    with pytest.raises(BudgetExceededError):
        Objective(epsilon=1.0).train(kit.graph.nodes, kit.graph.edges, ledger=books, randomness=SystemRandomness())
    assert len(books.entries()) == 1
