"""Attack everything: `python -m gcon_lab.experiments.attacks.run --out OUT`. Finished work is never done again.

Writes attacks.csv (every attack), canaries.csv (the formal test) and attacks.md (the page).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from gcon_lab.experiments.attacks.attacked import (
    ATTACKED,
    CANARY_DELTA,
    PAIRS,
    AttackUnit,
    CanaryUnit,
    is_spending,
    reads_edges,
)
from gcon_lab.experiments.attacks.judged import FALSE_ALARM, FAMILIES, Judged, Line, judged, lines, shown
from gcon_lab.experiments.beyond.targets import target_lines
from gcon_lab.experiments.command import command, write_all
from gcon_lab.experiments.units import UnitStore, run_units
from gcon_lab.tables import grid, markdown, sheet

GRAPHS = ("cora-ml", "citeseer", "pubmed")
BUDGETS, QUICK_BUDGETS = (0.5, 1.0, 4.0), (1.0, 4.0)
CANARY_GRAPH, CANARY_BUDGETS = "cora-ml", (1.0,)  # all budgets there, and these elsewhere
_ACCESSES = {
    "full": "With all edges (no promise)",
    "own-edges": "From own edges, seen by a third party (not promised)",
    "cached": "From what was released (publishable)",
    "none": "Without any edge at inference (publishable)",
}
_NAMES = ("graph", "method", "epsilon", "access", "attack")
_HEAD = """# Link attacks, measured

