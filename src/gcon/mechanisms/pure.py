"""What mechanisms with pure epsilon on whole numbers share: the budget, the bound, and exact rates."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from gcon.errors import InputError, PlanMismatchError
from gcon.privacy.budget import Budget


class BoundedWhole(Protocol):
    """Private whole numbers that travel with a proven sensitivity."""

    @property
    def sensitivity(self) -> int:
        """The largest change that one edge can cause in any of them."""


@dataclass(frozen=True)
class PureMechanism(ABC):
    """A plan of pure epsilon for whole numbers of known sensitivity.

    Attributes:
        epsilon: the budget; infinity adds no noise and promises nothing.
        sensitivity: the largest change of any one number by one edge, a positive whole number.
    """

    epsilon: float
    sensitivity: int

    def __post_init__(self) -> None:
        if not self.epsilon > 0 or self.sensitivity < 1:
            raise InputError(
                "epsilon, sensitivity",
                rule="must be positive",
                got=(self.epsilon, self.sensitivity),
                fix="For example epsilon 0.1.",
            )
        object.__setattr__(self, "epsilon", float(self.epsilon))

    @property
    def budget(self) -> Budget:
        """(epsilon, 0)."""
        return Budget(self.epsilon, 0.0)

    def check(self, bounded: BoundedWhole) -> None:
        """Refuse numbers that one edge can change by more than this plan covers."""
        if not self.sensitivity >= bounded.sensitivity:
            raise PlanMismatchError(
                f"plan made for sensitivity {self.sensitivity}; what is to be released carries {bounded.sensitivity}."
            )

    def _rate(self) -> Fraction:
        """Epsilon over the sensitivity, for the decimal that epsilon prints as: what the ledger adds up."""
        return Fraction(repr(self.epsilon)) / self.sensitivity
