"""The default beside its competitors on the real graphs, run by run.

    python -m gcon_lab.experiments.rivals --default DIR --out DIR [--graphs NAMES] [--epsilons 1] [--first-run 50] [--runs 10]

`--default` is the folder of `gcon_lab.experiments.default_method` with the same runs. Competitors take the setting that is
best on the validation nodes, free of charge; ours has none to choose. Every graph, budget and run is a file in DIR/store.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np

from gcon.machine import one_thread
from gcon.writing import write_whole
from gcon_lab.experiments.beyond.units import BeyondUnit, spending_methods
from gcon_lab.experiments.sweep.social import SOCIAL
from gcon_lab.methods import GCN, GPRGNN

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


def _path(folder: Path, graph: str, epsilon: float, run: int) -> Path:
    return folder / f"{graph.replace('/', '-')}-epsilon{epsilon:g}-run{run}.json"


def _stored(folder: Path, graph: str, epsilon: float, run: int) -> Scores:
    path = _path(folder, graph, epsilon, run)
    if not path.exists():
        write_whole(path, json.dumps(measured(graph, epsilon, run)))
        print(f"{graph}, epsilon {epsilon:g}, run {run}", file=sys.stderr)
    found: Scores = json.loads(path.read_text())
    return found


def _ours(folder: Path, graph: str, epsilon: float, run: int) -> Scores:
    rows = json.loads((folder / "store" / f"{graph.replace('/', '-')}-run{run}.json").read_text())
    [found] = [row for row in rows if row["epsilon"] == epsilon]
    return {access: found[access] for access in ("none", "cached", "own-edges")}


def lines(graph: str, epsilon: float, ours: Sequence[Scores], theirs: Sequence[Scores]) -> list[str]:
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
        cells = [_cell(best[name]) if name in best else "" for name in (*PRIVATE, *OPEN)]
        gaps = [mine - best[name] for name in PRIVATE if name in best]
        nearest = _cell(min(gaps, key=lambda gap: float(gap.mean())), sign="+") if gaps else ""
        found.append(
            f"| {graph} | {epsilon:g} | {len(mine)} | {title} | {_cell(mine)} | {' | '.join(cells)} | {nearest} |"
        )
    return found


def _cell(values: np.ndarray, sign: str = "") -> str:
    error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{values.mean():{sign}.3f} ± {error:.3f}"


def main() -> None:
    """Measure and write `rivals.md`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--default", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--graphs", default=",".join(SOCIAL))
    parser.add_argument("--epsilons", default="1")
    parser.add_argument("--first-run", type=int, default=50)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--stored", action="store_true", help="measure nothing: a table of what is in DIR/store")
    given = parser.parse_args()
    names, store = given.graphs.split(","), given.out / "store"
    store.mkdir(parents=True, exist_ok=True)
    cells = list(product(names, map(float, given.epsilons.split(","))))
    wanted = [(*cell, run) for run in range(given.first_run, given.first_run + given.runs) for cell in cells]
    if given.stored:
        wanted = [each for each in wanted if _path(store, *each).exists()]
    # New processes, not forked ones: what this one has asked of a GPU would be broken there.
    with ProcessPoolExecutor(given.workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting = {each: pool.submit(_stored, store, *each) for each in wanted}
        theirs = {each: future.result() for each, future in waiting.items()}
    head = [
        "# The default beside its competitors",
        "",
        f"Made by `python -m gcon_lab.experiments.rivals --graphs {given.graphs} --epsilons {given.epsilons}`",
        f"`--first-run {given.first_run} --runs {given.runs} --default DIR --out DIR`: delta 1e-05, mean and standard error of",
        "the share of right answers on test nodes. Competitors take the best of their settings, and the better of two accesses;",
        "GCN and GPR-GNN keep nothing private. The last column is ours less the best private competitor, run by run.",
        "",
        f"| graph | epsilon | runs | answers | ours | {' | '.join((*PRIVATE, *OPEN))} | ours less the best private one |",
        "|---" * (6 + len(PRIVATE) + len(OPEN)) + "|",
    ]
    rows = []
    for cell in cells:
        runs = [run for *other, run in wanted if tuple(other) == cell]
        ours = [_ours(given.default, *cell, run) for run in runs]
        rows += lines(*cell, ours, [theirs[*cell, run] for run in runs]) if runs else []
    write_whole(given.out / "rivals.md", "\n".join([*head, *rows, ""]))


if __name__ == "__main__":
    main()
