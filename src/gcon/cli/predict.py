"""`gcon predict`: labels and probabilities for every node of a graph, under a named access."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from gcon.cli import options
from gcon.cli.checks import check_replaceable
from gcon.cli.loading import load_features, public_files, tell_of_cached
from gcon.cli.options import PredictionSource
from gcon.cli.output import Output
from gcon.cli.paying import finish, open_payment
from gcon.files.tables import read_node_features, read_public_edges
from gcon.files.write_files import checked_target
from gcon.machine import chosen_device
from gcon.methods.no_edges import batches_without_edges
from gcon.methods.own_edges import deliver_from_own_edges
from gcon.methods.predictions import ANY_MODEL, Predictions, audience_of, checked_access, promise_under, why_no_promise
from gcon.methods.public_graph import predict_on_public_graph, refuse_training_nodes
from gcon.nodes import BATCH_ROWS
from gcon.release.prediction_files import Ids, prediction_writer
from gcon.release.read import load_release


@options.verb
def predict(
    output: Output,
    model: Annotated[Path, typer.Argument(help="A release folder.")],
    *,
    out: Annotated[
        Path, typer.Option(help="CSV, TSV or Parquet to write: id, label, a probability a class, audience.")
    ],
    access: Annotated[
        str,
        typer.Option(
            help="none: no edge is read. cached: neither; what was released of nodes of the training table, with noise, "
            "is used. own-edges: each node from its own edges. public-graph: --public-edges."
        ),
    ] = "none",
    where: PredictionSource,
    device: Annotated[
        str, typer.Option(help="Where to compute: cpu, cuda, cuda:NUMBER, or auto (a GPU if there is one).")
    ] = "cpu",
    overwrite: options.Overwrite = False,
    config: options.Config = None,
) -> None:
    """Predict labels. With own-edges every row is for its owner only, says so, and the delivery is recorded.

    With public-graph all edges of --public-edges are read, which declares them public; nothing is charged or recorded.
    Example: gcon predict model cora-ml --out labels.csv
    """
    checked_access(access, ANY_MODEL)
    checked_target(out, "out")
    inputs = where.edges, where.nodes, where.features, where.ledger, where.public_edges
    check_replaceable(out, overwrite=overwrite, inputs=inputs)
    asked = access == "public-graph" or where.public_edges is not None
    public = public_files(access, where) if asked else None
    place = chosen_device(device)
    released = load_release(model)
    kind = checked_access(access, released.accesses)
    no_promise = why_no_promise(released.receipt)
    publishable = audience_of(kind, no_promise) == "public"
    with output.progress.status("read"):
        if public is not None:
            ids: Ids
            ids, matrix = read_node_features(
                public[0], features_path=where.features, feature_columns=released.feature_columns
            )
            refuse_training_nodes(released, matrix)
            bare = read_public_edges(public[1], ids=ids, **where.columns())
        else:
            own = kind == "own-edges"
            ids, matrix, edges = load_features(where, read_edges_too=own, known=released.feature_columns)
    with prediction_writer(out, ids, owner_only=not publishable) as write, ExitStack() as until:
        show = until.enter_context(_shown(output, len(matrix), write)) if len(matrix) > BATCH_ROWS else write
        if public is not None:
            show(predict_on_public_graph(released, matrix, bare, device=place))
        elif kind == "own-edges" and edges is not None:
            released.encoder.check(matrix)  # before a ledger is made
            books = open_payment(where, output)
            deliver_from_own_edges(released, matrix, edges, show, ledger=books, device=place)
        else:
            for batch in batches_without_edges(released, matrix, access=kind, device=place):
                show(batch)
    if kind == "own-edges":
        finish(output, books)
    if kind == "none":
        tell_of_cached(output, released, matrix)
    promise = promise_under(kind, no_promise, released.access_words[kind])
    fields: dict[str, object] = {
        "out": str(out),
        "access": kind,
        "promise": promise,
        "publishable": publishable,
        "nodes": len(matrix),
    }
    output.result(fields, f"{promise}\nWritten: {out}")


@contextmanager
def _shown(output: Output, total: int, write: Callable[[Predictions], None]) -> Iterator[Callable[[Predictions], None]]:
    """The same function, which moves a bar."""
    columns = (TextColumn("predict"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = output.progress
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("predict", total=total)

        def show(predictions: Predictions) -> None:
            write(predictions)
            bar.advance(task, len(predictions.classes))

        yield show
