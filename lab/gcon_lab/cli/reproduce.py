"""`gcon reproduce`: the paper's table and figures, with the controls in every panel and its claims checked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gcon.cli import options
from gcon.cli.output import Output
from gcon_lab.experiments.sweep.grid import PAPER_GRAPHS


@options.verb
def reproduce(
    output: Output,
    what: Annotated[
        str, typer.Argument(help="table2, fig1, fig2, fig3, fig4, claims, all, or beyond (our own method).")
    ],
    *,
    out: Annotated[Path, typer.Option(help="The folder of results. Finished work there is never done again.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="A small grid, two runs, competitors at their defaults.")
    ] = False,
    graphs: Annotated[
        str, typer.Option(help="Names, separated by commas; `beyond` knows more, and takes all for these.")
    ] = ",".join(PAPER_GRAPHS),
    runs: Annotated[int | None, typer.Option(help="Runs per graph; by default 10, or 2 with --quick.")] = None,
    first_run: Annotated[int, typer.Option(help="`beyond` only: runs before it are left out.")] = 0,
    kept: Annotated[
        Path | None,
        typer.Option(help="`beyond` only: an earlier scores.csv; nothing but ours is measured again."),
    ] = None,
    competitors: Annotated[
        Path | None, typer.Option(help="A competitors' table to reuse, such as docs/results/baselines.csv.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes, one core each.")] = 2,
    minutes: Annotated[float, typer.Option(help="Stop after so long; the same command goes on from there.")] = 90.0,
) -> None:
    """Make the paper's figures again: tables, SVG, PNG, a page, and what its claims are worth.

    Needs the graphs (GCON_DATA); the graph `made-up` is always there. Interrupted work resumes. Examples:

    gcon reproduce all --quick --out results

    gcon reproduce fig1 --graphs cora-ml --competitors docs/results/baselines.csv --out results

    gcon reproduce beyond --graphs social/twitch-de,social/twitch-de@many --runs 1 --out results
    """
    # The experiments import PyG, polars and matplotlib: only when they are asked for.
    from gcon_lab.experiments.reproduce.build import Job
    from gcon_lab.experiments.reproduce.build import reproduce as build

    job = Job(
        what=what,
        out=out,
        quick=quick,
        graphs=tuple(graphs.split(",")),
        runs=runs,
        first_run=first_run,
        kept=kept,
        competitors=competitors,
        workers=workers,
        minutes=minutes,
    )
    outcome = build(job, output.progress)
    files = [str(path) for path in outcome.files]
    rest = (
        f"{outcome.missing} units of work are missing: give the same command again." if outcome.missing else "Complete."
    )
    output.result(
        {"complete": outcome.missing == 0, "missing_units": outcome.missing, "files": files},
        f"{rest} {len(files)} files in {out}" + (f"; open {files[-1]}." if files else "."),
    )
