"""Private selection on the pair where it is tight: equal counts, or counts that moved by 2 against each other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gcon.edges.edge_list import EdgeList
from gcon.mechanisms.selection import Selection
from gcon.privacy.budget import Budget
from gcon.privacy.randomness import Randomness
from gcon_lab.audits.cases.case import HALVED, ROOT_TWO, AuditCase, Broken, Run, Scores, reused
from gcon_lab.audits.cases.noisy_count import lonely_nodes
from gcon_lab.audits.pairs import two_nodes

# Of few outcomes, some seeds give the same one on both graphs; with this one they differ.
_TELLING_SEED = 8


def selection() -> list[AuditCase]:
    """Two candidates: without the edge they tie, with it the second is ahead by 4; and a third that never wins."""
    return [_case("2 candidates", ()), _case("3 candidates", (0,))]


def _case(options: str, others: tuple[int, ...]) -> AuditCase:
    epsilon = 1.0

    def counts(edges: Any) -> list[int]:
        """4 nodes; the answers of two never change. One candidate is right about lonely nodes, one about the others."""
        lonely = lonely_nodes(edges)
        return [lonely, 4 - lonely, *others]

    return AuditCase(
        mechanism="selection",
        options=options,
        claimed=Budget(epsilon, 0.0),
        pair=two_nodes(),
        run=_run(Selection(epsilon, counts, 2)),
        score=_score,
        runs=40_000,
        pair_epsilon=None if others else epsilon,
        broken=(
            Broken(kind=HALVED, run=_run(Selection(2 * epsilon, counts, 2))),
            Broken(kind=ROOT_TWO, run=_run(Selection(round(math.sqrt(2), 3) * epsilon, counts, 2))),
            reused(_run(Selection(epsilon, counts, 2)), np.concatenate, seed=_TELLING_SEED),
        ),
    )


def _run(mechanism: Selection) -> Run:
    def run(edges: EdgeList, runs: int, randomness: Randomness) -> Scores:
        return np.array([mechanism.apply(edges, randomness) for _ in range(runs)], dtype=np.float64)

    return run


def _score(chosen: Scores) -> Scores:
    """With the edge the first candidate is chosen less often."""
    others: Scores = (chosen != 0).astype(np.float64)
    return others
