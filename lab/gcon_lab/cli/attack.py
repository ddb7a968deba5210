"""`gcon attack`: link attacks on a method or a released model, by the operator who holds the graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gcon.cli import options
from gcon.cli.loading import load_graph
from gcon.cli.options import TableSource
from gcon.cli.output import Output
from gcon.cli.paying import open_payment
from gcon.errors import InputError
from gcon.privacy.gates import diagnose

OPERATOR_ONLY = "For the operator's eyes: measured on private edges, without noise. Do not publish."


@options.verb
def attack(
    output: Output,
    target: Annotated[str, typer.Argument(help="A method (gcon baseline list, or gcon), or a release folder.")],
    *,
    epsilon: Annotated[float | None, typer.Option(help="Privacy budget, for the methods that spend one.")] = None,
    delta: Annotated[float | None, typer.Option(help="By default min(1e-5, 1/(10 n)) for n nodes.")] = None,
    pairs: Annotated[int, typer.Option(help="Linked pairs to guess, and as many unlinked ones.")] = 200,
    canaries: Annotated[int, typer.Option(help="Also train with so many coin-tossed pairs; 0 for none.")] = 0,
    out: Annotated[Path | None, typer.Option(help="A folder for roc.svg and attacks.csv.")] = None,
    where: TableSource,
    config: options.Config = None,
) -> None:
    """Guess who is linked with whom from a model, under every access; what counts is the gain over an edge-free model.

    The edges of SOURCE are opened for this: a diagnostic, recorded in the ledger, for the operator alone. A method is
    trained anew inside it. Examples:

    gcon attack gcn cora-ml --out attacked

    gcon attack moments cora-ml --epsilon 1 --canaries 100
    """
    # The experiments import polars and scikit-learn: only when they are asked for.
    from gcon_lab.experiments.attacks.single_target import check_target, run_attacks

    if pairs < 20 or canaries < 0 or 0 < canaries < 20:
        rule = "must be at least 20, and canaries 0 or at least 20"
        raise InputError("pairs", rule=rule, got=f"{pairs} and {canaries}", fix="Leave them out.")
    if out is not None and any(path.exists() and not path.is_dir() for path in (out, *out.parents)):
        raise InputError("out", rule="must be a folder", got=str(out), fix="Name another one.")
    chosen = check_target(target, epsilon=epsilon, delta=delta, canaries=canaries)
    with output.progress.status("read") as status:
        graph = load_graph(where, known=None if chosen.model is None else chosen.model.feature_columns)
        chosen.check_nodes(graph.nodes)
        found = diagnose(
            lambda opened: run_attacks(
                chosen, graph.nodes, opened, pairs=pairs, canaries=canaries, progress=status.update
            ),
            graph.edges,
            ledger=open_payment(where, output).ledger,
            purpose=f"link attacks on {chosen.name}, for the operator",
        )
    files = [] if out is None else found.write(out, title=f"{chosen.name}: {OPERATOR_ONLY}")
    fields: dict[str, object] = {
        "target": chosen.name,
        "epsilon": None if chosen.epsilon is None else chosen.epsilon,
        "delta": chosen.delta_for(graph.nodes) if chosen.epsilon is not None else None,
        "publishable": False,
        "note": OPERATOR_ONLY,
        "attacks": [vars(row) for row in found.rows],
        "canaries": [vars(row) for row in found.canaries],
        "files": [str(path) for path in files],
    }
    output.result(fields, "\n".join([*found.words(), OPERATOR_ONLY]))
