"""How much noise a promise costs with the paper's method, from public numbers alone."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from gcon.edges.schemes import Schemes
from gcon.mechanisms.influence import FeatureExtent, InfluenceBound, edge_influence
from gcon.mechanisms.losses import loss_by_name
from gcon.mechanisms.objective_plan import NoisePlan, check_ridge, make_plan
from gcon.mechanisms.theorem import ObjectiveShape, TheoremOne, influence_of, objective_by_edges, theorem_one
from gcon.privacy.attacker import best_advantage, best_true_positive_rate, in_words
from gcon.privacy.budget import STATED_EDGES, Budget


@dataclass(frozen=True, kw_only=True)
class PromiseCost:
    """Theorem 1 for exactly one budget, and what a release keeps back of it for the solver's certificate.

    Attributes:
        budget: the promise.
        theorem: its numbers.
        influence_bounds: how each scheme's edge influence was bound.
        noise_to_signal: expected length of one class's noise over the largest possible class sum.
        release: the plan of a release, which has the reserve.
    """

    budget: Budget
    theorem: TheoremOne
    influence_bounds: tuple[str, ...]
    noise_to_signal: float
    release: NoisePlan

    def fields(self) -> dict[str, object]:
        """As JSON has it; an infinite noise rate, for no noise at all, is None."""
        rate, plan = self.theorem.noise_rate, self.release
        by_edges = (
            objective_by_edges(plan.public_record(), plan.budget, STATED_EDGES).items() if plan.needs_noise else ()
        )
        return asdict(self.theorem) | {
            "noise_rate": rate if math.isfinite(rate) else None,
            "protect_edges": plan.protect_edges,
            "by_edges": {str(edges): each and [each.epsilon, each.delta] for edges, each in by_edges},
            "influence_bounds": list(self.influence_bounds),
            "noise_to_signal": self.noise_to_signal,
            "best_advantage": best_advantage(self.budget),
            "true_positive_rate_at_1_percent": best_true_positive_rate(self.budget, 0.01),
            "attacker": in_words(self.budget),
            "certificate_reserve": {
                "epsilon": 2 * plan.terms.reserved_epsilon,
                "delta": self.budget.delta - plan.exact.delta,
                "final_noise": plan.final_noise,
                "gradient_tolerance": plan.tolerance,
            },
        }


def promise_cost(
    budget: Budget,
    *,
    schemes: Schemes,
    num_classes: int,
    num_features: int,
    num_labelled: int,
    loss: str,
    ridge: float,
    noise_share: float,
    influence: InfluenceBound,
    diameter: float,
    margin: float | None,
    protect_edges: int = 1,
) -> PromiseCost:
    """The cost of a promise.

    Args:
        budget: the promise.
        schemes: how features travel.
        num_classes: at least 2.
        num_features: width of the aggregates.
        num_labelled: rows in the loss.
        loss: by name.
        ridge: regularisation; the proof may raise it.
        noise_share: least share of epsilon that goes to the noise.
        influence: how an edge's influence is bound.
        diameter: largest distance between two feature rows, in [0, 2].
        margin: over the floor of the ridge; None is the floor.
        protect_edges: how many edges, 1 to 10, may change together within the budget.

    Privacy:
        Free: no number here depends on an edge.
    """
    check_ridge(ridge=ridge, noise_share=noise_share, margin=margin)
    bound = edge_influence(schemes, FeatureExtent(diameter, 1.0), num_nodes=num_labelled, bound=influence)
    the_loss = loss_by_name(loss, num_classes)
    shape = ObjectiveShape(
        epsilon=budget.epsilon,
        delta=budget.delta,
        noise_share=noise_share,
        num_features=num_features,
        num_labelled=num_labelled,
        edge_influence=influence_of(protect_edges, bound.value),
        loss=the_loss,
    )
    theorem = theorem_one(shape, ridge=ridge, margin=margin)
    release = make_plan(
        budget,
        loss=the_loss,
        num_features=num_features,
        num_labelled=num_labelled,
        edge_influence=bound.value,
        ridge=ridge,
        noise_share=noise_share,
        margin=margin,
        protect_edges=protect_edges,
    )
    return PromiseCost(
        budget=budget,
        theorem=theorem,
        influence_bounds=tuple(bound.bounds),
        # The largest class sum is n_1 / c; the other c undoes the loss's 1/c.
        noise_to_signal=num_classes**2 * num_features / (theorem.noise_rate * num_labelled),
        release=release,
    )
