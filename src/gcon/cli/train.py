"""`gcon train`: train on private edges and write a release folder."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from gcon.cli import options
from gcon.cli.output import Output
from gcon.cli.source import (
    Edges,
    Features,
    IgnoreColumn,
    LedgerPath,
    Nodes,
    NoHeader,
    Source,
    SourceColumn,
    Split,
    TargetColumn,
    open_ledger,
)
from gcon.cli.targets import check_new_file
from gcon.cli.training_source import DEFAULT_BUFFER, Buffer, Scheduler, Workers, load_training
from gcon.edges.schemes import Schemes
from gcon.errors import InputError
from gcon.learn.perceptron import EncoderSettings
from gcon.methods.moments import Moments
from gcon.methods.objective import Objective
from gcon.privacy.randomness import randomness_from
from gcon.release.store import save_release


def _paper(words: str) -> Any:
    """An option of the paper's mechanism; None, the default, leaves it to the library."""
    return typer.Option(help=words, rich_help_panel="With --mechanism paper", show_default=False)


def train(
    source: Source = None,
    *,
    epsilon: options.Epsilon,
    out: Annotated[Path, typer.Option(help="The release folder to write; it must not exist yet.")],
    delta: Annotated[float | None, typer.Option(help="By default min(1e-5, 1/(10 n)) for n nodes.")] = None,
    edges: Edges = None,
    nodes: Nodes = None,
    features: Features = None,
    source_column: SourceColumn = "source",
    target_column: TargetColumn = "target",
    ignore_column: IgnoreColumn = [],  # noqa: B006
    no_header: NoHeader = False,
    split: Split = 0,
    ledger: LedgerPath = None,
    mechanism: Annotated[
        str, typer.Option(help="moments: noisy edge moments, nothing to tune. paper: objective perturbation (GCON).")
    ] = "moments",
    restart: Annotated[float | None, _paper("Weight of a node's own features in every step, in [0, 1]; 0.8.")] = None,
    steps: Annotated[list[str], _paper("How far features travel; repeat for several, 'inf' for the limit; 2.")] = [],  # noqa: B006
    loss: Annotated[str | None, _paper("soft-margin, or pseudo-huber:WEIGHT.")] = None,
    ridge: Annotated[float | None, _paper("Regularisation; the proof may raise it; 1.")] = None,
    noise_share: Annotated[
        float | None, _paper("Least share of epsilon that goes to the noise, in (0, 1); 0.9.")
    ] = None,
    influence: Annotated[str | None, _paper("Bound on an edge's influence: auto, paper, simple or sharp.")] = None,
    hidden: Annotated[int | None, _paper("Width of the encoder; 0 takes the features as embeddings; 16.")] = None,
    expand: Annotated[str | None, _paper("Nodes in the loss: all (with pseudo-labels) or labelled.")] = None,
    inference_restart: Annotated[float | None, _paper("Weight of own features at own-edges inference; 0.3.")] = None,
    centre: Annotated[bool | None, _paper("Centre encoded features before scaling them; yes.")] = None,
    device: Annotated[str, typer.Option(help="auto (a GPU if there is one), cpu, cuda, or cuda:NUMBER.")] = "auto",
    buffer: Buffer = DEFAULT_BUFFER,
    scheduler: Scheduler = None,
    workers: Workers = None,
    seed: Annotated[int | None, typer.Option(help="For experiments only: the model then carries no promise.")] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    config: options.Config = None,
) -> None:
    """Train privately and write the model with its promise.

    The ledger is charged before anything is computed from the edges. Example:

    gcon train cora-ml --epsilon 1 --out model
    """
    with Output(as_json=json, quiet=quiet).reporting() as output:
        given = {
            "restart": restart,
            "steps": steps or None,
            "loss": loss,
            "ridge": ridge,
            "noise_share": noise_share,
            "influence": influence,
            "hidden": hidden,
            "expand": expand,
            "inference_restart": inference_restart,
            "centre": centre,
        }
        if scheduler is not None or workers is not None:
            if device not in ("auto", "cpu"):
                rule = "must be cpu with --scheduler or --workers: workers use their processors"
                raise InputError("device", rule=rule, got=repr(device), fix="Leave it out.")
            device = "cpu"
        method = _method(
            mechanism,
            epsilon=epsilon,
            delta=delta,
            device=device,
            given={name: value for name, value in given.items() if value is not None},
        )
        check_new_file(out)
        randomness = randomness_from(seed)
        with output.progress.status("read") as status, ExitStack() as until:
            loaded = load_training(
                source,
                edges=edges,
                nodes=nodes,
                features=features,
                source_column=source_column,
                target_column=target_column,
                header=not no_header,
                ignore_columns=ignore_column,
                split=split,
                buffer=buffer,
                scheduler=scheduler,
                workers=workers,
                until=until,
            )
            books = open_ledger(loaded, ledger)
            nodes_and_edges = loaded.graph.nodes, loaded.graph.edges
            model = method.train(*nodes_and_edges, ledger=books, randomness=randomness, progress=status.update)
            status.update("write")
            save_release(model, out)
        statement = model.statement()
        fields: dict[str, object] = {
            "out": str(out),
            "statement": statement.fields,
            "sentences": list(statement.sentences),
        }
        output.result(fields, f"{statement}\nWritten: {out}")


def _method(
    mechanism: str, *, epsilon: float, delta: float | None, device: str, given: Mapping[str, Any]
) -> Moments | Objective:
    """How to train: all settings are checked here, before anything is read.

    `given` holds the options of the paper's mechanism that the user gave.
    """
    if mechanism == Moments.name:
        if given:
            name = next(iter(given))
            rule = "is an option of the paper's mechanism"
            raise InputError(
                name.replace("_", "-"),
                rule=rule,
                got="--mechanism moments",
                fix="Add --mechanism paper, or leave it out.",
            )
        return Moments(epsilon=epsilon, delta=delta, device=device)
    if mechanism != Objective.name:
        rule = f"must be '{Moments.name}' or '{Objective.name}'"
        raise InputError("mechanism", rule=rule, got=repr(mechanism), fix="Leave it out for the default.")
    others = dict(given)
    encoder = {name: others.pop(name) for name in ("hidden", "centre") if name in others}
    if "hidden" in encoder:
        encoder["hidden"] = encoder["hidden"] or None
    schemes = Schemes(restart=others.pop("restart", 0.8), steps=options.parsed_steps(others.pop("steps", ["2"])))
    others |= {"encoder": EncoderSettings(**encoder), "schemes": schemes, "device": device}
    return Objective(epsilon=epsilon, delta=delta, **others)
