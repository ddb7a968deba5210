"""Is one mean above another? Welch's test from means, deviations and numbers of runs, and Holm's correction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from scipy import stats

from gcon_lab.experiments.reproduce.points import Point

LEVEL = 0.05


@dataclass(frozen=True)
class Comparison:
    """Whether a sum of means is above zero; most often a difference of two.

    Attributes:
        name: what is compared, as a reader would say it.
        difference: the weighted sum of the means.
        p: one-sided; `None` where a single run leaves the spread unknown.
        without_spread: no point has any spread, so the sign of the difference alone made `p` zero or one.
    """

    name: str
    difference: float
    p: float | None
    without_spread: bool = False

    @property
    def significant(self) -> bool:
        """Above zero, and by more than chance explains."""
        return self.difference > 0 and self.p is not None and self.p < LEVEL

    def __str__(self) -> str:
        if self.p is None:
            return f"{self.name}: cannot be tested, a single run"
        size = "p < 0.0001" if self.p < 0.0001 else f"p = {self.p:.4f}"
        return f"{self.name}: {size}{' (no spread in the runs)' if self.without_spread else ''}"


def above(first: Point, second: Point) -> Comparison:
    """Compares the means of two points by Welch's test, the first said to be the higher one."""
    return weigh(f"{first.line} > {second.line}", [(1.0, first), (-1.0, second)])


def weigh(name: str, terms: Sequence[tuple[float, Point]]) -> Comparison:
    """Tests whether a weighted sum of independent means is above zero.

    With v_i = w_i² s_i² / n_i, the statistic is the sum over its error √Σv_i and the degrees of freedom are those of
    Satterthwaite, (Σv_i)² / Σ(v_i² / (n_i - 1)). With weights 1 and -1 this is Welch's test.

    Args:
        name: what is compared.
        terms: weight and point of each mean.
    """
    # Rounded, so that 0.80 - 0.78 is not above a margin of 0.02 by the last bit.
    difference = round(sum(weight * point.mean for weight, point in terms), 9)
    if any(point.runs < 2 for _, point in terms):
        return Comparison(name, difference, None)
    parts = [(weight * point.deviation) ** 2 / point.runs for weight, point in terms]
    total = sum(parts)
    if total == 0:
        return Comparison(name, difference, 0.0 if difference > 0 else 1.0, without_spread=True)
    # Shares rather than squares of the parts: these do not underflow for tiny deviations.
    freedom = 1 / sum((part / total) ** 2 / (point.runs - 1) for part, (_, point) in zip(parts, terms, strict=True))
    return Comparison(name, difference, float(stats.t.sf(difference / math.sqrt(total), freedom)))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's corrected p-values, in the order given.

    Example:
        >>> holm([0.04, 0.01])
        [0.04, 0.02]
    """
    corrected = [0.0] * len(p_values)
    largest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = largest
    return corrected


def correct(family: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons with corrected p-values. One that cannot be tested still counts in the size of the family."""
    p_values = holm([1.0 if each.p is None else each.p for each in family])
    return [each if each.p is None else replace(each, p=p) for each, p in zip(family, p_values, strict=True)]
