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
    seen = set()
    for row in kept:
        place = row["graph"], row["epsilon"], row["method"], row["access"]
        rule = "must have one row for a graph, epsilon, method and access" if place in seen else ""
        if not _has_numbers(row):
            rule = "must have numbers for epsilon (or any), mean, standard deviation (from 0) and runs (from 1)"
        if rule:
            got = f"another row for {row['method']} on {row['graph']}"
            raise InputError("competitors", rule=rule, got=got, fix="Make the table again.")
        seen.add(place)
    return kept


def _has_numbers(row: dict[str, str]) -> bool:
    """A number that is none would be found only when everything has been measured."""
    try:
        found = [float(row[name]) for name in ("mean", "standard deviation")]
        found.append(0.0 if row["epsilon"] == ANY else float(row["epsilon"]))
        return all(map(math.isfinite, found)) and found[1] >= 0 and row["runs"].isdigit() and int(row["runs"]) >= 1
    except (AttributeError, TypeError, ValueError):
        return False


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
