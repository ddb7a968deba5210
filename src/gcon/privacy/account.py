"""Spending is a block: the one way in which something noisy leaves private edges.

    with spend(edges, plan, ledger=ledger, randomness=randomness, purpose="node classification") as account:
        moments = account.release(plan.noisy(EdgeMoments(rows), share=0.4))
        ...  # ordinary public code
        more = account.release(plan.noisy(EdgeMoments(answers), share=0.6))
    account.receipt

| when                    | what happens                                              | if it fails                        |
|-------------------------|-----------------------------------------------------------|------------------------------------|
| the block begins        | the ledger reserves the whole budget; nothing is opened   | nothing was charged                |
| `release`               | plan and proof are checked, then the edges opened inside  | fixed words; it stays charged      |
| ordinary code between   | sees public values only                                   | its own error; it stays charged    |
| it ends after a release | settled as released; the receipt says what was released   | a warning; it stays charged        |
| it ends without any     | settled as withdrawn: nothing was opened, nothing charged | a killed process leaves it charged |

Whether a block is withdrawn depends on whether public code called `release`, never on an edge.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass, field
from types import TracebackType
from typing import Any, Final, Generic, NoReturn, Self, TypeVar, final

from gcon.errors import BoundaryError, GconError, LedgerRefusedError, PlanMismatchError, UnsettledWarning, warn_caller
from gcon.privacy.boundary import Private
from gcon.privacy.budget import NOTHING, Budget, protected_change
from gcon.privacy.ledger import Kind, Ledger, Outcome, Request, Reservation
from gcon.privacy.ledger_file import FileLedger
from gcon.privacy.opening import apply_private, check_there
from gcon.privacy.plan import PROOF_PAGES, Mechanism, Plan, PricedMechanism, SingleRelease
from gcon.privacy.randomness import Randomness
from gcon.privacy.receipt import Receipt

ReleasedT = TypeVar("ReleasedT")
NO_PROMISE = Budget(math.inf, 0.0)


@final
@dataclass(frozen=True, eq=False)
class TranscriptLine:
    """One release: the mechanism, all of it public, and what came out."""

    mechanism: Mechanism[Any]
    value: Any


_listeners: ContextVar[tuple[list[TranscriptLine], ...]] = ContextVar("transcripts", default=())


@contextmanager
def transcript() -> Iterator[list[TranscriptLine]]:
    """Everything that is released inside this block, for audits and attacks: also what a method throws away later.

    Privacy:
        Public mechanisms and released values; whoever runs the code could keep both.
    """
    lines: list[TranscriptLine] = []
    token = _listeners.set((*_listeners.get(), lines))
    try:
        yield lines
    finally:
        _listeners.reset(token)


_accounts: ContextVar[list[Account] | None] = ContextVar("accounts", default=None)


@contextmanager
def telling_charges() -> Iterator[None]:
    """Whatever ends this block early, a Ctrl-C above all, carries notes of what accounts in it have charged, and where.

    Privacy:
        Costs, numbers of entries and names of ledgers, which are public.
    """
    if _accounts.get() is not None:  # a training that another one's callback began: the outer block tells of both
        yield
        return
    accounts: list[Account] = []
    token = _accounts.set(accounts)
    try:
        yield
    except BaseException as error:
        notes = [words for account in dict.fromkeys(accounts) if (words := account.charge_in_words())]
        # What a ledger refuses may stand in its file all the same, and it says so then.
        refused = isinstance(error, LedgerRefusedError) and not error.charged
        if not notes and (refused or isinstance(error, KeyboardInterrupt)):
            notes = ["Nothing was charged."]
        for words in notes:
            error.add_note(words)
        raise
    finally:
        _accounts.reset(token)


@final
@dataclass(eq=False, repr=False)
class Account:
    """A block in which a plan is spent on private edges. It belongs to one block of one process, and is never copied.

    Args:
        edges: private.
        plan: public; its whole budget is reserved when the block begins.
        ledger: pays.
        randomness: noise from a seed carries no promise; such a block is charged as infinite.
        purpose: public words for the ledger.

    Privacy:
        Nothing is opened before the ledger has reserved the budget. Everything released in the block together costs the plan's
        budget, by the proof that belongs to the plan.
    """

    edges: Final[Private[Any]]
    plan: Final[Plan]
    _: KW_ONLY
    ledger: Final[Ledger]
    randomness: Final[Randomness]
    purpose: Final[str]
    _mechanisms: list[Mechanism[Any]] = field(init=False, default_factory=list)
    _handed_out: int = field(init=False, default=0)
    _process: int = field(init=False, default=0)
    _open: bool = field(init=False, default=False)
    _ended: bool = field(init=False, default=False)
    _keeps_promise: bool = field(init=False, default=False)
    _reservation: Reservation | None = field(init=False, default=None)
    _charged: Budget = field(init=False, default=NOTHING)  # once the ledger was asked: it may be, until it has refused
    _paid: tuple[Budget, float | None] = field(init=False, default=(NOTHING, None))
    _receipt: Receipt | None = field(init=False, default=None)
    # Held between looking whether something may be released and counting it as released.
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("_") and hasattr(self, name):  # noise of a seed, say, under a promise that is paid for
            raise BoundaryError("What an account was made with is never exchanged. Call spend again for anything else.")
        super().__setattr__(name, value)

    def __enter__(self) -> Self:
        if self._reservation is not None:
            raise BoundaryError("An account is entered once. Call spend again for another plan.")
        plan = self.plan
        PROOF_PAGES[type(plan)]  # or it is refused
        # Noise from a seed keeps no promise, unless there is nothing to promise.
        self._keeps_promise = self.randomness.keeps_promise or plan.budget == NOTHING
        request = Request(
            kind=Kind.RELEASE,
            mechanism=plan.name,
            purpose=self.purpose,
            cost=plan.budget if self._keeps_promise else NO_PROMISE,
            plan=plan.public_record(()),
            randomness=self.randomness.source,
            gaussian_distance=plan.gaussian_distance if self._keeps_promise else None,
        )
        self._paid = plan.budget, plan.gaussian_distance
        check_there(self.edges)
        if (accounts := _accounts.get()) is not None:
            accounts.append(self)
        self._charged = request.cost
        try:
            self._reservation = self.ledger.reserve(request)
        except GconError:
            self._charged = NOTHING  # the error says it; any other may have come when it was charged already
            raise
        self._open, self._process = True, os.getpid()
        return self

    def release(self, mechanism: Mechanism[ReleasedT]) -> ReleasedT:
        """Open the edges for one mechanism, and return what it releases.

        A release that fails ends the spending: whether it failed may depend on edges, and nothing more is chosen by that.

        Args:
            mechanism: registered with a proof, and what the plan pays for next.

        Privacy:
            Opens the edges inside the mechanism. What leaves is what its proof covers.
        """
        with self._lock:
            if not self._open or os.getpid() != self._process:
                raise BoundaryError(
                    "An account releases inside its block (with spend(...) as account), in its own process."
                )
            PROOF_PAGES[type(mechanism)]  # or it is refused
            mechanism.check()
            self.plan.check([*self._mechanisms, mechanism])
            if (self.plan.budget, self.plan.gaussian_distance) != self._paid:
                raise PlanMismatchError("A plan costs what was reserved for it. This one has changed its price since.")
            if self.plan.budget == NOTHING and mechanism.reads_edges:
                raise PlanMismatchError("A release is free only if no edge can change anything in it.")
            self._mechanisms.append(mechanism)  # from here on it counts, whatever happens
            self._open = False  # until it has come out
        randomness = self.randomness
        value = apply_private(lambda edges: mechanism.apply(edges, randomness), self.edges)
        with self._lock:
            self._handed_out += 1
            self._open = not self._ended
        for lines in _listeners.get():
            lines.append(TranscriptLine(mechanism, value))
        return value

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, frames: TracebackType | None
    ) -> None:
        with self._lock:  # first of all: whatever happens now, nothing more is released
            self._open, self._ended = False, True
            asked, handed_out = list(self._mechanisms), self._handed_out
            self._mechanisms = []  # they may hold large tables
        if self._reservation is None or os.getpid() != self._process:
            return  # a forked process settles nothing: the block belongs to its parent
        if not asked:
            if settle(self.ledger, self._reservation, Outcome.WITHDRAWN):
                self._charged = NOTHING
            return
        if error is not None and not isinstance(error, Exception):
            return  # interrupted: stays reserved, which is charged
        settle(self.ledger, self._reservation, Outcome.RELEASED if handed_out else Outcome.WITHHELD)
        if error is None and handed_out == len(asked):
            plan = self.plan
            record = plan.public_record(asked)
            self._receipt = Receipt(
                time=self._reservation.time,
                data_set=self.ledger.data_set,
                protected_change=protected_change(record=record).name,
                mechanism=plan.name,
                purpose=self.purpose,
                budget=plan.budget,
                keeps_promise=self._keeps_promise and math.isfinite(plan.budget.epsilon),
                randomness=self.randomness.source,
                plan=record,
                total=self._reservation.total,
                counted=self.ledger.counted,
            )

    def charge_in_words(self) -> str:
        """What it has charged, and where that is written; nothing if nothing was."""
        cost, ledger, reservation = self._charged, self.ledger, self._reservation
        if cost == NOTHING:
            return ""
        asked = f"epsilon {cost.epsilon:g}, delta {cost.delta:g}"
        if not ledger.counted:
            return f"Spent: {asked}. No ledger was given, so nobody has it written down."
        where = f"the ledger {ledger.path}" if isinstance(ledger, FileLedger) else f"the ledger of {ledger.data_set!r}"
        if reservation is None:
            return f"Stopped while {asked} was being charged: {where} tells whether it is."
        return f"Charged: {asked}, entry {reservation.number} of {where}; it stays spent."

    def _refuse(self, *_: object) -> NoReturn:
        raise BoundaryError(
            "An account cannot be copied or stored: two copies could both spend what was reserved once."
        )

    __copy__ = __deepcopy__ = __reduce_ex__ = __getstate__ = _refuse

    @property
    def receipt(self) -> Receipt:
        """What was paid and what is promised, once the block has ended."""
        if self._receipt is None:
            raise BoundaryError("There is a receipt only after a block that ended well, with every release come out.")
        return self._receipt


def check_charge(budget: Budget, *, ledger: Ledger, randomness: Randomness, purpose: str) -> None:
    """Raise what the ledger would raise if a block of spending began now: before minutes of work, not after them.

    Args:
        budget: what the plan will cost.
        ledger: as for `spend`, which asks again.
        randomness: likewise.
        purpose: likewise.
    """
    cost, source = budget if randomness.keeps_promise or budget == NOTHING else NO_PROMISE, randomness.source
    name = "to be planned"
    ledger.check(Request(kind=Kind.RELEASE, mechanism=name, purpose=purpose, cost=cost, randomness=source))


def settle(ledger: Ledger, reservation: Reservation, outcome: Outcome) -> bool:
    """Settle; where the system refuses, say that the entry stays reserved: what was paid for is not lost for that."""
    try:
        ledger.settle(reservation, outcome)
        return True
    except LedgerRefusedError as refused:
        stays = f"Entry {reservation.number} stays reserved instead of {outcome.value}, which counts as spent."
        warn_caller(f"{stays} {refused}", UnsettledWarning)
        return False


spend = Account
"""Begins a block of spending: `with spend(edges, plan, ...) as account`."""


@dataclass(frozen=True, eq=False)
class Released(Generic[ReleasedT]):
    """Something public, and the receipt for it."""

    value: ReleasedT
    receipt: Receipt


def release_once(
    mechanism: PricedMechanism[ReleasedT], edges: Private[Any], *, ledger: Ledger, randomness: Randomness, purpose: str
) -> Released[ReleasedT]:
    """Spend a mechanism's own budget on one release of it; arguments as for `spend`."""
    plan = SingleRelease(mechanism)
    with spend(edges, plan, ledger=ledger, randomness=randomness, purpose=purpose) as account:
        value = account.release(mechanism)
    return Released(value, account.receipt)
