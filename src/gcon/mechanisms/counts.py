"""Counts with whole-number noise: of every node's neighbours by their code, of right answers; and the best of several counts.

Every node has one public code, for instance its label, or the class that released answers give it. One edge {u, v} changes two
entries of the table of neighbour counts by 1, in two different rows: the code of v in row u, and the code of u in row v
(docs/proofs/neighbour-counts.md). In a one-way table only some nodes are counted, those with a public label say, so an edge to
a node that is not counted changes one entry, and gets half of the noise (section 6 there). A single count, and the best of
several, have a pure epsilon of their own.
"""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Generic, NoReturn, TypeVar, final

import torch
from torch import Tensor

from gcon.edges.kernels.multiply import kernel_for
from gcon.edges.source import Edges, RowBlock
from gcon.errors import InputError, PlanMismatchError
from gcon.mechanisms.samplers.geometric import (
    LEAST_RATE,
    MOST_RATE,
    coin_exp,
    shuffled,
    two_sided_geometric,
    two_sided_geometric_numbers,
)
from gcon.privacy.budget import Budget
from gcon.privacy.plan import proven
from gcon.privacy.randomness import Randomness

NumbersT = TypeVar("NumbersT")
EXACT_GEOMETRIC = "two-sided geometric noise, sampled exactly"
CHANGED_ENTRIES = 2  # of a table, by one edge, by 1 each
ENDS_OF_AN_EDGE = 2  # one edge changes the answers of its two ends at most, if everybody is answered from own edges
NAME = "neighbour counts"


@dataclass(frozen=True, eq=False, kw_only=True)
class NoisyCounts:
    """What was released. You can check the noise yourself: its standard deviation is sqrt(2 q)/(1 - q), q = e^-rate.

    Attributes:
        value: n x K whole numbers, int64; noise makes some negative.
        rate: of the noise; infinite without any.
        rounds: how many such tables the budget was split over.
        one_way: whether only some nodes were counted; the rows of those have noise of half the rate.
    """

    value: Tensor
    rate: float
    rounds: int
    one_way: bool = False

    @property
    def standard_deviation(self) -> float:
        """Of an entry; in a one-way table, of nodes that are not counted."""
        return geometric_deviation(self.rate)


def counted_rate(rate: float) -> float:
    """The rate in the rows of nodes that are counted one way: an edge between two of them changes two entries, not one."""
    return rate / CHANGED_ENTRIES


def geometric_deviation(rate: float) -> float:
    """The standard deviation of two-sided geometric noise."""
    return math.sqrt(2) * math.exp(-rate / 2) / -math.expm1(-rate)


@final
@proven("neighbour-counts")
@dataclass(frozen=True, eq=False, kw_only=True)
class NeighbourCounts:
    """One table of noisy counts.

    Attributes:
        codes: of all nodes, whole numbers from 0; public, or computed from what was released before. In a one-way table -1 for
            nodes that nobody counts.
        num_codes: K, public.
        rate: of the noise; infinite without a promise. In a one-way table the rows of nodes with a code have half of it.
        rounds: how many such tables the plan's budget is split over.
        one_way: whether nodes with a code are counted by all, and others by nobody.
        device: where to count.
        reads_edges: whether an edge can change anything in it: a single node has none.
        record: the noise, for the receipt.

    Privacy:
        One edge changes two entries by 1; each is a randomised response of this rate. In a one-way table it changes two entries
        with noise of half the rate, or one entry, or nothing: a pure epsilon of this rate.
    """

    codes: Tensor
    num_codes: int
    rate: float
    rounds: int = 1
    one_way: bool = False
    device: str = "cpu"
    reads_edges: bool = field(init=False)
    record: Mapping[str, object] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """The codes are codes, and there is noise."""
        codes, least = self.codes, -1 if self.one_way else 0
        if type(self.one_way) is not bool or type(self.rounds) is not int:
            raise PlanMismatchError("Counts are one-way or not, and their rounds are a whole number.")
        if (
            codes.dim() != 1
            or len(codes) == 0
            or codes.is_floating_point()
            or not least <= int(codes.min()) <= int(codes.max()) < self.num_codes
        ):
            raise InputError(
                "codes",
                rule=f"must be one whole number per node, from {least} to {self.num_codes - 1}",
                got=f"{str(codes.dtype).removeprefix('torch.')} of shape {tuple(codes.shape)}",
                fix="Number the classes from 0.",
            )
        least_rate = LEAST_RATE / counted_rate(1.0) if self.one_way else LEAST_RATE
        if self.rate != math.inf and not least_rate <= self.rate <= MOST_RATE:
            raise PlanMismatchError(f"Counts need noise of a rate from {least_rate:g} to {MOST_RATE:g}.")
        object.__setattr__(self, "reads_edges", len(codes) > 1)
        record = {
            "statistic": NAME,
            "columns": self.num_codes,
            "rate": self.rate,
            "rounds": self.rounds,
            "standard_deviation": geometric_deviation(self.rate),
            "noise": EXACT_GEOMETRIC,
        }
        if self.one_way:
            record |= {"one_way": True, "counted_deviation": geometric_deviation(counted_rate(self.rate))}
        object.__setattr__(self, "record", record)

    check = __post_init__  # the account asks again before it releases

    @property
    def deviations(self) -> Tensor:
        """The standard deviation of the noise in the rows of all nodes, float64; public."""
        most = geometric_deviation(self.rate)
        if not self.one_way:
            return torch.full((1,), most, dtype=torch.float64).expand(len(self.codes))  # in the memory of one number
        deviations = torch.full((len(self.codes),), most, dtype=torch.float64)
        deviations[self.codes >= 0] = geometric_deviation(counted_rate(self.rate))
        return deviations

    def apply(self, edges: Edges, randomness: Randomness) -> NoisyCounts:
        """The noisy table. Called by the account alone.

        Privacy:
            With all releases of its plan it is (epsilon, delta)-DP for one undirected edge.
        """
        # Tensors can be changed: who is counted, and whose rows get more noise, is asked of one copy.
        codes = self.codes.clone()
        if edges.num_nodes != len(codes):
            raise InputError("codes", rule="must be one per node of the graph", got=len(codes), fix="Count again.")
        # One byte per entry: a processor finds more of the table in its caches. GPUs take four.
        entry = torch.int8 if self.device == "cpu" else torch.int32
        table = torch.zeros(len(codes), self.num_codes, dtype=entry, device=self.device)
        counted = codes >= 0  # all of them, unless the table is one-way
        table.scatter_(1, codes.long().clamp_min(0).to(self.device)[:, None], counted[:, None].to(table))
        value, known = torch.empty(table.shape, dtype=torch.int64), 0
        for counts in edges.map_blocks(_counted, table):
            value[known : known + len(counts)] = counts
            known += len(counts)
        if math.isfinite(self.rate) and len(codes) > 1:
            if self.one_way:
                for rows, rate in ((~counted, self.rate), (counted, counted_rate(self.rate))):
                    value[rows] += two_sided_geometric_numbers(randomness, rate, int(rows.sum()), self.num_codes)
            else:
                value += two_sided_geometric_numbers(randomness, self.rate, *value.shape)
        return NoisyCounts(value=value, rate=self.rate, rounds=self.rounds, one_way=self.one_way)


