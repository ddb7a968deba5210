"""`gcon reproduce beyond`: measure what is missing, then write means, paired differences, and what was to be shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from gcon_lab.experiments.beyond.scores import frame, measured_scores, scores_csv, take
from gcon_lab.experiments.beyond.summary import (
    INFINITE,
    NON_PRIVATE,
    Difference,
    Mean,
    best_non_private,
    differences,
    differences_csv,
    means,
    means_csv,
)
from gcon_lab.experiments.beyond.targets import check_targets, target_lines
from gcon_lab.experiments.command import write_all
from gcon_lab.experiments.sweep.graphs import CIRCLES
from gcon_lab.experiments.sweep.grid import PAPER_GRAPHS
from gcon_lab.experiments.sweep.social import SOCIAL, check_social
from gcon_lab.experiments.units import Call, UnitStore, run_units
from gcon_lab.tables import grid, markdown

GRAPHS = (*PAPER_GRAPHS, *SOCIAL, *CIRCLES)
ACCESSES = {
    "own-edges": "From own edges (each answer for its owner)",
    "cached": "From what was released (publishable)",
    "none": "Without any edge at inference (publishable)",
    "public-graph": "With all edges at inference, as if they were public (they are the training edges: an experiment)",
    "full": "With all edges (no promise)",
}
_HEAD = """# Beyond the paper

Command: `gcon reproduce beyond --first-run 70 --out OUT` (needs `GCON_DATA`). Test micro-F1, mean ± standard error over the
runs. One set of settings for all graphs, nothing tuned; delta = 1e-5. Rivals with two settings (hops, depth, layers: 1 or 2)
show the one that is better on the validation nodes under that access, free of charge. Every run has its own seed and noise; a
synthetic graph (`circles-DEGREE-HOMOPHILY-FEATURES`) is drawn anew for every run, and a social graph (`social/NAME`: 20 labels
per class; `social/NAME@many`: 60 % of the nodes) has a split for every run. `moments` is our method, `moments-without-edges`
the same pipeline with the private statistics left out, `moments-without-validation` ours where no labels are set aside for
choices (epsilon 1 only), `gcon` the paper's mechanism at its defaults. Noise is seeded: none of these models keeps a promise.
The column `inf` is our method without noise: what its statistics could tell at all. What was measured is in
[scores.csv](scores.csv), run by run; `--kept scores.csv` measures nothing but ours again. Differences are paired over the runs
that both have.
"""


def build_beyond(
    units: Sequence[Call], out: Path, *, kept: Path | None, workers: int, deadline: float, console: Console
) -> tuple[int, list[Path]]:
    """Measure until the deadline, write what there is; returns what is missing, and the files."""
    for graph in dict.fromkeys(unit.arguments[0] for unit in units):
        check_social(graph)  # before hours of work on the others
    store = UnitStore(out / "store")
    if kept is not None:
        take(kept, units, store)
    missing = run_units(units, out / "store", workers=workers, deadline=deadline, console=console)
    found = measured_scores(units, store)
    if not found:
        return missing, []
    scores = frame(found)
    rows, gaps = means(scores), list(differences(scores))
    targets = check_targets(rows, gaps)
    texts = {
        "scores.csv": scores_csv(found),
        "beyond.csv": means_csv(rows),
        "differences.csv": differences_csv(gaps),
        "beyond.md": "\n".join(
            [_HEAD, *_runs(rows), *target_lines(targets), *_non_private(rows, gaps), *_tables(rows)]
        ),
    }
    return missing, write_all(out, texts)


def _runs(rows: Sequence[Mean]) -> Iterator[str]:
    """How many runs each method has: what takes longest is measured last."""
    counts: dict[str, set[int]] = {}
    for row in rows:
        counts.setdefault(row.method, set()).add(row.runs)
    words = (
        f"{name} {min(each)}" + (f" to {max(each)}" if len(each) > 1 else "") for name, each in sorted(counts.items())
    )
    yield f"Runs, of every graph and budget: {', '.join(words)}.\n"


def _non_private(rows: Sequence[Mean], gaps: Sequence[Difference]) -> Iterator[str]:
    """Every graph's best non-private model beside ours from own edges."""
    best = best_non_private(rows)
    ours = [gap for gap in gaps if gap.access == "own-edges" and gap.epsilon != INFINITE]
    budgets = sorted({gap.epsilon for gap in ours}, key=float)
    if not best or not budgets:
        return
    yield "## Against the best non-private model\n"
    yield "The best of three on every graph, by its mean test score (in its favour): GCN and GPR-GNN, which have all edges, and"
    yield "our method without noise, from own edges. Then ours from own edges minus the best, paired; * where p < 0.05.\n"
    models = {(row.graph, row.method, row.epsilon, row.access): _cell(row) for row in rows}
    paired = {(gap.graph, gap.other, gap.epsilon): _gap_cell(gap) for gap in ours}
    yield markdown(
        ["graph", *NON_PRIVATE, "best", *(f"ours at {each}" for each in budgets)],
        [
            [graph, *(models.get((graph, *key), "") for key in NON_PRIVATE.values()), name]
            + [paired.get((graph, name, each), "") for each in budgets]
            for graph, (name, _) in best.items()
        ],
    )


def _gap_cell(gap: Difference) -> str:
    return f"{gap.difference:+.3f} ± {gap.standard_error:.3f}{'*' if gap.p < 0.05 else ''}"


def _tables(rows: Sequence[Mean]) -> Iterator[str]:
    budgets = sorted({row.epsilon for row in rows if row.epsilon != "any"}, key=float)
    for access, title in ACCESSES.items():
        here = [row for row in rows if row.access == access]
        columns = ["any", *(budgets if any(row.epsilon != "any" for row in here) else ())]
        cells = {(row.graph, row.method, row.epsilon): _cell(row) for row in here}
        if here:
            yield f"## {title}\n\n" + grid(["graph", "method"], dict(zip(columns, columns, strict=True)), cells)


def _cell(row: Mean) -> str:
    return f"{row.mean:.3f} ± {row.standard_error:.3f}"
