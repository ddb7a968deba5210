"""What to expect, from what was measured: the graphs of a table, weighted by their distance, and checked intervals.

The tables are written by `python -m gcon_lab.experiments.advice` (docs/choosing.md). A graph is a point: its mean degree, its
homophily above chance, and how far features alone go. Ten times the degree, the step from chance to perfect homophily, and
the step from useless to perfect features are each a distance of 1; what is not known counts for nothing. What is gained is a
share of the answers that are wrong without edges: the mean over all measured graphs, with weights 1/distance^2. Between two
measured budgets each graph's gain is interpolated in log epsilon; beyond the largest the last one stands. Below the smallest
nothing was measured: what is gained there lies between that and nothing, and the spread says so.

An interval is the gain and a factor times the spread of these graphs around it. The factors (`intervals.csv`) are such that,
for every real graph, told by the other graphs, nine in ten runs lie inside; how many do if a graph is left out of the factor
too is told with it.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

TARGETS = ("none", "cached", "own-edges", "own-edges over free")
MANY = "@many"  # the same graph with many labels
MADE_UP = "grid-"
_CLOSEST = 0.2  # distances count as at least this
_SMALLEST_DEGREE = 0.5
_LEAST_SPREAD = 0.005  # of gains
_BEYOND = 0.01  # of the lowest and the highest gain of any graph


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a graph lies; None is what is not known.

    Attributes:
        accuracy: of the edge-free model.
        strength: the same on a scale where 0 is the largest class for everybody and 1 all correct.
        mean_degree: below 0.5 it counts as 0.5.
        above_chance: homophily where 0 is chance and 1 perfect.
    """

    accuracy: float
    strength: float
    mean_degree: float | None = None
    above_chance: float | None = None

    @property
    def known(self) -> str:
        """How much is known of the edges: `nothing`, `degree`, or `look` for both numbers."""
        if self.mean_degree is None:
            return "nothing"
        return "degree" if self.above_chance is None else "look"


@dataclass(frozen=True, kw_only=True)
class MeasuredGraph:
    """One graph of the table.

    Attributes:
        name: one graph with few labels and with many has two entries.
        place: all of it known.
        sizes: nodes, features, classes and training labels.
        seconds: of one core, for a training.
        gains: for every target, by epsilon: accuracy over the answers that read no edge; for `own-edges over free` over the
            better of those and of the control's answers with own edges.
    """

    name: str
    place: Place
    sizes: tuple[float, ...]
    seconds: float
    gains: Mapping[str, Mapping[float, float]]

    @property
    def group(self) -> str:
        """The graph, however many labels it has."""
        return self.name.removesuffix(MANY)


@dataclass(frozen=True, kw_only=True)
class Interval:
    """How wide, and how that was checked.

    Attributes:
        factor: of the spread.
        covered: the share of runs on real graphs inside the interval, if graph after graph is left out of everything.
        runs: how many these were: graphs, splits, budgets and runs.
        width: their mean half width.
    """

    factor: float
    covered: float
    runs: int
    width: float


@dataclass(frozen=True, kw_only=True)
class Guess:
    """What the graphs of the table say of one at some place.

    Attributes:
        gain: their weighted mean.
        spread: their deviation around it.
        lowest, highest: among all of them.
        distance: of the nearest one, if all of the place is known.
    """

    gain: float
    spread: float
    lowest: float
    highest: float
    distance: float | None


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """What the default may reach, and gain over what is free. Ends are those of intervals that held for nine runs in ten.

    Attributes:
        access: how answers are made.
        epsilon: the budget, for one edge.
        accuracy, accuracy_least, accuracy_most: share of right answers.
        gain, least, most: in accuracy, 0.01 is one point, over the better of the answers that cost nothing.
        distance: to the nearest measured graph; None without a look.
        covered: what share of the runs on graphs that were left out lay inside the interval of the accuracy.
    """

    access: str
    epsilon: float
    accuracy: float
    accuracy_least: float
    accuracy_most: float
    gain: float
    least: float
    most: float
    distance: float | None
    covered: float


def _lines(name: str) -> Iterable[dict[str, str]]:
    return csv.DictReader(files("gcon.choose").joinpath(name).read_text(encoding="utf-8").splitlines())


@cache
def measured() -> tuple[MeasuredGraph, ...]:
    """The table."""
    gains: dict[str, dict[str, dict[float, float]]] = {}
    for line in _lines("expectations.csv"):
        for target in TARGETS:
            by_epsilon = gains.setdefault(line["graph"], {}).setdefault(target, {})
            by_epsilon[float(line["epsilon"])] = float(line[target])
    return tuple(
        MeasuredGraph(
            name=line["graph"],
            place=Place(
                accuracy=float(line["edge_free_accuracy"]),
                strength=float(line["edge_free_strength"]),
                mean_degree=float(line["mean_degree"]),
                above_chance=float(line["homophily_above_chance"]),
            ),
            sizes=tuple(float(line[name]) for name in ("nodes", "features", "classes", "labels")),
            seconds=float(line["seconds"]),
            gains=gains[line["graph"]],
        )
        for line in _lines("graphs.csv")
    )


