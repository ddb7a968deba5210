"""The report: one HTML page that needs nothing but itself, light or dark as the reader's system is."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from html import escape
from urllib.parse import quote

from gcon.evaluate.report import OPERATOR_ONLY, ModelScores, ReportData, mean_and_deviation, verdict
from gcon.evaluate.report_figures import (
    access_figure,
    accuracy_figure,
    confusion_figure,
    noise_figure,
    reliability_figure,
)

Row = Sequence[object]
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
_STYLE = """
:root { color-scheme: light dark; --paper: #fdfdfb; --ink: #1d2226; --soft: #59636b; --faint: #c3c9cd; --card: #f3f4f1;
  --main: #1565b8; --second: #b4570c; --edge-free: #6b7379; --one-hop: #a3269a; --self-training: #187a3d;
  --non-private: #1d2226; --warn: #9a3412; --warn-paper: #fff1e6; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181b; --ink: #e7eaec; --soft: #a3adb5; --faint: #4b555c;
  --card: #1d2327; --main: #6db3f8; --second: #f2a65a; --edge-free: #9fa9b0; --one-hop: #e38fdc; --self-training: #6fd08f;
  --non-private: #e7eaec; --warn: #ffb689; --warn-paper: #33211a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 54rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.6 system-ui, sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .4rem; } h2 { font-size: 1.3rem; margin: 2.8rem 0 .6rem; }
header p, figcaption, .small { color: var(--soft); } a { color: var(--main); }
nav ul { display: flex; flex-wrap: wrap; gap: .3rem 1.1rem; padding: 0; margin: 1.2rem 0; list-style: none; }
.warn { color: var(--warn); background: var(--warn-paper); border-left: 4px solid var(--warn); padding: .5rem .8rem;
  border-radius: 4px; }
.verdict { background: var(--card); border-radius: 8px; padding: .9rem 1.2rem; margin: 1rem 0; }
.verdict p { margin: .35rem 0; }
figure { margin: 1rem 0; padding: 1rem; background: var(--card); border-radius: 8px; }
figure svg { display: block; width: 100%; margin: .4rem auto; }
figure svg text { font-family: system-ui, sans-serif !important; }
figure .warn { margin: 0 0 .5rem; font-weight: 600; }
figure { --under: var(--card); }
.scroll { overflow-x: auto; /* a shadow where more lies to the right */
  background: linear-gradient(to left, var(--under, var(--paper)) 30%, transparent) right / 2rem 100% no-repeat local,
    linear-gradient(to left, var(--faint), transparent) right / .7rem 100% no-repeat scroll; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: .3rem; }
caption span { display: inline-block; position: sticky; left: 0; max-width: min(50rem, calc(100vw - 3.5rem));
  color: var(--soft); }
th, td { padding: .25rem .8rem .25rem 0; text-align: left; border-bottom: 1px solid var(--faint); vertical-align: top;
  white-space: nowrap; }
details { margin-top: .6rem; } summary { cursor: pointer; } li { margin: .3rem 0; }
#ledger td:last-child { white-space: normal; min-width: 12rem; }
@media (max-width: 34rem) { body { padding-inline: .8rem; } figure { padding: .7rem .6rem; } }
@media print { details > * { display: block; } nav { display: none; } }
"""
# The browser itself is told to load nothing from anywhere.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


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
        "settings": _table(
            ("setting", "value"), list(data.settings.items()), "Public numbers; one model a budget and run."
        ),
        "ledger": _ledger(data),
    }
    sections = "\n".join(
        f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{SECTIONS[name]}</h2>\n{body}\n</section>'
        for name, body in parts.items()
    )
    links = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title in SECTIONS.items())
    said = "".join(f"<p>{escape(sentence)}</p>" for sentence in verdict(data))
    title = f"{escape(data.data_set)}: privacy and accuracy"
    whole = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{title}</title>
<style>{_STYLE}</style>
</head>
<body>
<header>
<h1>{title}</h1>
<p>{escape(data.about)} Made by gcon {escape(data.version)}, {escape(data.time)}.</p>
<p class="warn">This page is for the operator of the graph: figures marked as diagnostics were measured with private edges,
without noise. The rest may be published.</p>
</header>
<nav aria-label="Sections"><ul>{links}</ul></nav>
<main>
<div class="verdict" role="note"><p class="warn">{OPERATOR_ONLY}</p>{said}</div>
{sections}
</main>
</body>
</html>
"""
    # Plain ASCII, so that no reader or writer can get the encoding wrong.
    return whole.encode("ascii", "xmlcharrefreplace").decode("ascii")


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
        "Expected length of one class's noise over the largest possible sum of that class's training rows: above 1 the noise "
        "is longer than anything the data can say. The table adds what the budget means for an attacker who wants to "
        "know whether an edge exists."
    )
    rows = [
        (f"{n.epsilon:g}", f"{n.noise_to_signal:.4g}", f"{n.best_advantage:.4f}", f"{n.true_positive_rate:.4f}")
        for n in data.noise
    ]
    columns = ("epsilon", "noise to signal", "best advantage", "true positives at 1 % false")
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
    return _table(("entry", "time", "kind", "epsilon", "delta", "outcome", "purpose"), rows, caption)


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
    link = f'<a download="{file}" href="data:text/csv;charset=utf-8,{quote(text.getvalue())}">{file}</a>'
    table = _table(columns, rows, OPERATOR_ONLY if operator_only else SECTIONS[name])
    return (
        f'<figure>\n{badge}<div class="scroll">{svg}</div>\n<figcaption>{escape(caption)}</figcaption>\n'
        f'<details><summary>The numbers</summary>{table}</details>\n<p class="small">Download: {link}</p>\n</figure>'
    )


def _table(columns: Sequence[str], rows: Sequence[Row], caption: str) -> str:
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    body = "\n".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<div class="scroll"><table><caption><span>{escape(caption)}</span></caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
