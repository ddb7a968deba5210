"""All competitors on the paper's four graphs, five budgets, ten runs at the chosen settings.

    .venv/bin/python -m gcon_lab.experiments.baselines --out results/baselines [--minutes 90] [--workers 2]

For every line, graph and budget: at most 20 settings (the defaults and seeded draws of the grid; on Actor 4 narrow ones),
two runs each, the best by mean validation micro-F1 under the access named in `chosen by`; then ten runs with it.
Validation goes through released or edge-free quantities, never through exact private edges (non-private methods
excepted). The choice is *not charged*, as in the paper, and labelled so. delta is the public default
min(1e-5, 1/(10 n)). Actor: two runs on each of five splits. Noise is seeded, so none of these models carries a promise;
every run has a generator of its own.

Work stops after `--minutes` and goes on where it stopped when the command is given again; each time the table of what is
finished is written. Settings that would not fit are skipped and named.
"""

from __future__ import annotations

import csv
import io
import json
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from gcon.errors import InputError
from gcon.machine import keep_to_one_thread
from gcon.privacy.randomness import SeededRandomness
from gcon.privacy.receipt import Receipt
from gcon_lab.experiments.command import command, write_all
from gcon_lab.experiments.grids import COMPETITORS, Competitor, Settings, competitor
from gcon_lab.experiments.sweep.graphs import open_graph
from gcon_lab.experiments.sweep.grid import BUDGETS
from gcon_lab.experiments.sweep.models import seed_of
from gcon_lab.experiments.units import Task, UnitStore, in_parallel
from gcon_lab.methods.fitted import fit
from gcon_lab.tables import grid, sheet

