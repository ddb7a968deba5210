"""What the paper's releases say about 1, 2, 5 and 10 edges, from Theorem 1 and Theorem A (docs/proofs/several-edges.md, 5)."""

from __future__ import annotations

from typing import Any

from gcon.verify.arithmetic import ROUNDING, digits, erlang_tail, finite, gaussian_delta, shown
from gcon.verify.folder import Folder
from gcon.verify.several_edges import LAST_DIGIT, STATED, edges_of, in_words, stated
from gcon.verify.steps import Steps
from gcon.verify.theorem import Public

_MOST_DOUBLED = 64


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
