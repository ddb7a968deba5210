"""`gcon predict`: labels and probabilities for every node of a graph, under a named access."""

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
    Split,
    load_features,
    open_ledger,
)
from gcon.errors import AccessRefusedError
from gcon.predict.no_edges import predict_without_edges
from gcon.predict.own_edges import predict_from_own_edges
from gcon.predict.prediction_files import write_predictions
from gcon.predict.predictions import checked_access
from gcon.release.read import load_release


def predict(
    model: Annotated[Path, typer.Argument(help="A release folder.")],
    source: Source = None,
    *,
    out: Annotated[
        Path, typer.Option(help="CSV, TSV or Parquet to write: id, label, a probability a class, audience.")
    ],
    access: Annotated[
        str, typer.Option(help="none: no edge is read. own-edges: each node from its own edges.")
    ] = "none",
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
    """Predict labels. With own-edges every row is for its owner only, says so, and the delivery is recorded.

    Example: gcon predict model cora-ml --out labels.csv
    """
    with Output(as_json=json, quiet=quiet).reporting() as output:
        kind = checked_access(access)
        if kind == "public-graph":
            raise AccessRefusedError(
                "access='public-graph' is for graphs whose edges are public; a SOURCE holds private edges. In Python: "
                "gcon.public_graph."
            )
        released = load_release(model)
        with output.progress.status("read"):
            loaded = load_features(
                source,
                edges=edges,
                nodes=nodes,
                features=features,
                ignore_columns=ignore_column,
                header=not no_header,
                split=split,
                read_edges_too=kind == "own-edges",
            )
        if kind == "own-edges" and loaded.edges is not None:
            books = open_ledger(loaded, ledger)
            found = predict_from_own_edges(released, loaded.features, loaded.edges, ledger=books)
        else:
            found = predict_without_edges(released, loaded.features)
        write_predictions(out, loaded.ids, found)
        fields: dict[str, object] = {
            "out": str(out),
            "access": found.access,
            "promise": found.promise,
            "publishable": found.publishable,
            "nodes": len(found.classes),
        }
        output.result(fields, f"{found.promise}\nWritten: {out}")
