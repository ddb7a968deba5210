"""The receipt that travels with everything that was released."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gcon.privacy.budget import Budget


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """What was paid for a release, and what is promised: public numbers and words only.

    Attributes:
        budget: the (epsilon, delta) of this release alone.
        keeps_promise: False for a seeded release or infinite epsilon.
        plan: every number of the noise plan.
        total: all that the ledger held after this release, by basic composition.
        counted: False where no ledger was given: the total is what one process knew.
    """

    time: str
    data_set: str
    protected_change: str
    mechanism: str
    purpose: str
    budget: Budget
    keeps_promise: bool
    randomness: str
    plan: Mapping[str, object]
    total: Budget
    counted: bool = True
