"""Releases on a larger graph with and without one canary edge: the worst of some random ones."""

from __future__ import annotations

import torch
from torch.nn.functional import one_hot

from gcon.edges.schemes import Schemes
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.statistic import Statistic
from gcon_lab.audits.cases.case import AuditCase, changed
from gcon_lab.audits.cases.gaussian_statistics import statistic_case
from gcon_lab.audits.cases.larger_graphs import LargerGraph
from gcon_lab.audits.pairs import EdgePair, is_linked, with_edges
from gcon_lab.mechanisms.bilinear_sums import BilinearSums
from gcon_lab.mechanisms.class_sums import ClassSums

_TRIED = 40


def canary_edge(graph: LargerGraph) -> list[AuditCase]:
    """Class sums, bilinear sums and edge moments of a larger graph."""
    classes = one_hot(graph.classes.long(), graph.num_classes).to(torch.float64)
    statistics: dict[str, tuple[Statistic, int]] = {
        "class sums, restart 0.5, 1 step": (ClassSums(graph.rows, classes, Schemes(restart=0.5, steps=(1,))), 100_000),
        "class sums, restart 0.8, 2 steps": (ClassSums(graph.rows, classes, Schemes(restart=0.8, steps=(2,))), 100_000),
        "bilinear sums, self weight 1": (BilinearSums(graph.rows, classes), 100_000),
        "edge moments": (EdgeMoments(graph.rows), 5_000),
    }
    cases = []
    for words, (statistic, runs) in statistics.items():
        case = statistic_case(
            "canary-edge", f"{words}, {graph.name} graph", statistic, worst_canary(graph, statistic), runs=runs
        )
        # What is broken is audited on the small pairs.
        cases.append(changed(case, tight=False, broken=()))
    return cases


def worst_canary(graph: LargerGraph, statistic: Statistic) -> EdgePair:
    """Of some random pairs of nodes that are not joined, the one whose edge moves the statistic furthest."""
    generator = torch.Generator().manual_seed(3)
    drawn = torch.randperm(graph.edges.num_nodes, generator=generator)[: 2 * _TRIED].reshape(-1, 1, 2)
    base, apart = statistic.of(graph.edges), graph.edges
    joined = [with_edges(apart, pair) for pair in drawn if not is_linked(apart, tuple(pair[0].tolist()))]
    worst = max(joined, key=lambda edges: float(torch.linalg.vector_norm(statistic.of(edges) - base)))
    return EdgePair(joined=worst, apart=apart)
