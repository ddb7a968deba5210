"""What was spent on one data set: reserve before a private value is opened, settle after.

This module holds the records, the rules and a ledger in memory. A ledger in a file keeps the same `Ledger` interface.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import Final, NoReturn, Protocol, final

from gcon.errors import BoundaryError, LedgerError, PromiseWarning, check_number, warn_caller
from gcon.privacy.budget import NOTHING, ONE_UNDIRECTED_EDGE, Budget, ExactTotal


class Kind(StrEnum):
    """Why private edges were read."""

    RELEASE = "release"  # something noisy was made public; it costs its budget
    DELIVERY = "delivery"  # answers for owners, each from the owner's own edges; a promise per recipient
    DIAGNOSTIC = "diagnostic"  # a number for the operator's eyes only
    DECLASSIFICATION = "declassification"  # bare private values left; no promise remains


class Outcome(StrEnum):
    """What became of a reservation. All are charged but the last."""

    RESERVED = "reserved"  # not settled: running, or the process died
    RELEASED = "released"
    WITHHELD = "withheld"  # failed or without certificate: nothing was released, and it stays charged
    WITHDRAWN = "withdrawn"  # nothing was opened, which does not depend on edges: not charged


@dataclass(frozen=True, kw_only=True)
class Request:
    """What somebody wants to do with private edges: public numbers and words only.

    `gaussian_distance`: the proof of the mechanism says that the release amounts to one Gaussian of this distance, for
    tighter totals. The ledger cannot check the proof; it takes positive finite numbers (0 if nothing is charged).
    """

    kind: Kind
    mechanism: str
    purpose: str
    cost: Budget = NOTHING
    plan: Mapping[str, object] = field(default_factory=dict)
    randomness: str = "none"
    composition: str = "basic"
    protected_change: str = ONE_UNDIRECTED_EDGE.name
    gaussian_distance: float | None = None

    def __post_init__(self) -> None:
        if self.gaussian_distance is not None:
            free = self.cost == NOTHING
            check_number(
                "gaussian_distance",
                self.gaussian_distance,
                allowed=lambda number: 0 < number < math.inf or (free and number == 0),
                rule="must be a positive finite number",
                fix="Leave it out if only the budget is known.",
            )


@dataclass(frozen=True, kw_only=True)
class LedgerEntry:
    """One line of the ledger."""

    number: int
    time: str
    data_set: str
    request: Request
    outcome: Outcome
    result: Mapping[str, object] | None = None  # a released number that exists nowhere else


@dataclass(frozen=True)
class Reservation:
    """The right to open private values once; it is charged from now on, whatever happens.

    `ledger` marks the ledger that gave it: a reservation cannot be settled in another one. `withdrawal` is known to whoever
    reserved and to nobody else: only with it, and only in the process that reserved, is an entry withdrawn. `time` is the
    entry's, and `total` all that was charged with it: a receipt can be written even if the ledger is out of reach by then.
    """

    number: int
    ledger: object = None
    withdrawal: object = field(default=None, repr=False, compare=False)
    time: str = field(default="", compare=False)
    total: Budget = field(default=NOTHING, compare=False)


class Ledger(Protocol):
    """The face that gates pay. `data_set` is a name chosen by the owner, never a fingerprint of the edges."""

    @property
    def data_set(self) -> str:
        """The owner's name for the data."""

    @property
    def counted(self) -> bool:
        """Whether it was kept by somebody: False where none was given, and nobody counts."""

    def reserve(self, request: Request) -> Reservation:
        """Charge a request, or raise `BudgetExceededError` and charge nothing."""

    def check(self, request: Request) -> None:
        """Raise what `reserve` would raise now, and charge nothing: worth asking before work that takes long."""

    def settle(self, reservation: Reservation, outcome: Outcome) -> None:
        """Say what became of a reservation, once."""

    def entries(self) -> Sequence[LedgerEntry]:
        """All lines so far, oldest first."""


def check_settlement(
    entry: LedgerEntry, outcome: Outcome, reservation: Reservation, withdrawals: dict[int, object]
) -> None:
    """Refuse to settle twice, and to withdraw what is no release or what somebody else reserved: that is not charged."""
    if outcome is Outcome.RESERVED:
        raise LedgerError("A reservation is settled as released, withheld or withdrawn.")
    if entry.outcome is not Outcome.RESERVED:
        raise LedgerError("This reservation is settled already; reserve again for another release.")
    known = withdrawals.pop(reservation.number, None)
    mine = known is not None and reservation.withdrawal is known
    if outcome is Outcome.WITHDRAWN and not (mine and entry.request.kind is Kind.RELEASE):
        raise LedgerError("An entry is withdrawn only by the block of spending that reserved it. It stays charged.")


# Without a ledger, by process and public node table: what a fork inherited was not spent by it, and a thread that held the lock
# is not there to let it go.
_uncounted: dict[tuple[int, str], tuple[ExactTotal, threading.RLock]] = {}


