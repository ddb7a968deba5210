"""Theorem 1 of the paper, one function per line, in the order in which the paper computes them.

Nothing here can see a graph: every argument is a public number. The corrections of the paper's edge cases are in the
docstrings of the lines that they touch; the proof is in docs/proofs/objective-perturbation.md.

Several edges that change together (docs/proofs/several-edges.md, 5): the theorem knows the graph through one number, how far all
rows move together. k edges move them k times as far as one, so the theorem with k times the edge influence protects k edges.
Read backwards, the noise of a release says what is promised for any other number of edges: how rare long weights are does not
depend on edges, so delta stays, and epsilon grows at most in proportion.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scipy.special import gammaincc, gammainccinv

from gcon.errors import InputError, PlanMismatchError
from gcon.mechanisms.certificate_terms import log_waste
from gcon.mechanisms.gaussian_curve import gaussian_delta
from gcon.mechanisms.losses import ConvexLoss, loss_by_name
from gcon.privacy.budget import DIGITS, Budget, protected_change, round_up_digits

_SLACK = 1e-12  # relative; for the last digits of float64
_MOST_DOUBLED = 64
_WASTE = 1e-6  # of delta; more is not lost to the approximate minimiser


@dataclass(frozen=True, kw_only=True)
class ObjectiveShape:
    """The public numbers that Theorem 1 is about.

    Attributes:
        epsilon: the budget of the exact minimiser, in (0, infinity].
        delta: in (0, 1).
        noise_share: omega in (0, 1), the least share of epsilon that goes to the noise.
        num_features: d, the total width of the aggregates.
        num_labelled: n_1, the number of rows in the loss.
        edge_influence: Psi, a proven bound on the sum of all row changes that one edge can cause.
        loss: gives c, c_1, c_2, c_3.
    """

    epsilon: float
    delta: float
    noise_share: float
    num_features: int
    num_labelled: int
    edge_influence: float
    loss: ConvexLoss

    @property
    def needs_noise(self) -> bool:
        """False if nothing depends on edges (Psi = 0) or no promise is asked for (infinite epsilon)."""
        return self.edge_influence > 0 and math.isfinite(self.epsilon)


@dataclass(frozen=True, kw_only=True)
class TheoremValues:
    """What the theorems of perturbed objectives have in common: Psi, the quantile, Lambda, c_theta, eps_Lambda and Lambda'."""

    edge_influence: float
    noise_radius_quantile: float
    ridge: float
    weight_norm_bound: float
    jacobian_epsilon: float
    extra_ridge: float


@dataclass(frozen=True, kw_only=True)
class TheoremOne(TheoremValues):
    """The values of Theorem 1. `noise_rate` is infinite where no noise is needed."""

    noise_rate: float


def noise_radius_quantile(shape: ObjectiveShape) -> float:
    """c_sf: the upper delta/c quantile of the Erlang(d, 1) law, rounded up until its tail is covered.

    The last factor makes room for the rounding allowance on the noise rate (`NoisePlan.noise_rate`).
    """
    tail = shape.delta / shape.loss.num_classes
    quantile = float(gammainccinv(shape.num_features, tail))
    while float(gammaincc(shape.num_features, quantile)) > tail * (1 + 1e-13):
        quantile *= 1 + 2**-50
    return quantile * (1 + 2e-12)


def ridge_floor(shape: ObjectiveShape, quantile: float) -> float:
    """C c_2 Psi c_sf / (n_1 omega eps): below it the weight norm has no bound."""
    if not shape.needs_noise:
        return 0.0
    loss = shape.loss
    return (
        loss.num_classes
        * loss.curvature_bound
        * shape.edge_influence
        * quantile
        / (shape.num_labelled * shape.noise_share * shape.epsilon)
    )


def ridge_after_floor(ridge: float, floor: float, margin: float | None) -> float:
    """Lambda = max(Lambda, floor + xi). By default xi = floor: a tiny xi destroys the model (c_theta ~ 1/xi)."""
    return max(ridge, floor + (floor if margin is None else margin)) if floor > 0 else ridge


def weight_norm_bound(shape: ObjectiveShape, quantile: float, ridge: float) -> float:
    """c_theta: every column of the minimiser is at most this long, but for a probability of delta."""
    loss, pull = shape.loss, shape.num_labelled * shape.noise_share * shape.epsilon
    if not shape.needs_noise:
        return loss.slope_bound / ridge
    push = loss.num_classes * shape.edge_influence * quantile
    room = pull * ridge - push * loss.curvature_bound
    if room <= 0:
        raise InputError(
            "margin",
            rule="must lift the ridge above the floor of Theorem 1 by more than rounding",
            got="a margin that is lost in rounding",
            fix="Leave margin out: the floor is then doubled.",
        )
    # A little more than the bound: the noise is a little more than asked for too, and a noise share near 1 leaves no slack.
    return (pull * loss.slope_bound + push * loss.slope_bound) / room * (1 + 1e-12)


def jacobian_epsilon(shape: ObjectiveShape, weight_bound: float, ridge: float) -> float:
    """eps_Lambda = c d log(1 + (2 c_2 + c_3 c_theta) Psi / (d n_1 Lambda)): what the change of variables costs."""
    return (
        shape.loss.num_classes
        * shape.num_features
        * math.log1p(_curvature_change(shape, weight_bound) / (shape.num_features * shape.num_labelled * ridge))
    )


