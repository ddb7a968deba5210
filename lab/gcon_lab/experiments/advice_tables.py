"""From measured runs to the tables of the advice: gains of every graph, and intervals checked on graphs that were left out."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from gcon.choose.expectations import (
    TARGETS,
    Guess,
    MeasuredGraph,
    Place,
    accuracy_spread,
    gain_ends,
    gain_spread,
    guess,
    over_free,
)

HELD = 0.9  # of the runs, inside an interval
ACCESSES = TARGETS[:3]
KNOWN = ("nothing", "degree", "look")

Row = Mapping[str, float]
Facts = Mapping[str, Sequence[Row]]  # by graph, one entry per run
Runs = Mapping[str, Sequence[Sequence[Row]]]  # by graph, one entry per run: the control, then every budget


def gains_of(run: Sequence[Row]) -> dict[float, dict[str, float]]:
    """By budget and target, what one run gained over answers that cost nothing."""
    control = run[0]
    free = max(control["none"], control["own-edges"])
    return {
        row["epsilon"]: {access: row[access] - control["none"] for access in ACCESSES}
        | {TARGETS[3]: row["own-edges"] - free}
        for row in run[1:]
        if math.isfinite(row["epsilon"])
    }


def measured_graphs(facts: Facts, runs: Runs) -> list[MeasuredGraph]:
    """The table, as the advice reads it: means over runs."""
    return [_graph(name, facts[name], runs[name]) for name in runs]


def _graph(name: str, facts: Sequence[Row], runs: Sequence[Sequence[Row]]) -> MeasuredGraph:
    found = [gains_of(run) for run in runs]

    def mean(column: str) -> float:
        return statistics.fmean(row[column] for row in facts)

    return MeasuredGraph(
        name=name,
        place=Place(
            accuracy=statistics.fmean(run[0]["none"] for run in runs),
            strength=mean("edge_free_strength"),
            mean_degree=mean("mean_degree"),
            above_chance=mean("homophily_above_chance"),
        ),
        sizes=tuple(mean(column) for column in ("nodes", "features", "classes", "labels")),
        seconds=mean("seconds"),
        gains={
            target: {epsilon: statistics.fmean(run[epsilon][target] for run in found) for epsilon in found[0]}
            for target in TARGETS
        },
    )


def graph_lines(graphs: Sequence[MeasuredGraph]) -> Iterator[dict[str, str]]:
    """`graphs.csv`."""
    for graph in graphs:
        nodes, features, classes, labels = graph.sizes
        yield {
            "graph": graph.name,
            "nodes": f"{nodes:g}",
            "features": f"{features:g}",
            "classes": f"{classes:g}",
            "labels": f"{labels:g}",
            "edge_free_accuracy": f"{graph.place.accuracy:.4f}",
            "edge_free_strength": f"{graph.place.strength:.4f}",
            "mean_degree": f"{graph.place.mean_degree:.4g}",
            "homophily_above_chance": f"{graph.place.above_chance:.4f}",
            "seconds": f"{graph.seconds:.3g}",
        }


def expectation_lines(graphs: Sequence[MeasuredGraph]) -> Iterator[dict[str, str]]:
    """`expectations.csv`."""
    for graph in graphs:
        for epsilon in graph.gains[TARGETS[0]]:
            yield {"graph": graph.name, "epsilon": f"{epsilon:g}"} | {
                target: f"{graph.gains[target][epsilon]:.4f}" for target in TARGETS
            }


@dataclass(frozen=True)
class Check:
    """One run of one graph beside what the other graphs said.

    Attributes:
        graph: its name, however many labels it has.
        found: the gain; for an accuracy, over the edge-free accuracy on validation nodes.
        said: by the others.
        spread: that intervals are multiples of.
        clipped: whether intervals end where the gains of all graphs end.
    """

    graph: str
    found: float
    said: Guess
    spread: float
    clipped: bool

    @property
    def ratio(self) -> float:
        """The factor that an interval needs."""
        return abs(self.found - self.said.gain) / self.spread

    def held(self, factor: float) -> bool:
        least, most = gain_ends(self.said, factor) if self.clipped else (-math.inf, math.inf)
        return self.ratio <= factor and least <= self.found <= most


def interval_lines(
    graphs: Sequence[MeasuredGraph], facts: Facts, runs: Runs, *, real: Collection[str]
) -> Iterator[dict[str, str]]:
    """`intervals.csv`: factors by which nine in ten runs of real graphs lie inside, and how often they do for others."""
    checked = [graph for graph in graphs if graph.name in real]
    asked = [(access, "accuracy") for access in ACCESSES] + [(over_free(access), "gain") for access in ACCESSES]
    for known, (target, of) in product(KNOWN, asked):

        def checks(
            told: Sequence[MeasuredGraph],
            about: Sequence[MeasuredGraph],
            what: tuple[str, str, str] = (known, target, of),
        ) -> list[Check]:
            return _checks(told, about, facts, runs, what)

        held: list[bool] = []
        widths: list[float] = []
        for group in sorted({graph.group for graph in checked}):
            others = [graph for graph in graphs if graph.group != group]
            factor = _factor(checks(others, [graph for graph in others if graph.name in real]))
            for check in checks(graphs, [graph for graph in checked if graph.group == group]):
                held.append(check.held(factor))
                widths.append(factor * check.spread)
        yield {
            "known": known,
            "target": target,
            "of": of,
            "factor": f"{_factor(checks(graphs, checked)):.3f}",
            "covered": f"{statistics.fmean(held):.3f}",
            "runs": str(len(held)),
            "width": f"{statistics.fmean(widths):.4f}",
        }


def _factor(checks: Sequence[Check]) -> float:
    """The smallest factor that holds nine in ten runs of every graph, so that the hardest graph decides."""
    ratios: dict[str, list[float]] = {}
    for check in checks:
        ratios.setdefault(check.graph, []).append(check.ratio)
    return max(sorted(each)[math.ceil(HELD * len(each)) - 1] for each in ratios.values())


def _checks(
    graphs: Sequence[MeasuredGraph],
    asked: Sequence[MeasuredGraph],
    facts: Facts,
    runs: Runs,
    what: tuple[str, str, str],
) -> list[Check]:
    """Every run of the graphs that are asked about, each told by all other graphs."""
    known, target, of = what
    found = []
    for graph in asked:
        others = [each for each in graphs if each.group != graph.group]
        for row, run in zip(
            facts[graph.name], runs[graph.name], strict=False
        ):  # facts are taken of the first runs alone
            place = _told(graph.place, row, known)
            for epsilon, gains in gains_of(run).items():
                said = guess(place, epsilon, target, graphs=others)
                gain, spread = gains[target], gain_spread(said)
                if of == "accuracy":
                    gain += run[0]["none"] - place.accuracy
                    spread = accuracy_spread(said, place.accuracy, int(row["validation"]))
                found.append(Check(graph.group, gain, said, spread, of == "gain"))
    return found


def _told(place: Place, row: Row, known: str) -> Place:
    """What would be known of a graph: its features as in this run, and as much of its edges."""
    place = replace(place, accuracy=row["edge_free_accuracy"], strength=row["edge_free_strength"])
    if known == "nothing":
        return Place(accuracy=place.accuracy, strength=place.strength)
    return place if known == "look" else replace(place, above_chance=None)
