"""`gcon demo`: train at several budgets on a made-up graph, beside the controls that cost nothing, and write a report."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from torch import Tensor

from gcon.cli import options
from gcon.cli.checks import check_writable
from gcon.cli.output import Output
from gcon.cli.report import PAGE, RECORD, read_record, write_file
from gcon.edges.edge_list import EdgeList
from gcon.edges.graph import PrivateGraph
from gcon.errors import InputError, MissingExtraError, check_number
from gcon.files.datasets import load
from gcon.files.datasets.folders import DATA_VARIABLE
from gcon.files.datasets.synthetic import FRIENDS, FRIENDS_ALIKE, FRIENDS_SIGNAL, circle_names, social_circles
from gcon.learn.perceptron import EncoderSettings
from gcon.machine import threads_for
from gcon.mechanisms.gaussian_curve import gaussian_multiplier
from gcon.methods.accuracy import micro_f1
from gcon.methods.calibration import reliability_bins
from gcon.methods.controls import EncoderOneHop, MomentsWithoutEdges
from gcon.methods.model import Model
from gcon.methods.moments import Moments
from gcon.methods.no_edges import predict_without_edges
from gcon.methods.objective import Objective
from gcon.methods.own_edges import own_edge_answers
from gcon.methods.predictions import Access
from gcon.pages.model_report import noise_rows
from gcon.pages.report import (
    LedgerLine,
    ModelKind,
    ModelScores,
    NoiseLevel,
    ReportData,
    mean_and_deviation,
    to_json,
    verdict,
)
from gcon.pages.report_page import page
from gcon.pages.scored_nodes import class_title, confusion_counts
from gcon.privacy.attacker import best_advantage, best_true_positive_rate, in_words
from gcon.privacy.gates import diagnose
from gcon.privacy.ledger import Ledger, MemoryLedger
from gcon.privacy.randomness import SystemRandomness
from gcon.version import __version__
from gcon.writing import unwritable

EPSILONS = (0.5, 1.0, 2.0, 4.0)
SHOWN = 1.0  # the budget whose promise, confusion matrix and calibration are shown
NUM_NODES = 3000
CIRCLES = circle_names(5)
FREE, ONE_HOP = "model without edges", "encoder without edges, one hop"
CONTROL = "same model without edges, zero budget"
PRIVATE, PAPER, REFERENCE = "private model", "the paper's mechanism", "without noise, not private"
KINDS: dict[str, ModelKind] = {
    FREE: "edge-free",
    ONE_HOP: "one-hop",
    CONTROL: "self-training",
    PRIVATE: "private",
    PAPER: "paper",
    REFERENCE: "non-private",
}
Key = tuple[str, float | None]
Scores = dict[Key, dict[Access, float]]
PUBLISHED: tuple[Access, ...] = ("none", "cached")


@options.verb
def demo(
    output: Output,
    out: Annotated[
        Path, typer.Option(help="The folder for report.html and run.json; an older demo is replaced.")
    ] = Path("gcon-demo"),
    runs: Annotated[int, typer.Option(help="Trainings per budget, for the spread.")] = 3,
) -> None:
    """See it work, in about a minute: private models, the controls they must beat, and a report.

    Uses a made-up social graph of 3000 nodes, or Cora-ML if GCON_DATA names the folder of the data sets.
    """
    start = time.perf_counter()
    fix = "3 takes about a minute."
    check_number("runs", runs, allowed=lambda n: 1 <= n <= 1000, rule="must lie in [1, 1000]", fix=fix)
    _check_folder(out)
    graph, about = _graph()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=output.progress) as bar, threads_for(*graph.nodes.features.shape):
        task = bar.add_task("training", total=runs * (2 * len(EPSILONS) + 3))
        data = run_demo(graph, about, runs, step=lambda stage: bar.update(task, advance=1, description=stage))
    write_file(out / RECORD, to_json(data))
    path = write_file(out / PAGE, page(data))
    seconds = time.perf_counter() - start
    fields: dict[str, object] = {
        "report": str(path),
        "run": str(out / RECORD),
        "data_set": data.data_set,
        "models": msgspec.to_builtins(data.models),
        "verdict": list(verdict(data)),
        "total": {"epsilon": data.total_epsilon, "delta": data.total_delta, "composition": "basic"},
        "seconds": round(seconds, 1),
    }
    output.result(fields, f"{_words(data, runs)}\n\n{won(data)}\nReport: {path} ({seconds:.0f} seconds)")


def run_demo(graph: PrivateGraph, about: str, runs: int, *, step: Callable[[str], None]) -> ReportData:
    """Train everything and gather the record.

    Privacy:
        The private models pay the demo's ledger with secure noise; scores with own edges are diagnostics in it. The
        non-private reference is trained and scored on a copy of the books.
    """
    books, copy = MemoryLedger(graph.name), MemoryLedger(f"{graph.name}, copy for the non-private reference")
    found: list[Scores] = []
    first: dict[float, Model] = {}
    for run in range(runs):
        scores, models = _one_run(graph, run, books, copy, step)
        found.append(scores)
        first = first or models
    shown, nodes, tested = first[SHOWN], graph.nodes, graph.nodes.test_mask
    total, seen = books.total(), predict_without_edges(shown, nodes.features, access="cached")  # as the headline
    return ReportData(
        data_set=graph.name,
        about=f"{about} {runs} run(s), each with its own encoder and noise.",
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        version=__version__,
        shown_epsilon=SHOWN,
        promise=(
            f"This is the promise of one model, the one at epsilon {SHOWN:g}.",
            *shown.statement().sentences,
            in_words(shown.receipt.budget),
            f"The demo released {2 * runs * len(EPSILONS)} models of one graph. Whoever holds all of them faces the sum: "
            f"epsilon {total.epsilon:g}, delta {total.delta:g}.",
        ),
        models=tuple(
            ModelScores(
                kind=KINDS[name],
                name=name,
                epsilon=epsilon,
                none=_of_all(found, (name, epsilon), "none"),
                cached=_of_all(found, (name, epsilon), "cached"),
                own_edges=_of_all(found, (name, epsilon), "own-edges"),
            )
            for name, epsilon in found[0]
        ),
        noise=tuple(_noise_level(model) for model in first.values()),
        class_names=tuple(map(class_title, nodes.class_names)),
        confusion=confusion_counts(seen.classes[tested], nodes.labels[tested], nodes.num_classes),
        reliability=reliability_bins(seen.probabilities[tested], nodes.labels[tested]),
        settings={"delta": f"{shown.receipt.budget.delta:g}", "epsilon": ", ".join(f"{each:g}" for each in EPSILONS)},
        ledger=tuple(
            LedgerLine(
                number=entry.number,
                time=entry.time,
                kind=entry.request.kind.value,
                purpose=entry.request.purpose,
                epsilon=entry.request.cost.epsilon,
                delta=entry.request.cost.delta,
                outcome=entry.outcome.value,
            )
            for entry in books.entries()
        ),
        total_epsilon=total.epsilon,
        total_delta=total.delta,
    )


def _one_run(
    graph: PrivateGraph, run: int, books: Ledger, copy: Ledger, step: Callable[[str], None]
) -> tuple[Scores, dict[float, Model]]:
    """All models of one run; they share what is trained without edges."""
    nodes, noise, purpose = graph.nodes, SystemRandomness(), f"demo, run {run + 1}"
    controls = {CONTROL: MomentsWithoutEdges(seed=run).learn(nodes).score_functions}
    step(FREE)
    controls[ONE_HOP] = EncoderOneHop(seed=run).learn(nodes).score_functions
    step(ONE_HOP)

    def ours(epsilon: float, ledger: Ledger) -> Model:
        method = Moments(epsilon=epsilon, seed=run)
        return method.train(nodes, graph.edges, ledger=ledger, randomness=noise, purpose=purpose)

    def papers(epsilon: float, ledger: Ledger) -> Model:
        method = Objective(epsilon=epsilon, encoder=EncoderSettings(seed=run))
        words = f"{purpose}, {PAPER}"
        return method.train(nodes, graph.edges, ledger=ledger, randomness=noise, purpose=words)

    models: dict[Key, Model] = {}
    for name, trained in ((PRIVATE, ours), (PAPER, papers)):
        for epsilon in EPSILONS:
            models[name, epsilon] = trained(epsilon, books)
            step(f"{name}, epsilon {epsilon:g}")
    reference = ours(float("inf"), copy)
    step(REFERENCE)

    def score(classes: Tensor) -> float:
        return micro_f1(classes, nodes.labels, nodes.test_mask)

    def without(model: Model) -> dict[Access, float]:
        return {
            access: score(predict_without_edges(model, nodes.features, access=access).classes)
            for access in PUBLISHED
            if access in model.accesses
        }

    answers = {key: own_edge_answers(model, nodes.features) for key, model in models.items()}

    def own_of_all(edges: EdgeList) -> dict[Key, float]:
        return {key: score(answer(edges).classes) for key, answer in answers.items()}

    words = f"{purpose}: accuracy with own edges, for the operator"
    own = diagnose(own_of_all, graph.edges, ledger=books, purpose=words)
    reference_answer = own_edge_answers(reference, nodes.features)
    best = diagnose(lambda edges: score(reference_answer(edges).classes), graph.edges, ledger=copy, purpose=words)
    hops = {
        name: diagnose(
            lambda edges, known=known: score(known["own-edges"](nodes.features, edges).argmax(dim=1)),  # type: ignore[misc]
            graph.edges,
            ledger=books,
            purpose=words.replace("accuracy", f"accuracy of {name}"),
        )
        for name, known in controls.items()
    }
    scores: Scores = {(FREE, None): {"none": score(controls[CONTROL]["none"](nodes.features, None).argmax(dim=1))}}
    scores |= {(name, None): {"own-edges": hops[name]} for name in (ONE_HOP, CONTROL)}
    scores |= {key: without(model) | {"own-edges": own[key]} for key, model in models.items()}
    first = {epsilon: models[PRIVATE, epsilon] for epsilon in EPSILONS}
    return scores | {(REFERENCE, None): without(reference) | {"own-edges": best}}, first


def _of_all(found: list[Scores], key: Key, access: Access) -> tuple[float, ...]:
    """The scores of all runs under one access; none if it was not measured."""
    return tuple(scores[key][access] for scores in found if access in scores[key])


def _graph() -> tuple[PrivateGraph, str]:
    if os.environ.get(DATA_VARIABLE):
        with suppress(MissingExtraError):  # `make demo` installs no reader of data sets
            return load("cora-ml"), "Cora-ML, a published citation graph whose edges are treated as private."
    graph = social_circles(
        NUM_NODES,
        num_classes=len(CIRCLES),
        mean_degree=FRIENDS,
        homophily=FRIENDS_ALIKE,
        feature_signal=FRIENDS_SIGNAL,
        seed=7,
    )
    graph = replace(graph, nodes=replace(graph.nodes, class_names=CIRCLES))
    return graph, f"A made-up graph of {NUM_NODES} people in {len(CIRCLES)} circles; its edges are treated as private."


def _noise_level(model: Model) -> NoiseLevel:
    budget = model.receipt.budget
    return NoiseLevel(
        epsilon=budget.epsilon,
        noise_to_edge=gaussian_multiplier(budget.epsilon, budget.delta),
        released=tuple(f"{name}: {ratio}" for name, _, _, ratio in noise_rows(model)),
        best_advantage=best_advantage(budget),
        true_positive_rate=best_true_positive_rate(budget, 0.01),
    )


def _check_folder(out: Path) -> None:
    """Refuse before a minute of work what could not be written afterwards, and files that are no older demo's."""
    theirs = (out / PAGE).exists()
    if (out / RECORD).exists():
        try:
            read_record(out)
            theirs = False
        except InputError:
            theirs = True
    if theirs:
        rule, fix = (
            "must hold a demo of this version, or nothing of these names",
            "Choose another folder, or remove them.",
        )
        raise InputError("out", rule=rule, got=f"{out} with {PAGE} or {RECORD}", fix=fix)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(out, error) from None
    check_writable(out / PAGE)