DATASETS = ("citeseer", "pubmed", "cora-ml", "actor")
SEARCH_RUNS = 2
# Most nodes of Actor are labelled, so a run takes ten times as long: fewer settings are tried, and no wide ones.
FEWER, WIDEST = {"actor": 4}, {"actor": 64}
COLUMNS = (
    "graph",
    "epsilon",
    "method",
    "access",
    "mean",
    "standard deviation",
    "runs",
    "chosen by",
    "settings",
    "core seconds",
)
ACCESSES = {
    "own-edges": "From own edges (each answer for its owner)",
    "cached": "From noisy quantities of training (publishable)",
    "none": "Without any edge at inference (publishable)",
    "full": "With all private edges (no promise)",
}
UNCHARGED = (
    "Micro-F1 on the test nodes, mean ± standard deviation over the final runs. Settings were chosen by validation scores, as "
    "the column `chosen by` of the CSV says. This tuning is **not charged**: the epsilon of a column is that of one training "
    "with these settings, as in the paper."
)
Group = tuple[str, str, float | None]  # line, graph, epsilon
Run = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much is done.

    Attributes:
        lines: of the table.
        epsilons: the budgets.
        candidates: settings that are tried at most; 1 takes the defaults.
        final_runs: at the chosen settings.
    """

    lines: tuple[str, ...] = tuple(entry.name for entry in COMPETITORS)
    epsilons: tuple[float, ...] = BUDGETS
    candidates: int | None = None
    final_runs: int = 10


FULL = Effort()
QUICK = Effort(
    # A noisy graph of millions of pairs and a second noisy layer take longer than all the rest.
    lines=tuple(entry.name for entry in COMPETITORS if entry.name not in ("dpgcn, EdgeRand", "lpgnet, two")),
    epsilons=(1.0, 4.0),
    candidates=1,
    final_runs=2,
)


def groups(effort: Effort, datasets: Sequence[str]) -> Iterator[Group]:
    """All that the table holds; cheap lines first."""
    for line in effort.lines:
        for dataset in datasets:
            for epsilon in effort.epsilons if competitor(line).spends else (None,):
                yield line, dataset, epsilon


def finish_group(folder: Path, group: Group, deadline: float, effort: Effort = FULL) -> bool:
    """Search and final runs of one group, reusing what is stored; False if the time was up."""
    keep_to_one_thread()
    store, (line, dataset, epsilon) = UnitStore(folder), group
    entry, searched = competitor(line), []
    candidates = candidates_on(entry, dataset, effort)
    for place, settings in enumerate(candidates if len(candidates) > 1 else []):
        name = unit_name(group, f"search{place}")
        unit = store.read(name)
        if unit is None:
            if time.time() > deadline:
                return False
            unit = {"settings": settings, **score(entry, dataset, epsilon, settings, range(SEARCH_RUNS), name)}
            store.write(name, unit)
        searched.append(unit)
    name = unit_name(group, "final")
    if store.read(name) is None:
        if time.time() > deadline:
            return False
        settings = chosen(entry, searched, candidates)
        runs = range(SEARCH_RUNS, SEARCH_RUNS + effort.final_runs)  # not those that the settings were chosen on
        store.write(name, {"settings": settings, **score(entry, dataset, epsilon, settings, runs, name)})
    return True


def candidates_on(entry: Competitor, dataset: str, effort: Effort = FULL) -> list[Settings]:
    widest = WIDEST.get(dataset)
    found = entry.candidates()
    narrow = [settings for settings in found if widest is None or settings.get("hidden", 0) <= widest]
    return narrow[: FEWER.get(dataset)][: effort.candidates]


def chosen(entry: Competitor, searched: list[Run], candidates: list[Settings]) -> Settings:
    """The settings with the best mean validation score; the first if nothing was searched or all were skipped."""
    worked = [unit for unit in searched if "skipped" not in unit]
    if not worked:
        return candidates[0]
    best = max(worked, key=lambda unit: statistics.mean(run["validation"][entry.chosen_by] for run in unit["runs"]))
    settings: Settings = best["settings"]
    return settings


def score(
    entry: Competitor, dataset: str, epsilon: float | None, settings: Settings, runs: range, name: str
) -> dict[str, Any]:
    """Train and score one setting several times; says what a private method released, with the plan's numbers."""
    found: list[Run] = []
    releases: list[dict[str, Any]] = []
    for run in runs:
        graph = open_graph(dataset, run).graph
        start = time.perf_counter()
        try:
            method = entry.build(settings, epsilon=epsilon, seed=run)
            fitted = fit(method, graph, randomness=SeededRandomness(seed_of(f"{name}|{run}")))
        except InputError as error:
            return {"skipped": str(error), "runs": []}
        releases = [_released(receipt) for receipt in fitted.receipts]  # the same in every run
        nodes = graph.nodes
        scores = {
            part: {
                access: fitted.score(graph, mask, access=access)
                for access in fitted.trained.score_functions
                if access != "public-graph"
            }
            for part, mask in (("validation", nodes.validation_mask), ("test", nodes.test_mask))
        }
        found.append({**scores, "run": run, "seconds": round(time.perf_counter() - start, 3)})
    return {"runs": found, **({"releases": releases} if entry.method.private else {})}


def _released(receipt: Receipt) -> dict[str, Any]:
    """What one release cost, about which neighbouring graphs, and every number of its noise plan."""
    plan = receipt.plan
    return {
        "mechanism": receipt.mechanism,
        "protected_change": receipt.protected_change,
        "epsilon": receipt.budget.epsilon,
        "delta": receipt.budget.delta,
        "releases": plan.get("rounds", plan.get("steps", 1)),
        "noise": next(
            (plan[name] for name in ("scale", "standard_deviation", "flip_probability") if name in plan), None
        ),
        "sensitivity": plan.get("sensitivity"),
        "keeps_promise": receipt.keeps_promise,
        "randomness": receipt.randomness,
        "plan": dict(plan),
    }


def unit_name(group: Group, stage: str) -> str:
    line, dataset, epsilon = group
    return f"{line.replace(', ', '-')}-{dataset}-{'any' if epsilon is None else f'{epsilon:g}'}-{stage}"


