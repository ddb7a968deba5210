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

from gcon.edges.source import Edges
from gcon.mechanisms.pure import PureMechanism
from gcon.mechanisms.samplers.exact import coin_exp, shuffled
from gcon.privacy.proven import proven
from gcon.privacy.randomness import Randomness


@final
@proven("selection")
@dataclass(frozen=True, eq=False)
class Selection(PureMechanism[Sequence[int]]):
    """Release which candidate has (nearly) the largest count."""

    name = "private selection"

    def public_record(self) -> Mapping[str, object]:
        """The plan's numbers."""
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
