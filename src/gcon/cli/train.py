"""`gcon train`: train on private edges and write a release folder."""

from __future__ import annotations

import math
import os
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from gcon.cli import options
from gcon.cli.loading import load_training
from gcon.cli.options import PaperOptions, TrainingSource, paper_option
from gcon.cli.output import Output
from gcon.cli.paying import finish, open_payment
from gcon.errors import InputError, PrivateComputationError
from gcon.files.tables import warn_of_parts
from gcon.learn.perceptron import EncoderSettings
from gcon.learn.sample import with_validation
from gcon.machine import threads_for
from gcon.methods.model import ReleasingMethod
from gcon.methods.moments import Moments
from gcon.methods.objective import Objective
from gcon.nodes import warn_of_scales
from gcon.privacy.randomness import randomness_from
from gcon.release.store import hold_room
from gcon.writing import work_folder


@dataclass(frozen=True, kw_only=True)
class PaperTraining(PaperOptions):
    """The options of the paper's method."""

    hidden: Annotated[int | None, paper_option("Width of the encoder; 0 takes the features as embeddings; 16.")] = None
    expand: Annotated[str | None, paper_option("Nodes in the loss: all (with pseudo-labels) or labelled.")] = None
    inference_restart: Annotated[float | None, paper_option("Weight of own features at own-edges inference; 0.3.")] = (
        None
    )
    centre: Annotated[bool | None, paper_option("Centre encoded features before scaling them; yes.")] = None


@options.verb
def train(
    output: Output,
    *,
    epsilon: options.Epsilon,
    out: Annotated[Path, typer.Option(help="The release folder to write; it must not exist yet.")],
    delta: Annotated[float | None, typer.Option(help="By default min(1e-5, 1/(10 n)) for n nodes.")] = None,
    protect_edges: options.ProtectEdges = 1,
    where: TrainingSource,
    name: Annotated[
        str | None,
        typer.Option(
            help="What to call the data set: kept in its ledger, and shown wherever the model is.",
            show_default="the name of the edges file",
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="moments: noisy edge moments, nothing to tune. paper: objective perturbation (GCON).",
            show_default=Moments.name,
        ),
    ] = None,
    mechanism: Annotated[str | None, typer.Option(hidden=True, help="The old name of --method.")] = None,
    class_share: Annotated[
        list[str] | None,
        typer.Option(
            help="How common a class is among all nodes, NAME=SHARE; repeat for every class. Rough public knowledge is worth "
            "points where no nodes are marked val."
        ),
    ] = None,
    papers: PaperTraining,
    device: Annotated[str, typer.Option(help="auto (a GPU if there is one), cpu, cuda, or cuda:NUMBER.")] = "auto",
    seed: Annotated[int | None, typer.Option(help="For experiments only: the model then carries no promise.")] = None,
    config: options.Config = None,
) -> None:
    """Train privately and write the model with its promise.

    The ledger is charged before anything is computed from the edges. Example:

    gcon train cora-ml --epsilon 1 --out model
    """
    on_cluster = where.scheduler is not None or where.workers is not None
    if on_cluster:
        if device not in ("auto", "cpu"):
            rule = "must be cpu with --scheduler or --workers: workers use their processors"
            raise InputError("device", rule=rule, got=repr(device), fix="Leave it out.")
        device = "cpu"
    if mechanism is not None:  # what the option, and its key in a configuration file, was called for a while
        output.remark("--mechanism is now called --method; the old name will go with the next release.")
        if method not in (None, mechanism):
            raise InputError("--mechanism", rule="is the old name of --method", got="both", fix="Leave it out.")
        method = mechanism
    chosen = Moments.name if method is None else method
    given = papers.given(chosen, protect_edges=protect_edges)
    training: ReleasingMethod
    shares = _class_shares(class_share or [])
    if chosen == Moments.name:
        training = Moments(
            epsilon=epsilon, delta=delta, device=device, protect_edges=protect_edges, class_shares=shares
        )
    elif shares is not None:
        fix = "Leave it out, or leave --method out."
        raise InputError("--class-share", rule="is an option of the default", got=f"--method {chosen}", fix=fix)
    else:
        training = _papers_method(given, epsilon=epsilon, delta=delta, device=device)
    if os.path.lexists(out):
        raise InputError("out", rule="must not exist yet", got=str(out), fix="Choose another name.")
    randomness = randomness_from(seed)
    with output.progress.status("read") as status, ExitStack() as until:
        # Where nothing can be written, and of two trainings into one place, one is refused now.
        claim = until.enter_context(work_folder(out.absolute()))
        graph = load_training(where, until=until)
        warn_of_scales(graph.nodes)
        if not bool((graph.nodes.validation_mask | graph.nodes.test_mask).any()):
            warn_of_parts(graph.nodes)
        if not bool(graph.nodes.validation_mask.any()):  # said while it can still be changed
            judged = with_validation(graph.nodes) if chosen == Moments.name else graph.nodes
            teach, judges = int(judged.train_mask.sum()), int(judged.validation_mask.sum())
            more = "."
            if judges:
                more = f", and {judges} are set aside to choose by; mark some 'val' to say which."
            elif chosen == Moments.name and shares is None:
                more = (
                    ", and nothing says how common classes are: where that is public, --class-share NAME=SHARE helps."
                )
            output.remark(f"No node is marked 'val': {teach} labelled nodes teach{more}")
        books = open_payment(where, output, near=out.absolute().parent, name=name)
        num_nodes, num_features = graph.nodes.features.shape
        room = hold_room(claim, num_nodes=num_nodes, num_features=num_features, num_classes=graph.nodes.num_classes)
        until.enter_context(threads_for(num_nodes, num_features))
        try:
            trained = training.train(
                graph.nodes, graph.edges, ledger=books, randomness=randomness, progress=status.update
            )
        except PrivateComputationError:
            if on_cluster:  # said whatever it was
                output.notes.append(
                    "Look whether the cluster's scheduler and workers are still there: if they were lost, that is why, "
                    "and another training is another charge."
                )
            raise
        status.update("write")
        model = replace(trained, feature_columns=graph.nodes.feature_columns)
        room.unlink(missing_ok=True)
        finish(output, books, release=(model, out))
    statement = model.statement()
    fields: dict[str, object] = {"out": str(out), "statement": statement.fields, "sentences": list(statement.sentences)}
    output.result(fields, "\n".join([*statement.sentences, f"Written: {out}"]))


def _class_shares(given: list[str]) -> dict[str, float] | None:
    """Of every NAME=SHARE; None if there is none."""
    found: dict[str, float] = {}
    for each in given:
        name, _, share = each.rpartition("=")
        try:
            number = float(share)
        except ValueError:
            number = math.nan
        if not name or name in found or not 0 < number < 1:
            rule = "must be NAME=SHARE with a share between 0 and 1, once for every class"
            raise InputError("--class-share", rule=rule, got=repr(each), fix="For example --class-share member=0.7.")
        found[name] = number
    return found or None


def _papers_method(given: dict[str, Any], **budget_and_device: Any) -> Objective:
    """The paper's method with the options that were given; those of the encoder are a record of its own."""
    encoder = {name: given.pop(name) for name in ("hidden", "centre") if name in given}
    if "hidden" in encoder:
        encoder["hidden"] = encoder["hidden"] or None
    return Objective(encoder=EncoderSettings(**encoder), **budget_and_device, **given)
