"""The default beside its competitors on the real graphs, run by run.

    python -m gcon_lab.experiments.rivals --default DIR --out DIR [--graphs NAMES] [--epsilons 1] [--first-run 50] [--runs 10]

`--default` is the folder of `gcon_lab.experiments.default_method` with the same runs. Competitors take the setting that is
best on the validation nodes, free of charge; ours has none to choose. Every graph, budget and run is a file in DIR/store, and all
of them are rows of DIR/rivals.csv: with `--kept rivals.csv` they are not measured again, wherever that was.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np

from gcon.machine import one_thread
from gcon_lab.experiments.beyond.compared import BeyondUnit, spending_methods
from gcon_lab.experiments.command import command, write_all
from gcon_lab.experiments.default_method import ACCESSES, default_unit
from gcon_lab.experiments.sweep.social import SOCIAL
from gcon_lab.experiments.units import Call, UnitStore, run_units
from gcon_lab.methods import GCN, GPRGNN
from gcon_lab.tables import markdown, mean_and_error

PRIVATE, OPEN = ("lpgnet", "progap", "gap", "gcon"), ("gcn", "gpr-gnn")

Scores = dict[str, float]  # by method and access


def measured(graph: str, epsilon: float, run: int) -> Scores:
    """What every competitor gets right on the test nodes, under every access that it has."""
    unit = BeyondUnit(graph=graph, run=run, budgets=(epsilon,), free=False)
    with one_thread():
        rows = [*unit.scored([GCN(seed=run)], None), *unit.scored([GPRGNN(seed=run)], None)]
        for methods in spending_methods(run, epsilon):
            rows += unit.scored(methods, epsilon) if methods[0].name in PRIVATE else ()
        rows += unit.paper(epsilon)
    return {f"{row['method']}|{row['access']}": float(str(row["test"])) for row in rows}


def _unit(graph: str, epsilon: float, run: int) -> Call:
    return Call(f"{graph.replace('/', '-')}-epsilon{epsilon:g}-run{run}", measured, (graph, epsilon, run))


def _ours(store: UnitStore, graph: str, epsilon: float, run: int) -> Scores:
    rows = store.read(default_unit(graph, run).name) or ()
    [found] = [row for row in rows if row["epsilon"] == epsilon]
    return {access: found[access] for access in ACCESSES}


def take(kept: str, store: UnitStore) -> None:
    """What an earlier table has of competitors, as finished units."""
    units: dict[str, Scores] = {}
    for row in csv.DictReader(kept.splitlines()):
        unit = units.setdefault(_unit(row["graph"], float(row["epsilon"]), int(row["run"])).name, {})
        unit[f"{row['method']}|{row['access']}"] = float(row["right"])
    for name, found in units.items():
        if not store.has(name):
            store.write(name, found)


def as_csv(found: Mapping[tuple[str, float, int], Scores]) -> str:
    """The same for a later table: a line for every graph, budget, run, competitor and access."""
    rows = [
        f"{graph},{epsilon:g},{run},{name.replace('|', ',')},{right!r}"
        for (graph, epsilon, run), scores in found.items()
        for name, right in scores.items()
    ]
    return "\n".join(["graph,epsilon,run,method,access,right", *rows, ""])


def lines(graph: str, epsilon: float, ours: Sequence[Scores], theirs: Sequence[Scores]) -> list[list[str]]:
    """What may be published, then what is for owners; the last column is ours less the best of the private ones, run by run."""
    found = []
    for title, own, accesses in (
        ("to publish", "cached", ("none", "cached")),
        ("for owners", "own-edges", ("own-edges", "public-graph")),
    ):
        best = {
            name: np.array(
                [max(run[f"{name}|{access}"] for access in accesses if f"{name}|{access}" in run) for run in theirs]
            )
            for name in (*PRIVATE, *OPEN)
            if any(f"{name}|{access}" in theirs[0] for access in accesses)
        }
        mine = np.array([run[own] for run in ours])
        cells = [mean_and_error(best[name]) if name in best else "" for name in (*PRIVATE, *OPEN)]
        gaps = [mine - best[name] for name in PRIVATE if name in best]
        nearest = mean_and_error(min(gaps, key=lambda gap: float(gap.mean())), sign="+") if gaps else ""
        found.append([graph, f"{epsilon:g}", str(len(mine)), title, mean_and_error(mine), *cells, nearest])
    return found


def main() -> None:
    """Measure and write `rivals.md`."""
    parser = command(
        __doc__, "graphs", "epsilons", "first-run", "runs", "workers", graphs=",".join(SOCIAL), first_run=50
    )
    parser.add_argument(
        "--default", type=Path, required=True, help="the folder of `default_method`, with the same runs"
    )
    parser.add_argument("--kept", type=Path, help="a rivals.csv with what was measured before")
    parser.add_argument("--stored", action="store_true", help="measure nothing: a table of what is in DIR/store")
    given = parser.parse_args()
    store, ours = UnitStore(given.out / "store"), UnitStore(given.default / "store")
    cells = list(product(given.graphs.split(","), map(float, given.epsilons.split(","))))
    runs = range(given.first_run, given.first_run + given.runs)
    if given.kept is not None:
        take(given.kept.read_text(), store)
    if not given.stored:
        run_units([_unit(*cell, run) for run in runs for cell in cells], given.out / "store", workers=given.workers)
    rows: list[list[str]] = []
    every: dict[tuple[str, float, int], Scores] = {}
    for cell in cells:
        theirs = {run: found for run in runs if (found := store.read(_unit(*cell, run).name)) is not None}
        every |= {(*cell, run): found for run, found in theirs.items()}
        rows += lines(*cell, [_ours(ours, *cell, run) for run in theirs], list(theirs.values())) if theirs else []
    head = [
        "# The default beside its competitors",
        "",
        f"Made by `python -m gcon_lab.experiments.rivals --graphs {given.graphs} --epsilons {given.epsilons}`",
        f"`--first-run {given.first_run} --runs {given.runs} --default DIR --out DIR`: delta 1e-05, mean and standard error of",
        "the share of right answers on test nodes. Competitors take the best of their settings, and the better of two accesses;",
        "GCN and GPR-GNN keep nothing private. The last column is ours less the best private competitor, run by run.",
        "",
    ]
    columns = ["graph", "epsilon", "runs", "answers", "ours", *PRIVATE, *OPEN, "ours less the best private one"]
    write_all(given.out, {"rivals.md": "\n".join([*head, markdown(columns, rows)]), "rivals.csv": as_csv(every)})


if __name__ == "__main__":
    main()
