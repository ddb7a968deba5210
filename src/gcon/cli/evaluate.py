"""`gcon evaluate`: scores on the test nodes, for the operator or, paid for, for everybody."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer
from torch import Tensor

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
    Split,
    load_source,
    open_ledger,
)
from gcon.errors import AccessRefusedError, InputError
from gcon.evaluate.accuracy import micro_f1
from gcon.evaluate.paid import paid_accuracy
from gcon.graphs.nodes import PublicNodes
from gcon.predict.no_edges import predict_without_edges
from gcon.predict.own_edges import own_edge_predictions
from gcon.predict.predictions import checked_access
from gcon.privacy.randomness import SystemRandomness
from gcon.release.gate import diagnose
from gcon.release.model import ReleasedModel
from gcon.release.read import load_release

OPERATOR_ONLY = "For the operator's eyes: measured with private edges, without noise. Do not publish."


def evaluate(
    model: Annotated[Path, typer.Argument(help="A release folder.")],
    source: Source = None,
    *,
    access: Annotated[str, typer.Option(help="none, or own-edges.")] = "none",
    paid: Annotated[float | None, typer.Option(help="Epsilon for a noisy count that may be published.")] = None,
    edges: Edges = None,
    nodes: Nodes = None,
    features: Features = None,
    ignore_column: IgnoreColumn = [],  # noqa: B006
    no_header: NoHeader = False,
    split: Split = 0,
    ledger: LedgerPath = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    config: options.Config = None,
) -> None:
    """Micro-F1 on the test nodes.

    With own-edges it is a diagnostic: recorded, and not for publication, unless --paid EPSILON buys a noisy count.
    Example: gcon evaluate model cora-ml --access own-edges
    """
    with Output(as_json=json, quiet=quiet).reporting() as output:
        kind = checked_access(access)
        if kind == "public-graph":
            raise AccessRefusedError("access='public-graph' is for graphs whose edges are public; a SOURCE is private.")
        if paid is not None and kind != "own-edges":
            raise InputError(
                "paid", rule="goes with --access own-edges", got=kind, fix="Without edges nothing is to be paid."
            )
        released = load_release(model)
        loaded = load_source(
            source,
            edges=edges,
            nodes=nodes,
            features=features,
            ignore_columns=ignore_column,
            header=not no_header,
            split=split,
        )
        graph, mask = loaded.graph, loaded.graph.nodes.test_mask
        labels = _in_model_order(graph.nodes, released)
        fields: dict[str, object] = {"access": kind, "nodes": int(mask.sum()), "publishable": kind == "none"}
        words = "No edge was read: this may be published."
        if kind == "none":
            fields["micro_f1"] = micro_f1(predict_without_edges(released, graph.nodes.features).classes, labels, mask)
        elif paid is not None:
            found = paid_accuracy(
                released,
                graph.nodes.features,
                labels,
                mask,
                graph.edges,
                epsilon=paid,
                ledger=open_ledger(loaded, ledger),
                randomness=SystemRandomness(),
            )
            words = f"Paid with epsilon {paid:g}: this may be published. Noise: {found.standard_deviation:.4f}."
            fields |= {
                "micro_f1": found.micro_f1,
                "standard_deviation": found.standard_deviation,
                "epsilon": paid,
                "publishable": True,
            }
        else:
            encoded = released.encoder.encode(graph.nodes.features)
            fields["micro_f1"] = diagnose(
                lambda opened: micro_f1(own_edge_predictions(released, encoded, opened).classes, labels, mask),
                graph.edges,
                ledger=open_ledger(loaded, ledger),
                purpose="accuracy with own edges, for the operator",
            )
            words = OPERATOR_ONLY
        fields["note"] = words
        output.result(fields, f"micro-F1 {fields['micro_f1']:.4f} on {fields['nodes']} nodes ({kind})\n{words}")


def _in_model_order(nodes: PublicNodes, model: ReleasedModel) -> Tensor:
    """The nodes' labels as the model numbers its classes, by name; a class that the model does not know is -1."""
    places = {name: place for place, name in enumerate(model.settings.class_names)}
    known = [places.get(name, -1) for name in nodes.class_names]
    return torch.tensor([*known, -1])[nodes.labels]  # label -1, unknown, is the last entry
