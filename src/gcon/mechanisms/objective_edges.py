"""Objective perturbation and several edges that change together (docs/proofs/several-edges.md, 5).

Theorem 1 knows the graph through one number, how far all rows move together. k edges move them k times as far as one, so the
theorem with k times the edge influence protects k edges. Read backwards, the noise of a release says what is promised for any
other number of edges: how rare long weights are does not depend on edges, so delta
stays, and epsilon grows at most in proportion.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from scipy.special import gammaincc

from gcon.errors import PlanMismatchError
from gcon.mechanisms.certificate_terms import log_waste
from gcon.mechanisms.gaussian_curve import gaussian_log_delta
from gcon.mechanisms.losses import loss_by_name
from gcon.privacy.budget import Budget, round_up_digits
from gcon.privacy.protected_change import DIGITS, check_edges, protected_change

_SLACK = 1e-12  # relative; for the last digits of float64
_MOST_DOUBLED = 64
_WASTE = 1e-6  # of delta; more is not lost to the approximate minimiser


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
    protected = protected_change(plan).edges
    found: dict[int, Budget | None] = {protected: budget}
    for edges in {*numbers} - {protected}:
        check_edges(edges)
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
        lost = log_waste(exact + reserve, gaussian_log_delta(reserve, distance))
        if lost <= math.log(delta) + math.log(_WASTE):
            break
        if doubled == _MOST_DOUBLED:
            raise PlanMismatchError("The final noise of this plan covers no approximate minimiser.")
        reserve *= 2
    whole = math.exp(reserve) * min(long, plan["exact_delta"]) + math.exp(lost)
    return round_up_digits((exact + 2 * reserve) * (1 + _SLACK), DIGITS), whole * (1 + _SLACK)
