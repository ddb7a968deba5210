"""`gcon audit`: run mechanisms many times on neighbouring graphs, and compare what is measured with what is claimed."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress

from gcon.cli import options
from gcon.cli.output import Output
from gcon.errors import InputError
from gcon_lab.audits.cases.larger_graphs import MADE_UP, larger_graph
from gcon_lab.audits.cases.registry import ABOUT, makers
from gcon_lab.audits.measure import AuditUnit, Finding, units_of, wrong_bound_probability
from gcon_lab.audits.table import as_csv, as_page, in_words
from gcon_lab.experiments.command import write_all
from gcon_lab.experiments.units import UnitStore

_UNITS = "units"


@options.verb
def audit(
    output: Output,
    names: Annotated[
        list[str] | None, typer.Argument(help="Mechanisms; all by default. 'list' shows their names.")
    ] = None,
    *,
    runs: Annotated[int | None, typer.Option(help="Runs per graph; by default each case's own number.")] = None,
    broken: Annotated[bool, typer.Option("--broken", help="Also audit mechanisms that are broken on purpose.")] = False,
    confidence: Annotated[float, typer.Option(help="That all bounds together hold, in (0, 1).")] = 0.95,
    graph: Annotated[
        str, typer.Option(help="Where canary edges are put: made-up, or a published graph (needs GCON_DATA).")
    ] = MADE_UP,
    out: Annotated[
        Path | None, typer.Option(help="Folder for audit.csv and audit.md; interrupted work resumes there.")
    ] = None,
) -> None:
    """Try to refute the promises: lower bounds on epsilon, measured on made-up graphs.

    A bound above the claim refutes it; one below shows that no gross error was found. No private graph is read.
    Exit code 1: a bound is above its claim, or a broken variant was not caught. Examples:

    gcon audit

    gcon audit neighbour-sums noisy-graph --broken

    gcon audit --broken --graph cora-ml --out audit
    """
    if names == ["list"]:
        lines = [f"{name:24s}{about}" for name, about in ABOUT.items()]
        output.result({"mechanisms": [*ABOUT]}, "\n".join(lines))
        return
    _check(names, runs=runs, confidence=confidence)
    chosen = makers(lambda: larger_graph(graph))
    cases = [case for name in names or chosen for case in chosen[name]()]
    units = units_of(cases, broken=broken, runs=runs)
    honest = units_of(cases, broken=False, runs=runs)
    error = wrong_bound_probability(honest, confidence)
    findings = _measured(units, error, f"{runs} {graph}", output, out)
    if out is not None:
        command = " ".join(["gcon audit", *(names or [])])
        command += " --broken" * broken + f" --runs {runs}" * (runs is not None)
        command += f" --graph {graph}" * (graph != MADE_UP) + f" --out {out}"
        page = as_page(findings, command=command, confidence=confidence, error=error)
        write_all(out, {"audit.csv": as_csv(findings), "audit.md": page})
        shutil.rmtree(out / _UNITS)  # the next audit draws again
    good = all(finding.good for finding in findings)
    output.result(
        {
            "good": good,
            "confidence": confidence,
            "error_of_a_bound": error,
            "findings": [asdict(finding) for finding in findings],
        },
        in_words(findings) + ("" if out is None else f" Written: {out / 'audit.md'}, {out / 'audit.csv'}."),
    )
    if not good:
        raise typer.Exit(1)


def _measured(
    units: Sequence[AuditUnit], error: float, setting: str, output: Output, out: Path | None
) -> list[Finding]:
    store = UnitStore(out / _UNITS) if out is not None else None
    findings = []
    with Progress(console=output.progress, transient=True) as progress:
        task = progress.add_task("audit", total=len(units))
        for unit in units:
            progress.update(task, description=unit.name[:60])
            key = hashlib.sha256(f"{unit.name} {error!r} {setting}".encode()).hexdigest()[:24]
            known = store.read(key) if store else None
            finding = Finding(**known) if known else unit.measure(error=error)
            if store and not known:
                store.write(key, asdict(finding))
            findings.append(finding)
            progress.advance(task)
    return findings


def _check(names: list[str] | None, *, runs: int | None, confidence: float) -> None:
    unknown = sorted(set(names or ()) - set(ABOUT))
    if unknown:
        raise InputError(
            "names", rule="must be mechanisms that are audited", got=", ".join(unknown), fix="See gcon audit list."
        )
    if runs is not None and runs < 100:
        raise InputError("runs", rule="must be at least 100", got=runs, fix="Thousands are usual.")
    if not 0 < confidence < 1:
        raise InputError("confidence", rule="must lie strictly between 0 and 1", got=confidence, fix="0.95 is usual.")
