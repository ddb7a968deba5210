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

from gcon.edges.source import Edges
from gcon.mechanisms.pure import PureMechanism
from gcon.mechanisms.samplers.exact import two_sided_geometric
from gcon.privacy.proven import proven
from gcon.privacy.randomness import Randomness


@final
@proven("noisy-count")
@dataclass(frozen=True, eq=False)
class NoisyCount(PureMechanism[int]):
    """Release a count with pure epsilon."""

    name = "noisy count"

    @property
    def standard_deviation(self) -> float:
        """Of the noise: sqrt(2 q) / (1 - q)."""
        decay = math.exp(-self.epsilon / self.sensitivity)
        return math.sqrt(2 * decay) / -math.expm1(-self.epsilon / self.sensitivity)

    def public_record(self) -> Mapping[str, object]:
        """The plan's numbers."""
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
