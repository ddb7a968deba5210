"""Neighbour counts on two nodes, in one round and in two; many disjoint copies of the pair are many runs at once."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gcon.edges.edge_list import EdgeList
from gcon.mechanisms.counts import NeighbourCounts
from gcon.privacy.budget import Budget
from gcon.privacy.randomness import Randomness
from gcon_lab.audits.cases.case import (
    DIRECTED,
    HALVED,
    ONE_ENTRY,
    ROOT_TWO,
    AuditCase,
    Broken,
    Run,
    Score,
    Scores,
    reused,
)
from gcon_lab.audits.pairs import copies, listed_twice, two_nodes

_EPSILON = 1.0
_CODES = 2
ONE_COUNTED, _BOTH_COUNTED = (0, -1), (0, 1)  # the codes of the two nodes


def neighbour_counts() -> list[AuditCase]:
    """One table, and two whose second codes come from the first: every entry that an edge changes is a response. One-way ones."""
    return [_case(1), _case(2), _one_way_case(ONE_COUNTED), _one_way_case(_BOTH_COUNTED)]


def _one_way_case(codes: tuple[int, int]) -> AuditCase:
    counted = len({*codes} - {-1})

    def run(rate: float, **kind: bool) -> Run:
        def released(edges: EdgeList, count: int, randomness: Randomness) -> Tensor:
            many = copies(edges, count)
            # Rows of one kind for codes of one kind: what makes them all two-way takes the rate as it is.
            every = torch.tensor(codes if kind["one_way"] else _BOTH_COUNTED).repeat(count)
            table = count_neighbours(many, every, rate, 1, randomness, **kind)
            return table.reshape(count, 1, 2, _CODES)

        return released

    def score(released: Tensor) -> Scores:
        return one_way_losses(released, codes).numpy()

    right = run(_EPSILON, one_way=True)
    # Both ends have noise for one changed entry, and both are counted.
    unhalved = Broken(kind="noise for one end, counted at both", run=run(_EPSILON, one_way=False), score=_score())
    return AuditCase(
        mechanism="neighbour-counts",
        options=f"one way, {'both' if counted == 2 else 'one'} counted",
        claimed=Budget(_EPSILON, 0.0),
        pair=two_nodes(),
        run=right,
        score=score,
        pair_epsilon=_EPSILON,
        broken=(
            Broken(kind=HALVED, run=run(2 * _EPSILON, one_way=True)),
            Broken(kind=ROOT_TWO, run=run(math.sqrt(2) * _EPSILON, one_way=True)),
            unhalved,
            reused(right, torch.cat, score=_total),
        ),
    )


def _case(rounds: int) -> AuditCase:
    rate = _EPSILON / (2 * rounds)  # two entries, every round
    return AuditCase(
        mechanism="neighbour-counts",
        options="1 round" if rounds == 1 else f"{rounds} rounds",
        claimed=Budget(_EPSILON, 0.0),
        pair=two_nodes(),
        run=_run(rate, rounds),
        score=_score(),
        pair_epsilon=_EPSILON,
        broken=(
            Broken(kind=HALVED, run=_run(2 * rate, rounds)),
            Broken(kind=ROOT_TWO, run=_run(math.sqrt(2) * rate, rounds)),
            Broken(kind="one end's code counted twice", run=_run(rate, rounds, twice=True), score=_score((2, 1))),
            # An edge is in the row of one end only, so noise is made for one entry; but the graph is symmetrised.
            Broken(kind=ONE_ENTRY, run=_run(_EPSILON / rounds, rounds)),
            Broken(kind=DIRECTED, run=_run(rate, rounds), pair=listed_twice(), score=_score((2, 2))),
            reused(_run(rate, rounds), torch.cat, score=_total),
        ),
    )


def one_way_losses(released: Tensor, codes: tuple[int, int]) -> Tensor:
    """The log-likelihood ratio of every run, over the rate of the rows that the edge changes.

    Args:
        released: runs x 1 x 2 nodes x codes.
        codes: of the two nodes, -1 for one that nobody counts.
    """
    loss = torch.zeros(len(released), dtype=torch.float64)
    for node, other in enumerate(reversed(codes)):
        if other >= 0:
            entries = released[:, 0, node, other].double()
            loss += entries.abs() - (entries - 1).abs()
    return loss


def _run(rate: float, rounds: int, *, twice: bool = False) -> Run:
    def run(edges: EdgeList, count: int, randomness: Randomness) -> Tensor:
        many = copies(edges, count)
        codes, released = first_codes(count), []
        for _ in range(rounds):
            table = count_neighbours(many, codes, rate, rounds, randomness)
            if twice:  # the first node's row once more, without noise
                exact = count_neighbours(many, codes, math.inf, rounds, randomness)
                exact.reshape(count, 2, _CODES)[:, 1] = 0
                table += exact
            released.append(table.reshape(count, 2, _CODES))
            codes = next_codes(table)
        return torch.stack(released, dim=1)

    return run


def count_neighbours(
    edges: EdgeList, codes: Tensor, rate: float, rounds: int, randomness: Randomness, *, one_way: bool = False
) -> Tensor:
    """One table of all copies."""
    table = NeighbourCounts(codes=codes, num_codes=_CODES, rate=rate, rounds=rounds, one_way=one_way)
    return table.apply(edges, randomness).value


def first_codes(count: int) -> Tensor:
    """The two nodes of every copy have two codes."""
    return torch.arange(2).repeat(count)


def next_codes(table: Tensor) -> Tensor:
    """The code of which a node seems to have the most neighbours."""
    return table.argmax(dim=-1).flatten()


def count_losses(released: Tensor, changes: tuple[int, int] = (1, 1)) -> Tensor:
    """The log-likelihood ratio of every run, over the rate: what the edge adds to one entry of either row.

    Args:
        released: runs x rounds x 2 nodes x codes.
        changes: of the two entries.
    """
    count, rounds = released.shape[:2]
    total, codes = torch.zeros(count, dtype=torch.float64), first_codes(count)
    for place in range(rounds):
        others = codes.reshape(count, 2).flip(-1)  # each node has the other for a neighbour
        entries = released[:, place].gather(2, others[:, :, None])[:, :, 0].double()
        total += (entries.abs() - (entries - torch.tensor(changes)).abs()).sum(dim=1)
        codes = next_codes(released[:, place])
    return total


def _score(changes: tuple[int, int] = (1, 1)) -> Score:
    def score(released: Tensor) -> Scores:
        return count_losses(released, changes).numpy()

    return score


def _total(released: Tensor) -> Scores:
    """With the same noise the first tables differ by what the edge changes, far out too, where the likelihood ratio is flat."""
    return released[:, 0].sum(dim=(1, 2)).double().numpy()