Command: `python -m gcon_lab.experiments.attacks.run {options}--out OUT` (needs `GCON_DATA`).
What the attacks are and how to read this: [link attacks](../../attacks.md). A cell is the area under the ROC curve; in brackets
the gain over the same attack on the edge-free reference; then true positives at 1 % false ones. Methods at their defaults,
delta = 1e-5, {pairs} linked and as many unlinked pairs (a fifth and a thirtieth of them where the model has to be asked pair by
pair); the learned attack knows half of the pairs and is measured on the rest; of the eight distances and the two learned models
the best is shown. Noise is seeded: none of these models keeps a promise.
"""


def attack_units(
    graphs: Sequence[str], budgets: Sequence[float], methods: Sequence[str] = tuple(ATTACKED)
) -> list[AttackUnit]:
    """Every method on every graph."""
    return [
        AttackUnit(graph=graph, method=method, epsilon=epsilon)
        for graph in graphs
        for method in methods
        for epsilon in (budgets if is_spending(method) else (None,))
    ]


def canary_units(
    graph: str, budgets: Sequence[float], *, runs: int, methods: Sequence[str] = tuple(ATTACKED)
) -> list[CanaryUnit]:
    """Every method that reads edges; one that is not private is passed off with epsilon 1, in the first run alone."""
    return [
        CanaryUnit(graph=graph, method=method, epsilon=epsilon, run=run)
        for run in range(runs)
        for method in methods
        if reads_edges(method) and (is_spending(method) or run == 0)
        for epsilon in (budgets if is_spending(method) else (1.0,))
    ]


def build(
    attacks: Sequence[AttackUnit],
    canaries: Sequence[CanaryUnit],
    out: Path,
    *,
    workers: int,
    deadline: float,
    console: Console,
    options: str = "",
) -> tuple[int, list[Path]]:
    """Measure until the deadline, write what there is; returns what is missing, and the files."""
    missing = run_units([*attacks, *canaries], out / "store", workers=workers, deadline=deadline, console=console)
    store = UnitStore(out / "store")
    found, coins = store.table(unit.name for unit in attacks), store.table(unit.name for unit in canaries)
    rows = [] if found.is_empty() else lines(found)
    tests, level = ([], FALSE_ALARM) if coins.is_empty() else judged(coins)
    texts = {
        "attacks.csv": found.write_csv(float_precision=4) if rows else "",
        "canaries.csv": _canary_sheet(tests, level),
        "attacks.md": "\n".join(
            [
                _HEAD.format(options=options, pairs=PAIRS),
                *target_lines(shown(rows, tests, level)),
                *_tables(rows),
                *_canaries(tests, level),
            ]
        ),
    }
    return missing, write_all(out, texts)


def _tables(rows: Sequence[Line]) -> Iterator[str]:
    for access, title in _ACCESSES.items():
        here = [row for row in rows if row.access == access]
        columns = {family: family for family in FAMILIES if any(row.family == family for row in here)}
        cells = {(row.graph, row.method, row.epsilon, row.family): _cell(row) for row in here}
        if here:
            yield f"## {title}\n\n" + grid(["graph", "method", "epsilon"], columns, cells)


def _cell(row: Line) -> str:
    gain = "" if row.gain is None else f" ({row.gain:+.3f})"
    return f"{row.auc:.3f}{gain}, {row.some:.2f}"


def _canaries(tests: Sequence[Judged], level: float) -> Iterator[str]:
    if not tests:
        return
    yield (
        f"## Canaries\n\nPairs that a coin put in; half of the coins are guessed. Trained with delta = {CANARY_DELTA:g}. "
        "p: the chance of so many right guesses if the "
        f"promise holds. {len(tests)} tests, together wrong with probability {FALSE_ALARM:g} at most: one alarm needs "
        f"p < {level:.2g}.\n"
    )
    rows = []
    for test in tests:
        right, numbers = f"{test.guesses.right} of {test.guesses.made}", (f"{test.p:.2g}", f"{test.at_least:.2f}")
        rows.append([*test.names, f"{test.auc:.3f}", right, *numbers, test.verdict(level)])
    yield markdown([*_NAMES, "AUC", "right", "p", "epsilon at least", "promise"], rows).rstrip("\n")


def _canary_sheet(tests: Sequence[Judged], level: float) -> str:
    rows = []
    for test in tests:
        counts, area = (test.guesses.coins, test.guesses.made, test.guesses.right), f"{test.auc:.4f}"
        numbers = area, f"{test.p:.3g}", f"{test.at_least:.3f}", test.verdict(level)
        rows.append((*test.names, test.covered, *counts, *numbers))
    counted = ["covered", "coins", "guesses", "right"]
    return sheet([*_NAMES, *counted, "auc", "p", "epsilon at least", "verdict"], rows)


def main() -> None:
    parser = command(__doc__, "graphs", "workers", "minutes")
    parser.add_argument("--quick", action="store_true", help="Cora-ML, epsilon 1 and 4")
    parser.add_argument(
        "--canary-runs", type=int, default=1, help="trainings with canaries per method, budget and graph"
    )
    parser.add_argument("--methods", help="names, separated by commas; the edge-free reference of each is one of them")
    given = parser.parse_args()
    graphs = tuple(given.graphs.split(",")) if given.graphs else GRAPHS[:1] if given.quick else GRAPHS
    methods = tuple(given.methods.split(",")) if given.methods else tuple(ATTACKED)
    options = f"--graphs {given.graphs} " if given.graphs else ""
    options += f"--methods {given.methods} " if given.methods else ""
    options += f"--canary-runs {given.canary_runs} " if given.canary_runs > 1 else ""
    budgets = QUICK_BUDGETS if given.quick else BUDGETS
    canaries = [
        unit
        for graph in graphs
        for unit in canary_units(
            graph,
            CANARY_BUDGETS if graph in GRAPHS and graph != CANARY_GRAPH else budgets,
            runs=given.canary_runs,
            methods=methods,
        )
    ]
    missing, files = build(
        attack_units(graphs, budgets, methods),
        canaries,
        given.out,
        workers=given.workers,
        deadline=time.time() + 60 * given.minutes,
        console=Console(stderr=True),
        options=options,
    )
    print(f"{missing} units are missing: give the same command again." if missing else "Complete.", *files, sep="\n")


if __name__ == "__main__":
    main()
