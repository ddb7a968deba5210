"""Findings of an audit as words, Markdown and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, fields

from gcon_lab.audits.measure import HONEST, Finding

_CSV_COLUMNS = tuple(field.name for field in fields(Finding))
_HEAD = "| mechanism | options | claimed ε | δ | runs | bound | Gaussian bound | ε of this pair | outcome |"
_BROKEN_HEAD = "| mechanism | options | what is broken | claimed ε | runs | bound | Gaussian bound | outcome |"


def in_words(findings: Sequence[Finding]) -> str:
    """A table for the screen, and one sentence below it."""
    rows = [
        (
            finding.mechanism,
            finding.options,
            finding.variant,
            _number(finding.epsilon),
            _number(finding.bound),
            _number(finding.gaussian_bound),
            _change(finding) or finding.outcome,
        )
        for finding in findings
    ]
    head = ("mechanism", "options", "variant", "claimed", "bound", "gaussian", "outcome")
    widths = [max(len(row[place]) for row in (head, *rows)) for place in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (head, *rows)]
    return "\n".join([*(line.rstrip() for line in lines), summary(findings)])


def summary(findings: Sequence[Finding]) -> str:
    """How many hold and how many are caught."""
    honest = [finding for finding in findings if finding.variant == HONEST]
    broken = [finding for finding in findings if finding.variant != HONEST]
    parts = [f"{sum(finding.good for finding in honest)} of {len(honest)} cases hold"]
    if broken:
        parts.append(f"{sum(finding.good for finding in broken)} of {len(broken)} broken variants are caught")
    return "; ".join(parts) + "."


def as_csv(findings: Sequence[Finding]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, _CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for finding in findings:
        writer.writerow({key: _cell(value) for key, value in asdict(finding).items()})
    return text.getvalue()


def as_page(findings: Sequence[Finding], *, command: str, confidence: float, error: float) -> str:
    """The page of results."""
    honest = [finding for finding in findings if finding.variant == HONEST and finding.change is None]
    broken = [finding for finding in findings if finding.variant != HONEST]
    searched = [finding for finding in findings if finding.variant == HONEST and finding.change is not None]
    lines = [
        "# Audit",
        "",
        f"Written by `{command}`. {summary(findings)} How to read it: [the audit](../../audit.md).",
        "",
        "Bounds are lower bounds on ε at the claimed δ, measured on the mechanisms as they are with the operating system's",
        f"randomness. All bounds hold together with confidence {confidence:.0%} (each is wrong with probability at most",
        f"{error:.1e}). *ε of this pair*: what the planned noise gives on this very pair, exactly.",
        "",
        _HEAD,
        _rule(_HEAD),
        *(
            _row(
                finding.mechanism,
                finding.options,
                _number(finding.epsilon),
                f"{finding.delta:g}",
                f"{finding.runs:,}",
                _number(finding.bound),
                _number(finding.gaussian_bound),
                _number(finding.pair_epsilon),
                finding.outcome,
            )
            for finding in honest
        ),
    ]
    if searched:
        head = "| statistic | pairs tried | largest change / claimed sensitivity | outcome |"
        lines += ["", "## Searched pairs", "", "Graphs of six nodes, by hill climbing from random ones.", "", head]
        lines += [_rule(head)]
        lines += [
            _row(finding.options, f"{finding.runs:,}", f"{finding.change:.3f}", finding.outcome) for finding in searched
        ]
    if broken:
        lines += ["", "## Broken on purpose", "", _BROKEN_HEAD, _rule(_BROKEN_HEAD)]
        lines += [
            _row(
                finding.mechanism,
                finding.options,
                finding.variant,
                _number(finding.epsilon),
                f"{finding.runs:,}",
                _number(finding.bound),
                _number(finding.gaussian_bound),
                finding.outcome,
            )
            for finding in broken
        ]
    return "\n".join(lines) + "\n"


def _change(finding: Finding) -> str:
    if finding.change is None:
        return ""
    return f"{finding.outcome}: change {finding.change:.3f} of the claimed sensitivity"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _cell(value: object) -> object:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else value


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def _rule(head: str) -> str:
    return "|" + "---|" * (head.count("|") - 1)
