"""The points of the figures: one line, one place on the horizontal axis, the mean and spread of its runs. Kept as CSV.

Panels, lines and places come in one order, for drawings and tables alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Literal

from gcon.files.datasets.facts import FACTS, names
from gcon_lab.experiments.sweep.grid import HOMOPHILOUS, PAPER_GRAPHS
from gcon_lab.tables import sheet

Kind = Literal["gcon", "competitor", "control", "non-private"]
ANY = "any"  # the place of a line that does not depend on the horizontal axis
GRAPHS = {"fig1": PAPER_GRAPHS, "fig2": HOMOPHILOUS, "fig3": HOMOPHILOUS, "fig4": HOMOPHILOUS}
# The legend's headings. A control reads no edge in training.
KINDS: dict[Kind, str] = {
    "gcon": "this method",
    "competitor": "competitors",
    "control": "edge-free controls",
    "non-private": "no privacy",
}
# The paper's order within a kind; lines that are not named here follow as they come.
_LINES = (
    *("GCON", "GCON, honest", "restart 0.8", "restart 0.6", "restart 0.4", "restart 0.2"),
    *("DP-SGD", "DPGCN", "LPGNet", "GAP", "ProGAP", "MLP"),
)


@dataclass(frozen=True, kw_only=True)
class Point:
    """One point.

    Attributes:
        figure: fig1, fig2, fig3 or fig4.
        graph: a dataset's name.
        reading: how Fig. 3's sentence about excluded edges is read; empty elsewhere.
        line: what is drawn, as the legend says it.
        kind: gcon (spends the budget), competitor (spends it too), control (reads no edge in training), non-private.
        place: epsilon or the number of steps; `any` for a line that is level.
        access: what is read at inference.
        mean, deviation, runs: of test micro-F1; the standard deviation is that of the runs (n - 1).
        delta: where the promise's delta comes from.
        chosen_by: what the settings were chosen on, and whether that was paid for.
        settings: the chosen ones.
    """

    figure: str
    graph: str
    reading: str = ""
    line: str
    kind: Kind
    place: str
    access: str
    mean: float
    deviation: float
    runs: int
    delta: str
    chosen_by: str
    settings: str


def to_csv(points: Iterable[Point]) -> str:
    """The points as a sheet, in the order given, to four digits."""
    rows = [{**asdict(point), "mean": f"{point.mean:.4f}", "deviation": f"{point.deviation:.4f}"} for point in points]
    return sheet([field.name for field in fields(Point)], (row.values() for row in rows))


@dataclass(frozen=True)
class Panel:
    """The points of one graph (and one reading of Fig. 3's sentence)."""

    graph: str
    reading: str
    points: tuple[Point, ...]

    @property
    def title(self) -> str:
        """The graph as the literature writes it; a made-up one by its name."""
        return FACTS[self.graph].title if self.graph in FACTS else self.graph


def panels(points: Sequence[Point], graphs: Sequence[str] = ()) -> list[list[Panel]]:
    """Rows of panels, a row per reading and a column per graph; points without a reading belong to every row.

    Args:
        points: of one figure, in any order.
        graphs: those that get a panel even without points, in this order; others with points follow.
    """
    found = {point.graph for point in points}
    known = [*graphs, *(name for name in names() if name in found and name not in graphs)]
    columns = [*known, *sorted(found - set(known))]
    readings = list(dict.fromkeys(point.reading for point in points if point.reading)) or [""]
    return [
        [
            Panel(
                graph, reading, tuple(p for p in points if p.graph == graph and (not p.reading or p.reading == reading))
            )
            for graph in columns
        ]
        for reading in readings
    ]


def lines_of(points: Sequence[Point]) -> dict[str, Kind]:
    """Every line with its kind: sorted by kind, then as in the paper, then as they come."""
    kinds = {point.line: point.kind for point in points}
    order = list(KINDS)
    known = {line: number for number, line in enumerate(_LINES)}
    ranked = sorted(kinds, key=lambda line: (order.index(kinds[line]), known.get(line, len(known))))
    return {line: kinds[line] for line in ranked}


def places_of(points: Sequence[Point], least: Sequence[float] = ()) -> list[float]:
    """The places on the horizontal axis, rising; those in `least` even without points."""
    return sorted({*least, *(float(point.place) for point in points if point.place != ANY)})
