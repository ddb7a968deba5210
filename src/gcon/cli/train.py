"""`gcon train`: train on private edges and write a release folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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
    load_source,
    open_ledger,
)
from gcon.cli.targets import check_new_file
from gcon.encode.mlp import EncoderSettings
from gcon.errors import InputError
from gcon.pipeline import Settings
from gcon.pipeline import train as train_model
from gcon.privacy.randomness import randomness_from
from gcon.propagate.schemes import Schemes
from gcon.release.store import save_release


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
    mechanism: Annotated[str, typer.Option(help="paper: the paper's objective perturbation.")] = "paper",
    restart: options.Restart = 0.8,
    steps: options.Steps = ["2"],  # noqa: B006
    loss: options.Loss = "soft-margin",
    ridge: options.Ridge = 1.0,
    noise_share: options.NoiseShare = 0.9,
    influence: options.Influence = "auto",
    hidden: Annotated[int, typer.Option(help="Width of the encoder; 0 takes the features as embeddings.")] = 16,
    expand: Annotated[str, typer.Option(help="Nodes in the loss: all (with pseudo-labels) or labelled.")] = "all",
    inference_restart: Annotated[float, typer.Option(help="Weight of own features at own-edges inference.")] = 0.3,
    centre: Annotated[bool, typer.Option(help="Centre encoded features before scaling them.")] = True,
    device: Annotated[str, typer.Option(help="auto (a GPU if there is one), cpu, cuda, or cuda:NUMBER.")] = "auto",
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
        if mechanism != "paper":
            raise InputError("mechanism", rule="must be 'paper'", got=repr(mechanism), fix="More are to come.")
        settings = Settings(
            epsilon=epsilon,
            delta=delta,
            encoder=EncoderSettings(hidden=hidden or None, centre=centre),
            schemes=Schemes(restart=restart, steps=options.parsed_steps(steps)),
            influence=options.as_bound(influence),
            expand=expand,  # type: ignore[arg-type]  # checked by Settings
            loss=loss,
            ridge=ridge,
            noise_share=noise_share,
            inference_restart=inference_restart,
            device=device,
        )
        check_new_file(out)
        randomness = randomness_from(seed)
        with output.progress.status("read") as status:
            loaded = load_source(
                source,
                edges=edges,
                nodes=nodes,
                features=features,
                source_column=source_column,
                target_column=target_column,
                header=not no_header,
                ignore_columns=ignore_column,
                split=split,
            )
            books = open_ledger(loaded, ledger)
            model = train_model(
                loaded.graph,
                settings,
                ledger=books,
                randomness=randomness,
                progress=status.update,
            )
            status.update("write")
            save_release(model, out)
        statement = model.statement()
        fields: dict[str, object] = {
            "out": str(out),
            "statement": statement.fields,
            "sentences": list(statement.sentences),
        }
        output.result(fields, f"{statement}\nWritten: {out}")
