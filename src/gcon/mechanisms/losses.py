"""The two losses of the paper, with every derivative that the proof bounds.

Both are written for one class score x and one target y in [0, 1], and both carry the factor 1/c (c classes), so the
loss of a node is the *sum* over its classes and the objective is the *mean* over the labelled nodes.

| loss                   | slope_bound | curvature_bound | curvature_slope_bound    |
|------------------------|-------------|-----------------|--------------------------|
| soft margin            | 1/c         | 1/(4c)          | 1/(6 sqrt(3) c)          |
| pseudo-Huber, weight w | w/c         | 1/c             | 48 sqrt(5) / (125 c w)   |

(The paper prints the second column as a bound on the first derivative; it bounds the second.) The bounds are c1, c2 and c3 of the
paper: of `slope`, `curvature` and `curvature_slope`, the first, second and third derivative of `value` in the score.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from gcon.errors import InputError


@final
@dataclass(frozen=True)
class SoftMargin:
    """MultiLabel soft margin: -(y log s(x) + (1-y) log s(-x)) / c with the logistic function s."""

    num_classes: int

    @property
    def name(self) -> str:
        return "soft-margin"

    @property
    def slope_bound(self) -> float:
        """1/c."""
        return 1 / self.num_classes

    @property
    def curvature_bound(self) -> float:
        """1/(4c)."""
        return 1 / (4 * self.num_classes)

    @property
    def curvature_slope_bound(self) -> float:
        """1/(6 sqrt(3) c)."""
        return 1 / (6 * math.sqrt(3) * self.num_classes)

    def value(self, score: Tensor, target: Tensor) -> Tensor:
        """(log(1 + e^x) - y x) / c, the same function written without overflow."""
        return (torch.logaddexp(score, torch.zeros_like(score)) - target * score) / self.num_classes

    def slope(self, score: Tensor, target: Tensor) -> Tensor:
        """(s(x) - y) / c."""
        return (torch.sigmoid(score) - target).mul_(1 / self.num_classes)

    def curvature(self, score: Tensor, target: Tensor) -> Tensor:
        """s(x) s(-x) / c."""
        return torch.sigmoid(score).mul_(torch.sigmoid(-score)).mul_(1 / self.num_classes)

    def curvature_slope(self, score: Tensor, target: Tensor) -> Tensor:
        """s(x) s(-x) (s(-x) - s(x)) / c."""
        up, down = torch.sigmoid(score), torch.sigmoid(-score)
        return up * down * (down - up) / self.num_classes

    def probabilities(self, scores: Tensor) -> Tensor:
        """One logistic model per class, scaled to sum to one."""
        shares: Tensor = torch.sigmoid(scores)
        return shares / shares.sum(dim=-1, keepdim=True)


@final
@dataclass(frozen=True)
class PseudoHuber:
    """Pseudo-Huber: w^2 (sqrt(1 + (x-y)^2 / w^2) - 1) / c with weight w > 0."""

    num_classes: int
    weight: float

    @property
    def name(self) -> str:
        return f"pseudo-huber:{self.weight!r}"

    @property
    def slope_bound(self) -> float:
        """w/c."""
        return self.weight / self.num_classes

    @property
    def curvature_bound(self) -> float:
        """1/c."""
        return 1 / self.num_classes

    @property
    def curvature_slope_bound(self) -> float:
        """48 sqrt(5) / (125 c w), attained at |x - y| = w/2."""
        return 48 * math.sqrt(5) / (125 * self.num_classes * self.weight)

    def _stretch(self, score: Tensor, target: Tensor) -> Tensor:
        return (score - target).div_(self.weight).square_().add_(1)

    def value(self, score: Tensor, target: Tensor) -> Tensor:
        """w^2 (sqrt(t) - 1) / c with t = 1 + (x-y)^2/w^2."""
        return self.weight**2 / self.num_classes * (self._stretch(score, target).sqrt_() - 1)

    def slope(self, score: Tensor, target: Tensor) -> Tensor:
        """(x - y) / (c sqrt(t))."""
        gap = score - target
        scale = (gap / self.weight).square_().add_(1).rsqrt_()
        return gap.mul_(scale).mul_(1 / self.num_classes)

    def curvature(self, score: Tensor, target: Tensor) -> Tensor:
        """1 / (c t^(3/2))."""
        return self._stretch(score, target).pow_(-1.5).mul_(1 / self.num_classes)

    def curvature_slope(self, score: Tensor, target: Tensor) -> Tensor:
        """-3 (x - y) / (c w^2 t^(5/2))."""
        scale = self._stretch(score, target).pow_(-2.5)
        return -3 * (score - target) * scale / (self.num_classes * self.weight**2)

    def probabilities(self, scores: Tensor) -> Tensor:
        """A softmax of the scores (they estimate 0 or 1, so this only ranks)."""
        return torch.softmax(scores, dim=-1)


ConvexLoss = SoftMargin | PseudoHuber  # a loss of one's own has no plan: its derivative bounds would not be proven


def check_registered(loss: ConvexLoss) -> None:
    """Refuse a loss that is not one of these, or not as its name says: its derivative bounds would not be proven."""
    if type(loss) not in (SoftMargin, PseudoHuber) or loss != loss_by_name(loss.name, loss.num_classes):
        rule, fix = "must be a registered one", "Take it from loss_by_name."
        raise InputError("loss", rule=rule, got=type(loss).__name__, fix=fix)


def loss_by_name(name: str, num_classes: int) -> ConvexLoss:
    """The registered loss of this name: `soft-margin` or `pseudo-huber:WEIGHT`.

    Example:
        >>> loss_by_name("pseudo-huber:0.2", 7).name
        'pseudo-huber:0.2'
    """
    if name == "soft-margin":
        return SoftMargin(num_classes)
    kind, _, weight = name.partition(":") if isinstance(name, str) else ("", "", "")
    if kind == "pseudo-huber":
        try:
            number = float(weight)
        except ValueError:
            number = math.nan
        if 0 < number < math.inf:
            return PseudoHuber(num_classes, number)
    raise InputError(
        "loss",
        rule="must be 'soft-margin' or 'pseudo-huber:WEIGHT' with a positive weight",
        got=repr(name),
        fix="For example loss='pseudo-huber:0.2'.",
    )
