"""`gcon evaluate`: scores on the test nodes, for the operator or, paid for, for everybody."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from torch import Tensor

from gcon.choose.paid_accuracy import paid_accuracy, paid_noise
from gcon.cli import options
from gcon.cli.loading import load_graph, load_nodes, public_files, tell_of_cached
from gcon.cli.options import PredictionSource
from gcon.cli.output import Output
from gcon.cli.paying import finish, open_payment
from gcon.errors import InputError
from gcon.files.tables import read_nodes, read_public_edges
from gcon.methods.accuracy import beyond, check_scored
from gcon.methods.model import Model
from gcon.methods.no_edges import predict_without_edges
from gcon.methods.own_edges import own_edge_answers
from gcon.methods.predictions import ANY_MODEL, Access, checked_access, promise_under, why_no_promise
from gcon.methods.public_graph import predict_on_public_graph, refuse_training_nodes
from gcon.methods.scores import Scores, score
from gcon.nodes import PublicNodes
from gcon.privacy.gates import diagnose
from gcon.privacy.randomness import SystemRandomness
from gcon.release.read import load_release

FURTHER = {
    "macro_f1": "macro-F1",
    "balanced_accuracy": "balanced accuracy",
    "log_loss": "log loss",
    "expected_calibration_error": "calibration error",
}
OPERATOR_ONLY = "For the operator's eyes: measured with private edges, without noise. Do not publish."


@options.verb
def evaluate(
    output: Output,
    model: Annotated[Path, typer.Argument(help="A release folder.")],
    *,
    access: Annotated[str, typer.Option(help="none, cached, own-edges, or public-graph with --public-edges.")] = "none",
    paid: Annotated[
        float | None,
        typer.Option(help="Epsilon for a noisy count that may be published; its noise is about 3 answers / EPSILON."),
    ] = None,
    where: PredictionSource,
    config: options.Config = None,
) -> None:
    """Scores on the test nodes: micro-F1, and more by class and for the probabilities.

    With own-edges they are diagnostics: recorded, and not for publication, unless --paid EPSILON buys a noisy count.
    Example: gcon evaluate model cora-ml --access own-edges
    """
    checked_access(access, ANY_MODEL)
    asked = access == "public-graph" or where.public_edges is not None
    public = public_files(access, where) if asked else None
    if paid is not None and access != "own-edges":
        raise InputError(
            "paid", rule="goes with --access own-edges", got=access, fix="Without private edges nothing is to be paid."
        )
    released = load_release(model)
    kind = checked_access(access, released.accesses)
    if public is not None:
        found, mask = _on_public_graph(released, *public, where)
        output.result(*_told(released, asdict(found), kind, mask, publishable=True, words=released.access_words[kind]))
        return
    if kind in ("none", "cached"):
        table = load_nodes(where, known=released.feature_columns)
        mask = table.test_mask
        _refuse_taught(released, table)
        found = score(
            predict_without_edges(released, table.features, access=kind), _in_model_order(table, released), mask
        )
        words = "No edge was read: this may be published."
        if kind == "none":
            tell_of_cached(output, released, table.features)
        output.result(*_told(released, asdict(found), kind, mask, publishable=True, words=words))
        return
    if where.nodes is not None and where.edges is None:
        raise InputError("--edges", rule="is needed for own-edges", got="nothing", fix="Pass the edges file.")
    graph = load_graph(where, known=released.feature_columns)
    mask = graph.nodes.test_mask
    check_scored(mask)  # public, so found out before a ledger is made and edges are opened
    _refuse_taught(released, graph.nodes)
    released.encoder.check(graph.nodes.features)
    labels = _in_model_order(graph.nodes, released)
    if paid is not None:  # said before it is paid
        noise = f"a standard deviation of {paid_noise(paid, int(mask.sum())):.2g} on {int(mask.sum())} nodes"
        output.progress.print(f"Epsilon {paid:g} buys a share with noise: {noise}.", highlight=False, soft_wrap=True)
    books = open_payment(where, output)
    if paid is not None:
        bought = paid_accuracy(
            released,
            graph.nodes.features,
            labels,
            mask,
            graph.edges,
            epsilon=paid,
            ledger=books,
            randomness=SystemRandomness(),
        )
        words = f"Paid with epsilon {paid:g}: this may be published. Noise: {bought.standard_deviation:.4f}."
        count = {"micro_f1": bought.micro_f1, "standard_deviation": bought.standard_deviation, "epsilon": paid}
        # By its time of release a report knows that the number is about its model.
        finish(output, books, {**count, "nodes": bought.num_nodes, "model": released.receipt.time})
        output.result(*_told(released, count, kind, mask, publishable=True, words=words))
    else:
        answer = own_edge_answers(released, graph.nodes.features)
        found = diagnose(
            lambda opened: score(answer(opened), labels, mask),
            graph.edges,
            ledger=books,
            purpose="accuracy with own edges, for the operator",
        )
        finish(output, books)
        output.result(*_told(released, asdict(found), kind, mask, publishable=False, words=OPERATOR_ONLY))


def _on_public_graph(model: Model, nodes: Path, edges: Path, where: PredictionSource) -> tuple[Scores, Tensor]:
    """Scores over edges that the caller declares public, and the nodes that they are about."""
    table = read_nodes(nodes, features_path=where.features, feature_columns=model.feature_columns)
    refuse_training_nodes(model, table.nodes.features)
    bare = read_public_edges(edges, ids=table.ids, **where.columns())
    found = predict_on_public_graph(model, table.nodes.features, bare)
    return score(found, _in_model_order(table.nodes, model), table.nodes.test_mask), table.nodes.test_mask


def _refuse_taught(model: Model, nodes: PublicNodes) -> None:
    """An accuracy on nodes whose labels the model learned would be far too good."""
    if taught := model.taught(nodes, nodes.test_mask):
        rule = "must mark as 'test' only nodes that the training left out"
        got = f"{taught} of {int(nodes.test_mask.sum())} test nodes that taught this model"
        raise InputError("split", rule=rule, got=got, fix="Train with this split column, or mark other nodes.")


def _told(
    model: Model, scores: dict[str, Any], kind: Access, mask: Tensor, *, publishable: bool, words: str
) -> tuple[dict[str, object], str]:
    """The scores as fields and in words, with who may see them: nobody else where the model itself promises nothing."""
    reason = why_no_promise(model.receipt)
    if reason is not None:
        publishable, words = False, promise_under(kind, reason)
    nodes = int(mask.sum())
    fields = {"access": kind, "nodes": nodes, "publishable": publishable, **scores, "note": words}
    share = scores["micro_f1"]
    noise = f" ({beyond(share)})" if beyond(share) else ""
    lines = [f"micro-F1 {share:.4f}{noise} on {nodes} nodes ({kind})"]
    more = [f"{title} {scores[name]:.4f}" for name, title in FURTHER.items() if name in scores]
    return fields, "\n".join([*lines, *([", ".join(more)] if more else []), words])


def _in_model_order(nodes: PublicNodes, model: Model) -> Tensor:
    """The nodes' labels as the model numbers its classes, by name; a class that the model does not know is -1."""
    places = {name: place for place, name in enumerate(model.class_names)}
    known = [places.get(name, -1) for name in nodes.class_names]
    return torch.tensor([*known, -1])[nodes.labels]  # label -1, unknown, is the last entry
