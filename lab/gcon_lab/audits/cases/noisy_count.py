"""A noisy count with the largest change that it is made for: two nodes are lonely, or neither is."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gcon.edges.edge_list import EdgeList
from gcon.mechanisms.noisy_count import NoisyCount
from gcon.privacy.budget import Budget
from gcon.privacy.randomness import Randomness
from gcon_lab.audits.cases.case import HALVED, ROOT_TWO, AuditCase, Broken, Run, Scores, reused
from gcon_lab.audits.pairs import two_nodes


def noisy_count() -> list[AuditCase]:
    """Sensitivity 2 (a count over nodes that each read their own edges) and sensitivity 1 (a number of edges)."""
    return [_case("sensitivity 2", 2, lonely_nodes), _case("sensitivity 1", 1, number_of_edges)]


def lonely_nodes(edges: EdgeList) -> int:
    """Nodes without a neighbour: every node reads its own edges, so one edge changes two answers."""
    return int((edges.degrees == 0).sum())


def number_of_edges(edges: EdgeList) -> int:
    """One edge changes it by 1. With the minus sign more edges are a smaller number, as with lonely nodes."""
    return -len(edges.columns) // 2


def _case(options: str, sensitivity: int, count: Callable[[Any], int]) -> AuditCase:
    epsilon = 1.0
    return AuditCase(
        mechanism="noisy-count",
        options=options,
        claimed=Budget(epsilon, 0.0),
        pair=two_nodes(),
        run=_run(NoisyCount(epsilon, count, sensitivity)),
        score=_score,
        runs=40_000,
        pair_epsilon=epsilon,
        broken=(
            Broken(kind=HALVED, run=_run(NoisyCount(2 * epsilon, count, sensitivity))),
            Broken(kind=ROOT_TWO, run=_run(NoisyCount(round(math.sqrt(2), 3) * epsilon, count, sensitivity))),
            reused(_run(NoisyCount(epsilon, count, sensitivity)), np.concatenate),
        ),
    )


def _run(mechanism: NoisyCount) -> Run:
    def run(edges: EdgeList, runs: int, randomness: Randomness) -> Scores:
        return np.array([mechanism.apply(edges, randomness) for _ in range(runs)], dtype=np.float64)

    return run


def _score(released: Scores) -> Scores:
    return -released  # with the edge the count is smaller