@final
class MemoryLedger:
    """A ledger for one data set, in memory.

    Args:
        data_set: the owner's name for the data.
        ceiling: the most that may ever be spent; None means no limit.
        clock: gives the time of an entry.
        uncounted: checksum of the public node table, where this stands in for a ledger that nobody gave. Nobody adds up what is
            released then, but for this process: the total is that of all its fits on the same table that were given no ledger,
            and from the second release on it warns.

    Example:
        >>> MemoryLedger("friendships", ceiling=Budget(2.0, 1e-5)).total()
        Budget(epsilon=0.0, delta=0.0)

    Privacy:
        Holds public numbers and words only. A run that dies between `reserve` and `settle` stays charged.
    """

    def __init__(
        self,
        data_set: str = "unnamed",
        *,
        ceiling: Budget | None = None,
        clock: Callable[[], datetime] | None = None,
        uncounted: str | None = None,
    ) -> None:
        self.data_set: Final = data_set
        self.counted: Final = uncounted is None
        self._ceiling = ceiling
        self._clock = clock or partial(datetime.now, UTC)
        self._entries: list[LedgerEntry] = []
        self._spent, self._lock = ExactTotal(), threading.RLock()
        if uncounted is not None:
            mine = self._spent, self._lock
            self._spent, self._lock = _uncounted.setdefault((os.getpid(), uncounted), mine)
        self._mark = object()
        self._withdrawals: dict[int, object] = {}
        self._process = os.getpid()

    def reserve(self, request: Request) -> Reservation:
        """Charge a request, or raise `BudgetExceededError` and charge nothing."""
        if os.getpid() != self._process:
            raise LedgerError(
                "This ledger lives in the memory of another process, which would not see what is spent here. Use a ledger in "
                "a file for work in several processes."
            )
        with self._lock:
            entry = LedgerEntry(
                number=len(self._entries),
                time=self._clock().isoformat(timespec="seconds"),
                data_set=self.data_set,
                request=request,
                outcome=Outcome.RESERVED,
            )
            before = self._spent.rounded
            self._spent.add(request.cost, ceiling=self._ceiling)
            self._entries.append(entry)
            total = self._spent.rounded
            reservation = Reservation(entry.number, self._mark, object(), entry.time, total)
            self._withdrawals[entry.number] = reservation.withdrawal
        if not self.counted and before != NOTHING and request.cost != NOTHING:
            warn_caller(
                f"Released again without a ledger: this process has now spent epsilon {total.epsilon:g}, delta {total.delta:g} "
                "on the same node table, and nobody counts what others release. Pass ledger=gcon.FileLedger(...), kept with the "
                "edges.",
                PromiseWarning,
            )
        return reservation

    def check(self, request: Request) -> None:
        """Raise `BudgetExceededError` if the request would pass the ceiling now."""
        with self._lock:
            replace(self._spent).add(request.cost, ceiling=self._ceiling)  # to a copy

    def settle(self, reservation: Reservation, outcome: Outcome) -> None:
        """Say what became of a reservation, once."""
        with self._lock:
            if reservation.ledger is not self._mark:
                raise LedgerError("This reservation was not made in this ledger.")
            entry = self._entries[reservation.number]
            check_settlement(entry, outcome, reservation, self._withdrawals)
            self._entries[reservation.number] = replace(entry, outcome=outcome)
            if outcome is Outcome.WITHDRAWN:
                self._spent.add(entry.request.cost, -1)

    def entries(self) -> Sequence[LedgerEntry]:
        """All lines so far, oldest first."""
        with self._lock:
            return tuple(self._entries)

    def total(self) -> Budget:
        """Everything charged so far, by basic composition."""
        with self._lock:
            return self._spent.rounded

    def ceiling(self) -> Budget | None:
        """The most that may ever be spent; None means no limit."""
        return self._ceiling

    def __repr__(self) -> str:
        return f"MemoryLedger({self.data_set!r}, spent={self.total()}, ceiling={self._ceiling})"

    def __sklearn_clone__(self) -> MemoryLedger:
        """Clones of an estimator pay the same ledger: it belongs to the data, not to the model."""
        return self

    def _refuse(self, *_: object) -> NoReturn:
        raise BoundaryError("A ledger cannot be copied or stored: two copies could both spend what is left.")

    __copy__ = __deepcopy__ = __reduce_ex__ = __getstate__ = _refuse


@final
class DetachedLedger:
    """Stands where a ledger was before a model was stored, and pays for nothing: two copies could both spend what is left.

    Args:
        data_set: the owner's name for the data.
    """

    counted: Final = True

    def __init__(self, data_set: str) -> None:
        self.data_set: Final = data_set

    def __repr__(self) -> str:
        return f"<detached from the ledger of {self.data_set!r} when it was stored: pays for nothing>"

    def _refuse(self, *_: object) -> NoReturn:
        raise LedgerError(
            f"ledger: this model was stored without the ledger of {self.data_set!r}, and nothing is trained unpaid. Give it "
            "one: model.set_params(ledger=...)."
        )

    reserve = check = settle = _refuse

    def entries(self) -> Sequence[LedgerEntry]:
        """None are known here."""
        return ()
