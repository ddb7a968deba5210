"""Theorem 1 of the paper, as docs/proofs/objective-perturbation.md proves it: first its lines, then the two sums of the proof.

Then Theorem A: what an approximate minimiser costs, and that the plan put it aside (docs/proofs/approximate-minimiser.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gcon.verify.arithmetic import ROUNDING, agrees, digits, erlang_tail, finite, gaussian_delta, shown
from gcon.verify.steps import Steps, UnfitError

_VANISHED = 1e-290  # smaller ones may be stored as 0


@dataclass(frozen=True, kw_only=True)
class LossBounds:
    """c, and bounds c1, c2, c3 on the first three derivatives in the score, for targets in [0, 1]."""

    classes: int
    slope: Any
    curvature: Any
    third: Any


def loss_bounds(name: Any, classes: int) -> LossBounds:
    """Of the loss of this name; `UnfitError` for any other.

    Example:
        >>> print(digits.nstr(loss_bounds("pseudo-huber:0.5", 4).slope, 3))
        0.125
    """
    c = digits.mpf(classes)
    if name == "soft-margin":
        return LossBounds(classes=classes, slope=1 / c, curvature=1 / (4 * c), third=1 / (6 * digits.sqrt(3) * c))
    kind, _, words = name.partition(":") if isinstance(name, str) else ("", "", "")
    try:
        weight = digits.mpf(float(words))
    except ValueError:
        weight = digits.mpf(0)
    if kind != "pseudo-huber" or not 0 < weight < digits.inf:
        raise UnfitError("'loss' must be soft-margin or pseudo-huber with a weight")
    return LossBounds(
        classes=classes, slope=weight / c, curvature=1 / c, third=48 * digits.sqrt(5) / (125 * c * weight)
    )


@dataclass(frozen=True, kw_only=True)
class Public:
    """The public numbers of the theorem: eps', delta', omega, d, n, Psi, Lam and the loss."""

    epsilon: Any
    delta: Any
    noise_share: Any
    width: int
    rows: int
    influence: Any
    ridge: Any
    loss: LossBounds

    def __post_init__(self) -> None:
        if not self.noise_share < 1:
            raise UnfitError("'noise_share' must be below 1")


def check_theorem(public: Public, plan: dict[str, Any], steps: Steps) -> None:
    """Every line from the public numbers, then the promise of the exact minimiser from the noise."""
    _check_lines(public, plan, steps)
    _check_proof(public, plan, steps)


def _check_lines(public: Public, plan: dict[str, Any], steps: Steps) -> None:
    loss, pull = public.loss, public.rows * public.noise_share * public.epsilon
    quantile = finite(plan, "noise_radius_quantile")
    tail = loss.classes * erlang_tail(public.width, quantile)
    steps.check(
        f"q = {shown(quantile)}: {loss.classes} noise vectors in {public.width} dimensions are all shorter (at rate 1) but for a "
        f"probability of {shown(tail)}, at most delta' = {shown(public.delta)}; and hardly any smaller q would do",
        bool(tail <= public.delta * (1 + ROUNDING))
        and bool(loss.classes * erlang_tail(public.width, quantile * (1 - digits.mpf(10) ** -9)) > public.delta),
    )
    push = loss.classes * public.influence * quantile
    floor = loss.curvature * push / pull
    above = bool(public.ridge > floor)
    steps.check(
        f"The ridge Lam = {shown(public.ridge)} is above the floor c c2 Psi q/(n omega eps') = {shown(floor)} (n = "
        f"{public.rows}, omega = {shown(public.noise_share)})",
        above,
    )
    if not above:
        raise UnfitError("a ridge at or below the floor leaves the weights without a bound")
    bound = finite(plan, "weight_norm_bound")
    computed = loss.slope * (pull + push) / (pull * public.ridge - loss.curvature * push)
    steps.check(f"The weights' bound ct = {shown(bound)}; recomputed {shown(computed)}", agrees(bound, computed))
    change = (2 * loss.curvature + loss.third * computed) * public.influence
    jacobian = loss.classes * public.width * digits.log1p(change / (public.width * public.rows * public.ridge))
    stated = finite(plan, "jacobian_epsilon")
    steps.check(f"The Jacobian's cost eJ = {shown(stated)}; recomputed {shown(jacobian)}", agrees(stated, jacobian))
    share = (1 - public.noise_share) * public.epsilon
    extra, added = digits.mpf(0), finite(plan, "extra_ridge", above=False)
    if jacobian > share:
        extra = loss.classes * change / (public.rows * share) - public.ridge
    steps.check(
        f"The extra ridge Lam' = {shown(added)}; recomputed {shown(extra)}, because eJ is {'above' if extra else 'within'} "
        f"(1 - omega) eps' = {shown(share)}",
        agrees(added, extra) or (agrees(jacobian, share) and added == 0),
    )
    left = max(public.epsilon - jacobian, public.noise_share * public.epsilon)
    rate = left / (loss.classes * (loss.slope + loss.curvature * computed) * public.influence)
    stated = finite(plan, "noise_rate")
    steps.check(
        f"The noise rate beta = {shown(stated)} (smaller is more noise); at most {shown(rate)}, and no other number",
        bool(stated <= rate * (1 + ROUNDING)) and agrees(stated, rate),
    )


def _check_proof(public: Public, plan: dict[str, Any], steps: Steps) -> None:
    """Steps 2 to 5 of the proof with the numbers of the plan: the privacy loss of good weights, and how rare bad ones are."""
    loss, bound, rate = public.loss, finite(plan, "weight_norm_bound"), finite(plan, "noise_rate")
    ridge = public.ridge + finite(plan, "extra_ridge", above=False)
    change = (2 * loss.curvature + loss.third * bound) * public.influence
    jacobian = loss.classes * public.width * digits.log1p(change / (public.width * public.rows * ridge))
    shift = rate * loss.classes * (loss.slope + loss.curvature * bound) * public.influence
    steps.check(
        f"Proof, steps 2 to 4: the Jacobian costs {shown(jacobian)} and the shift of the noise {shown(shift)}, together "
        f"{shown(jacobian + shift)}, at most eps' = {shown(public.epsilon)}",
        bool(jacobian + shift <= public.epsilon * (1 + ROUNDING)),
    )
    tail = loss.classes * erlang_tail(public.width, rate * public.rows * (public.ridge * bound - loss.slope))
    steps.check(
        f"Proof, step 5: weights longer than ct have a probability of {shown(tail)} at most, within delta' = "
        f"{shown(public.delta)}",
        bool(tail <= public.delta * (1 + ROUNDING)),
    )


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