def _counted(block: RowBlock, table: Tensor) -> Tensor:
    """How many neighbours of every code the nodes of a block have. They may travel: in 4 bytes each, whatever they are."""
    return kernel_for(table).neighbour_totals(block, table).to(torch.int32 if block.num_nodes < 2**31 else torch.int64)


@dataclass(frozen=True, eq=False)
class PureMechanism(ABC, Generic[NumbersT]):
    """Pure epsilon for a whole number, or several, of known sensitivity.

    Attributes:
        epsilon: the budget; infinity adds no noise and promises nothing.
        numbers_of: what is computed from opened edges.
        sensitivity: the largest change of any one of the numbers by one edge, a positive whole number.
        record: all this and the noise, for ledger and receipt.
    """

    epsilon: float
    numbers_of: Callable[[Edges], NumbersT]
    sensitivity: int
    record: Mapping[str, object] = field(init=False, repr=False)
    reads_edges = True  # always: a sensitivity of 0 is refused
    gaussian_distance = None  # totals take a pure epsilon as it is (`gcon.mechanisms.composition`)

    @property
    def budget(self) -> Budget:
        return Budget(self.epsilon, 0.0)

    def _refuse(self) -> NoReturn:
        raise InputError(
            "epsilon, sensitivity",
            rule="must be positive",
            got=(self.epsilon, self.sensitivity),
            fix="For example epsilon 0.1.",
        )


@final
@proven("noisy-count")
@dataclass(frozen=True, eq=False)
class NoisyCount(PureMechanism[int]):
    """Release a count with pure epsilon, by two-sided geometric noise (docs/proofs/noisy-count.md).

    One edge changes the answers of at most two nodes (its ends) under own-edges inference, so a count of correct answers
    changes by at most 2. Noise k has a probability proportional to q^|k|, q = exp(-epsilon / sensitivity): (epsilon, 0)-DP.
    """

    name = "noisy count"
    standard_deviation: float = field(init=False)

    def __post_init__(self) -> None:
        """Epsilon and sensitivity are positive; the standard deviation of the noise is sqrt(2 q) / (1 - q)."""
        if not self.epsilon > 0 or self.sensitivity < 1:
            self._refuse()
        epsilon = float(self.epsilon)
        decay = math.exp(-epsilon / self.sensitivity)
        deviation = math.sqrt(2 * decay) / -math.expm1(-epsilon / self.sensitivity)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "standard_deviation", deviation)
        record = {"epsilon": epsilon, "sensitivity": self.sensitivity, "standard_deviation": deviation}
        object.__setattr__(self, "record", {**record, "noise": EXACT_GEOMETRIC})

    check = __post_init__  # the account asks again before it releases

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

    def __post_init__(self) -> None:
        """Epsilon and sensitivity are positive."""
        if not self.epsilon > 0 or self.sensitivity < 1:
            self._refuse()
        object.__setattr__(self, "epsilon", float(self.epsilon))
        record = {"epsilon": self.epsilon, "sensitivity": self.sensitivity}
        object.__setattr__(self, "record", {**record, "noise": "permute and flip, sampled exactly"})

    check = __post_init__  # the account asks again before it releases

    def apply(self, edges: Edges, randomness: Randomness) -> int:
        """The number of the chosen candidate."""
        value = self.numbers_of(edges)
        largest = max(value)
        if math.isinf(self.epsilon):
            return list(value).index(largest)
        rate = Fraction(repr(self.epsilon)) / self.sensitivity / 2  # of the decimal that the ledger adds up
        order = shuffled(randomness, len(value))
        return next(place for place in order if coin_exp(randomness, rate * (largest - int(value[place]))))
