"""What every method gets right, graph by graph and run by run: measured, kept, and read again.

Ours is `gcon_lab.experiments.default_method`, with the same units: in a folder of that experiment they are not measured again.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from gcon.errors import InputError
from gcon_lab.experiments.beyond.compared import ANY, Shares, other_units
from gcon_lab.experiments.default_method import ACCESSES as OUR_ACCESSES
from gcon_lab.experiments.default_method import default_unit
from gcon_lab.experiments.sweep.graphs import CIRCLES
from gcon_lab.experiments.sweep.social import MANY_LABELS
from gcon_lab.experiments.units import Call, UnitStore
from gcon_lab.methods import DPGCN, Moments, MomentsWithoutEdges
from gcon_lab.tables import sheet

OURS, CONTROL = Moments.name, MomentsWithoutEdges.name
WITHOUT_VALIDATION = "moments-without-validation"  # ours, where no labels are set aside for choices
BARE = "bare"
ACCESSES = (*OUR_ACCESSES, "public-graph", "full")
COLUMNS = ("graph", "run", "method", "epsilon", *ACCESSES)
_DIGITS = 6
_SECONDS = 25.0  # of one unit of ours, about
Key = tuple[str, int, str, str]  # graph, run, method, epsilon


def beyond_units(graphs: Sequence[str], *, runs: Sequence[int], budgets: Sequence[float]) -> list[Call]:
    """All work, run by run, so that every graph has some results early; what takes longest and tells least comes last."""
    units = [
        unit for run in runs for graph in graphs for unit in (*_ours(graph, run), *other_units(graph, run, budgets))
    ]
    return sorted(units, key=lambda unit: DPGCN.name in unit.arguments)


def _ours(graph: str, run: int) -> Iterator[Call]:
    yield replace(default_unit(graph, run), cost=_SECONDS)
    if graph not in CIRCLES and graph not in MANY_LABELS:
        yield replace(default_unit(graph, run, BARE), cost=_SECONDS)


def measured_scores(units: Sequence[Call], store: UnitStore) -> dict[Key, Shares]:
    """What the store has of them."""
    found: dict[Key, Shares] = {}
    for unit in units:
        kept = store.read(unit.name)
        if isinstance(kept, dict):
            found[unit.arguments] = kept
        elif kept is not None:
            graph, run, labels = unit.arguments
            for row in kept:
                paid = row["epsilon"] > 0
                if paid or labels != BARE:
                    method = WITHOUT_VALIDATION if labels == BARE else OURS if paid else CONTROL
                    shares: Shares = {each: row[each] for each in OUR_ACCESSES if each in row}
                    found[graph, run, method, f"{row['epsilon']:g}" if paid else ANY] = shares
    return found


def scores_csv(scores: Mapping[Key, Shares]) -> str:
    """A line for every graph, run, method and budget."""
    return sheet(COLUMNS, [(*key, *_rounded(found)) for key, found in scores.items()])


def _rounded(found: Shares) -> list[float | None]:
    return [round(found[access], _DIGITS) if access in found else None for access in ACCESSES]


def frame(scores: Mapping[Key, Shares]) -> pl.DataFrame:
    """The same, a row for every access."""
    rows = [(*key, access, share) for key, found in scores.items() for access, share in found.items()]
    return pl.DataFrame(rows, schema=["graph", "run", "method", "epsilon", "access", "test"], orient="row")


def take(kept: Path, units: Sequence[Call], store: UnitStore) -> None:
    """What an earlier table has of all methods but ours, as finished units: it stays right when ours changes.

    Raises:
        InputError: it is another table.
    """
    table = csv.DictReader(kept.read_text(errors="replace").splitlines())
    if tuple(table.fieldnames or ()) != COLUMNS:
        rule = f"must be a table with the columns {', '.join(COLUMNS)}"
        raise InputError("kept", rule=rule, got=str(kept), fix="Name a scores.csv that this command wrote.")
    found = {
        (row["graph"], int(row["run"]), row["method"], row["epsilon"]): {
            access: float(row[access]) for access in ACCESSES if row[access]
        }
        for row in table
    }
    for unit in units:
        if unit.arguments in found and not store.has(unit.name):
            store.write(unit.name, found[unit.arguments])
