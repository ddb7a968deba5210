"""The competitors' lines, from the table of `gcon_lab.experiments.baselines`: nothing is trained again for a figure."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator

from gcon.errors import InputError
from gcon_lab.experiments.reproduce.points import ANY, Kind, Point

# Name in the table -> line of the figure. Where a method has several variants or accesses, the one with the best mean on the
# *test* nodes is drawn: generous to the competitor.
SPENDERS = {
    "dp-sgd": "DP-SGD",
    "dpgcn, LapGraph": "DPGCN",
    "dpgcn, EdgeRand": "DPGCN",
    "lpgnet": "LPGNet",
    "lpgnet, two": "LPGNet",
    "gap": "GAP",
    "progap": "ProGAP",
}
LEVEL: dict[tuple[str, str], tuple[str, Kind]] = {
    ("mlp", "none"): ("MLP", "control"),
    ("encoder", "none"): ("encoder", "control"),
    ("encoder, one hop", "own-edges"): ("encoder, one hop", "control"),
    ("self-training", "none"): ("self-training", "control"),
    ("self-training", "own-edges"): ("self-training, one hop", "control"),
    ("gcn", "full"): ("GCN (non-DP)", "non-private"),
    ("gpr-gnn", "full"): ("GPR-GNN (non-DP)", "non-private"),
}
PUBLIC_DELTA = "public: min(1e-5, 1/(10 n))"
NO_DELTA = "none: no promise is needed or made"
_NEEDED = {"graph", "epsilon", "method", "access", "mean", "standard deviation", "runs", "chosen by", "settings"}
Sheet = list[dict[str, str]]


def read_sheet(text: str) -> Sheet:
    rows = list(csv.DictReader(io.StringIO(text)))
    if not rows or not set(rows[0]) >= _NEEDED:
        raise InputError(
            "competitors",
            rule=f"must be a CSV with the columns {', '.join(sorted(_NEEDED))}",
            got="another table",
            fix="Pass what gcon_lab.experiments.baselines wrote, for example docs/results/baselines.csv.",
        )
    kept = [row for row in rows if row["mean"]]  # a skipped group has no mean
    for row in kept:
        _check_numbers(row)
    return kept


def _check_numbers(row: dict[str, str]) -> None:
    """A number that is none would be found only when everything has been measured."""
    try:
        found = [float(row[name]) for name in ("mean", "standard deviation", "runs")]
        if row["epsilon"] != ANY:
            found.append(float(row["epsilon"]))
        whole = all(map(math.isfinite, found)) and str(int(row["runs"])) == row["runs"]
    except (TypeError, ValueError):
        whole = False
    if not whole:
        raise InputError(
            "competitors",
            rule="must have numbers for epsilon (or any), mean, standard deviation and runs",
            got=f"another row for {row['method']} on {row['graph']}",
            fix="Make the table again.",
        )


def level_points(sheet: Sheet, figure: str, graph: str) -> Iterator[Point]:
    """Controls and non-private models of a graph, the same at every place."""
    for row in sheet:
        found = LEVEL.get((row["method"], row["access"]))
        if row["graph"] == graph and found is not None:
            line, kind = found
            yield _point(row, figure, line, kind, place=ANY, delta=NO_DELTA)


def spending_points(sheet: Sheet, figure: str, graph: str) -> Iterator[Point]:
    best: dict[tuple[str, str], dict[str, str]] = {}
    for row in sheet:
        if row["graph"] == graph and row["method"] in SPENDERS:
            place = (SPENDERS[row["method"]], row["epsilon"])
            if place not in best or float(row["mean"]) > float(best[place]["mean"]):
                best[place] = row
    for (line, epsilon), row in best.items():
        yield _point(row, figure, line, "competitor", place=epsilon, delta=PUBLIC_DELTA)


def _point(row: dict[str, str], figure: str, line: str, kind: Kind, *, place: str, delta: str) -> Point:
    return Point(
        figure=figure,
        graph=row["graph"],
        line=line,
        kind=kind,
        place=place,
        access=row["access"],
        mean=float(row["mean"]),
        deviation=float(row["standard deviation"]),
        runs=int(row["runs"]),
        delta=delta,
        chosen_by=row["chosen by"],
        settings=f"{row['method']} {row['settings']}",
    )
