"""Neighbour counts where three edges change together, as a plan for three edges makes their noise.

Many disjoint copies of the pair are many runs at once. All nodes have one code: the edges of a node are in one entry of its row.
In one-way counts nobody counts the first node, the middle of the star: its row alone changes, and has the whole loss.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gcon.edges.edge_list import EdgeList, public_edges
from gcon.mechanisms.counts import NeighbourCounts
from gcon.mechanisms.mixed_release import mixed_plan
from gcon.privacy.budget import Budget
from gcon.privacy.randomness import Randomness
from gcon_lab.audits.cases.case import HALVED, AuditCase, Broken, Run, Score, Scores, reused
from gcon_lab.audits.pairs import EdgePair, copies

_CLAIMED = Budget(2.0, 0.01)
_EDGES, _FIRST_SHARE = 3, 0.05
_SHAPES = {"a star": [(0, 1), (0, 2), (0, 3)], "a triangle": [(0, 1), (0, 2), (1, 2)]}


def several_edges() -> list[AuditCase]:
    """Neighbour counts, where three edges change together: a star, and a triangle; and one-way counts."""
    return [*(_case(shape) for shape in _SHAPES), _case("a star", one_way=True)]


def _rate(edges: int, one_way: bool) -> float:
    """Of one table, in a plan that protects so many edges."""
    plan = mixed_plan(
        _CLAIMED.epsilon,
        _CLAIMED.delta,
        first_share=_FIRST_SHARE,
        answer_share=0.0,
        method="audit",
        protect_edges=edges,
        one_way=one_way,
    )
    return plan.rates[1 if one_way else 0]


def _case(shape: str, *, one_way: bool = False) -> AuditCase:
    rate, for_one = (_rate(edges, one_way) for edges in (_EDGES, 1))
    ends = torch.tensor(_SHAPES[shape]).T
    size = int(ends.max()) + 1
    pair = EdgePair(joined=public_edges(ends, size), apart=public_edges(ends[:, :0], size))
    return AuditCase(
        mechanism="several-edges",
        options=f"{_EDGES} edges, {shape}{', one way' if one_way else ''}",
        claimed=_CLAIMED,
        pair=pair,
        run=_run(rate, one_way),
        score=_score(pair.joined.degrees * (_codes(size, one_way) < 0) if one_way else pair.joined.degrees),
        runs=100_000,
        broken=(
            Broken(kind=HALVED, run=_run(2 * rate, one_way)),
            Broken(kind="planned for one edge", run=_run(for_one, one_way)),
            reused(_run(rate, one_way), torch.cat, score=_total),
        ),
    )


def _codes(size: int, one_way: bool) -> Tensor:
    codes = torch.zeros(size, dtype=torch.int64)
    if one_way:
        codes[0] = -1
    return codes


def _run(rate: float, one_way: bool) -> Run:
    def run(edges: EdgeList, count: int, randomness: Randomness) -> Tensor:
        codes, many = _codes(edges.num_nodes, one_way).repeat(count), copies(edges, count)
        counts = NeighbourCounts(codes=codes, num_codes=1, rate=rate, rounds=1, one_way=one_way)
        return counts.apply(many, randomness).value.reshape(count, -1)

    return run


def _score(degrees: Tensor) -> Score:
    """The log-likelihood ratio of every run, over the rate."""

    def score(released: Tensor) -> Scores:
        counts = released.double()
        return (counts.abs() - (counts - degrees).abs()).sum(dim=1).numpy()

    return score


def _total(released: Tensor) -> Scores:
    """With the same noise the counts differ by exactly two for each edge, one-way ones by one."""
    return released.sum(dim=1).double().numpy()
