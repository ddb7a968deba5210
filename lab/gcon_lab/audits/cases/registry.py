"""All audit cases, by the name that `gcon audit` takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gcon_lab.audits.cases import canary_edge, gaussian_statistics, many_canaries, searches
from gcon_lab.audits.cases.case import AuditCase
from gcon_lab.audits.cases.larger_graphs import LargerGraph
from gcon_lab.audits.cases.many_canaries import OneRunCase
from gcon_lab.audits.cases.mixed_release import mixed_release
from gcon_lab.audits.cases.neighbour_counts import neighbour_counts
from gcon_lab.audits.cases.neighbour_sums import neighbour_sums
from gcon_lab.audits.cases.noisy_gradients import noisy_gradients
from gcon_lab.audits.cases.noisy_graph import noisy_graph
from gcon_lab.audits.cases.objective_perturbation import gaussian_objective, objective_perturbation
from gcon_lab.audits.cases.output_perturbation import output_perturbation
from gcon_lab.audits.cases.searches import SearchCase
from gcon_lab.audits.cases.several_edges import several_edges
from gcon_lab.audits.cases.staged_release import staged_release
from gcon_lab.audits.cases.whole_numbers import noisy_count, selection

AnyCase = AuditCase | OneRunCase | SearchCase
Maker = Callable[[], Sequence[AnyCase]]

MECHANISMS: dict[str, Callable[[], list[AuditCase]]] = {
    "edge-moments": gaussian_statistics.edge_moments,
    "class-sums": gaussian_statistics.class_sums,
    "walk-moments": gaussian_statistics.walk_moments,
    "bilinear-sums": gaussian_statistics.bilinear_sums,
    "staged-release": staged_release,
    "neighbour-counts": neighbour_counts,
    "mixed-release": mixed_release,
    "several-edges": several_edges,
    "neighbour-sums": neighbour_sums,
    "noisy-count": noisy_count,
    "selection": selection,
    "noisy-graph": noisy_graph,
    "noisy-gradients": noisy_gradients,
    "output-perturbation": output_perturbation,
    "objective-perturbation": objective_perturbation,
    "gaussian-objective": gaussian_objective,
}
ABOUT: dict[str, str] = {
    **{name: (maker.__doc__ or "").splitlines()[0] for name, maker in MECHANISMS.items()},
    "canary-edge": "One canary edge in a larger graph: class sums, bilinear sums, edge moments.",
    "one-run": "One release with many canary edges in a larger graph: random flips, neighbour sums.",
    "search": "Small graphs, searched for a change above the claimed sensitivity.",
}


def makers(graph: Callable[[], LargerGraph]) -> dict[str, Maker]:
    """Name -> what makes its cases; the larger graph is read only if a case needs it."""
    return {
        **MECHANISMS,
        "canary-edge": lambda: canary_edge.canary_edge(graph()),
        "one-run": lambda: many_canaries.many_canaries(graph()),
        "search": searches.searches,
    }
