"""Noisy counts and private selection, with the largest change that they are made for: two nodes are lonely, or neither is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gcon.edges.edge_list import EdgeList
from gcon.mechanisms.counts import NoisyCount, Selection
from gcon.privacy.budget import Budget
from gcon.privacy.randomness import Randomness
from gcon_lab.audits.cases.case import AuditCase, Run, Score, Scores, too_little_noise
from gcon_lab.audits.pairs import two_nodes

_EPSILON = 1.0
# Of few outcomes, some seeds give the same one on both graphs; with this one they differ.
_TELLING_SEED = 8


def noisy_count() -> list[AuditCase]:
    """Sensitivity 2 (a count over nodes that each read their own edges) and sensitivity 1 (a number of edges)."""
    counts: dict[str, tuple[Callable[[Any], int], int]] = {
        "sensitivity 2": (lonely_nodes, 2),
        "sensitivity 1": (number_of_edges, 1),
    }
    return [_case("noisy-count", words, NoisyCount, *each, _smaller) for words, each in counts.items()]


def selection() -> list[AuditCase]:
    """Two candidates: without the edge they tie, with it the second is ahead by 4; and a third that never wins."""
    two, three = (partial(right_answers, others=others) for others in ((), (0,)))
    return [
        _case("selection", "2 candidates", Selection, two, 2, _not_the_first, seed=_TELLING_SEED),
        _case("selection", "3 candidates", Selection, three, 2, _not_the_first, seed=_TELLING_SEED, exact=False),
    ]


def lonely_nodes(edges: EdgeList) -> int:
    """Nodes without a neighbour: every node reads its own edges, so one edge changes two answers."""
    return int((edges.degrees == 0).sum())


def number_of_edges(edges: EdgeList) -> int:
    """One edge changes it by 1. With the minus sign more edges are a smaller number, as with lonely nodes."""
    return -len(edges.columns) // 2


def right_answers(edges: EdgeList, others: tuple[int, ...]) -> list[int]:
    """4 nodes; the answers of two never change. One candidate is right about lonely nodes, one about the others."""
    lonely = lonely_nodes(edges)
    return [lonely, 4 - lonely, *others]


def _case(
    mechanism: str,
    options: str,
    kind: Callable[[float, Any, int], NoisyCount | Selection],
    numbers_of: Callable[[Any], int | list[int]],
    sensitivity: int,
    score: Score,
    *,
    seed: int = 0,
    exact: bool = True,
) -> AuditCase:
    def with_noise(factor: float) -> Run:
        noisy = kind(round(_EPSILON / factor, 3), numbers_of, sensitivity)

        def run(edges: EdgeList, runs: int, randomness: Randomness) -> Scores:
            return np.array([noisy.apply(edges, randomness) for _ in range(runs)], dtype=np.float64)

        return run

    return AuditCase(
        mechanism=mechanism,
        options=options,
        claimed=Budget(_EPSILON, 0.0),
        pair=two_nodes(),
        run=with_noise(1.0),
        score=score,
        runs=40_000,
        pair_epsilon=_EPSILON if exact else None,
        broken=too_little_noise(with_noise, np.concatenate, seed=seed),
    )


def _smaller(released: Scores) -> Scores:
    """With the edge the count is smaller."""
    return -released


def _not_the_first(chosen: Scores) -> Scores:
    """With the edge the first candidate is chosen less often."""
    others: Scores = (chosen != 0).astype(np.float64)
    return others
