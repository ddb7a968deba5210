"""Noisy graphs: random flips, where every pair of nodes is a run of its own, and the pairs with the largest noisy bits."""

from __future__ import annotations

import math

import numpy as np
import torch

from gcon.edges.edge_list import EdgeList, public_edges
from gcon.privacy.budget import Budget
from gcon.privacy.randomness import Randomness
from gcon_lab.audits.cases.case import DIRECTED, HALVED, ROOT_TWO, AuditCase, Broken, Run, Scores, reused
from gcon_lab.audits.pairs import edge_pair, is_linked, two_nodes
from gcon_lab.mechanisms.noisy_graph import RandomFlips, TopPairs

_EPSILON = 1.0
_TOP_EPSILON, _COUNT_SHARE = 2.0, 0.5
_TOP_PAIR = edge_pair([], (0, 1), 8)


def noisy_graph() -> list[AuditCase]:
    """EdgeRand and LapGraph."""
    return [_flips(), _top_pairs()]


def _flips() -> AuditCase:
    return AuditCase(
        mechanism="noisy-graph",
        options="random flips",
        claimed=Budget(_EPSILON, 0.0),
        pair=two_nodes(),
        run=_flip_run(_EPSILON),
        score=_as_score,
        runs=100_000,
        pair_epsilon=_EPSILON,
        broken=(
            Broken(kind=HALVED, run=_flip_run(2 * _EPSILON)),
            Broken(kind=ROOT_TWO, run=_flip_run(math.sqrt(2) * _EPSILON)),
            Broken(kind=DIRECTED, run=_both_arcs),
            reused(_flip_run(_EPSILON), np.concatenate),
        ),
    )


def _flip_run(epsilon: float) -> Run:
    """Noisy bits of the pair. Bits are flipped independently, so a complete or empty graph is many runs at once."""

    def run(edges: EdgeList, count: int, randomness: Randomness) -> Scores:
        nodes = math.ceil((1 + math.sqrt(1 + 8 * count)) / 2)
        pairs = torch.triu_indices(nodes, nodes, 1)
        full = public_edges(pairs if len(edges.columns) else pairs[:, :0], nodes)
        noisy = RandomFlips(epsilon=epsilon, num_nodes=nodes).apply(full, randomness)
        bits = torch.zeros(nodes, nodes)
        bits[tuple(noisy.edge_index())] = 1.0
        return bits[tuple(pairs)].numpy()[:count].astype(np.float64)

    return run


def _both_arcs(edges: EdgeList, count: int, randomness: Randomness) -> Scores:
    """Both directions of an edge are flipped and released: one edge is two bits."""
    once = _flip_run(_EPSILON)
    both: Scores = once(edges, count, randomness) + once(edges, count, randomness)
    return both


def _as_score(bits: Scores) -> Scores:
    return bits


def _top_pairs() -> AuditCase:
    return AuditCase(
        mechanism="noisy-graph",
        options="top pairs, half of epsilon for the count",
        claimed=Budget(_TOP_EPSILON, 0.0),
        pair=_TOP_PAIR,
        run=_top_run(_TOP_EPSILON),
        score=_top_score,
        runs=4_000,
        tight=False,
        broken=(
            Broken(kind="a quarter of the noise", run=_top_run(4 * _TOP_EPSILON), runs=2_000),
            reused(_top_run(_TOP_EPSILON), np.concatenate),
        ),
    )


def _top_run(epsilon: float) -> Run:
    """Of every release the number of edges, and whether the pair in question is one of them."""
    mechanism = TopPairs(epsilon=epsilon, num_nodes=_TOP_PAIR.apart.num_nodes, count_share=_COUNT_SHARE)

    def run(edges: EdgeList, count: int, randomness: Randomness) -> Scores:
        seen = []
        for _ in range(count):
            noisy = mechanism.apply(edges, randomness)
            seen.append((len(noisy.columns) / 2, float(is_linked(noisy, (0, 1)))))
        return np.array(seen)

    return run


def _top_score(seen: Scores) -> Scores:
    """Fewer edges tell more about a pair that is among them."""
    kept, there = seen.T
    score: Scores = np.where(there > 0, 2.0, 0.0) / np.maximum(kept, 1) + np.where(kept > 0, 0.5, 0.0)
    return score