def extra_ridge(shape: ObjectiveShape, weight_bound: float, jacobian: float, ridge: float) -> float:
    """Lambda': 0 if the Jacobian fits into (1 - omega) eps, else the ridge that makes it fit (then always > 0)."""
    if not shape.needs_noise or jacobian <= (1 - shape.noise_share) * shape.epsilon:
        return 0.0
    needed = (
        shape.loss.num_classes
        * _curvature_change(shape, weight_bound)
        / (shape.num_labelled * (1 - shape.noise_share) * shape.epsilon)
    )
    return max(0.0, needed - ridge)


def noise_rate(shape: ObjectiveShape, weight_bound: float, jacobian: float) -> float:
    """Beta = max(eps - eps_Lambda, omega eps) / (c (c_1 + c_2 c_theta) Psi); infinite where no noise is needed."""
    if not shape.needs_noise:
        return math.inf
    loss = shape.loss
    left = max(shape.epsilon - jacobian, shape.noise_share * shape.epsilon)
    shift = (loss.slope_bound + loss.curvature_bound * weight_bound) * shape.edge_influence
    return left / (loss.num_classes * shift)


def _curvature_change(shape: ObjectiveShape, weight_bound: float) -> float:
    """(2 c_2 + c_3 c_theta) Psi: bounds the nuclear norm of what one edge changes in the data's Hessian."""
    loss = shape.loss
    return (2 * loss.curvature_bound + loss.curvature_slope_bound * weight_bound) * shape.edge_influence


def theorem_one(shape: ObjectiveShape, *, ridge: float, margin: float | None = None) -> TheoremOne:
    """All values of Theorem 1.

    Args:
        shape: the public numbers.
        ridge: Lambda > 0 as asked for; the floor may raise it.
        margin: xi > 0, what is added to the floor; None means the floor itself.
    """
    quantile = noise_radius_quantile(shape)
    ridge = ridge_after_floor(ridge, ridge_floor(shape, quantile), margin)
    weight_bound = weight_norm_bound(shape, quantile, ridge)
    jacobian = jacobian_epsilon(shape, weight_bound, ridge)
    return TheoremOne(
        edge_influence=shape.edge_influence,
        noise_radius_quantile=quantile,
        ridge=ridge,
        weight_norm_bound=weight_bound,
        jacobian_epsilon=jacobian,
        extra_ridge=extra_ridge(shape, weight_bound, jacobian, ridge),
        noise_rate=noise_rate(shape, weight_bound, jacobian),
    )


def influence_of(edges: int, one: float) -> float:
    """How far so many edges move all rows together, at most, if one moves them by at most this much."""
    return one if edges == 1 or one == 0 else math.nextafter(edges * one, math.inf)


def objective_by_edges(plan: Mapping[str, Any], budget: Budget, numbers: Sequence[int]) -> dict[int, Budget | None]:
    """What is promised for so many edges that change together; None for nothing.

    Args:
        plan: the public record of a plan.
        budget: of the release: the promise for as many edges as the plan protects.
        numbers: of edges, from 1 to 10; the protected number is always among those that are told.
    """
    protected = protected_change(record=plan).edges
    found: dict[int, Budget | None] = {protected: budget}
    for edges in {*numbers} - {protected}:
        protected_change(edges)
        epsilon, delta = _promise(plan, budget.delta, edges / protected)
        within = delta <= budget.delta * (1 + 2 * _SLACK)
        if edges < protected:  # the budget itself holds for fewer edges too
            found[edges] = Budget(min(epsilon, budget.epsilon), budget.delta) if within else budget
        else:
            delta = budget.delta if within else round_up_digits(delta, DIGITS)
            found[edges] = Budget(max(epsilon, budget.epsilon), delta) if delta < 0.5 else None
    return dict(sorted(found.items()))


def _promise(plan: Mapping[str, Any], delta: float, times: float) -> tuple[float, float]:
    """Epsilon, of few digits, and delta of a release whose rows move so many times as far as its plan is for."""
    classes, width, rows = plan["num_classes"], plan["num_features"], plan["num_labelled"]
    loss, bound, rate = loss_by_name(plan["loss"], classes), plan["weight_norm_bound"], plan["noise_rate"]
    ridge, moved = plan["ridge"] + plan["extra_ridge"], plan["edge_influence"] * times
    curved = (2 * loss.curvature_bound + loss.curvature_slope_bound * bound) * moved
    jacobian = classes * width * math.log1p(curved / (width * rows * ridge))
    shift = rate * classes * (loss.slope_bound + loss.curvature_bound * bound) * moved
    exact = (jacobian + shift) * (1 + _SLACK)
    long = classes * float(gammaincc(width, rate * rows * (ridge * bound - loss.slope_bound))) * (1 + 1e-9)
    reserve = plan["reserved_epsilon"]
    distance = plan["gradient_tolerance"] / (ridge * plan["final_noise"]) * (1 + _SLACK)
    for doubled in itertools.count():
        lost = log_waste(exact + reserve, gaussian_delta(reserve, distance, logarithm=True))
        if lost <= math.log(delta) + math.log(_WASTE):
            break
        if doubled == _MOST_DOUBLED:
            raise PlanMismatchError("The final noise of this plan covers no approximate minimiser.")
        reserve *= 2
    whole = math.exp(reserve) * min(long, plan["exact_delta"]) + math.exp(lost)
    return round_up_digits((exact + 2 * reserve) * (1 + _SLACK), DIGITS), whole * (1 + _SLACK)
