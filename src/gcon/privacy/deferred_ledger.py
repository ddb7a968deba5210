"""A ledger that is paid at once, and told that something was released only when the result is safe.

| when                     | the entry        |
|--------------------------|------------------|
| `reserve`                | reserved, on disk, before any edge is read |
| the block ends           | still reserved: what was released is in memory alone |
| `finish`                 | released, with the numbers that exist nowhere else |

Whatever happens in between, the entry stays reserved, which counts as spent, and `charges` says what to tell the user.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

from gcon.errors import LedgerError
from gcon.privacy.budget import NOTHING, Budget, compose
from gcon.privacy.ledger import Outcome, Request, Reservation
from gcon.privacy.ledger_file import FileLedger


@dataclass
class Charge:
    """One entry of the ledger that this process made.

    Attributes:
        reservation: to settle it.
        cost: what it charged.
        outcome: as the ledger has it.
        handed_over: something was released, and is settled as that once it is safe.
    """

    reservation: Reservation
    cost: Budget
    outcome: Outcome = Outcome.RESERVED
    handed_over: bool = False


@final
class DeferredLedger:
    """A file ledger for one command: pays at once, settles what was released in the end.

    Args:
        ledger: pays.

    Privacy:
        That of the ledger: nothing is opened before an entry is on the disk, and an entry that is never settled counts in full.
    """

    counted: Final = True

    def __init__(self, ledger: FileLedger) -> None:
        self.ledger: Final = ledger
        self.data_set: Final = ledger.data_set
        self.check, self.entries = ledger.check, ledger.entries  # only paying and settling differ
        self._charges: dict[int, Charge] = {}

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What was charged and not withdrawn, oldest first."""
        return tuple(self._charges.values())

    @property
    def costs(self) -> bool:
        """Whether anything was charged: what is only recorded costs nothing."""
        return self._spent() != NOTHING

    def in_words(self) -> str:
        """What was charged, and where the entry is; nothing if there is none."""
        path = self.ledger.path
        if not self._charges:
            return ""
        numbers = ", ".join(f"{charge.reservation.number} ({charge.outcome.value})" for charge in self.charges)
        where, spent = f"{'entry' if len(self.charges) == 1 else 'entries'} {numbers} of {path}", self._spent()
        if spent == NOTHING:
            return f"Recorded as {where}; nothing was charged."
        return f"Charged: epsilon {spent.epsilon:g}, delta {spent.delta:g}, {where}; it stays spent."

    def record(self) -> dict[str, object]:
        """The same as data."""
        spent = self._spent()
        entries = [{"number": each.reservation.number, "outcome": each.outcome.value} for each in self.charges]
        return {"ledger": str(self.ledger.path), "epsilon": spent.epsilon, "delta": spent.delta, "entries": entries}

    def _spent(self) -> Budget:
        return compose(charge.cost for charge in self.charges)

    def reserve(self, request: Request) -> Reservation:
        before = self.ledger.newest
        try:
            return self.ledger.reserve(request)
        finally:  # also if a signal came when the entry was on the disk already
            made = self.ledger.newest
            if made is not None and made is not before:
                self._charges[made.number] = Charge(made, request.cost)

    def settle(self, reservation: Reservation, outcome: Outcome) -> None:
        """Settle at once what was not released; note what was."""
        charge = self._charges.get(reservation.number)
        if charge is None or charge.reservation != reservation:
            raise LedgerError("This reservation was not made in this ledger.")
        if charge.handed_over:  # the file does not know yet, and would let it be withdrawn
            raise LedgerError("This reservation is settled already; reserve again for another release.")
        if outcome is Outcome.RELEASED:
            charge.handed_over = True
            return
        self.ledger.settle(reservation, outcome)
        charge.outcome = outcome
        if outcome is Outcome.WITHDRAWN:
            del self._charges[reservation.number]

    def finish(self, result: Mapping[str, object] | None = None) -> LedgerError | None:
        """The result is safe: settle as released all that was. Gives why that failed; then the entries stay reserved.

        Args:
            result: a few released numbers to keep with the entries, because they exist nowhere else.
        """
        for charge in self._charges.values():
            if charge.handed_over and charge.outcome is Outcome.RESERVED:
                try:
                    self.ledger.settle(charge.reservation, Outcome.RELEASED, result=result)
                except LedgerError as error:
                    return error
                charge.outcome = Outcome.RELEASED
        return None