def _words(data: ReportData, runs: int) -> str:
    """The table, and what it shows."""
    lines = [
        f"Share of correct labels on the test nodes of {data.data_set}: mean and standard deviation, {runs} run(s)"
    ]
    lines.append(f"{'model':37s} {'epsilon':>8s}  {'none':15s}  {'cached':15s}  own-edges (operator only)")
    for model in data.models:
        epsilon = "none" if model.kind == "non-private" else f"{model.epsilon or 0:g}"
        cells = "  ".join(f"{_cell(scores):15s}" for scores in (model.none, model.cached, model.own_edges))
        lines.append(f"{model.name:37s} {epsilon:>8s}  {cells}".rstrip())
    lines += ["", *verdict(data), ""]
    lines.append(
        f"{2 * runs * len(EPSILONS)} private models were released, so the ledger holds epsilon {data.total_epsilon:g} and delta "
        f"{data.total_delta:g} in all. The own-edges column and the non-private row are "
        "diagnostics for the operator, not for publication."
    )
    return "\n".join(lines)


def won(data: ReportData) -> str:
    """What the budget bought at the shown epsilon, over the same model without edges. From own-edges scores: for the operator."""
    (private,) = (model for model in data.private if model.epsilon == data.shown_epsilon)
    (free,), (control,) = data.of_kind("edge-free"), data.of_kind("self-training")
    published, alone = statistics.fmean(private.cached), statistics.fmean(free.none)
    owners, hop = statistics.fmean(private.own_edges), statistics.fmean(control.own_edges)
    return (
        f"Won at epsilon {data.shown_epsilon:g}: answers that you may publish (cached) are right for {published:.1%} of the "
        f"test nodes, {100 * (published - alone):+.1f} points over the same model without edges, which costs nothing "
        f"({alone:.1%}). Answers for owners (own-edges): {owners:.1%}, {100 * (owners - hop):+.1f} points over it ({hop:.1%})."
    )


def _cell(scores: tuple[float, ...]) -> str:
    if not scores:
        return "-"
    mean, deviation = mean_and_deviation(scores)
    return f"{mean:.3f} ± {deviation:.3f}"
