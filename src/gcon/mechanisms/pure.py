"""Mechanisms with pure epsilon on whole numbers of known sensitivity: a count that may be published, and the best of several."""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar, final

from gcon.edges.source import Edges
from gcon.errors import InputError
from gcon.mechanisms.samplers.geometric import coin_exp, shuffled, two_sided_geometric
from gcon.privacy.budget import Budget
from gcon.privacy.plan import proven
from gcon.privacy.randomness import Randomness

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
        return Budget(self.epsilon, 0.0)

    @property
    def gaussian_distance(self) -> None:
        """Totals take a pure epsilon as it is (`gcon.mechanisms.composition`)."""

    @property
    def reads_edges(self) -> bool:
        """Always: a sensitivity of 0 is refused."""
        return True


@final
@proven("noisy-count")
@dataclass(frozen=True, eq=False)
class NoisyCount(PureMechanism[int]):
    """Release a count with pure epsilon, by two-sided geometric noise (docs/proofs/noisy-count.md).

    One edge changes the answers of at most two nodes (its ends) under own-edges inference, so a count of correct answers
    changes by at most 2. Noise k has a probability proportional to q^|k|, q = exp(-epsilon / sensitivity): (epsilon, 0)-DP.
    """

    name = "noisy count"

    @property
    def standard_deviation(self) -> float:
        """Of the noise: sqrt(2 q) / (1 - q)."""
        decay = math.exp(-self.epsilon / self.sensitivity)
        return math.sqrt(2 * decay) / -math.expm1(-self.epsilon / self.sensitivity)

    def public_record(self) -> Mapping[str, object]:
        return {
            "epsilon": self.epsilon,
            "sensitivity": self.sensitivity,
            "standard_deviation": self.standard_deviation,
            "noise": "two-sided geometric noise, sampled exactly",
        }

    def apply(self, edges: Edges, randomness: Randomness) -> int:
        """The count plus noise; it may be negative or too large, which is part of the promise."""
        value = int(self.numbers_of(edges))
        if math.isinf(self.epsilon):
            return value
        rate = Fraction(repr(self.epsilon)) / self.sensitivity  # of the decimal that the ledger adds up
        return value + two_sided_geometric(randomness, rate)


@final
@proven("selection")
@dataclass(frozen=True, eq=False)
class Selection(PureMechanism[Sequence[int]]):
    """Release which candidate has (nearly) the largest count (docs/proofs/selection.md).

    Permute-and-flip (McKenna and Sheldon 2020): go through the candidates in random order and take each with probability
    exp(-epsilon (largest count - its count) / (2 sensitivity)); the largest is always taken. This is report-noisy-max with
    exponential noise, so it is (epsilon, 0)-DP, and it errs less than Gumbel noise of the same budget. Whole counts and rational
    coins: the sampling is exact.
    """

    name = "private selection"

    def public_record(self) -> Mapping[str, object]:
        return {
            "epsilon": self.epsilon,
            "sensitivity": self.sensitivity,
            "noise": "permute and flip, sampled exactly",
        }

    def apply(self, edges: Edges, randomness: Randomness) -> int:
        """The number of the chosen candidate."""
        value = self.numbers_of(edges)
        largest = max(value)
        if math.isinf(self.epsilon):
            return list(value).index(largest)
        rate = Fraction(repr(self.epsilon)) / self.sensitivity / 2  # of the decimal that the ledger adds up
        order = shuffled(randomness, len(value))
        return next(place for place in order if coin_exp(randomness, rate * (largest - int(value[place]))))
