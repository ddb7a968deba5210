"""Steps for the paper's releases (method `paper`): Theorem 1 and Theorem A, line by line, with other code.

docs/proofs/objective-perturbation.md, approximate-minimiser.md, edge-influence.md.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from gcon.verify.arithmetic import (
    ROUNDING,
    digits,
    erlang_quantile,
    erlang_tail,
    finite,
    gaussian_delta,
    is_lattice_of,
    lattice_of,
    on_lattice,
    shown,
    whole,
)
from gcon.verify.folder import Folder
from gcon.verify.influence import check_influence
from gcon.verify.several_edges import LAST_DIGIT, STATED, edges_of, in_words, stated
from gcon.verify.steps import Steps, UnfitError
from gcon.verify.theorem import LossBounds, Public, check_reserve, check_theorem, loss_bounds

NOT_CHECKED_PAPER = (
    "that the features have the diameter that the edge influence was computed with: they are not in the folder (it is at most 2, "
    "and above sqrt 2 with a centre)",
    "that the rows had length at most 1, and that the number of rows in the loss is the one that was trained on",
    "that the gradient of the solution was within the tolerance before it was released",
    "that the encoder was trained without edges, and that 'training_nodes' is the checksum of the table that was trained on",
)
_NOISE = "real noise in the objective and on the weights, rounded exactly to multiples of the public spacing"
_PLAN = {
    "delta", "edge_influence", "epsilon", "exact_delta", "exact_epsilon", "extra_ridge", "final_noise", "gradient_tolerance",
    "influence", "jacobian_epsilon", "loss", "noise_radius_quantile", "noise_rate", "noise_share", "normal_spacing",
    "num_classes", "num_features", "num_labelled", "reserved_delta", "reserved_epsilon", "ridge", "spacing", "weight_norm_bound",
}  # fmt: skip
_MOST_DOUBLED = 64


def check_paper(folder: Folder, steps: Steps) -> None:
    """From the public numbers to the noise, and from the noise back to (epsilon, delta)."""
    plan, budget = folder.plan, folder.model.receipt.budget
    free = plan.get("edge_influence") == 0
    several = {"protect_edges"} if edges_of(plan) > 1 else set()
    if set(plan) != _PLAN | several | (set() if free else {"noise"}):
        raise UnfitError("the plan must hold exactly the numbers of Theorem 1, of the reserve and of its noise")
    steps.check(
        f"The plan is for the budget of the receipt: epsilon {plan['epsilon']!r}, delta {plan['delta']!r}"
        + (", and nothing is charged where nothing depends on edges" if free else ""),
        (budget.epsilon == budget.delta == 0)
        if free
        else (plan["epsilon"] == budget.epsilon and plan["delta"] == budget.delta),
    )
    loss = _check_shape(folder, steps)
    influence = check_influence(folder, steps)
    if free:
        _check_nothing(folder, steps)
        return
    public = Public(
        epsilon=finite(plan, "exact_epsilon"),
        delta=finite(plan, "exact_delta"),
        noise_share=finite(plan, "noise_share"),
        width=folder.model.tensors()["weights"].shape[0],
        rows=whole(plan, "num_labelled"),
        influence=influence,
        ridge=finite(plan, "ridge"),
        loss=loss,
    )
    check_reserve(plan, steps)
    check_theorem(public, plan, steps)
    _check_exactness(plan, public, steps)
    _check_weights(folder, public, steps)
    check_other_edges(folder, public, steps)


def _check_shape(folder: Folder, steps: Steps) -> LossBounds:
    plan, weights = folder.plan, folder.model.tensors()["weights"]
    steps.check(
        f"The plan is for the weights that are stored: {plan['num_features']} x {plan['num_classes']}",
        (plan["num_features"], plan["num_classes"]) == tuple(weights.shape)
        and weights.shape[1] == len(folder.model.class_names),
    )
    loss, stated = loss_bounds(plan["loss"], weights.shape[1]), loss_bounds(folder.settings["loss"], weights.shape[1])
    steps.check(
        f"The loss is '{plan['loss']}' in plan and settings: |l'| <= c1 = {shown(loss.slope)}, l'' <= c2 = "
        f"{shown(loss.curvature)}, |l'''| <= c3 = {shown(loss.third)}",
        loss == stated,
    )
    return loss


def _check_nothing(folder: Folder, steps: Steps) -> None:
    """Psi = 0: no edge is read, or the features are all 0 and so are the weights."""
    plan, settings, weights = folder.plan, folder.settings, folder.model.tensors()["weights"]
    reads = settings["restart"] < 1 and any(count != 0 for count in settings["steps"])
    largest = float(weights.abs().max())
    steps.check(
        "An edge influence of 0 has a reason: restart 1, or no step is taken, or all weights are 0 because all features are",
        not reads or bool(largest * finite(plan, "ridge") <= finite(plan, "gradient_tolerance")),
    )
    steps.check(
        "Without influence there is no noise and no reserve",
        plan["noise_rate"] is None
        and all(
            plan[name] == 0
            for name in (
                "final_noise",
                "spacing",
                "normal_spacing",
                "reserved_epsilon",
                "reserved_delta",
                "extra_ridge",
            )
        ),
    )


def _check_exactness(plan: dict[str, Any], public: Public, steps: Steps) -> None:
    """Real noise is so near to what was computed with that the certificate covers it (approximate-minimiser.md, 6)."""
    steps.check(f"The noise is '{_NOISE}'", plan["noise"] == _NOISE)
    spacing, width = finite(plan, "normal_spacing"), public.width
    half, length = spacing / 2, digits.sqrt(width + 1) + 8  # which normal vectors exceed with probability e^-32
    shorter, longer = half * digits.sqrt(width), half * digits.sqrt(width + 1)
    column = (length * shorter + longer * (length + shorter)) / finite(plan, "noise_rate")
    moved = digits.sqrt(public.loss.classes) * column / public.rows
    tolerance = finite(plan, "gradient_tolerance")
    steps.check(
        f"The normal numbers behind the noise are rounded to multiples of {shown(spacing)}, a power of two: real noise moves the "
        f"gradient by at most {shown(moved)}, a quarter of its tolerance tau = {shown(tolerance)} or less",
        math.frexp(float(spacing))[0] == 0.5 and bool(4 * moved <= tolerance * (1 + ROUNDING)),
    )


def _check_weights(folder: Folder, public: Public, steps: Steps) -> None:
    """The stored weights lie on the public lattice, and are no longer than ridge and noise allow."""
    plan, weights = folder.plan, folder.model.tensors()["weights"]
    noise, spacing, ridge = (
        finite(plan, "final_noise"),
        finite(plan, "spacing"),
        public.ridge + finite(plan, "extra_ridge", above=False),
    )
    steps.check(
        f"The spacing {shown(spacing)} is the power of two below 1/4096 of the final noise, {shown(noise)}",
        is_lattice_of(spacing, noise),
    )
    steps.check(
        f"All {weights.numel()} weights are multiples of {shown(lattice_of(noise))}",
        on_lattice(weights, lattice_of(noise)),
    )
    # By (1) of the proof |theta_j| <= (c1 + |b_j|/n)/(Lam + Lam'), and beta |b_j| exceeds its quantile with that probability.
    radius = erlang_quantile(public.width, digits.mpf(10) ** -12 / public.loss.classes) / finite(plan, "noise_rate")
    most = (public.loss.slope + radius / public.rows) / ridge + noise * (digits.sqrt(public.width) + 9)
    longest = float(torch.linalg.vector_norm(weights, dim=0).max())
    steps.check(
        f"The longest column of the weights, {shown(longest)}, is one that ridge and noise allow, at most {shown(most)} (an "
        "honest release fails here with probability 1e-12)",
        bool(longest <= most * (1 + ROUNDING)),
    )


def check_other_edges(folder: Folder, public: Public, steps: Steps) -> None:
    """Epsilon and delta for every number of edges, from the noise, and hardly more than that."""
    plan, protected = folder.plan, edges_of(folder.plan)
    for edges, entry in stated(folder, STATED | {protected}).items():
        if edges == protected:
            steps.check(
                f"{in_words(edges)}: the stated epsilon and delta are those of the plan",
                (entry["epsilon"], entry["delta"]) == (plan["epsilon"], plan["delta"]),
            )
            continue
        epsilon, delta = _promise(public, plan, digits.mpf(edges) / protected)
        words = f"{in_words(edges)}: Theorem 1 with this noise gives epsilon {shown(epsilon)} and delta {shown(delta)}"
        if entry["epsilon"] is None and entry["delta"] is None:
            steps.check(f"{words}, so that nothing is promised", edges > protected and bool(delta >= 0.499))
            continue
        said, failing = finite(entry, "epsilon"), finite(entry, "delta")
        own = finite(plan, "epsilon")  # no better for more edges, no worse for fewer
        least = min(epsilon, own) if edges < protected else max(epsilon, own)
        steps.check(
            f"{words}; stated are {shown(said)} and {shown(failing)}, no less and hardly more",
            bool(least * (1 - ROUNDING) <= said <= least * (1 + LAST_DIGIT))
            and bool(delta <= failing * (1 + ROUNDING))
            and (entry["delta"] == plan["delta"] or bool(finite(plan, "delta") < failing <= delta * (1 + LAST_DIGIT))),
        )


def _promise(public: Public, plan: dict[str, Any], times: Any) -> tuple[Any, Any]:
    """Steps 2 to 5 of the proof of Theorem 1, and Theorem A, where rows move so many times as far as the plan is for."""
    loss, bound, rate = public.loss, finite(plan, "weight_norm_bound"), finite(plan, "noise_rate")
    ridge, moved = public.ridge + finite(plan, "extra_ridge", above=False), times * public.influence
    change = (2 * loss.curvature + loss.third * bound) * moved
    exact = loss.classes * public.width * digits.log1p(change / (public.width * public.rows * ridge))
    exact += rate * loss.classes * (loss.slope + loss.curvature * bound) * moved
    long = loss.classes * erlang_tail(public.width, rate * public.rows * (ridge * bound - loss.slope))
    reserve, radius = finite(plan, "reserved_epsilon"), finite(plan, "gradient_tolerance") / ridge
    most = finite(plan, "delta") / 10**6
    for _ in range(_MOST_DOUBLED):
        lost = (1 + digits.exp(exact + reserve)) * gaussian_delta(reserve, radius / finite(plan, "final_noise"))
        if lost <= most:
            break
        reserve *= 2
    return exact + 2 * reserve, digits.exp(reserve) * min(long, public.delta) + lost
