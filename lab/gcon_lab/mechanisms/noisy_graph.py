"""A noisy graph that may be published, with pure epsilon: what DPGCN trains on (docs/proofs/noisy-graph.md).

One edge is one bit of the private data: the bit of its unordered pair. Two mechanisms hide every single bit:

- `RandomFlips` (EdgeRand): every pair's bit is flipped with probability 1/(1 + e^epsilon), rounded up, independently.
- `TopPairs` (LapGraph): a noisy number of edges; then the pairs with the largest bits after Laplace noise.

Both draw only what they keep, never a dense matrix. Pairs i < j are numbered j (j - 1)/2 + i.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

import numpy as np
import torch

from gcon.edges.edge_list import EdgeList, public_edges
from gcon.errors import InputError, PlanMismatchError, check_number
from gcon.mechanisms.samplers.geometric import two_sided_geometric
from gcon.privacy.budget import Budget
from gcon.privacy.plan import proven
from gcon.privacy.randomness import Randomness
from gcon_lab.mechanisms.samplers import laplaces, open_uniforms

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
Floats = np.ndarray[tuple[int], np.dtype[np.float64]]

MOST_PAIRS = 50_000_000
MOST_NODES = 100_000_000  # pair numbers and their square roots stay exact far beyond this
LARGEST_EPSILON = 16.0  # beyond, 52 random bits a number would not resolve the law
_ROUNDING = 1e-9  # the noise is this much larger than needed: it covers rounding of its scale
_GRID = 2.0**-37  # over f: what 52 bits a gap can move the ratio of two probabilities by, relatively
_TAIL = 2.0**-10  # a longer gap between flips is drawn in several parts


@dataclass(frozen=True, kw_only=True)
class _NoisyGraph:
    """What the two mechanisms share.

    Attributes:
        epsilon: the budget, at most 16; infinity returns the graph as it is and promises nothing.
        num_nodes: the public number of nodes.
        most_pairs: a setting that is expected to need more pairs than this is refused before anything is paid.
    """

    name: ClassVar[str]
    reads_edges = True
    gaussian_distance = None  # totals take a pure epsilon as it is

    epsilon: float
    num_nodes: int
    most_pairs: int = MOST_PAIRS

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """All settings are in their ranges, and the noisy graph is not expected to be too large."""
        check_number(
            "epsilon",
            self.epsilon,
            allowed=lambda number: 0 < number <= LARGEST_EPSILON or number == math.inf,
            rule=f"must lie in (0, {LARGEST_EPSILON:g}], or be infinite (no noise, no promise)",
            fix="Smaller is more private; 0.5 to 4 is usual.",
        )
        for parameter, most in (("num_nodes", MOST_NODES), ("most_pairs", MOST_PAIRS * 100)):
            check_number(
                parameter,
                getattr(self, parameter),
                allowed=lambda number, most=most: 1 <= number <= most,  # type: ignore[misc]
                rule=f"must be a whole number from 1 to {most}",
                fix="Give the public number of nodes, and leave most_pairs out.",
                whole=True,
            )
        object.__setattr__(self, "epsilon", float(self.epsilon))
        if math.isfinite(self.epsilon) and not self.expected_noise_pairs <= self.most_pairs:
            raise InputError(
                "epsilon",
                rule=f"the noisy graph must not be expected to hold more than most_pairs = {self.most_pairs:,} false pairs",
                got=f"epsilon {self.epsilon:g} on {self.num_nodes:,} nodes, about {self.expected_noise_pairs:,.0f} pairs",
                fix="Skip this setting and say so, choose a larger epsilon, or raise most_pairs if memory allows.",
            )

    @property
    def num_pairs(self) -> int:
        """P = n (n - 1)/2."""
        return self.num_nodes * (self.num_nodes - 1) // 2

    @property
    def budget(self) -> Budget:
        return Budget(self.epsilon, 0.0)

    @property
    def expected_noise_pairs(self) -> float:
        """How many pairs the noise alone is expected to need; it does not depend on the edges."""
        raise NotImplementedError

    def apply(self, edges: EdgeList, randomness: Randomness) -> EdgeList:
        if edges.num_nodes != self.num_nodes:
            raise PlanMismatchError(f"plan made for {self.num_nodes} nodes; the graph has {edges.num_nodes}.")
        if math.isinf(self.epsilon):
            return edges
        return edges_of(self._noisy(numbers_of(edges), randomness), self.num_nodes)

    def _noisy(self, edges: Numbers, randomness: Randomness) -> Numbers:
        """Numbers of the pairs that are edges of the noisy graph, from those of the true graph in rising order."""
        raise NotImplementedError


@final
@proven("noisy-graph")
@dataclass(frozen=True, kw_only=True)
class RandomFlips(_NoisyGraph):
    """EdgeRand: flip the bit of every pair with probability f = 1/(1 + e^epsilon), rounded up.

    Which bits are flipped is drawn without looking at the edges: the gaps between flipped pairs are geometric. The
    released graph is the symmetric difference of the true edges and the flipped pairs.

    Example:
        >>> round(RandomFlips(epsilon=4.0, num_nodes=19717).expected_noise_pairs / 1e6, 1)
        3.5

    Privacy:
        (epsilon, 0): when one bit changes, the probability of every graph changes by the factor e^epsilon at most.
    """

    name = "noisy graph by random flips (EdgeRand)"

    @property
    def flip_probability(self) -> float:
        """The probability of every flip: 1/(1 + e^epsilon) and a relative 1e-9 more, at most 1/2."""
        if math.isinf(self.epsilon):
            return 0.0
        needed = 1 / (1 + math.exp(self.epsilon))
        return min(needed * (1 + _ROUNDING) + _GRID, 0.5)

    @property
    def expected_noise_pairs(self) -> float:
        """The expected number f P of flipped pairs."""
        return self.flip_probability * self.num_pairs

    @property
    def record(self) -> Mapping[str, object]:
        return {
            "epsilon": self.epsilon,
            "num_pairs": self.num_pairs,
            "flip_probability": self.flip_probability,
            "expected_flips": self.expected_noise_pairs,
            "sensitivity": "one bit",
            "most_pairs": self.most_pairs,
        }

    def _noisy(self, edges: Numbers, randomness: Randomness) -> Numbers:
        flips = independent_places(randomness, self.num_pairs, self.flip_probability)
        return np.setxor1d(edges, flips, assume_unique=True)


@final
@proven("noisy-graph")
@dataclass(frozen=True, kw_only=True)
class TopPairs(_NoisyGraph):
    """LapGraph: a noisy number of edges, then as many pairs with the largest noisy bits.

    The count gets two-sided geometric noise of rate `count_share` epsilon instead of the published rounded Laplace noise:
    the count is a whole number of sensitivity 1, so this is the same promise with the noise drawn exactly. The bits get
    Laplace noise of scale 1/((1 - count_share) epsilon). The count is clipped to [0, min(P, most_pairs)], which is free.

    Attributes:
        count_share: the share of epsilon that the count costs, in (0, 1).

    Privacy:
        (epsilon, 0): one edge changes the count by 1 and one bit by 1; the two costs add to epsilon.
    """

    name = "noisy graph of top pairs (LapGraph)"

    count_share: float = 0.01

    def __post_init__(self) -> None:
        check_number(
            "count_share",
            self.count_share,
            allowed=lambda number: 0 < number < 1,
            rule="must lie strictly between 0 and 1",
            fix="0.01 is usual.",
        )
        super().__post_init__()

    @property
    def count_epsilon(self) -> Fraction:
        """What the count costs, as an exact fraction."""
        return Fraction(self.epsilon) * Fraction(self.count_share)

    @property
    def scale(self) -> float:
        """Of the Laplace noise on every bit; rounded up."""
        if math.isinf(self.epsilon):
            return 0.0
        return (1 + _ROUNDING) / float(Fraction(self.epsilon) - self.count_epsilon)

    @property
    def expected_noise_pairs(self) -> float:
        """How far the count is off, on average: about one over its epsilon."""
        return float(1 / self.count_epsilon) if math.isfinite(self.epsilon) else 0.0

    @property
    def record(self) -> Mapping[str, object]:
        finite = math.isfinite(self.epsilon)
        return {
            "epsilon": self.epsilon,
            "num_pairs": self.num_pairs,
            "count_share": self.count_share,
            "count_epsilon": float(self.count_epsilon) if finite else math.inf,
            "count_sensitivity": 1,
            "scale": self.scale,
            "sensitivity": "1 in absolute sum",
            "most_pairs": self.most_pairs,
        }

    def _noisy(self, edges: Numbers, randomness: Randomness) -> Numbers:
        count = len(edges) + two_sided_geometric(randomness, self.count_epsilon)
        kept = min(max(count, 0), self.num_pairs, self.most_pairs)
        return top_pairs(randomness, edges, num_pairs=self.num_pairs, kept=kept, scale=self.scale)


def independent_places(randomness: Randomness, size: int, probability: float) -> Numbers:
    """Each of the places 0 to size - 1 with the given probability, independently; in rising order.

    The number of places before the next one that is taken is geometric: floor(log U / log(1 - probability)). A gap that
    would be improbably long is cut there and drawn on, which the law without memory allows: so arbitrarily long gaps have
    their right probability although a random number has 52 bits only.
    """
    decay = math.log1p(-probability)
    longest = min(math.ceil(math.log(_TAIL) / decay), size)
    parts: list[Numbers] = []
    start = 0
    while start < size:
        expected = (size - start) * probability
        draws = int(expected * (1 + 2 * _TAIL) + 4 * math.sqrt(expected)) + 16
        gaps = np.floor(np.log(open_uniforms(randomness, draws).numpy()) / decay)
        taken = gaps < longest
        steps = np.where(taken, gaps + 1, longest).astype(np.int64)  # places passed, the taken one included
        ends = start + np.cumsum(steps)
        parts.append(ends[taken] - 1)
        start = int(ends[-1])
    places = np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
    return places[places < size]


def top_pairs(randomness: Randomness, edges: Numbers, *, num_pairs: int, kept: int, scale: float) -> Numbers:
    """The `kept` pairs with the largest bit + Laplace(scale), without drawing noise for every pair.

    Of the noise on pairs that are no edges, only the largest `kept` values matter; they are drawn as order statistics.
    Which pairs carry them is a uniformly random set.

    Args:
        randomness: the source.
        edges: numbers of the pairs with bit 1, in rising order.
        num_pairs: of how many.
        kept: from 0 to num_pairs.
        scale: of the noise.
    """
    others = num_pairs - len(edges)
    noisy_ones = 1 + scale * laplaces(randomness, len(edges)).numpy()
    noisy_zeros = scale * largest_laplaces(randomness, min(kept, others), of=others)
    values = np.concatenate([noisy_ones, noisy_zeros])
    best = np.argpartition(-values, kept - 1)[:kept] if 0 < kept < len(values) else np.arange(len(values))[:kept]
    ones = edges[best[best < len(edges)]]
    ranks = distinct_below(randomness, others, kept - len(ones))
    # Before edge e_i lie e_i - i pairs that are no edges: so many edges precede the pair of rank r among those.
    zeros = ranks + np.searchsorted(edges - np.arange(len(edges)), ranks, side="right")
    return np.concatenate([ones, zeros])


def largest_laplaces(randomness: Randomness, count: int, *, of: int) -> Floats:
    """The `count` largest of `of` independent Laplace numbers of scale 1, falling.

    The tail probabilities s_1 < s_2 < ... of the largest are the smallest of `of` uniform numbers: with V uniform,
    log(1 - s_j) = sum over i <= j of log(V_i) / (of - i + 1).
    """
    below = np.cumsum(np.log(open_uniforms(randomness, count).numpy()) / (of - np.arange(count)))
    tails = -np.expm1(below)
    values: Floats = np.where(tails < 0.5, -np.log(2 * tails), math.log(2) + below)
    return values


def distinct_below(randomness: Randomness, limit: int, count: int) -> Numbers:
    """A uniformly random set of `count` of the numbers 0 to limit - 1, in rising order."""
    if 2 * count > limit:  # draw the few that are left out
        left = np.ones(limit, dtype=bool)
        left[distinct_below(randomness, limit, limit - count)] = False
        return np.flatnonzero(left)
    found = np.empty(0, dtype=np.int64)
    while len(found) < count:  # repeats are drawn again, one at a time in effect: every set is equally likely
        found = np.union1d(found, _uniform_below(randomness, limit, count - len(found)))
    return found


def numbers_of(edges: EdgeList) -> Numbers:
    """The pair numbers of all edges, in rising order."""
    high, low = edges.edge_index().numpy()
    once = low < high
    return pair_numbers(low[once], high[once])


def edges_of(numbers: Numbers, num_nodes: int) -> EdgeList:
    """The public graph with these pairs as edges."""
    return public_edges(torch.from_numpy(np.stack(pair_ends(numbers))), num_nodes)


def pair_numbers(low: Numbers, high: Numbers) -> Numbers:
    """The number high (high - 1)/2 + low of every pair low < high."""
    return high * (high - 1) // 2 + low


def pair_ends(numbers: Numbers) -> tuple[Numbers, Numbers]:
    """The pairs low < high of these numbers, exactly: the square root is only a guess that whole numbers correct."""
    high = ((1 + np.sqrt(8.0 * numbers + 1)) // 2).astype(np.int64)
    high -= high * (high - 1) // 2 > numbers
    high += high * (high + 1) // 2 <= numbers
    return numbers - high * (high - 1) // 2, high


def _uniform_below(randomness: Randomness, limit: int, count: int) -> Numbers:
    """Uniform whole numbers from 0 to limit - 1, exactly, by rejection."""
    whole = 2**64 // limit * limit
    found = np.empty(0, dtype=np.uint64)
    while len(found) < count:
        words = np.frombuffer(randomness.take(8 * (count - len(found))), dtype="<u8")
        found = np.concatenate([found, words if whole == 2**64 else words[words < np.uint64(whole)]])
    return (found % np.uint64(limit)).astype(np.int64)
