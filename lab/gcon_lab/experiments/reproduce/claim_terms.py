"""What the claims speak of: graphs, budgets, lines and margins, how points are found and their numbers written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gcon_lab.experiments.reproduce.comparisons import Comparison, weigh
from gcon_lab.experiments.reproduce.points import ANY, Kind, Point

EPSILONS = ("0.5", "1", "2", "3", "4")
STEPS = ("1", "2", "5", "10", "inf")
RESTARTS = ("0.2", "0.4", "0.6", "0.8")
COMPETITORS = ("DP-SGD", "DPGCN", "LPGNet", "GAP", "ProGAP")
GCON, MLP = "GCON", "MLP"
CONTROLS = (MLP, "encoder", "encoder, one hop", "self-training", "self-training, one hop", "GCON without edges")
UPPER = "GCN (non-DP)"

LITTLE = 0.01  # a change that a plot does not show
CLOSE = 0.02
RAPID = 0.05  # a fall above this is rapid, below it slight


def step(upper: Point, lower: Point) -> Comparison:
    """Compares two places of one line."""
    return weigh(f"{upper.line} at {upper.place} > at {lower.place}", [(1.0, upper), (-1.0, lower)])


def at(graph: str, epsilon: str) -> str:
    return f"{graph}, epsilon {epsilon}"


def spread(point: Point) -> str:
    """Mean, deviation and number of runs."""
    return f"{point.mean:.4f} ± {point.deviation:.4f} (n = {point.runs})"


def listed(points: Sequence[Point]) -> str:
    """Several lines at one place."""
    return ", ".join(f"{point.line} {spread(point)}" for point in points)


def path(points: Sequence[Point], start: str = "") -> str:
    """One line over several places."""
    return start + " → ".join(f"{spread(point)} at {point.place}" for point in points)


class Lookup:
    """All points, each found by its name."""

    def __init__(self, points: Iterable[Point]) -> None:
        self._points = {(each.figure, each.graph, each.reading, each.line, each.place): each for each in points}

    def panel(self, figure: str, graph: str, reading: str = "") -> Panel:
        inside = {name[3:]: point for name, point in self._points.items() if name[:3] == (figure, graph, reading)}
        return Panel(inside)

    def readings(self, figure: str) -> list[str]:
        """The readings a figure was made with; one empty reading where it was not made at all."""
        return sorted({name[2] for name in self._points if name[0] == figure}) or [""]


@dataclass(frozen=True)
class Panel:
    """The points of one panel, by line and place."""

    points: dict[tuple[str, str], Point]

    def find(self, line: str, place: str) -> Point | None:
        """The point, or that of a level line."""
        return self.points.get((line, place)) or self.points.get((line, ANY))

    def curve(self, line: str, places: Iterable[str]) -> tuple[list[Point], list[str]]:
        """The points of a line and the names of the missing ones."""
        found = {place: self.find(line, place) for place in places}
        missing = [f"{line} at {place}" for place, point in found.items() if point is None]
        return [point for point in found.values() if point is not None], missing

    def kind(self, kind: Kind, place: str) -> list[Point]:
        """Every line of a kind at a place."""
        lines = dict.fromkeys(line for (line, _), point in self.points.items() if point.kind == kind)
        return [point for line in lines if (point := self.find(line, place)) is not None]
