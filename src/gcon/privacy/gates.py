"""The other ways out of private edges, beside the account: each writes the ledger first and says what it promises.

| gate                | what leaves                                             | what it costs                          |
|---------------------|---------------------------------------------------------|----------------------------------------|
| `spend` (account.py) | something noisy, release by release, with a receipt     | the plan's budget                      |
| `answer_owners`     | answers, each from its owner's own edges, for the owner | a promise per recipient; recorded      |
| `OwnerAnswers`      | the same, one at a time, while a service runs           | the same; each is logged before        |
| `diagnose`          | a number for the operator's eyes                        | recorded; must not be published        |
| `declassify`        | the bare private value                                  | everything: the total becomes infinite |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar, final

from gcon.errors import InputError
from gcon.privacy.account import NO_PROMISE, settle
from gcon.privacy.boundary import Private
from gcon.privacy.ledger import Kind, Ledger, Outcome, Request
from gcon.privacy.opening import apply_private, check_here

T = TypeVar("T")
U = TypeVar("U")


def answer_owners(compute: Callable[[T], U], edges: Private[T], *, ledger: Ledger, purpose: str) -> U:
    """Answers for owners. Each row of the result must be computed from its own node's edges alone.

    Privacy:
        Opens the edges. Joint differential privacy: for every edge {u, v}, what all others receive does not depend on
        it. The caller hands each row to its owner only; the delivery is recorded.
    """
    check_here(edges)
    request = Request(kind=Kind.DELIVERY, mechanism="answers from own edges", purpose=purpose)
    return _paid(ledger, request, lambda: apply_private(compute, edges))


class DeliveryLog(Protocol):
    """Where every single answer is written down before it is computed: who and when, not what."""

    def record(self, owner: str) -> None:
        """Write it down for good, or raise: then nothing is answered."""


@final
class OwnerAnswers(Generic[T]):
    """Answers for owners, one at a time, for as long as a service runs.

    Args:
        edges: private.
        ledger: records once, now, that a service begins to answer.
        log: records every answer.
        purpose: public words for the ledger.

    Privacy:
        Opens the edges for every answer. Joint differential privacy, as for `answer_owners`: what is computed for an owner must
        read her own row alone, and must be handed to her alone; who she is has been checked before.
    """

    def __init__(self, edges: Private[T], *, ledger: Ledger, log: DeliveryLog, purpose: str) -> None:
        check_here(edges)
        _paid(ledger, Request(kind=Kind.DELIVERY, mechanism="answers from own edges", purpose=purpose), lambda: None)
        self._edges, self._log = edges, log

    def answer(self, compute: Callable[[T], U], *, owner: str) -> U:
        """One answer; it is logged first.

        Args:
            compute: reads the owner's row alone.
            owner: the public id of her node.
        """
        self._log.record(owner)
        return apply_private(compute, self._edges)


def diagnose(compute: Callable[[T], U], private: Private[T], *, ledger: Ledger, purpose: str) -> U:
    """A number for the operator's eyes, such as an accuracy measured with private edges.

    Privacy:
        Opens the value. The result depends on edges without noise: the operator may look, nobody may publish.
    """
    request = Request(kind=Kind.DIAGNOSTIC, mechanism="diagnostic, not for publication", purpose=purpose)
    return _paid(ledger, request, lambda: apply_private(compute, private))


def declassify(private: Private[T], *, reason: str, ledger: Ledger) -> T:
    """The bare private value, for benchmarks and attacks on graphs that are not sensitive.

    Privacy:
        Voids every promise: the ledger's total is infinite from here on.
    """
    if not reason.strip():
        raise InputError("reason", rule="must say why", got="nothing", fix="Name the experiment that needs it.")
    request = Request(kind=Kind.DECLASSIFICATION, mechanism="declassify", purpose=reason, cost=NO_PROMISE)
    return _paid(ledger, request, lambda: apply_private(lambda opened: opened, private))


def _paid(ledger: Ledger, request: Request, compute: Callable[[], U]) -> U:
    """Reserve, compute, settle; a failure is settled as withheld and stays charged."""
    reservation = ledger.reserve(request)
    try:
        result = compute()
    except Exception:
        settle(ledger, reservation, Outcome.WITHHELD)
        raise
    settle(ledger, reservation, Outcome.RELEASED)
    return result
