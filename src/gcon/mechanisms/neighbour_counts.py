"""How many neighbours of each code a node has: whole numbers, with whole-number noise (docs/proofs/neighbour-counts.md).

Every node has one public code, for instance its label, or the class that released answers give it. One edge {u, v} changes two
entries of the table by 1, in two different rows: the code of v in row u, and the code of u in row v.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

import torch
from torch import Tensor

from gcon.edges.kernels.multiply import neighbour_totals
from gcon.edges.source import Edges
from gcon.errors import InputError, PlanMismatchError
from gcon.mechanisms.samplers.geometric import LEAST_RATE, MOST_RATE, two_sided_geometric_numbers
from gcon.privacy.plan import proven
from gcon.privacy.randomness import Randomness

EXACT_GEOMETRIC = "two-sided geometric noise, sampled exactly"
CHANGED_ENTRIES = 2  # by one edge, by 1 each
NAME = "neighbour counts"


@dataclass(frozen=True, eq=False, kw_only=True)
class NoisyCounts:
    """What was released. You can check the noise yourself: its standard deviation is sqrt(2 q)/(1 - q), q = e^-rate.

    Attributes:
        value: n x K whole numbers, int64; noise makes some negative.
        rate: of the noise; infinite without any.
        rounds: how many such tables the budget was split over.
    """

    value: Tensor
    rate: float
    rounds: int

    @property
    def standard_deviation(self) -> float:
        return geometric_deviation(self.rate)


def geometric_deviation(rate: float) -> float:
    """The standard deviation of two-sided geometric noise."""
    return math.sqrt(2) * math.exp(-rate / 2) / -math.expm1(-rate)


@final
@proven("neighbour-counts")
@dataclass(frozen=True, eq=False, kw_only=True)
class NeighbourCounts:
    """One table of noisy counts.

    Attributes:
        codes: of all nodes, whole numbers from 0; public, or computed from what was released before.
        num_codes: K, public.
        rate: of the noise; infinite without a promise.
        rounds: how many such tables the plan's budget is split over.
        device: where to count.
        reads_edges: whether an edge can change anything in it: a single node has none.

    Privacy:
        One edge changes two entries by 1; each is a randomised response of this rate.
    """

    codes: Tensor
    num_codes: int
    rate: float
    rounds: int = 1
    device: str = "cpu"
    reads_edges: bool = field(init=False)

    def __post_init__(self) -> None:
        """The codes are codes, and there is noise."""
        codes = self.codes
        if (
            codes.dim() != 1
            or len(codes) == 0
            or codes.is_floating_point()
            or not 0 <= int(codes.min()) <= int(codes.max()) < self.num_codes
        ):
            raise InputError(
                "codes",
                rule=f"must be one whole number per node, from 0 to {self.num_codes - 1}",
                got=f"{str(codes.dtype).removeprefix('torch.')} of shape {tuple(codes.shape)}",
                fix="Number the classes from 0.",
            )
        if self.rate != math.inf and not LEAST_RATE <= self.rate <= MOST_RATE:
            raise PlanMismatchError(f"Counts need noise of a rate from {LEAST_RATE:g} to {MOST_RATE:g}.")
        object.__setattr__(self, "reads_edges", len(codes) > 1)

    check = __post_init__  # the account asks again before it releases

    def public_record(self) -> Mapping[str, object]:
        return {
            "statistic": NAME,
            "columns": self.num_codes,
            "rate": self.rate,
            "rounds": self.rounds,
            "standard_deviation": geometric_deviation(self.rate),
            "noise": EXACT_GEOMETRIC,
        }

    def apply(self, edges: Edges, randomness: Randomness) -> NoisyCounts:
        """The noisy table. Called by the account alone.

        Privacy:
            With all releases of its plan it is (epsilon, delta)-DP for one undirected edge.
        """
        if edges.num_nodes != len(self.codes):
            raise InputError("codes", rule="must be one per node of the graph", got=len(self.codes), fix="Count again.")
        table = torch.zeros(len(self.codes), self.num_codes, dtype=torch.int32, device=self.device)
        table.scatter_(1, self.codes.long().to(self.device)[:, None], 1)
        value, counted = torch.empty(table.shape, dtype=torch.int64), 0
        for counts in edges.map_blocks(neighbour_totals, table):
            value[counted : counted + len(counts)] = counts
            counted += len(counts)
        if math.isfinite(self.rate) and len(self.codes) > 1:
            value += two_sided_geometric_numbers(randomness, self.rate, *value.shape)
        return NoisyCounts(value=value, rate=self.rate, rounds=self.rounds)
