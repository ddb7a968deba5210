"""Private selection on the pair where it is tight: equal counts, or counts that moved by 2 against each other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from gcon.edges.edge_list import EdgeList
from gcon.mechanisms.pure import WholeNumbers
from gcon.mechanisms.selection import Selection
from gcon.privacy.budget import Budget
from gcon.privacy.randomness import Randomness
from gcon_lab.audits.cases.case import AuditCase, Run, Scores, too_little_noise
from gcon_lab.audits.cases.noisy_count import lonely_nodes
from gcon_lab.audits.pairs import two_nodes

_EPSILON = 1.0
# Of few outcomes, some seeds give the same one on both graphs; with this one they differ.
_TELLING_SEED = 8


def selection() -> list[AuditCase]:
    """Two candidates: without the edge they tie, with it the second is ahead by 4; and a third that never wins."""
    return [_case("2 candidates", ()), _case("3 candidates", (0,))]


def _case(options: str, others: tuple[int, ...]) -> AuditCase:
    def counts(edges: Any) -> list[int]:
        """4 nodes; the answers of two never change. One candidate is right about lonely nodes, one about the others."""
        lonely = lonely_nodes(edges)
        return [lonely, 4 - lonely, *others]

    run = partial(_run, WholeNumbers[Sequence[int]](counts, 2))
    return AuditCase(
        mechanism="selection",
        options=options,
        claimed=Budget(_EPSILON, 0.0),
        pair=two_nodes(),
        run=run(1.0),
        score=_score,
        runs=40_000,
        pair_epsilon=None if others else _EPSILON,
        broken=too_little_noise(run, np.concatenate, seed=_TELLING_SEED),
    )


def _run(numbers: WholeNumbers[Sequence[int]], factor: float) -> Run:
    mechanism = Selection(round(_EPSILON / factor, 3), numbers)

    def run(edges: EdgeList, runs: int, randomness: Randomness) -> Scores:
        return np.array([mechanism.apply(edges, randomness) for _ in range(runs)], dtype=np.float64)

    return run


def _score(chosen: Scores) -> Scores:
    """With the edge the first candidate is chosen less often."""
    others: Scores = (chosen != 0).astype(np.float64)
    return others
