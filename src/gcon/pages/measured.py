"""What accuracy a budget bought where it was measured, and what costs nothing: rows of docs/results/beyond/beyond.csv.

The last functions prepare them for the promise page: the chart and its numbers, and where a budget bought nothing.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from functools import cache
from itertools import product

from gcon.pages.frame import part

# Under which name a method of ours was measured, and its controls: trained without any private edge, so they spend nothing.
MEASURED_AS = {"moments": "moments", "paper": "gcon"}
CONTROLS = {
    "moments": ("moments-without-edges", "self-training", "mlp"),
    "paper": ("encoder-one-hop", "moments-without-edges", "self-training", "mlp"),
}
NOT_PRIVATE = "gcn"
ACCESSES = ("own-edges", "none")
NAMES = {
    "moments": "private model (moments)",
    "gcon": "private model (the paper's mechanism)",
    "moments-without-edges": "the moments pipeline without private statistics",
    "encoder-one-hop": "the paper's encoder without private training",
    "self-training": "self-training",
    "mlp": "perceptron (MLP), features only",
    "gcn": "graph network (GCN), not private",
}

_TITLES = {
    "cora-ml": "Cora-ML",
    "citeseer": "CiteSeer",
    "pubmed": "PubMed",
    "actor": "Actor",
    "social/fb100-johns-hopkins": "friendships in a college",
    "social/twitch-de": "streamers",
    "social/flickr-groups": "photographers",
    "social/amazon-photo": "products bought together",
}


@dataclass(frozen=True, kw_only=True)
class Score:
    """A mean share of correct labels on test nodes; `epsilon` is None for a method that has no budget."""

    graph: str
    method: str
    access: str
    epsilon: float | None
    mean: float
    error: float


@cache
def scores() -> tuple[Score, ...]:
    """All rows of `measured.csv`."""
    return tuple(
        Score(
            graph=row["graph"],
            method=row["method"],
            access=row["access"],
            epsilon=None if row["epsilon"] == "any" else float(row["epsilon"]),
            mean=float(row["mean"]),
            error=float(row["standard error"]),
        )
        for row in csv.DictReader(part("measured.csv").splitlines())
    )


def graphs() -> tuple[str, ...]:
    """The measured graphs, in the order of the table."""
    return tuple(dict.fromkeys(score.graph for score in scores()))


def graph_title(name: str) -> str:
    """A graph's name for people; those that start with circles- are made up, by degree, homophily and features.

    Example:
        >>> graph_title("circles-10-0.5-weak")
        'made up: 10 neighbours, 50 % of the same class, weak features'
        >>> graph_title("social/twitch-de@many")
        'streamers, 60 % labelled'
    """
    plain, _, many = name.partition("@")
    kind, *rest = plain.split("-")
    if kind != "circles":
        return _TITLES.get(plain, plain) + (", 60 % labelled" if many else "")
    degree, homophily, strength = rest
    shown = "large" if strength == "large" else f"{strength} features"
    return f"made up: {degree} neighbours, {100 * float(homophily):.0f} % of the same class, {shown}"


def private_scores(method: str, graph: str, access: str) -> tuple[Score, ...]:
    """A method of ours at its measured finite budgets, from small to large."""
    name = MEASURED_AS[method]
    found = [score for score in scores() if (score.graph, score.method, score.access) == (graph, name, access)]
    finite = [score for score in found if score.epsilon is not None and math.isfinite(score.epsilon)]
    return tuple(sorted(finite, key=lambda score: score.epsilon or 0.0))


def controls(method: str, graph: str, access: str) -> tuple[Score, ...]:
    """The zero-budget controls under the same access; what reads no edge at all counts under every access."""
    return tuple(
        score
        for name in CONTROLS[method]
        for score in scores()
        if (score.graph, score.method) == (graph, name)
        and score.access in (access, "none" if name == "mlp" else access)
    )


def compared(private: Score, control: Score) -> str:
    """Whether a private score is `above` or `below` a control, or `no different`: two standard errors of the difference."""
    gap, error = private.mean - control.mean, math.hypot(private.error, control.error)
    return "above" if gap > 2 * error else "below" if gap < -2 * error else "no different"


def chart_facts(method: str) -> dict[str, object]:
    """The measurements that the chart shows, for its script."""
    private, *others = _shown(method)
    rows = [score for score in scores() if score.method in (private, *others) and score.epsilon != math.inf]
    return {
        "private": private,
        "controls": list(CONTROLS[method]),
        "notPrivate": NOT_PRIVATE,
        "names": {name: NAMES[name] for name in (private, *others)},
        "rows": [[score.graph, score.method, score.access, score.epsilon, score.mean, score.error] for score in rows],
    }


def legend(method: str) -> list[tuple[str, str, str, str]]:
    """Row, kind, name and price of everything in the chart; the script fills in the numbers."""
    private = NAMES[MEASURED_AS[method]]
    return [
        ("below", "private", f"{private}, at or below the dial", ""),
        ("above", "private", f"{private}, above the dial", ""),
        *((name, name, NAMES[name], "nothing") for name in CONTROLS[method]),
        (NOT_PRIVATE, NOT_PRIVATE, NAMES[NOT_PRIVATE], "no promise"),
    ]


def comparisons(method: str) -> list[dict[str, object]]:
    """For both accesses, against the best control: how often the budget bought something, where it never did, and all rows."""
    found = []
    for access in ACCESSES:
        reads = "own connections" if access == "own-edges" else "no connection"
        rows = {}
        for graph in graphs():
            best = max(controls(method, graph, access), key=lambda score: score.mean)
            rows[graph_title(graph)] = [compared(score, best) for score in private_scores(method, graph, access)]
        told = {
            "reads": reads,
            "beaten": sum(row.count("above") for row in rows.values()),
            "total": sum(map(len, rows.values())),
            "never": [title for title, row in rows.items() if "above" not in row],
            "rows": [(title, reads, *row) for title, row in rows.items()],
        }
        found.append(told)
    return found


def measurements(method: str) -> tuple[list[str], list[list[str]]]:
    """Every measured number that the page rests on: the budgets, and a row per graph, method and access."""
    budgets = sorted({score.epsilon for score in scores() if score.epsilon is not None})
    cells: dict[tuple[str, str, str], dict[float | None, str]] = {}
    for score in scores():
        row = cells.setdefault((score.graph, score.method, score.access), {})
        row[score.epsilon] = f"{100 * score.mean:.2f} ± {100 * score.error:.2f}"
    rows = [
        [*names, *(cells[names].get(budget, "") for budget in (None, *budgets))]
        for names in product(graphs(), _shown(method), (*ACCESSES, "full"))
        if names in cells
    ]
    return [f"epsilon {budget:g}" for budget in budgets], rows


def _shown(method: str) -> tuple[str, ...]:
    return (MEASURED_AS[method], *CONTROLS[method], NOT_PRIVATE)