@cache
def intervals() -> Mapping[tuple[str, str, str], Interval]:
    """By what is known, the target, and whether it is for an `accuracy` or for a `gain`."""
    return {
        (line["known"], line["target"], line["of"]): Interval(
            factor=float(line["factor"]),
            covered=float(line["covered"]),
            runs=int(line["runs"]),
            width=float(line["width"]),
        )
        for line in _lines("intervals.csv")
    }


def measured_epsilons() -> tuple[float, ...]:
    """The budgets of the table, in rising order."""
    return tuple(sorted(measured()[0].gains[TARGETS[0]]))


def real_range(epsilon: float, target: str) -> tuple[float, float]:
    """The smallest and the largest gain among the real graphs of the table."""
    gains = [_at(graph.gains[target], epsilon) for graph in measured() if not graph.name.startswith(MADE_UP)]
    return min(gains), max(gains)


def expected(place: Place, *, validation: int, epsilon: float, access: str) -> Expectation:
    """What a graph like this reaches and gains.

    Args:
        place: what is known of it.
        validation: how many nodes its edge-free accuracy was measured on.
        epsilon: the budget, for one edge.
        access: none, cached or own-edges.
    """
    reached, gained = guess(place, epsilon, access), guess(place, epsilon, over_free(access))
    wide, narrow = intervals()[place.known, access, "accuracy"], intervals()[place.known, over_free(access), "gain"]
    half = wide.factor * accuracy_spread(reached, place.accuracy, validation)
    middle = place.accuracy + reached.gain
    least, most = gain_ends(gained, narrow.factor)
    return Expectation(
        access=access,
        epsilon=epsilon,
        accuracy=min(max(middle, 0.0), 1.0),
        accuracy_least=max(middle - half, 0.0),
        accuracy_most=min(middle + half, 1.0),
        gain=gained.gain,
        least=least,
        most=most,
        distance=gained.distance,
        covered=wide.covered,
    )


def over_free(access: str) -> str:
    """The target whose gain is over the best of what is free."""
    return TARGETS[3] if access == TARGETS[2] else access


def gain_spread(found: Guess) -> float:
    """Of a gain: of the graphs that it comes from."""
    return math.hypot(found.spread, _LEAST_SPREAD)


def gain_ends(found: Guess, factor: float) -> tuple[float, float]:
    """Of an interval: so many spreads to both sides, and no further than a point beyond what any graph showed."""
    side = factor * gain_spread(found)
    return max(found.gain - side, found.lowest - _BEYOND), min(found.gain + side, found.highest + _BEYOND)


def accuracy_spread(found: Guess, accuracy: float, validation: int) -> float:
    """Of an accuracy: of its gain, and of the validation nodes that it starts from."""
    return math.hypot(gain_spread(found), math.sqrt(accuracy * (1 - accuracy) / max(validation, 1)))


def guess(place: Place, epsilon: float, target: str, *, graphs: Iterable[MeasuredGraph] | None = None) -> Guess:
    """The gain of a graph at this place, from the table or from a part of it."""
    used = measured() if graphs is None else tuple(graphs)
    distances = [_distance(place, graph.place) for graph in used]
    weights = [max(distance, _CLOSEST) ** -2 for distance in distances]
    wrong = 1 - place.accuracy
    gains = [wrong * _at(graph.gains[target], epsilon) / (1 - graph.place.accuracy) for graph in used]
    mean = sum(weight * gain for weight, gain in zip(weights, gains, strict=True)) / sum(weights)
    squares = sum(weight * (gain - mean) ** 2 for weight, gain in zip(weights, gains, strict=True)) / sum(weights)
    lost = mean * max(0.0, 1 - epsilon / min(used[0].gains[target])) / 2
    return Guess(
        gain=mean - lost,
        spread=math.hypot(math.sqrt(squares), lost),
        lowest=min(gains),
        highest=max(gains),
        distance=min(distances) if place.known == "look" else None,
    )


def _at(gains: Mapping[float, float], epsilon: float) -> float:
    """Between measured budgets, in log epsilon; beyond them the last one."""
    known = sorted(gains)
    epsilon = min(max(epsilon, known[0]), known[-1])
    low = max(each for each in known if each <= epsilon)
    high = min(each for each in known if each >= epsilon)
    part = math.log(epsilon / low) / math.log(high / low) if low < high else 0.0
    return (1 - part) * gains[low] + part * gains[high]


def _distance(place: Place, there: Place) -> float:
    parts = [place.strength - there.strength]
    if place.mean_degree is not None and there.mean_degree is not None:
        parts.append(math.log10(max(place.mean_degree, _SMALLEST_DEGREE) / there.mean_degree))
    if place.above_chance is not None and there.above_chance is not None:
        parts.append(place.above_chance - there.above_chance)
    return math.hypot(*parts)
