"""The best of several candidates, chosen privately: counts of known sensitivity in, the number of one candidate out.

Permute-and-flip (McKenna and Sheldon 2020): go through the candidates in random order and take each with probability
exp(-epsilon (largest count - its count) / (2 sensitivity)); the largest is always taken. This is report-noisy-max with
exponential noise, so it is (epsilon, 0)-DP, and it errs less than Gumbel noise of the same budget
(docs/proofs/selection.md). Whole counts and rational coins: the sampling is exact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from gcon.errors import InputError, PlanMismatchError
from gcon.perturb.exact import coin_exp, shuffled
from gcon.privacy.boundary import Private
from gcon.privacy.budget import Budget
from gcon.privacy.randomness import Randomness


@dataclass(frozen=True, eq=False)
class BoundedCounts:
    """Private whole numbers, one a candidate, and how much one edge can change each of them."""

    value: Private[Sequence[int]]
    sensitivity: int


@final
@dataclass(frozen=True)
class Selection:
    """Release which candidate has (nearly) the largest count.

    Attributes:
        epsilon: the budget; infinity takes the largest and promises nothing.
        sensitivity: the largest change of any one count by one edge, a positive whole number.
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
        return "private selection"

    @property
    def budget(self) -> Budget:
        """(epsilon, 0)."""
        return Budget(self.epsilon, 0.0)

    def public_record(self) -> Mapping[str, object]:
        """The plan's numbers."""
        return {"epsilon": self.epsilon, "sensitivity": self.sensitivity}

    def check(self, bounded: BoundedCounts) -> None:
        """Refuse counts that one edge can change by more than this plan covers."""
        if not self.sensitivity >= bounded.sensitivity:
            raise PlanMismatchError(
                f"plan made for sensitivity {self.sensitivity}; the counts carry {bounded.sensitivity}."
            )

    def apply(self, value: Sequence[int], randomness: Randomness) -> int:
        """The number of the chosen candidate."""
        largest = max(value)
        if math.isinf(self.epsilon):
            return list(value).index(largest)
        # The decimal that epsilon prints as, which is what the ledger adds up.
        rate = Fraction(repr(self.epsilon)) / (2 * self.sensitivity)
        order = shuffled(randomness, len(value))
        return next(place for place in order if coin_exp(randomness, rate * (largest - int(value[place]))))
