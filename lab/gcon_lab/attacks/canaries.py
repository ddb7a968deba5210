"""The formal test: pairs that are linked by a fair coin, and how often an attacker guesses the coins.

m canary pairs, not linked and as far apart as the graph allows, are inserted independently with probability 1/2; then the method
is trained once. The attacker names the r/2 pairs that look most like edges and the r/2 that look least so, and abstains on the
rest.

Counts over the canaries of one run depend on each other, so a Clopper-Pearson interval does not apply to them. The test is
that of Steinke, Nasr and Jagielski (2023, Theorem 5.2 of "Privacy auditing with one (1) training run"), as in
`gcon_lab.audits.one_run`.

Several runs with canaries, coins and noise of their own are one mechanism in which a coin touches one run: their guesses
are pooled. With one counted canary a run this is a test of independent runs, and `epsilon_bound` (Clopper-Pearson,
gcon_lab.audits.empirical) applies too.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gcon.edges.edge_list import EdgeList
from gcon.errors import InputError
from gcon_lab.audits.one_run import one_run_bound, one_run_error, right_guesses
from gcon_lab.audits.pairs import with_edges

_APART = (
    3,
    2,
    1,
)  # hops that canaries are further apart than; the test needs 1, further apart they disturb each other less

_NEARLY_ALL = 0.9


@dataclass(frozen=True, eq=False)
class CanaryPairs:
    """Pairs (m x 2) and whether each was inserted."""

    pairs: Tensor
    inserted: Tensor

    def into(self, edges: EdgeList) -> EdgeList:
        """The graph to train on."""
        return with_edges(edges, self.pairs[self.inserted])


def draw_canaries(edges: EdgeList, count: int, *, seed: int) -> CanaryPairs:
    """Pairs of nodes that are not linked and far apart, if there are such, no node twice; and a fair coin for each."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(edges.num_nodes, generator=generator).tolist()
    pairs: list[tuple[int, int]] = []
    for hops in _APART:
        # Where so many hops lead nearly everywhere, looking for such pairs takes long and finds few.
        if len(pairs) < count and (hops == 1 or _reach(edges, order[:10], hops) < _NEARLY_ALL):
            pairs = _pairs(edges, order, count, hops)
    if len(pairs) < count:
        rule = f"must leave {count} pairs of nodes that are not linked"
        raise InputError("edges", rule=rule, got="fewer", fix="Ask for fewer canaries.")
    return CanaryPairs(torch.tensor(pairs), torch.rand(count, generator=generator) < 0.5)


def _reach(edges: EdgeList, nodes: list[int], hops: int) -> float:
    """The share of all nodes that so many steps from one of these lead to, on average."""
    return sum(len(within(edges, node, hops)) for node in nodes) / (len(nodes) * edges.num_nodes)


def _pairs(edges: EdgeList, order: list[int], count: int, hops: int) -> list[tuple[int, int]]:
    """So many pairs that are further apart than some hops, or all that are found."""
    pairs: list[tuple[int, int]] = []
    waiting: list[int] = []
    for node in order:
        if len(pairs) == count:
            break
        near = within(edges, node, hops)
        partner = next((other for other in waiting if other not in near), None)
        if partner is None:
            waiting.append(node)
        else:
            waiting.remove(partner)
            pairs.append((partner, node))
    return pairs


def within(edges: EdgeList, node: int, hops: int) -> set[int]:
    """All nodes at most so many steps away, the node itself included."""
    seen, border = {node}, {node}
    for _ in range(hops):
        border = {other for each in border for other in edges.neighbours(each).tolist()} - seen
        seen |= border
    return seen


@dataclass(frozen=True)
class Guesses:
    """How many coins there were, how many were guessed, and how many of these rightly."""

    coins: int
    made: int
    right: int

    def p_value(self, epsilon: float, delta: float) -> float:
        """The chance of so many right guesses, at most, if the promise holds."""
        return one_run_error(canaries=self.coins, guesses=self.made, right=self.right, epsilon=epsilon, delta=delta)

    def epsilon_at_least(self, delta: float, *, false_alarm: float) -> float:
        """A lower bound on epsilon that is wrong with probability `false_alarm` at most; 0 says nothing."""
        return one_run_bound(canaries=self.coins, guesses=self.made, right=self.right, delta=delta, error=false_alarm)


def guess(scores: Tensor, inserted: Tensor, made: int) -> Guesses:
    """Guess the `made`/2 largest scores as inserted and the `made`/2 smallest as not; equal scores in random order."""
    if made % 2 or not 0 < made <= len(scores):
        raise InputError("made", rule="must be even and at most the canaries", got=made, fix="Half of them is usual.")
    shuffled = torch.randperm(len(scores), generator=torch.Generator().manual_seed(len(scores))).flip(0)
    right = right_guesses(scores.double()[shuffled].numpy(), inserted[shuffled].numpy(), guesses=made)
    return Guesses(len(scores), made, right)
