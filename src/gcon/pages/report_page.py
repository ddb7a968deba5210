"""What the demo's page shows, as HTML that needs nothing but itself: a chart, its numbers, and the record's words."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence

from gcon.methods.calibration import calibration_error
from gcon.pages.frame import render
from gcon.pages.model_page import MOST_CLASSES
from gcon.pages.report import OPERATOR_ONLY, ModelScores, ReportData, mean_and_deviation, verdict

Sheet = tuple[Sequence[str], Sequence[Sequence[object]]]  # columns and rows
LEFT, RIGHT, TOP, BOTTOM = 46.0, 390.0, 26.0, 196.0  # of the chart, in a box of 400 x 230


def page(data: ReportData) -> str:
    """The whole page.

    Privacy:
        As private as the record: with own-edges scores it is for the operator, and says so on top and in the drawing.
    """
    count = sum(group.count for group in data.reliability)
    sheets = _sheets(data)
    values = {
        "data": data,
        "verdict": verdict(data),
        "operator_only": OPERATOR_ONLY,
        "chart": _chart(data),
        "most_noise": max(level.noise_to_edge for level in data.noise),
        "most_classes": MOST_CLASSES,
        "sheets": {name: (columns, rows, _text([columns, *rows])) for name, (columns, rows) in sheets.items()},
        "calibration_error": calibration_error(data.reliability),
        "lean": sum(group.count * (group.accuracy - group.confidence) for group in data.reliability) / count,
        "ledger": [
            (e.number, e.time[:16].replace("T", " "), e.kind, f"{e.epsilon:g}", f"{e.delta:g}", e.outcome, e.purpose)
            for e in data.ledger
        ],
    }
    return render("report.html", values)


def _chart(data: ReportData) -> dict[str, object]:
    """The private model by budget under every access, and what needs no budget: as points of the drawing."""
    (paid, *_), budgets = data.private, [model.epsilon or 0.0 for model in data.private]
    curves = {
        ("own-edges", f"{paid.name}, own edges"): [model.own_edges for model in data.private],
        ("cached", f"{paid.name}, cached"): [model.cached for model in data.private],
        ("none", f"{paid.name}, none"): [model.none for model in data.private],
    }
    for kind in ("self-training", "edge-free", "non-private"):
        for model in data.of_kind(kind):
            read = "own edges" if model.own_edges else "none"
            curves[kind, f"{model.name}, {read}"] = [model.own_edges or model.none] * len(budgets)
    known = {names: list(map(mean_and_deviation, scores)) for names, scores in curves.items() if all(scores)}
    ends = [mean + side * deviation for each in known.values() for mean, deviation in each for side in (-1, 1)]
    low, high = math.floor(10 * min(ends)), math.ceil(10 * max(ends)) + (max(ends) == min(ends))

    def across(budget: float) -> float:
        share = math.log(budget / min(budgets)) / (math.log(max(budgets) / min(budgets)) or 1)
        return LEFT + 12 + share * (RIGHT - LEFT - 24)

    def up(score: float) -> float:
        return BOTTOM - (10 * score - low) / (high - low) * (BOTTOM - TOP)

    def line(places: Sequence[float]) -> str:
        return " ".join(f"{across(budget):.1f},{up(place):.1f}" for budget, place in zip(budgets, places, strict=True))

    return {
        "budgets": [(across(budget), f"{budget:g}") for budget in budgets],
        "levels": [(up(tenth / 10), f"{10 * tenth} %") for tenth in range(low, high + 1)],
        "curves": [
            {
                "kind": kind,
                "words": words,
                "line": line([mean for mean, _ in each]),
                "above": line([mean + deviation for mean, deviation in each]),
                "below": " ".join(reversed(line([mean - deviation for mean, deviation in each]).split())),
            }
            for (kind, words), each in known.items()
        ],
    }


def _sheets(data: ReportData) -> dict[str, Sheet]:
    """The numbers of every section; those of the accuracy are in part for the operator."""
    return {
        "accuracy": (
            ("model", "epsilon", "access", "mean", "standard deviation", "runs", "audience"),
            [
                (model.name, _budget(model), access, *_numbers(scores), _each(scores), _audience(model, access))
                for model in data.models
                for access, scores in (("none", model.none), ("cached", model.cached), ("own-edges", model.own_edges))
                if scores
            ],
        ),
        "noise": (
            (
                "epsilon",
                "noise over one edge",
                "best advantage",
                "true positives at 1 % false",
                "released, noise over one edge",
            ),
            [
                (
                    f"{n.epsilon:g}",
                    f"{n.noise_to_edge:.4g}",
                    f"{n.best_advantage:.4f}",
                    f"{n.true_positive_rate:.4f}",
                    "; ".join(n.released),
                )
                for n in data.noise
            ],
        ),
        "confusion": (
            ("true class", *(f"predicted {name}" for name in data.class_names)),
            [(name, *counts) for name, counts in zip(data.class_names, data.confusion, strict=True)],
        ),
        "calibration": (
            ("probability", "nodes", "mean probability", "share right"),
            [
                (f"{e.low:.4f} to {e.high:.4f}", e.count, f"{e.confidence:.4f}", f"{e.accuracy:.4f}")
                for e in data.reliability
            ],
        ),
    }


def _text(rows: Sequence[Sequence[object]]) -> str:
    """A CSV file."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    return text.getvalue()


def _audience(model: ModelScores, access: str) -> str:
    """Who may see a score: without noise in training or with edges at prediction, the operator alone."""
    return "anybody" if access != "own-edges" and model.kind != "non-private" else "operator only"


def _numbers(scores: Sequence[float]) -> tuple[str, str]:
    mean, deviation = mean_and_deviation(scores)
    return f"{mean:.4f}", f"{deviation:.4f}"


def _each(scores: Sequence[float]) -> str:
    return " ".join(f"{score:.4f}" for score in scores)


def _budget(model: ModelScores) -> str:
    return "" if model.epsilon is None else f"{model.epsilon:g}"
