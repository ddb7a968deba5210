"""A point of a figure: one line, one place on the horizontal axis, the mean and spread of its runs. Kept as CSV."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Literal

from gcon_lab.tables import sheet

Kind = Literal["gcon", "competitor", "control", "non-private"]
ANY = "any"  # the place of a line that does not depend on the horizontal axis


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
