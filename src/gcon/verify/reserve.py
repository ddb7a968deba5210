"""Theorem A: what an approximate minimiser costs, and that the plan put it aside (docs/proofs/approximate-minimiser.md)."""

from __future__ import annotations

from typing import Any

from gcon.verify.arithmetic import ROUNDING, agrees, digits, finite, gaussian_delta, shown
from gcon.verify.steps import Steps

_VANISHED = 1e-290  # smaller ones may be stored as 0


def check_reserve(plan: dict[str, Any], steps: Steps) -> None:
    """Reserve, final noise and what is left for Theorem 1 make up the budget."""
    epsilon, delta = finite(plan, "epsilon"), finite(plan, "delta")
    exact_epsilon, exact_delta = finite(plan, "exact_epsilon"), finite(plan, "exact_delta")
    reserved = finite(plan, "reserved_epsilon")
    steps.check(
        f"Put aside for the approximate minimiser: eps_a = min(0.001, eps/1000) = {shown(reserved)}",
        agrees(reserved, min(digits.mpf("0.001"), epsilon / 1000)),
    )
    steps.check(
        f"What is left, eps' = {shown(exact_epsilon)}, and twice the reserve make up the budget: eps' + 2 eps_a = "
        f"{shown(exact_epsilon + 2 * reserved)}",
        agrees(exact_epsilon + 2 * reserved, epsilon, 1e-12),
    )
    # The solver's error is at most r = tolerance/(Lam + Lam'), and the final noise s covers it.
    ridge = finite(plan, "ridge") + finite(plan, "extra_ridge", above=False)
    ratio = finite(plan, "final_noise") * ridge / finite(plan, "gradient_tolerance")
    doubled = digits.log(ratio * reserved / 10, 2)
    steps.check(
        f"The final noise s = {shown(plan['final_noise'])} is {shown(ratio)} times the solver's error r = tau/(Lam + Lam') = "
        f"{shown(plan['gradient_tolerance'])}/{shown(ridge)}: 10/eps_a by rule, doubled {int(digits.nint(doubled))} times",
        bool(digits.nint(doubled) >= 0 and abs(doubled - digits.nint(doubled)) < 1e-9),
    )
    cost, stated = gaussian_delta(reserved, 1 / ratio), finite(plan, "reserved_delta", above=False)
    # Both terms of the curve are nearly equal here; the plan rounds their difference up, in float64.
    slack = 1e-9 + 3e-13 * (10 + abs(digits.log(cost))) * reserved * ratio**2
    steps.check(
        f"At distance r/s the reserve eps_a costs delta_a = {shown(cost)} on the Gaussian curve; the plan says {shown(stated)}",
        bool(stated >= cost * (1 - ROUNDING) or cost < _VANISHED)
        and bool(stated <= cost * (1 + slack) or stated < _VANISHED),
    )
    cost = max(cost, stated)
    spent = digits.exp(reserved) * exact_delta + (1 + digits.exp(exact_epsilon + reserved)) * cost
    steps.check(
        f"Theorem A: e^eps_a delta' + (1 + e^(eps' + eps_a)) delta_a with delta' = {shown(exact_delta)} is {shown(spent)}, "
        f"at most the delta that is claimed, {shown(delta)}, and hardly less",
        bool(spent <= delta * (1 + ROUNDING)) and agrees(spent, delta, 1e-5),
    )
