"""Gains to expect, from measured ones: the nearest graphs of a table, weighted by their distance.

The table (`expectations.csv`) is written by `python -m gcon_lab.experiments.advice`. A graph is a point: its mean degree, its
homophily above chance, and how far features alone go. Ten times the degree, the step from chance to perfect homophily, and
the step from useless to perfect features are each a distance of 1. The gain is the mean of the nearest graphs with weights
1/distance^2; between two measured budgets it is interpolated in log epsilon, and beyond them the last one stands.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

COLUMNS = (
    "mean_degree",
    "homophily_above_chance",
    "edge_free_strength",
    "epsilon",
    "access",
    "gain",
    "standard_error",
    "gain_over_best",
    "standard_error_over_best",
    "runs",
)
_NEAREST = 6
_CLOSEST = 0.02  # distances count as at least this
_SMALLEST_DEGREE = 0.5


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One line of the table; gains in accuracy, with standard errors over runs (see `gcon_lab.experiments.advice`)."""

    mean_degree: float
    homophily_above_chance: float
    edge_free_strength: float
    epsilon: float
    access: str
    gain: float
    standard_error: float
    gain_over_best: float
    standard_error_over_best: float
    runs: int


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """What `moments` may gain over the better of the answers that its control gives for nothing.

    Attributes:
        access: how answers are made.
        epsilon: the budget.
        gain: in accuracy; 0.01 is one point.
        gain_over_same: over the control of the same access; larger only for own-edges.
        standard_error: of the measurements that it rests on, as if they were one.
        least, most: over these measurements; without a look, over all densities and homophilies of the table.
        distance: to the nearest measured graph; None without a look.
    """

    access: str
    epsilon: float
    gain: float
    gain_over_same: float
    standard_error: float
    least: float
    most: float
    distance: float | None


@cache
def measured() -> tuple[Measured, ...]:
    """The table."""
    text = files("gcon.choose").joinpath("expectations.csv").read_text(encoding="utf-8")
    return tuple(
        Measured(
            mean_degree=float(line["mean_degree"]),
            homophily_above_chance=float(line["homophily_above_chance"]),
            edge_free_strength=float(line["edge_free_strength"]),
            epsilon=float(line["epsilon"]),
            access=line["access"],
            gain=float(line["gain"]),
            standard_error=float(line["standard_error"]),
            gain_over_best=float(line["gain_over_best"]),
            standard_error_over_best=float(line["standard_error_over_best"]),
            runs=int(line["runs"]),
        )
        for line in csv.DictReader(text.splitlines())
    )


def measured_epsilons() -> tuple[float, ...]:
    """The budgets of the table, in rising order."""
    return tuple(sorted({entry.epsilon for entry in measured()}))


def expected_gain(
    *, mean_degree: float, above_chance: float, strength: float, epsilon: float, access: str
) -> Expectation:
    """The gain of a graph like this.

    Args:
        mean_degree: below 0.5 it counts as 0.5.
        above_chance: homophily where 0 is chance and 1 perfect.
        strength: of the edge-free model, where 0 is the largest class for everybody and 1 all correct.
        epsilon: the budget.
        access: none, cached or own-edges.
    """
    point = (mean_degree, above_chance, strength)
    low, high, part = _between(epsilon)
    first, second = (_at(point, budget, access) for budget in (low, high))

    def mixed(a: float, b: float) -> float:
        return (1 - part) * a + part * b

    return Expectation(
        access=access,
        epsilon=epsilon,
        gain=mixed(first.gain, second.gain),
        gain_over_same=mixed(first.gain_over_same, second.gain_over_same),
        standard_error=mixed(first.standard_error, second.standard_error),
        least=mixed(first.least, second.least),
        most=mixed(first.most, second.most),
        distance=first.distance,
    )


def gain_range(*, strength: float, epsilon: float, access: str) -> Expectation:
    """What a graph with such features may gain, whatever its edges: over all measured densities and homophilies.

    The gain in the middle is their plain mean: it says where the range lies and predicts nothing.
    """
    places = sorted({(entry.mean_degree, entry.homophily_above_chance) for entry in measured()})
    found = [
        expected_gain(mean_degree=degree, above_chance=above, strength=strength, epsilon=epsilon, access=access)
        for degree, above in places
    ]
    gains = [each.gain for each in found]
    return Expectation(
        access=access,
        epsilon=epsilon,
        gain=sum(gains) / len(gains),
        gain_over_same=sum(each.gain_over_same for each in found) / len(found),
        standard_error=max(each.standard_error for each in found),
        least=min(gains),
        most=max(gains),
        distance=None,
    )


def _between(epsilon: float) -> tuple[float, float, float]:
    """The measured budgets around this one, and how far it lies from the first to the second in log epsilon."""
    known = measured_epsilons()
    low = max((entry for entry in known if entry <= epsilon), default=known[0])
    high = min((entry for entry in known if entry >= epsilon), default=known[-1])
    return low, high, math.log(epsilon / low) / math.log(high / low) if low < high else 0.0


def _at(point: tuple[float, float, float], epsilon: float, access: str) -> Expectation:
    entries = [entry for entry in measured() if (entry.epsilon, entry.access) == (epsilon, access)]
    nearest = sorted(((_distance(point, entry), place) for place, entry in enumerate(entries)))[:_NEAREST]
    used = [entries[place] for _, place in nearest]
    weights = [max(distance, _CLOSEST) ** -2 for distance, _ in nearest]
    shares = [weight / sum(weights) for weight in weights]
    gains = [entry.gain_over_best for entry in used]
    errors = [share * entry.standard_error_over_best for share, entry in zip(shares, used, strict=True)]
    return Expectation(
        access=access,
        epsilon=epsilon,
        gain=sum(share * gain for share, gain in zip(shares, gains, strict=True)),
        gain_over_same=sum(share * entry.gain for share, entry in zip(shares, used, strict=True)),
        standard_error=math.hypot(*errors),
        least=min(gains),
        most=max(gains),
        distance=nearest[0][0],
    )


def _distance(point: tuple[float, float, float], entry: Measured) -> float:
    degree, above, strength = point
    return math.hypot(
        math.log10(max(degree, _SMALLEST_DEGREE) / entry.mean_degree),
        above - entry.homophily_above_chance,
        strength - entry.edge_free_strength,
    )
