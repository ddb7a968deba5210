"""The competitors' table for people: one small table an access and graph, budgets side by side."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

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


def page(sheet: str) -> str:
    """Markdown from the CSV of `gcon_lab.experiments.baselines`."""
    rows = list(csv.DictReader(io.StringIO(sheet)))
    budgets = sorted({row["epsilon"] for row in rows if row["epsilon"] != "any"}, key=float)
    lines = [UNCHARGED, ""]
    for access, title in ACCESSES.items():
        chosen = [row for row in rows if row["access"] == access]
        if not chosen:
            continue
        spends = any(row["epsilon"] != "any" for row in chosen)
        columns = ["any budget", *(f"epsilon {budget}" for budget in budgets)] if spends else ["any budget"]
        lines += [f"## {title}", "", f"| graph | method | {' | '.join(columns)} |", "|---|---|" + "---|" * len(columns)]
        lines += [*_lines(chosen, budgets if spends else []), ""]
    skipped = [row for row in rows if row["settings"].startswith("skipped")]
    if skipped:
        lines += ["## Skipped", ""]
        lines += [f"- {row['method']} on {row['graph']} at epsilon {row['epsilon']}: too large" for row in skipped]
    return "\n".join(lines).rstrip() + "\n"


def _lines(rows: list[dict[str, str]], budgets: list[str]) -> Iterator[str]:
    names = dict.fromkeys((row["graph"], row["method"]) for row in sorted(rows, key=lambda row: row["graph"]))
    for graph, method in names:
        found = {row["epsilon"]: row for row in rows if (row["graph"], row["method"]) == (graph, method)}
        cells = [_cell(found.get(budget)) for budget in ("any", *budgets)]
        yield f"| {graph} | {method} | {' | '.join(cells)} |"


def _cell(row: dict[str, str] | None) -> str:
    return "" if row is None else f"{float(row['mean']):.3f} ± {float(row['standard deviation']):.3f}"
