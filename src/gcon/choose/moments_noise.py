"""How much noise the default adds at a budget, release by release. Public numbers only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gcon.mechanisms.counts import ENDS_OF_AN_EDGE, geometric_deviation
from gcon.mechanisms.mixed_release import mixed_plan
from gcon.methods.graph_facts import CONSTANT
from gcon.methods.moments import ANSWERS_SHARE, FEATURES_SHARE, FIRST_SHARE, HEARD, LOUD, Moments, counted_share
from gcon.privacy.attacker import best_advantage, best_true_positive_rate, in_words
from gcon.privacy.budget import STATED_EDGES, Budget

_UNIT_ROWS = 2.0  # sensitivity of the moments of rows of length 1
COUNTED = 2 * (1 + CONSTANT**2)  # of the moments of answers with their constant column, at most
USUAL_VALIDATION = 500  # nodes, where nobody says how many there are


@dataclass(frozen=True, kw_only=True)
class MomentsNoise:
    """Standard deviations of what `moments` releases at one budget.

    Attributes:
        budget: of all releases together.
        protect_edges: how many edges may change together within it.
        validation_nodes: whose right answers are counted, if they are enough.
        many_labels: whether so many nodes have a label that these may be counted alone.
        by_edges: what is promised for other numbers of edges; empty without a promise.
        first_moments: along one feature direction, in the first release.
        answer_moments: of one entry of the moments of answers, which tell density and homophily; at most.
        moments: along one feature direction, all releases together, on a graph too sparse for counts.
        counts: of one of a node's neighbour counts, if there is one table of them.
        counts_of_two: the same, if there are two tables; None with many labels.
        counts_one_way: the same of a node without a label, if labelled neighbours alone are counted; None with few labels.
        heard_degree: the mean degree from which counts are released instead of more moments.
        loud_degree: the mean degree from which there are two tables, if answers are still unsure; None with many labels.
        right_answers: of the number of validation nodes that owners answer right; 0 if that is not released.
    """

    budget: Budget
    protect_edges: int
    validation_nodes: int
    many_labels: bool
    by_edges: dict[int, Budget]
    first_moments: float
    answer_moments: float
    moments: float
    counts: float
    counts_of_two: float | None
    counts_one_way: float | None
    heard_degree: float
    loud_degree: float | None
    right_answers: float

    @property
    def one_edge(self) -> float:
        """Epsilon of the promise for a single edge: with this much, one protected edge would get the same noise."""
        return self.by_edges[1].epsilon if self.by_edges else self.budget.epsilon

    def fields(self) -> dict[str, object]:
        """As JSON has it."""
        one_edge, numbers = Budget(self.one_edge, self.budget.delta), dict(vars(self))
        del numbers["budget"]
        return {
            "method": Moments.name,
            **vars(self.budget),
            **numbers,
            "by_edges": {str(edges): budget.epsilon for edges, budget in self.by_edges.items()},
            "best_advantage": best_advantage(one_edge),
            "true_positive_rate_at_1_percent": best_true_positive_rate(one_edge, 0.01),
            "attacker": in_words(one_edge),  # who guesses about one edge
        }


def moments_noise(
    budget: Budget,
    *,
    protect_edges: int = 1,
    num_validation: int = USUAL_VALIDATION,
    many_labels: bool = False,
    told: Sequence[int] = STATED_EDGES,
) -> MomentsNoise:
    """The noise at this budget.

    Args:
        budget: epsilon may be infinite: no noise.
        protect_edges: how many edges, 1 to 10, may change together within the budget.
        num_validation: validation nodes; the right answers of many are counted, at a price.
        many_labels: whether at least two in five nodes have a label: the plan is another one then.
        told: numbers of edges for which the promise is told; 1 must be among them.

    Example:
        >>> round(moments_noise(Budget(1.0, 1e-5)).counts, 2)
        3.44

    Privacy:
        Free: no number here depends on an edge.
    """
    plan = mixed_plan(
        budget.epsilon,
        budget.delta,
        first_share=FIRST_SHARE,
        answer_share=counted_share(budget.epsilon, num_validation, protect_edges=protect_edges),
        method="advice",
        protect_edges=protect_edges,
        one_way=many_labels,
    )
    distance = plan.distance

    def deviation(sensitivity: float, share: float) -> float:
        return 0.0 if distance is None else sensitivity / (distance * math.sqrt(share))

    counts, others = (geometric_deviation(rate) for rate in plan.rates)
    counted = 0 < plan.answer_epsilon < math.inf
    return MomentsNoise(
        budget=budget,
        protect_edges=protect_edges,
        validation_nodes=num_validation,
        many_labels=many_labels,
        by_edges={} if distance is None else plan.by_edges(told),
        first_moments=deviation(_UNIT_ROWS, FEATURES_SHARE),
        answer_moments=deviation(COUNTED, ANSWERS_SHARE),
        moments=deviation(_UNIT_ROWS, 1 - ANSWERS_SHARE),
        counts=counts,
        counts_of_two=None if many_labels else others,
        counts_one_way=others if many_labels else None,
        heard_degree=HEARD * counts,
        loud_degree=None if many_labels else LOUD * others,
        right_answers=geometric_deviation(plan.answer_epsilon / ENDS_OF_AN_EDGE) if counted else 0.0,
    )
