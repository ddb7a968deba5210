"""Attacks by whoever knows everything but one pair: how much likelier is what was seen if the pair is linked?

For a Gaussian statistic and for objective perturbation the score is the logarithm of the likelihood ratio itself, which no
other test beats (Neyman and Pearson). Evidence classes hold released and public values; edges are arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeVar, final

import torch
from torch import Tensor

from gcon.edges.edge_list import EdgeList
from gcon.errors import AccessRefusedError
from gcon.mechanisms.counts import counted_rate
from gcon.mechanisms.losses import ConvexLoss
from gcon_lab.attacks.pairs import absent_and_present
from gcon_lab.attacks.view import Pair, View
from gcon_lab.audits.pairs import is_linked
from gcon_lab.audits.privacy_loss import NoiseLaw, log_density, without_noise

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class WhiteBox:
    """Adds up all evidence that was released.

    Attributes:
        rests: what the attacker takes the other edges to be; scores are averaged. One graph: she knows them. Two, without
            and with all canaries: she knows all edges but the canaries, and takes each of the others for half an edge.
    """

    rests: tuple[EdgeList, ...]
    name: str = "white-box"

    def scores(self, view: View, pairs: Tensor) -> Tensor:
        """The mean over the rests of the sum of the log-ratios."""
        if not view.released:
            raise AccessRefusedError("The white-box attack needs something that was released.")
        found = []
        for first, second in pairs.tolist():
            ratios = [each.log_ratio(rest, (first, second)) for rest in self.rests for each in view.released]
            found.append(sum(ratios) / len(self.rests))
        return torch.tensor(found, dtype=torch.float64)


@dataclass(frozen=True, eq=False)
class Replay:
    """Against answers from own edges that a third party sees: which of the two possible answers was it?

    Attributes:
        rest: all other edges, which the attacker knows.
    """

    rest: EdgeList
    name: str = "replay"

    def scores(self, view: View, pairs: Tensor) -> Tensor:
        """How much nearer the seen answers of both ends are to those with the edge than to those without."""
        if view.answers_on is None:
            raise AccessRefusedError("The replay attack needs answers that are computed over edges.")
        answers = remembered(view.answers_on)
        found = []
        for first, second in pairs.tolist():
            ends, (absent, present) = [first, second], absent_and_present(self.rest, (first, second))
            seen = view.posteriors[ends]
            gap = (seen - answers(absent)[ends]).square().sum() - (seen - answers(present)[ends]).square().sum()
            found.append(float(gap))
        return torch.tensor(found, dtype=torch.float64)


def remembered(function: Callable[[EdgeList], T]) -> Callable[[EdgeList], T]:
    """The same, without computing it again for a graph just used: one of two neighbouring graphs is always the same."""
    return lru_cache(maxsize=4)(function)


@final
class NoisyMatrix:
    """A matrix of the edges with Gaussian noise, alike in every direction: a statistic, or perturbed weights.

    Args:
        of: the matrix without noise.
        value: what was released.
        deviation: of the noise in any direction of the Frobenius inner product; 0 takes 1, the nearest matrix.
    """

    def __init__(self, of: Callable[[EdgeList], Tensor], value: Tensor, deviation: float) -> None:
        self._of, self._value, self._variance = remembered(of), value, deviation**2 or 1.0

    def log_ratio(self, rest: EdgeList, pair: Pair) -> float:
        """<value - middle, change> / variance."""
        low, high = map(self._of, absent_and_present(rest, pair))
        return float(((self._value - (low + high) / 2) * (high - low)).sum()) / self._variance


def _ends(rest: EdgeList, pair: Pair) -> Iterator[tuple[int, int, Tensor]]:
    """Both ends of a pair: the node, the other one, and who else is linked with the node."""
    for node, other in (pair, pair[::-1]):
        others = rest.neighbours(node)
        yield node, other, others[others != other]


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class NoisyNeighbourSums:
    """Noisy sums of rows over neighbours, a row per node (GAP, ProGAP, LPGNet): only the rows of the two ends tell.

    Attributes:
        rows: what was summed; released or public.
        value: the noisy sums.
        law: of the noise.
        scale: standard deviation, or the Laplace scale; 0 takes 1.
    """

    rows: Tensor
    value: Tensor
    law: Literal["gaussian", "laplace"]
    scale: float

    def log_ratio(self, rest: EdgeList, pair: Pair) -> float:
        """Over the rows of both ends."""
        total, scale = 0.0, self.scale or 1.0
        for node, other, others in _ends(rest, pair):
            noise = self.value[node] - self.rows[others].sum(dim=0)  # if there is no edge
            step = self.rows[other]
            if self.law == "gaussian":
                total += float(((noise - step / 2) * step).sum()) / scale**2
            else:
                total += float((noise.abs() - (noise - step).abs()).sum()) / scale
        return total


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class NoisyTable:
    """Noisy counts of neighbours by code: an edge {u, v} is in two entries, [u, code of v] and [v, code of u].

    In a one-way table nodes without a code are in no entry, and the rows of the others have noise of half the rate.

    Attributes:
        codes: of all nodes, -1 for none; released or public.
        value: the noisy counts.
        rate: of the two-sided geometric noise; infinite takes 1.
        one_way: whether the table is so.
    """

    codes: Tensor
    value: Tensor
    rate: float
    one_way: bool = False

    def log_ratio(self, rest: EdgeList, pair: Pair) -> float:
        """Over both entries, or one, or none."""
        total = 0.0
        for node, other, others in _ends(rest, pair):
            code = int(self.codes[other])
            if code >= 0:
                known = int((self.codes[others] == code).sum())
                rate = counted_rate(self.rate) if self.one_way and self.codes[node] >= 0 else self.rate
                total += geometric_log_ratio(int(self.value[node, code]), known, known + 1, rate=rate)
        return total


@final
class NoisyNumber:
    """A whole number of the edges with two-sided geometric noise, such as a count of right answers.

    Args:
        of: the number without noise.
        value: what was released.
        rate: of the noise; infinite takes 1.
    """

    def __init__(self, of: Callable[[EdgeList], int], value: int, rate: float) -> None:
        self._of, self._value, self._rate = remembered(of), value, rate

    def log_ratio(self, rest: EdgeList, pair: Pair) -> float:
        """From the numbers of both graphs."""
        low, high = map(self._of, absent_and_present(rest, pair))
        return geometric_log_ratio(self._value, low, high, rate=self._rate)


def geometric_log_ratio(value: int, absent: int, present: int, *, rate: float) -> float:
    """Of a number with two-sided geometric noise, P(noise = k) proportional to e^(-rate |k|).

    Example:
        >>> geometric_log_ratio(5, 3, 4, rate=0.5)
        0.5
    """
    return (rate if math.isfinite(rate) else 1.0) * (abs(value - absent) - abs(value - present))


@final
class NoisyMoments:
    """Noisy edge moments, as `NoisyMatrix` would have it: the change f_u f_v' + f_v f_u' is known, so a pair costs nothing.

    Args:
        of: the moments without noise.
        rows: F.
        value: what was released.
        deviation: of the noise on the diagonal; 0 takes 1.
    """

    def __init__(self, of: Callable[[EdgeList], Tensor], rows: Tensor, value: Tensor, deviation: float) -> None:
        self._of, self._rows, self._value, self._variance = remembered(of), rows, value, deviation**2 or 1.0

    def log_ratio(self, rest: EdgeList, pair: Pair) -> float:
        """<value - middle, change> / variance."""
        first, second = self._rows[pair[0]], self._rows[pair[1]]
        along = 2 * float(first @ (self._value - self._of(rest)) @ second)  # <value - rest, change>
        size = 2 * float(first @ first) * float(second @ second) + 2 * float(first @ second) ** 2
        return (along + (size / 2 if is_linked(rest, pair) else -size / 2)) / self._variance


@final
@dataclass(frozen=True, eq=False)
class NoisyGraph:
    """A noisy graph (DPGCN): whether it holds the pair."""

    value: EdgeList

    def log_ratio(self, rest: EdgeList, pair: Pair) -> float:
        """1 or 0: with flips this orders pairs as the likelihood does."""
        return float(is_linked(self.value, pair))


@final
class ObjectiveWeights:
    """Weights that minimise a perturbed objective (GCON): the density of the noise that must have been drawn.

    Args:
        rows: the propagated rows in the loss, from edges.
        targets: n_1 x c.
        loss: of the objective.
        ridge: the total ridge.
        noise: the law of the noise.
        value: the released weights, d x c.
    """

    def __init__(
        self,
        *,
        rows: Callable[[EdgeList], Tensor],
        targets: Tensor,
        loss: ConvexLoss,
        ridge: float,
        noise: NoiseLaw,
        value: Tensor,
    ) -> None:
        weights = value.double().T.contiguous()

        def density(edges: EdgeList) -> float:
            return float(log_density(without_noise(rows(edges), targets, loss, ridge), weights, noise).sum())

        self._density = remembered(density)

    def log_ratio(self, rest: EdgeList, pair: Pair) -> float:
        """The difference of the log-densities of the weights."""
        absent, present = absent_and_present(rest, pair)
        return self._density(present) - self._density(absent)
