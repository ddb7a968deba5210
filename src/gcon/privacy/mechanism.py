"""The line between what costs and what is free.

A *mechanism* takes bounded private values, a budget and randomness, and gives something that may be published. An
*estimator* is everything done afterwards with what was published and with public data: it is free, and needs nothing
from this module. The perturbed objective is one mechanism; a noisy statistic is another one behind the same gate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from gcon.privacy.boundary import Private
from gcon.privacy.budget import Budget
from gcon.privacy.randomness import Randomness


class BoundedPrivate(Protocol):
    """A private value that travels with a proven bound on what one edge can change in it."""

    @property
    def value(self) -> Private[Any]:
        """The private value."""


Bounded_contra = TypeVar("Bounded_contra", bound=BoundedPrivate, contravariant=True)
Released_co = TypeVar("Released_co", covariant=True)


class Mechanism(Protocol[Bounded_contra, Released_co]):
    """Bounded private values + budget + randomness -> something released."""

    @property
    def name(self) -> str:
        """The name in the ledger."""

    @property
    def budget(self) -> Budget:
        """What one application costs."""

    def public_record(self) -> Mapping[str, object]:
        """The noise plan as public numbers, for ledger and receipt."""

    def check(self, bounded: Bounded_contra) -> None:
        """Raise unless the plan covers the bound that the values carry. Reads public facts only."""

    def apply(self, value: Any, randomness: Randomness) -> Released_co:
        """Compute what is released from the opened value. Called by the gate alone."""
