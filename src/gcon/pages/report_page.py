"""The report: one HTML page that needs nothing but itself, light or dark as the reader's system is."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from html import escape

from gcon.pages.html_page import Row, document, download, figure, table
from gcon.pages.report import OPERATOR_ONLY, ModelScores, ReportData, mean_and_deviation, verdict
from gcon.pages.report_figures import (
    access_figure,
    accuracy_figure,
    confusion_figure,
    noise_figure,
    reliability_figure,
)

SECTIONS = {
    "promise": "The promise",
    "accuracy": "Accuracy against epsilon",
    "noise": "What the noise does",
    "access": "Accuracy by access",
    "confusion": "Confusion matrix",
    "calibration": "Calibration",
    "settings": "Settings",
    "ledger": "Ledger",
}


def page(data: ReportData) -> str:
    """The whole page.

    Privacy:
        As private as the record: with own-edges scores it is for the operator, and says so on top and at every such figure.
    """
    parts = {
        "promise": "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in data.promise) + "</ul>",
        "accuracy": _accuracy(data),
        "noise": _noise(data),
        "access": _access(data),
        "confusion": _confusion(data),
        "calibration": _calibration(data),
        "settings": table(
            ("setting", "value"), list(data.settings.items()), "Public numbers; one model a budget and run."
        ),
        "ledger": _ledger(data),
    }
    said = "".join(f"<p>{escape(sentence)}</p>" for sentence in verdict(data))
    header = f"""<p>{escape(data.about)} Made by gcon {escape(data.version)}, {escape(data.time)}.</p>
<p class="warn">This page is for the operator of the graph: figures marked as diagnostics were measured with private edges,
without noise. The rest may be published.</p>"""
    return document(
        f"{data.data_set}: privacy and accuracy",
        header=header,
        opening=f'<div class="verdict" role="note"><p class="warn">{OPERATOR_ONLY}</p>{said}</div>\n',
        sections={name: (SECTIONS[name], body) for name, body in parts.items()},
    )


def _accuracy(data: ReportData) -> str:
    caption = (
        "Share of correct labels on the test nodes when every node is answered from its own edges (mean over the runs). A "
        "control that costs nothing is the line to beat: own edges are free at prediction, so only what lies above it was "
        "bought with the budget."
    )
    rows = [
        (model.name, _budget(model.epsilon), access, len(scores), *_numbers(scores), _audience(model, access))
        for model in data.models
        for access, scores in [("own-edges", model.own_edges) if model.own_edges else ("none", model.none)]
    ]
    columns = ("model", "epsilon", "access", "runs", "mean", "standard deviation", "audience")
    return _figure("accuracy", caption, accuracy_figure(data), columns, rows, operator_only=True)


def _noise(data: ReportData) -> str:
    caption = (
        "Standard deviation of the noise over what a single edge can change in everything that is released: above 1 one edge "
        "drowns in it, while sums over many edges stand out. The table adds what the budget means for an attacker who wants "
        "to know whether an edge exists."
    )
    rows = [
        (f"{n.epsilon:g}", f"{n.noise_to_edge:.4g}", f"{n.best_advantage:.4f}", f"{n.true_positive_rate:.4f}")
        for n in data.noise
    ]
    columns = ("epsilon", "noise over one edge", "best advantage", "true positives at 1 % false")
    return _figure("noise", caption, noise_figure(data), columns, rows)


def _access(data: ReportData) -> str:
    caption = (
        "'No edge read': predictions for all nodes may be published. 'Own edges': each answer is for its owner only, and an "
        "accuracy computed from such answers is for the operator. The non-private reference promises nothing, so both of its "
        "numbers are for the operator."
    )
    rows = [
        (
            model.name,
            _budget(model.epsilon),
            access,
            *_numbers(scores),
            " ".join(f"{score:.4f}" for score in scores),
            _audience(model, access),
        )
        for model in data.models
        for access, scores in (("none", model.none), ("own-edges", model.own_edges))
        if scores
    ]
    columns = ("model", "epsilon", "access", "mean", "standard deviation", "runs", "audience")
    return _figure("access", caption, access_figure(data), columns, rows, operator_only=True)


def _confusion(data: ReportData) -> str:
    caption = (
        f"Test nodes by true and predicted class: the model at epsilon {data.shown_epsilon:g}, first run, no edge read at "
        "prediction."
    )
    rows = [(name, *counts) for name, counts in zip(data.class_names, data.confusion, strict=True)]
    columns = ("true class", *(f"predicted {name}" for name in data.class_names))
    return _figure("confusion", caption, confusion_figure(data), columns, rows)


def _calibration(data: ReportData) -> str:
    total = max(1, sum(entry.count for entry in data.reliability))
    gap = sum(entry.count * abs(entry.accuracy - entry.confidence) for entry in data.reliability) / total
    caption = (
        f"Can its probabilities be taken at their word? The model at epsilon {data.shown_epsilon:g}, first run, no edge read "
        f"at prediction. Expected calibration error: {gap:.3f}."
    )
    lean = sum(entry.count * (entry.accuracy - entry.confidence) for entry in data.reliability) / total
    if lean > 0.1:
        caption += (
            " The probabilities are too low: a strong ridge pulls all classes towards the same one. They should not "
            "be read as chances; mind the scale of the axis."
        )
    elif lean < -0.1:
        caption += " The probabilities are too high: they should not be read as chances."
    rows = [
        (f"{e.low:.4f} to {e.high:.4f}", e.count, f"{e.confidence:.4f}", f"{e.accuracy:.4f}") for e in data.reliability
    ]
    columns = ("probability", "nodes", "mean probability", "share right")
    return _figure("calibration", caption, reliability_figure(data), columns, rows)


def _ledger(data: ReportData) -> str:
    rows = [(e.number, e.time, e.kind, f"{e.epsilon:g}", f"{e.delta:g}", e.outcome, e.purpose) for e in data.ledger]
    caption = (
        f"In all: epsilon {data.total_epsilon:g}, delta {data.total_delta:g} (basic composition). Diagnostics are recorded; "
        "they cost nothing as long as nobody publishes them."
    )
    return table(("entry", "time", "kind", "epsilon", "delta", "outcome", "purpose"), rows, caption)


def _audience(model: ModelScores, access: str) -> str:
    """Who may see a score: without noise in training or with edges at prediction, the operator alone."""
    return "anybody" if access == "none" and model.kind != "non-private" else "operator only"


def _numbers(scores: Sequence[float]) -> tuple[str, str]:
    mean, deviation = mean_and_deviation(scores)
    return f"{mean:.4f}", f"{deviation:.4f}"


def _budget(epsilon: float | None) -> str:
    return "" if epsilon is None else f"{epsilon:g}"


def _figure(
    name: str, caption: str, svg: str, columns: Sequence[str], rows: Sequence[Row], *, operator_only: bool = False
) -> str:
    """A figure with its numbers: as a table, and as a file to take along. A diagnostic is marked in all three."""
    badge, file = "", f"{name}.csv"
    if operator_only:
        badge, file = f'<p class="warn">{OPERATOR_ONLY}</p>\n', f"{name}-operator-only.csv"
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows([columns, *rows])
    numbers = table(columns, rows, OPERATOR_ONLY if operator_only else SECTIONS[name])
    return figure(svg, escape(caption), numbers, download(file, text.getvalue()), badge=badge)
