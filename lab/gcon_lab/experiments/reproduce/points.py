"""A point of a figure: one line, one place on the horizontal axis, the mean and spread of its runs. Kept as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Literal, get_args

from gcon.errors import InputError

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
    sheet = io.StringIO()
    writer = csv.DictWriter(sheet, [field.name for field in fields(Point)], lineterminator="\n")
    writer.writeheader()
    for point in points:
        writer.writerow({**asdict(point), "mean": f"{point.mean:.4f}", "deviation": f"{point.deviation:.4f}"})
    return sheet.getvalue()


def from_csv(sheet: str) -> list[Point]:
    """The points of a sheet.

    Example:
        >>> from_csv(to_csv([]))
        []
    """
    rows = csv.DictReader(io.StringIO(sheet))
    known = [field.name for field in fields(Point)]
    if rows.fieldnames != known:
        raise InputError(
            "points", rule=f"must have the columns {', '.join(known)}", got=rows.fieldnames, fix="Make them again."
        )
    return [_point(row) for row in rows]


def _point(row: dict[str, str]) -> Point:
    if row["kind"] not in get_args(Kind):
        raise InputError("kind", rule=f"must be one of {get_args(Kind)}", got=row["kind"], fix="Make the sheet again.")
    numbers = {"mean": float(row["mean"]), "deviation": float(row["deviation"]), "runs": int(row["runs"])}
    return Point(**{**row, **numbers})  # type: ignore[arg-type]
