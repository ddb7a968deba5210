"""What is left of a ledger in a model that was stored: its name. Two copies of a ledger could both spend what is left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NoReturn, final

from gcon.errors import LedgerError
from gcon.privacy.ledger import LedgerEntry, Outcome, Request, Reservation


@final
class DetachedLedger:
    """Stands where a ledger was before a model was stored, and pays for nothing.

    Args:
        data_set: the owner's name for the data.
    """

    counted: Final = True

    def __init__(self, data_set: str) -> None:
        self.data_set: Final = data_set

    def __repr__(self) -> str:
        return f"<detached from the ledger of {self.data_set!r} when it was stored: pays for nothing>"

    def reserve(self, request: Request) -> Reservation:
        """Refuse."""
        self._refuse()

    def check(self, request: Request) -> None:
        """Refuse."""
        self._refuse()

    def settle(self, reservation: Reservation, outcome: Outcome) -> None:
        """Refuse."""
        self._refuse()

    def entries(self) -> Sequence[LedgerEntry]:
        """None are known here."""
        return ()

    def _refuse(self) -> NoReturn:
        raise LedgerError(
            f"ledger: this model was stored without the ledger of {self.data_set!r}, and nothing is trained unpaid. Give it "
            "one: model.set_params(ledger=...)."
        )
