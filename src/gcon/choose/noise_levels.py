"""How loud the noise of `moments` is at a budget, and what a graph must have to be heard over it. Public numbers only."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gcon.choose.public_facts import PublicFacts
from gcon.mechanisms.gaussian_release import gaussian_plan
from gcon.mechanisms.mixed_release import mixed_plan
from gcon.mechanisms.neighbour_counts import geometric_deviation
from gcon.methods.graph_facts import CONSTANT, degree_error
from gcon.methods.moments import ANSWERS_SHARE, COUNTED_SHARE, FIRST_SHARE, HEARD

_UNIT_ROWS = 2.0  # sensitivity of the moments of rows of length 1
_COUNTED = 2 * (1 + CONSTANT**2)  # of the moments of answers with their constant column, at most


@dataclass(frozen=True, kw_only=True)
class NoiseFacts:
    """The noise of `moments` at one budget.

    Attributes:
        epsilon, delta: the budget.
        moments: standard deviation of the feature moments along any one direction, if both stages release them.
        counts: standard deviation of one of a node's neighbour counts; a neighbour adds 1 to one of them.
        heard_degree: the mean degree from which `moments` releases neighbour counts.
        heard_edges: so many edges, at least, for the moments along the leading feature direction to exceed their noise:
            if neighbours do not differ along it at all. Infinite if nodes do not differ.
    """

    epsilon: float
    delta: float
    moments: float
    counts: float
    heard_degree: float
    heard_edges: float


def noise_facts(facts: PublicFacts, *, epsilon: float, delta: float) -> NoiseFacts:
    """The noise at this budget.

    Example:
        >>> facts = PublicFacts(
        ...     num_nodes=2000, num_features=8, num_classes=4, num_validation=500, labels_a_class=(20, 20, 20, 20),
        ...     neighbours_agree=0.1, edge_free_accuracy=0.5, edge_free_strength=0.3, leading_variance=0.2,
        ... )
        >>> round(noise_facts(facts, epsilon=1.0, delta=1e-5).heard_degree, 2)
        14.4

    Privacy:
        Free: no number here depends on an edge.
    """
    asked = COUNTED_SHARE if facts.num_validation else 0.0
    plan = mixed_plan(epsilon, delta, first_share=FIRST_SHARE, answer_share=asked, method="advice")
    distance, counts = plan.gaussian.distance, geometric_deviation(plan.rates[0])
    moments = 0.0 if distance is None else _UNIT_ROWS / (distance * math.sqrt(1 - ANSWERS_SHARE))
    # An edge between nodes that are alike adds, on average, twice the variance along a direction.
    variance = facts.leading_variance
    return NoiseFacts(
        epsilon=epsilon,
        delta=delta,
        moments=moments,
        counts=counts,
        heard_degree=HEARD * counts,
        heard_edges=moments / (2 * variance) if variance > 0 else math.inf,
    )


def look_error(num_nodes: int, *, epsilon: float, delta: float) -> float:
    """The standard deviation, at most, of the mean degree that a look at this budget would show."""
    distance = gaussian_plan(epsilon, delta, method="advice").distance
    return 0.0 if distance is None else degree_error(_COUNTED / distance, num_nodes)
