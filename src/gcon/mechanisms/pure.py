"""What mechanisms with pure epsilon on whole numbers share: the numbers with their bound, and the budget."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from gcon.edges.source import Edges
from gcon.errors import InputError
from gcon.privacy.budget import Budget

NumbersT = TypeVar("NumbersT")
ENDS_OF_AN_EDGE = 2  # one edge changes the answers of its two ends at most, if everybody is answered from own edges


@dataclass(frozen=True, eq=False)
class PureMechanism(ABC, Generic[NumbersT]):
    """Pure epsilon for a whole number, or several, of known sensitivity.

    Attributes:
        epsilon: the budget; infinity adds no noise and promises nothing.
        numbers_of: what is computed from opened edges.
        sensitivity: the largest change of any one of the numbers by one edge, a positive whole number.
    """

    epsilon: float
    numbers_of: Callable[[Edges], NumbersT]
    sensitivity: int

    def __post_init__(self) -> None:
        """Epsilon and sensitivity are positive."""
        if not self.epsilon > 0 or self.sensitivity < 1:
            raise InputError(
                "epsilon, sensitivity",
                rule="must be positive",
                got=(self.epsilon, self.sensitivity),
                fix="For example epsilon 0.1.",
            )
        object.__setattr__(self, "epsilon", float(self.epsilon))

    check = __post_init__  # the account asks again before it releases

    @property
    def budget(self) -> Budget:
        """(epsilon, 0)."""
        return Budget(self.epsilon, 0.0)

    @property
    def gaussian_distance(self) -> None:
        """Totals take a pure epsilon as it is (`gcon.mechanisms.composition`)."""

    @property
    def reads_edges(self) -> bool:
        """Always: a sensitivity of 0 is refused."""
        return True
