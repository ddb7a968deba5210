"""A count that may be published: two-sided geometric noise on a whole number of known sensitivity.

One edge changes the answers of at most two nodes (its ends) under own-edges inference, so a count of correct answers
changes by at most 2. Adding noise k with probability proportional to q^|k|, q = exp(-epsilon / sensitivity), makes the
count (epsilon, 0)-DP (docs/proofs/noisy-count.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from gcon.errors import InputError, PlanMismatchError
from gcon.perturb.exact import two_sided_geometric
from gcon.privacy.boundary import Private
from gcon.privacy.budget import Budget
from gcon.privacy.randomness import Randomness


@dataclass(frozen=True, eq=False)
class BoundedCount:
    """A private whole number, and how much one edge can change it."""

    value: Private[int]
    sensitivity: int


@final
@dataclass(frozen=True)
class NoisyCount:
    """Release a count with pure epsilon.

    Attributes:
        epsilon: the budget; infinity adds no noise and promises nothing.
        sensitivity: the largest change that one edge can cause, a positive whole number.
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
    def name(self) -> str:
        """The name in the ledger."""
        return "noisy count"

    @property
    def budget(self) -> Budget:
        """(epsilon, 0)."""
        return Budget(self.epsilon, 0.0)

    @property
    def standard_deviation(self) -> float:
        """Of the noise: sqrt(2 q) / (1 - q)."""
        decay = math.exp(-self.epsilon / self.sensitivity)
        return math.sqrt(2 * decay) / -math.expm1(-self.epsilon / self.sensitivity)

    def public_record(self) -> Mapping[str, object]:
        """The plan's numbers."""
        return {"epsilon": self.epsilon, "sensitivity": self.sensitivity, "standard_deviation": self.standard_deviation}

    def check(self, bounded: BoundedCount) -> None:
        """Refuse a count that one edge can change by more than this plan covers."""
        if not self.sensitivity >= bounded.sensitivity:
            raise PlanMismatchError(
                f"plan made for sensitivity {self.sensitivity}; the count carries {bounded.sensitivity}."
            )

    def apply(self, value: int, randomness: Randomness) -> int:
        """The count plus noise; it may be negative or too large, which is part of the promise."""
        if math.isinf(self.epsilon):
            return int(value)
        rate = Fraction(repr(self.epsilon)) / self.sensitivity  # the decimal that the ledger adds up
        return int(value) + two_sided_geometric(randomness, rate)
