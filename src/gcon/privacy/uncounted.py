"""What stands in for a ledger where none was given: nobody adds up what is released, but for this process, which warns."""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from dataclasses import replace
from typing import Final, final

from gcon.errors import PromiseWarning, warn_caller
from gcon.privacy.budget import NOTHING, ExactTotal
from gcon.privacy.ledger import MemoryLedger, Outcome, Request, Reservation

# By process and public node table: what a fork inherited was not spent by it.
_spent: defaultdict[tuple[int, str], ExactTotal] = defaultdict(ExactTotal)
_lock = threading.Lock()


@final
class UncountedLedger:
    """Entries of one fit, and the total of all fits of this process on the same public node table that were given no ledger.

    Args:
        data_set: the owner's name for the data.
        nodes: checksum of the public node table.

    Privacy:
        Holds public numbers and words only. From the second release on it warns; it has no ceiling and refuses nothing.
    """

    counted: Final = False

    def __init__(self, data_set: str, nodes: str) -> None:
        self.data_set: Final = data_set
        self._books = MemoryLedger(data_set)
        self.check, self.entries = self._books.check, self._books.entries  # only paying and settling differ
        with _lock:
            self._spent = _spent[os.getpid(), nodes]

    def reserve(self, request: Request) -> Reservation:
        """Charge a request; warn if it is not the first one."""
        reservation = self._books.reserve(request)
        with _lock:
            before = self._spent.rounded()
            self._spent.add(request.cost)
            total = self._spent.rounded()
        if before != NOTHING and request.cost != NOTHING:
            warn_caller(
                f"Released again without a ledger: this process has now spent epsilon {total.epsilon:g}, delta {total.delta:g} "
                "on the same node table, and nobody counts what others release. Pass ledger=gcon.FileLedger(...), kept with the "
                "edges.",
                PromiseWarning,
            )
        return replace(reservation, total=total)

    def settle(self, reservation: Reservation, outcome: Outcome) -> None:
        """Say what became of a reservation, once."""
        self._books.settle(reservation, outcome)
        if outcome is Outcome.WITHDRAWN:
            with _lock:
                self._spent.add(self.entries()[reservation.number].request.cost, -1)
