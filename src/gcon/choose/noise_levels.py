"""How loud the noise of `moments` is at a budget, and what a graph must have to be heard over it. Public numbers only."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gcon.choose.public_facts import PublicFacts
from gcon.mechanisms.gaussian_release import gaussian_plan
from gcon.methods.graph_facts import CONSTANT, degree_error
from gcon.methods.moments import FEATURES_SHARE, HEARD, SECOND_SHARE

_UNIT_ROWS = 2.0  # sensitivity of the moments of rows of length 1
_SUMS = math.sqrt(2)  # of sums of such rows
_COUNTED = 2 * (1 + CONSTANT**2)  # of the moments of answers with their constant column, at most


@dataclass(frozen=True, kw_only=True)
class NoiseFacts:
    """The noise of `moments` at one budget.

    Attributes:
        epsilon, delta: the budget.
        moments: standard deviation of the feature moments along any one direction, if both stages release them.
        sums: standard deviation of one number of a node's neighbour sums; a neighbour moves them by at most 1.
        heard_degree: the mean degree from which `moments` releases neighbour sums.
        heard_edges: so many edges, at least, for the moments along the leading feature direction to exceed their noise:
            if neighbours do not differ along it at all. Infinite if nodes do not differ.
    """

    epsilon: float
    delta: float
    moments: float
    sums: float
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
        15.33

    Privacy:
        Free: no number here depends on an edge.
    """
    moments = _deviation(_UNIT_ROWS, FEATURES_SHARE + SECOND_SHARE, epsilon, delta)
    sums = _deviation(_SUMS, SECOND_SHARE, epsilon, delta)
    # An edge between nodes that are alike adds, on average, twice the variance along a direction.
    variance = facts.leading_variance
    return NoiseFacts(
        epsilon=epsilon,
        delta=delta,
        moments=moments,
        sums=sums,
        heard_degree=HEARD * sums,
        heard_edges=moments / (2 * variance) if variance > 0 else math.inf,
    )


def look_error(num_nodes: int, *, epsilon: float, delta: float) -> float:
    """The standard deviation, at most, of the mean degree that a look at this budget would show."""
    return degree_error(_deviation(_COUNTED, 1.0, epsilon, delta), num_nodes)


def _deviation(sensitivity: float, share: float, epsilon: float, delta: float) -> float:
    """Sensitivity / (mu sqrt(share)), as in the release; 0 without a promise."""
    distance = gaussian_plan(epsilon, delta, method="advice").distance
    return 0.0 if distance is None else sensitivity / (distance * math.sqrt(share))
