"""The derivative bounds of the two losses, once more (docs/proofs/objective-perturbation.md, 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gcon.verify.arithmetic import digits
from gcon.verify.steps import UnfitError


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
