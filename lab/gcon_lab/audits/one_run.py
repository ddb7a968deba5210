"""An audit from a single run, with many canary edges (Steinke, Nasr and Jagielski 2023).

Every canary edge is put into the graph by its own fair coin. One release is made. The attacker scores the canaries, says
"in" for those with the highest scores, "out" for those with the lowest, and nothing about the rest. Under (epsilon, delta)-DP
the number of right guesses among r is hardly ever larger than that of r coins of probability e^eps/(1 + e^eps):

    P[right >= v] <= f(v) + 2 m delta max over i = 1..v of (f(v - i) - f(v)) / i,      f(v) = P[Binomial(r, q) >= v].

The smallest epsilon whose right side is above the error is a lower bound on epsilon. It is weaker than thousands of runs on a
pair of graphs, but costs one run, so it also serves where a run is expensive.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import binom

from gcon.edges.edge_list import EdgeList
from gcon.errors import InputError
from gcon.privacy.randomness import Randomness
from gcon_lab.audits.pairs import with_edges
from gcon_lab.mechanisms.samplers import open_uniforms

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Canaries:
    """A graph, pairs that are no edges of it, and which of them were put in.

    Attributes:
        base: the graph without any canary.
        pairs: m x 2 node numbers; no node is in two canaries.
        included: the outcome of every fair coin.
    """

    base: EdgeList
    pairs: Numbers
    included: Flags

    @property
    def graph(self) -> EdgeList:
        """The base with the canaries that were put in."""
        return with_edges(self.base, torch.from_numpy(self.pairs[self.included]))


def place_canaries(base: EdgeList, count: int, randomness: Randomness) -> Canaries:
    """Up to `count` canaries on disjoint random pairs of nodes that are not joined, each included by a fair coin.

    Args:
        base: a graph whose edges everybody may know.
        count: at most half of the nodes.
        randomness: for the pairs and the coins.
    """
    if not 0 < 2 * count <= base.num_nodes:
        raise InputError(
            "canaries",
            rule="must be from 1 to half the number of nodes: no two may share a node",
            got=count,
            fix=f"At most {base.num_nodes // 2} here.",
        )
    order = np.argsort(open_uniforms(randomness, base.num_nodes).numpy(), kind="stable")
    pairs = order[: 2 * count].reshape(count, 2).astype(np.int64)
    edges = base.edge_index().numpy()
    taken = np.isin(pairs[:, 0] * base.num_nodes + pairs[:, 1], edges[0] * base.num_nodes + edges[1])
    pairs = pairs[~taken]
    return Canaries(base, pairs, open_uniforms(randomness, len(pairs)).numpy() < 0.5)


def right_guesses(scores: Floats, included: Flags, *, guesses: int) -> int:
    """How many guesses are right: "in" for the `guesses / 2` highest scores, "out" for as many lowest.

    Which ones are guessed must not depend on `included`.
    """
    order = np.argsort(scores, kind="stable")
    half = guesses // 2
    return int(included[order[len(order) - half :]].sum() + (~included[order[:half]]).sum())


def one_run_error(*, canaries: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """The largest probability, under (epsilon, delta)-DP, of at least so many right guesses: the paper's main theorem.

    Args:
        canaries: m, all of them, those without a guess too.
        guesses: r.
        right: v.
        epsilon: of the promise.
        delta: of the promise.

    Example:
        >>> one_run_error(canaries=4, guesses=4, right=4, epsilon=0.0, delta=0.0)
        0.0625
    """
    if not 0 <= right <= guesses <= canaries:
        raise InputError(
            "right, guesses, canaries",
            rule="must rise in this order, from 0",
            got=(right, guesses, canaries),
            fix="Count right guesses among all guesses among all canaries.",
        )
    coin = float(expit(epsilon))
    by_luck = float(binom.sf(right - 1, guesses, coin))
    if delta == 0 or right == 0:
        return min(by_luck, 1.0)
    steps = np.arange(1, right + 1)
    # P[v > Binomial >= v - i] for i = 1..v, over i.
    within = np.cumsum(binom.pmf(right - steps, guesses, coin))
    return min(1.0, by_luck + 2 * canaries * delta * float((within / steps).max()))


def one_run_bound(*, canaries: int, guesses: int, right: int, delta: float, error: float) -> float:
    """A lower bound on epsilon at this delta that is too high with probability at most `error`."""

    def too_good(epsilon: float) -> bool:
        probability = one_run_error(canaries=canaries, guesses=guesses, right=right, epsilon=epsilon, delta=delta)
        return probability < error

    if not too_good(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while too_good(high):
        low, high = high, 2 * high
        if high > 1e3:  # all guesses right, and no error left
            return low
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if too_good(middle) else (low, middle)
    return low
