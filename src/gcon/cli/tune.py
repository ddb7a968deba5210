"""`gcon tune`: choose settings from free information, or pay for it, and say which."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from gcon.choose.expectations import real_range
from gcon.choose.rehearsal import combinations
from gcon.choose.settings import Tuned, check_payment, tune_paid
from gcon.choose.settings import tune as tune_free
from gcon.cli import options
from gcon.cli.checks import check_writable
from gcon.cli.loading import load_graph, load_nodes
from gcon.cli.options import TableSource
from gcon.cli.output import Output
from gcon.cli.paying import finish, open_payment
from gcon.errors import check_number
from gcon.methods.objective import Objective, ObjectiveModel
from gcon.privacy.randomness import SystemRandomness
from gcon.writing import write_whole


@options.verb
def tune(
    output: Output,
    *,
    epsilon: options.Epsilon,
    delta: Annotated[float | None, typer.Option(help="By default min(1e-5, 1/(10 n)) for n nodes.")] = None,
    pay: Annotated[float | None, typer.Option(help="Part of epsilon that buys a choice which only edges make.")] = None,
    out: Annotated[Path | None, typer.Option(help="A new TOML file, for gcon train --config.")] = None,
    draws: Annotated[int, typer.Option(help="Rehearsals of each candidate.")] = 3,
    where: TableSource,
    config: options.Config = None,
) -> None:
    """Choose settings of the paper's method for a budget.

    The default method has no settings to choose and usually reaches more: ask gcon advise what, before tuning anything.

    Free: encoder width, loss and ridge, by training with the real noise on the same nodes without any edge and scoring
    on validation labels; the edges file is not read and need not be named. Paid, with --pay: the inference restart, by
    private selection; training gets the rest.

    Example: gcon tune cora-ml --epsilon 1 --pay 0.1 --out settings.toml
    """
    base = Objective(epsilon=epsilon, delta=delta)
    check_number(
        "draws", draws, allowed=lambda n: 1 <= n <= 1000, rule="must lie in [1, 1000]", fix="3 is usual.", whole=True
    )
    if out is not None:
        check_writable(out, new=True)
    if pay is not None:
        check_payment(base, pay)  # before a ledger is made
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=output.progress) as bar:
        task = bar.add_task("rehearse", total=len(combinations(base)))

        def step(done: str) -> None:
            bar.update(task, advance=1, description=done)

        if pay is None:
            table = load_nodes(where)
            found = tune_free(table, base, randomness=SystemRandomness, draws=draws, step=step)
        else:
            graph, books = load_graph(where), open_payment(where, output)
            found = tune_paid(graph, base, pay=pay, ledger=books, randomness=SystemRandomness, draws=draws, step=step)
            bought = as_options(found.settings)
            del bought["steps"]  # never chosen here
            finish(output, books, bought)
    if out is not None:
        _write_choice(output, out, found)
    fields: dict[str, object] = {
        "about": about(found.settings.epsilon),
        "settings": as_options(found.settings),
        "choices": [asdict(choice) for choice in found.choices],
        "cost": asdict(found.cost),
        "rehearsals": [
            {**as_options(rehearsal.settings), "mean": rehearsal.mean, "scores": list(rehearsal.scores)}
            for rehearsal in found.rehearsals
        ],
        "out": None if out is None else str(out),
    }
    output.result(fields, as_toml(found) + ("" if out is None else f"Written: {out}"))


def _write_choice(output: Output, out: Path, found: Tuned) -> None:
    """Write the file; if the disk refuses, the message holds the choice, which may have been paid for."""
    text = as_toml(found)
    try:
        write_whole(out, text)
    except OSError as error:
        error.filename = str(out)
        output.notes.append(f"The choice is made; save it by hand instead of choosing again:\n{text}")
        raise


def as_options(settings: Objective) -> dict[str, object]:
    """Settings by the long options of `gcon train`."""
    return {
        "method": ObjectiveModel.method,
        "epsilon": settings.epsilon,
        **({} if settings.delta is None else {"delta": settings.delta}),
        "hidden": settings.encoder.hidden or 0,
        "loss": settings.loss,
        "ridge": settings.ridge,
        "restart": settings.schemes.restart,
        "steps": [f"{count:g}" for count in settings.schemes.steps],
        "inference-restart": settings.inference_restart,
    }


def about(epsilon: float) -> list[str]:
    """What is tuned here, and what is reached without tuning."""
    ranges = {access: real_range(epsilon, access) for access in ("cached", "own-edges")}
    published, owners = (f"{100 * least:+.1f} to {100 * most:+.1f}" for least, most in ranges.values())
    return [
        "Settings of the paper's method. The default (gcon train without --method) has none to choose: with own edges at epsilon",
        "1 it was 2 to 10 points ahead of this method's defaults on the paper's four graphs. On all real graphs measured, at",
        f"epsilon {epsilon:.3g}, it gained {published} points over answers without edges where everybody may see the answers,",
        f"and {owners} with own edges. What to expect on this graph: gcon advise.",
    ]


def as_toml(found: Tuned) -> str:
    """A configuration file for `gcon train`, each choice with its reason."""
    reasons = {choice.setting.replace("_", "-"): f"{choice.how}: {choice.why}" for choice in found.choices}
    reasons["epsilon"] = f"what is left after the choice, which cost epsilon {found.cost.epsilon:g}"
    lines = [f"# {line}" for line in about(found.settings.epsilon)]
    for name, value in as_options(found.settings).items():
        shown = f'"{value}"' if isinstance(value, str) else str(value).replace("'", '"')
        lines.append(f"{name} = {shown}" + (f"  # {reasons[name]}" if name in reasons else ""))
    return "\n".join(lines) + "\n"
