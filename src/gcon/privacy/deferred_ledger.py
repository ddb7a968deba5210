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
from dataclasses import dataclass, replace
from typing import Final, final

from gcon.errors import LedgerError
from gcon.privacy.budget import NOTHING, Budget, compose
from gcon.privacy.ledger import LedgerEntry, Outcome, Request, Reservation
from gcon.privacy.ledger_file import FileLedger


@dataclass(frozen=True, kw_only=True)
class Charge:
    """One entry of the ledger that this process made.

    Attributes:
        reservation: to settle it.
        entry: as the ledger has it.
        handed_over: something was released, and is settled as that once it is safe.
    """

    reservation: Reservation
    entry: LedgerEntry
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
        # Only paying and settling differ.
        self.check, self.entries, self.total, self.ceiling = ledger.check, ledger.entries, ledger.total, ledger.ceiling
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
        numbers = ", ".join(f"{charge.entry.number} ({charge.entry.outcome.value})" for charge in self.charges)
        where, spent = f"{'entry' if len(self.charges) == 1 else 'entries'} {numbers} of {path}", self._spent()
        if spent == NOTHING:
            return f"Recorded as {where}; nothing was charged."
        return f"Charged: epsilon {spent.epsilon:g}, delta {spent.delta:g}, {where}; it stays spent."

    def record(self) -> dict[str, object]:
        """The same as data."""
        spent = self._spent()
        entries = [{"number": each.entry.number, "outcome": each.entry.outcome.value} for each in self.charges]
        return {"ledger": str(self.ledger.path), "epsilon": spent.epsilon, "delta": spent.delta, "entries": entries}

    def _spent(self) -> Budget:
        return compose(charge.entry.request.cost for charge in self.charges)

    def reserve(self, request: Request) -> Reservation:
        """Charge a request, on disk."""
        before = self.ledger.newest
        try:
            self.ledger.reserve(request)
        finally:  # also if a signal came when the entry was on the disk already
            made = self.ledger.newest
            if made is not None and made is not before:
                entry = LedgerEntry(
                    number=made.number,
                    time=made.time,
                    data_set=self.data_set,
                    request=request,
                    outcome=Outcome.RESERVED,
                )
                self._charges[made.number] = Charge(reservation=made, entry=entry)
        assert made is not None
        return made

    def settle(self, reservation: Reservation, outcome: Outcome) -> LedgerEntry:
        """Settle at once what was not released; note what was."""
        number = reservation.number
        if outcome is not Outcome.RELEASED:
            entry = self.ledger.settle(reservation, outcome)
            if outcome is Outcome.WITHDRAWN:
                del self._charges[number]
            else:
                self._charges[number] = replace(self._charges[number], entry=entry)
            return entry
        charge = self._charges[number]
        self._charges[number] = replace(charge, handed_over=True)
        return replace(charge.entry, outcome=outcome)

    def finish(self, result: Mapping[str, object] | None = None) -> LedgerError | None:
        """The result is safe: settle as released all that was. Gives why that failed; then the entries stay reserved.

        Args:
            result: a few released numbers to keep with the entries, because they exist nowhere else.
        """
        for number, charge in self._charges.items():
            if charge.handed_over and charge.entry.outcome is Outcome.RESERVED:
                try:
                    entry = self.ledger.settle(charge.reservation, Outcome.RELEASED, result=result)
                except LedgerError as error:
                    return error
                self._charges[number] = replace(charge, entry=entry)
        return None
