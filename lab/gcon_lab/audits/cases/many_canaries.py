"""One release on a larger graph with many canary edges, and what can be guessed about them from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import one_hot

from gcon.edges.edge_list import EdgeList
from gcon.privacy.budget import Budget
from gcon.privacy.randomness import Randomness
from gcon_lab.audits.cases.case import HALVED, changed
from gcon_lab.audits.cases.larger_graphs import LargerGraph
from gcon_lab.audits.one_run import Canaries
from gcon_lab.audits.pairs import is_linked
from gcon_lab.mechanisms.neighbour_sums import SumsPlan, gaussian_sums_plan, laplace_sums_plan
from gcon_lab.mechanisms.noisy_graph import RandomFlips
from gcon_lab.mechanisms.plain_sums import neighbour_sums

Floats = NDArray[np.float64]
Release = Callable[[EdgeList, Randomness], Any]


@dataclass(frozen=True, eq=False, kw_only=True)
class OneRunCase:
    """A mechanism that is run once, on a graph with many canary edges.

    Attributes:
        mechanism: always `one-run`.
        options: the mechanism in words.
        claimed: what it promises.
        graph: where the canaries are put.
        release: one run.
        score: what was released, canaries -> one number a canary, larger where it looks included.
        canaries: how many.
        guessed: the share of canaries that are guessed.
        broken: kinds of breaks, and what then runs.
    """

    mechanism: str = "one-run"
    options: str
    claimed: Budget
    graph: LargerGraph
    release: Release
    score: Callable[[Any, Canaries], Floats]
    canaries: int = 1_000
    guessed: float
    broken: dict[str, Release]


def many_canaries(graph: LargerGraph) -> list[OneRunCase]:
    """Random flips, and neighbour sums with both kinds of noise."""
    return [_flips(graph), _sums(graph, "Laplace"), _sums(graph, "Gaussian")]


def _flips(graph: LargerGraph) -> OneRunCase:
    def release(epsilon: float) -> Release:
        return RandomFlips(epsilon=epsilon, num_nodes=graph.edges.num_nodes).apply

    def score(released: EdgeList, canaries: Canaries) -> Floats:
        return np.array([float(is_linked(released, pair)) for pair in canaries.pairs])

    return OneRunCase(
        options=f"random flips, {graph.name} graph",
        claimed=Budget(1.0, 0.0),
        graph=graph,
        release=release(1.0),
        score=score,
        guessed=1.0,
        broken={HALVED: release(2.0)},
    )


def _sums(graph: LargerGraph, law: str) -> OneRunCase:
    laplace = law == "Laplace"
    rows = one_hot(graph.classes.long(), graph.num_classes).to(torch.float64) if laplace else graph.rows
    plan = laplace_sums_plan(1.0, 1) if laplace else gaussian_sums_plan(4.0, 1e-8, 1)

    def release(used: SumsPlan) -> Release:
        return used.sums_of(rows).apply

    def score(released: Tensor, canaries: Canaries) -> Floats:
        """The log-likelihood ratio of every canary: its two ends receive each other's row."""
        rest = released - neighbour_sums(canaries.base, rows)
        low, high = torch.from_numpy(canaries.pairs.T)
        seen, change = torch.cat([rest[low], rest[high]], dim=1), torch.cat([rows[high], rows[low]], dim=1)
        ratio = seen.abs() - (seen - change).abs() if laplace else seen * change
        return ratio.sum(dim=1).numpy()

    kind, factor = ("a quarter of the noise", 0.25) if laplace else ("a tenth of the noise", 0.1)
    return OneRunCase(
        options=f"neighbour sums, {law}, {graph.name} graph",
        claimed=plan.budget,
        graph=graph,
        release=release(plan),
        score=score,
        guessed=1 / 3 if laplace else 0.6,
        broken={kind: release(changed(plan, scale=plan.scale * factor))},
    )
