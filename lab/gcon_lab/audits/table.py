"""Findings of an audit as words, Markdown and CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from gcon_lab.audits.measure import HONEST, Finding
from gcon_lab.tables import markdown, records

_CLAIMED = ("mechanism", "options", "claimed ε", "δ", "runs", "bound", "Gaussian bound", "ε of this pair", "outcome")
_BROKEN = ("mechanism", "options", "what is broken", "claimed ε", "runs", "bound", "Gaussian bound", "outcome")
_SEARCHED = ("statistic", "pairs tried", "largest change / claimed sensitivity", "outcome")


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
            _outcome(finding),
        )
        for finding in findings
    ]
    head = ("mechanism", "options", "variant", "claimed", "bound", "gaussian", "outcome")
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in (head, *rows)]
    return "\n".join([*lines, summary(findings)])


def summary(findings: Sequence[Finding]) -> str:
    """How many hold and how many are caught."""
    honest = [finding.good for finding in findings if finding.variant == HONEST]
    broken = [finding.good for finding in findings if finding.variant != HONEST]
    caught = f"; {sum(broken)} of {len(broken)} broken variants are caught" if broken else ""
    return f"{sum(honest)} of {len(honest)} cases hold{caught}."


def as_csv(findings: Sequence[Finding]) -> str:
    return records(
        [
            {name: f"{value:.6g}" if isinstance(value, float) else value for name, value in asdict(finding).items()}
            for finding in findings
        ]
    )


def as_page(findings: Sequence[Finding], *, command: str, confidence: float, error: float) -> str:
    """The page of results."""
    claimed, searched, broken = [], [], []
    for one in findings:
        runs, bounds = f"{one.runs:,}", (_number(one.bound), _number(one.gaussian_bound))
        if one.variant != HONEST:
            broken.append((one.mechanism, one.options, one.variant, _number(one.epsilon), runs, *bounds, one.outcome))
        elif one.change is not None:
            searched.append((one.options, runs, f"{one.change:.3f}", one.outcome))
        else:
            promise = _number(one.epsilon), f"{one.delta:g}"
            claimed.append(
                (one.mechanism, one.options, *promise, runs, *bounds, _number(one.pair_epsilon), one.outcome)
            )
    lines = [
        "# Audit",
        "",
        f"Written by `{command}`. {summary(findings)} How to read it: [the audit](../../audit.md).",
        "",
        "Bounds are lower bounds on ε at the claimed δ, measured on the mechanisms as they are with the operating system's",
        f"randomness. All bounds hold together with confidence {confidence:.0%} (each is wrong with probability at most",
        f"{error:.1e}). *ε of this pair*: what the planned noise gives on this very pair, exactly.",
        "",
        markdown(_CLAIMED, claimed),
    ]
    if searched:
        lines += ["## Searched pairs", "", "Graphs of six nodes, by hill climbing from random ones.", ""]
        lines += [markdown(_SEARCHED, searched)]
    if broken:
        lines += ["## Broken on purpose", "", markdown(_BROKEN, broken)]
    return "\n".join(lines)


def _outcome(finding: Finding) -> str:
    more = "" if finding.change is None else f": change {finding.change:.3f} of the claimed sensitivity"
    return finding.outcome + more


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
