"""What the report shows, as an HTML page that needs nothing but itself: drawings with their numbers, and the record's words."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from gcon.pages.frame import render
from gcon.pages.report import ModelScores, ReportData, mean_and_deviation, verdict
from gcon.pages.report_figures import (
    access_figure,
    accuracy_figure,
    confusion_figure,
    noise_figure,
    reliability_figure,
)


@dataclass(frozen=True)
class Drawing:
    """A figure and its numbers; `operator_only` if they were measured with private edges."""

    svg: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    operator_only: bool = False

    @property
    def sheet(self) -> str:
        """The numbers as a CSV file."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\r\n").writerows([self.columns, *self.rows])
        return text.getvalue()


def page(data: ReportData) -> str:
    """The whole page.

    Privacy:
        As private as the record: with own-edges scores it is for the operator, and says so on top and at every such figure.
    """
    total = max(1, sum(entry.count for entry in data.reliability))
    gaps = [(entry.count, entry.accuracy - entry.confidence) for entry in data.reliability]
    values = {
        "data": data,
        "verdict": verdict(data),
        "drawings": _drawings(data),
        "calibration_error": sum(count * abs(gap) for count, gap in gaps) / total,
        "lean": sum(count * gap for count, gap in gaps) / total,
        "ledger": [
            (e.number, e.time[:16].replace("T", " "), e.kind, f"{e.epsilon:g}", f"{e.delta:g}", e.outcome, e.purpose)
            for e in data.ledger
        ],
    }
    return render("report.html", values)


def _drawings(data: ReportData) -> dict[str, Drawing]:
    return {
        "accuracy": Drawing(
            accuracy_figure(data),
            ("model", "epsilon", "access", "runs", "mean", "standard deviation", "audience"),
            [
                (model.name, _budget(model), access, len(scores), *_numbers(scores), _audience(model, access))
                for model in data.models
                for access, scores in [("own-edges", model.own_edges) if model.own_edges else ("none", model.none)]
            ],
            operator_only=True,
        ),
        "noise": Drawing(
            noise_figure(data),
            ("epsilon", "noise over one edge", "best advantage", "true positives at 1 % false"),
            [
                (f"{n.epsilon:g}", f"{n.noise_to_edge:.4g}", f"{n.best_advantage:.4f}", f"{n.true_positive_rate:.4f}")
                for n in data.noise
            ],
        ),
        "access": Drawing(
            access_figure(data),
            ("model", "epsilon", "access", "mean", "standard deviation", "runs", "audience"),
            [
                (model.name, _budget(model), access, *_numbers(scores), _each(scores), _audience(model, access))
                for model in data.models
                for access, scores in (("none", model.none), ("cached", model.cached), ("own-edges", model.own_edges))
                if scores
            ],
            operator_only=True,
        ),
        "confusion": Drawing(
            confusion_figure(data),
            ("true class", *(f"predicted {name}" for name in data.class_names)),
            [(name, *counts) for name, counts in zip(data.class_names, data.confusion, strict=True)],
        ),
        "calibration": Drawing(
            reliability_figure(data),
            ("probability", "nodes", "mean probability", "share right"),
            [
                (f"{e.low:.4f} to {e.high:.4f}", e.count, f"{e.confidence:.4f}", f"{e.accuracy:.4f}")
                for e in data.reliability
            ],
        ),
    }


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
