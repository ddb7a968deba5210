"""Finding points: by figure, graph, line and place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gcon.errors import InputError
from gcon_lab.experiments.reproduce.points import ANY, Kind, Point


class Lookup:
    """All points, each found by its name."""

    def __init__(self, points: Iterable[Point]) -> None:
        self._points: dict[tuple[str, str, str, str, str], Point] = {}
        for point in points:
            name = (point.figure, point.graph, point.reading, point.line, point.place)
            if name in self._points:  # two answers to one question: choosing one quietly would decide a verdict
                raise InputError("points", rule="must name each point once", got=name, fix="Leave one of them out.")
            self._points[name] = point

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