def table(folder: Path, effort: Effort, datasets: Sequence[str]) -> str:
    """The finished part of the table as CSV."""
    store = UnitStore(folder)
    rows: list[dict[str, object]] = []
    for group in groups(effort, datasets):
        line, dataset, epsilon = group
        entry, final = competitor(line), store.read(unit_name(group, "final"))
        if final is None:
            continue
        row = {"graph": dataset, "epsilon": "any" if epsilon is None else f"{epsilon:g}", "method": line}
        if "skipped" in final:
            rows.append({**row, "runs": 0, "settings": f"skipped: {final['skipped']}"})
            continue
        places = range(len(candidates_on(entry, dataset, effort)))
        searched = [store.read(unit_name(group, f"search{place}")) for place in places]
        seconds = sum(run["seconds"] for unit in [*searched, final] if unit for run in unit["runs"])
        row |= {
            "chosen by": f"validation ({entry.chosen_by}), uncharged" if len(places) > 1 else "nothing (defaults)",
            "settings": json.dumps(final["settings"]),
            "core seconds": f"{seconds:.0f}",
        }
        for access in entry.shown:
            values = [run["test"][access] for run in final["runs"]]
            mean, spread = statistics.mean(values), statistics.stdev(values) if len(values) > 1 else 0.0
            numbers = {"mean": f"{mean:.4f}", "standard deviation": f"{spread:.4f}", "runs": len(values)}
            rows.append({**row, "access": access, **numbers})
    return sheet(COLUMNS, ([row.get(column) for column in COLUMNS] for row in rows))


def page(text: str) -> str:
    """The table for people, in Markdown from the CSV: one small table per access and graph, budgets side by side."""
    rows = list(csv.DictReader(io.StringIO(text)))
    budgets = sorted({row["epsilon"] for row in rows} - {"any"}, key=float)
    lines = [UNCHARGED, ""]
    for access, title in ACCESSES.items():
        here = sorted((row for row in rows if row["access"] == access), key=lambda row: row["graph"])
        columns = {"any": "any budget"}
        if any(row["epsilon"] != "any" for row in here):
            columns |= {budget: f"epsilon {budget}" for budget in budgets}
        cells = {(row["graph"], row["method"], row["epsilon"]): _cell(row) for row in here}
        lines += [f"## {title}", "", grid(["graph", "method"], columns, cells)] if here else []
    skipped = [row for row in rows if row["settings"].startswith("skipped")]
    if skipped:
        lines += ["## Skipped", ""]
        lines += [f"- {row['method']} on {row['graph']} at epsilon {row['epsilon']}: too large" for row in skipped]
    return "\n".join(lines).rstrip() + "\n"


def _cell(row: dict[str, str]) -> str:
    return f"{float(row['mean']):.3f} ± {float(row['standard deviation']):.3f}"


def finish_groups(
    folder: Path, work: Sequence[Group], effort: Effort, *, workers: int, deadline: float, console: Console
) -> int:
    """Do what is missing of some groups until the deadline; returns how many are not finished."""
    store = UnitStore(folder)
    tasks = [
        Task(
            " ".join(str(part) for part in group),
            1.0,
            None if store.read(unit_name(group, "final")) else partial(finish_group, folder, group, deadline, effort),
        )
        for group in work
    ]
    return in_parallel(tasks, workers=workers, console=console)


def main() -> None:
    """Do what is missing within the time, then write the table."""
    names = [entry.name for entry in COMPETITORS]
    parser = command(__doc__, "minutes", "workers")
    parser.add_argument("--lines", nargs="*", default=names, choices=names)
    parser.add_argument("--datasets", nargs="*", default=list(DATASETS), choices=DATASETS)
    given = parser.parse_args()
    effort, deadline = replace(FULL, lines=tuple(given.lines)), time.time() + 60 * given.minutes
    units, work = given.out / "units", list(groups(effort, given.datasets))
    unfinished = finish_groups(
        units, work, effort, workers=given.workers, deadline=deadline, console=Console(stderr=True)
    )
    text = table(units, effort, given.datasets)
    write_all(given.out, {"baselines.csv": text, "baselines.md": page(text)})
    print(f"{len(work) - unfinished} of {len(work)} groups are finished; the table is in {given.out}.")


if __name__ == "__main__":
    main()
