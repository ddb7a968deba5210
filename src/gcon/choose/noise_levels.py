"""How loud the noise of `moments` is at a budget, and what a graph must have to be heard over it. Public numbers only."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gcon.choose.moments_noise import COUNTED, moments_noise
from gcon.choose.public_facts import PublicFacts
from gcon.mechanisms.gaussian_release import gaussian_plan
from gcon.methods.graph_facts import degree_error
from gcon.methods.moments import LEAST_LABELLED
from gcon.privacy.budget import Budget


@dataclass(frozen=True, kw_only=True)
class NoiseFacts:
    """The noise of `moments` at one budget.

    Attributes:
        epsilon, delta: the budget.
        protect_edges: how many edges may change together within it.
        one_edge: epsilon of the promise for a single edge; what measured gains are looked up by.
        moments: standard deviation of the feature moments along any one direction, if both stages release them.
        counts: standard deviation of one of a node's neighbour counts; a neighbour adds 1 to one of them.
        heard_degree: the mean degree from which `moments` releases neighbour counts.
        heard_edges: so many edges, at least, for the moments along the leading feature direction to exceed their noise:
            if neighbours do not differ along it at all. Infinite if nodes do not differ.
    """

    epsilon: float
    delta: float
    protect_edges: int
    one_edge: float
    moments: float
    counts: float
    heard_degree: float
    heard_edges: float


def noise_facts(facts: PublicFacts, *, epsilon: float, delta: float, protect_edges: int = 1) -> NoiseFacts:
    """The noise at this budget.

    Example:
        >>> facts = PublicFacts(
        ...     num_nodes=2000, num_features=8, num_classes=4, num_validation=500, labels_a_class=(20, 20, 20, 20),
        ...     neighbours_agree=0.1, edge_free_accuracy=0.5, edge_free_strength=0.3, leading_variance=0.2,
        ... )
        >>> round(noise_facts(facts, epsilon=1.0, delta=1e-5).heard_degree, 2)
        13.76

    Privacy:
        Free: no number here depends on an edge.
    """
    noise = moments_noise(
        Budget(epsilon, delta),
        protect_edges=protect_edges,
        num_validation=facts.num_validation,
        many_labels=sum(facts.labels_a_class) >= LEAST_LABELLED * facts.num_nodes,
        told=(1,),
    )
    # An edge between nodes that are alike adds, on average, twice the variance along a direction.
    variance = facts.leading_variance
    return NoiseFacts(
        epsilon=epsilon,
        delta=delta,
        protect_edges=protect_edges,
        one_edge=noise.one_edge,
        moments=noise.moments,
        counts=noise.counts,
        heard_degree=noise.heard_degree,
        heard_edges=noise.moments / (2 * variance) if variance > 0 else math.inf,
    )


def look_error(num_nodes: int, *, epsilon: float, delta: float) -> float:
    """The standard deviation, at most, of the mean degree that a look at this budget would show."""
    distance = gaussian_plan(epsilon, delta, method="advice").distance
    return 0.0 if distance is None else degree_error(COUNTED / distance, num_nodes)
