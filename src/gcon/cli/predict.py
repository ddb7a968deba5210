"""`gcon predict`: labels and probabilities for every node of a graph, under a named access."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from gcon.cli import options
from gcon.cli.output import Output
from gcon.cli.source import (
    EdgeFormat,
    Edges,
    Features,
    IgnoreColumn,
    LedgerPath,
    Nodes,
    NoHeader,
    PublicEdges,
    Source,
    SourceColumn,
    Split,
    TargetColumn,
    load_features,
    open_ledger,
    public_files,
)
from gcon.interop.tables import read_node_features, read_public_edges
from gcon.interop.write_files import checked_target
from gcon.predict.no_edges import predict_without_edges
from gcon.predict.own_edges import predict_from_own_edges
from gcon.predict.prediction_files import write_predictions
from gcon.predict.predictions import ANY_MODEL, checked_access
from gcon.predict.public_graph import predict_on_public_graph, refuse_training_nodes
from gcon.release.read import load_release


def predict(
    model: Annotated[Path, typer.Argument(help="A release folder.")],
    source: Source = None,
    *,
    out: Annotated[
        Path, typer.Option(help="CSV, TSV or Parquet to write: id, label, a probability a class, audience.")
    ],
    access: Annotated[
        str,
        typer.Option(
            help="none: no edge is read. cached: neither; released sums of the training nodes are used. own-edges: "
            "each node from its own edges. public-graph: --public-edges."
        ),
    ] = "none",
    edges: Edges = None,
    nodes: Nodes = None,
    public_edges: PublicEdges = None,
    features: Features = None,
    source_column: SourceColumn = "source",
    target_column: TargetColumn = "target",
    ignore_column: IgnoreColumn = [],  # noqa: B006
    no_header: NoHeader = False,
    split: Split = 0,
    ledger: LedgerPath = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    config: options.Config = None,
) -> None:
    """Predict labels. With own-edges every row is for its owner only, says so, and the delivery is recorded.

    With public-graph all edges of --public-edges are read, which declares them public; nothing is charged or recorded.
    Example: gcon predict model cora-ml --out labels.csv
    """
    with Output(as_json=json, quiet=quiet).reporting() as output:
        checked_access(access, ANY_MODEL)
        checked_target(out, "out")
        public = public_files(access, source=source, edges=edges, nodes=nodes, public_edges=public_edges)
        edge_format = EdgeFormat(
            source_column=source_column,
            target_column=target_column,
            header=not no_header,
            ignore_columns=ignore_column,
        )
        released = load_release(model)
        kind = checked_access(access, released.accesses)
        ids: Sequence[object]
        if public is not None:
            with output.progress.status("read"):
                known, matrix = read_node_features(public[0], features_path=features)
                refuse_training_nodes(released, matrix)
                bare = read_public_edges(public[1], ids=known, **vars(edge_format))
            ids, found = known.tolist(), predict_on_public_graph(released, matrix, bare)
        else:
            with output.progress.status("read"):
                loaded = load_features(
                    source,
                    edges=edges,
                    nodes=nodes,
                    features=features,
                    split=split,
                    read_edges_too=kind == "own-edges",
                    **vars(edge_format),
                )
            ids = loaded.ids
            if kind == "own-edges" and loaded.edges is not None:
                released.encoder.check(loaded.features)  # before a ledger is made
                books = open_ledger(loaded, ledger)
                found = predict_from_own_edges(released, loaded.features, loaded.edges, ledger=books)
            else:
                found = predict_without_edges(released, loaded.features, access=kind)
        write_predictions(out, ids, found)
        fields: dict[str, object] = {
            "out": str(out),
            "access": found.access,
            "promise": found.promise,
            "publishable": found.publishable,
            "nodes": len(found.classes),
        }
        output.result(fields, f"{found.promise}\nWritten: {out}")
