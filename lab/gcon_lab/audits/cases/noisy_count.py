"""A noisy count with the largest change that it is made for: two nodes are lonely, or neither is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gcon.edges.edge_list import EdgeList
from gcon.mechanisms.noisy_count import NoisyCount
from gcon.mechanisms.pure import WholeNumbers
from gcon.privacy.budget import Budget
from gcon.privacy.randomness import Randomness
from gcon_lab.audits.cases.case import AuditCase, Run, Scores, too_little_noise
from gcon_lab.audits.pairs import two_nodes

_EPSILON = 1.0


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
    numbers = WholeNumbers(count, sensitivity)
    run = partial(_run, numbers)
    return AuditCase(
        mechanism="noisy-count",
        options=options,
        claimed=Budget(_EPSILON, 0.0),
        pair=two_nodes(),
        run=run(1.0),
        score=_score,
        runs=40_000,
        pair_epsilon=_EPSILON,
        broken=too_little_noise(run, np.concatenate),
    )


def _run(numbers: WholeNumbers[int], factor: float) -> Run:
    mechanism = NoisyCount(round(_EPSILON / factor, 3), numbers)

    def run(edges: EdgeList, runs: int, randomness: Randomness) -> Scores:
        return np.array([mechanism.apply(edges, randomness) for _ in range(runs)], dtype=np.float64)

    return run


def _score(released: Scores) -> Scores:
    return -released  # with the edge the count is smaller
