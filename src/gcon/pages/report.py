"""What the demo's page is made from: the record of one comparison of models, as data that survives a trip through JSON.

`report_page.page` makes the HTML from it. A record holds numbers that were measured with private edges (`own_edges`), so
it is for the operator, like the page.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from gcon.errors import InputError
from gcon.methods.calibration import ReliabilityBin

FORMAT: Final = 4
OPERATOR_ONLY = "Diagnostic for the operator, not for publication"
ModelKind = Literal["edge-free", "one-hop", "self-training", "private", "paper", "non-private"]


class ModelScores(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Micro-F1 on the test nodes, one number per run.

    Attributes:
        kind: what it is in the comparison.
        name: in words.
        epsilon: of a private model; None where nothing is paid or nothing is promised.
        none: without reading an edge at prediction; empty if that was not measured.
        cached: the same, with what was released of every node of the training table; empty if that was not measured.
        own_edges: with every node's own edges. For the operator only.
    """

    kind: ModelKind
    name: str
    epsilon: float | None
    none: tuple[float, ...]
    cached: tuple[float, ...] = ()
    own_edges: tuple[float, ...]


class NoiseLevel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one budget means: for one number with Gaussian noise, for what was released, and for an attacker. Public numbers.

    Attributes:
        noise_to_edge: the noise over what one edge can change, in one number that keeps the promise of the whole release.
        released: every statistic of the first run's model, with its noise over what one edge can change in it.
    """

    epsilon: float
    noise_to_edge: float
    released: tuple[str, ...]
    best_advantage: float
    true_positive_rate: float


class LedgerLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry of the ledger."""

    number: int
    time: str
    kind: str
    purpose: str
    epsilon: float
    delta: float
    outcome: str


class ReportData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One comparison, complete.

    Attributes:
        data_set: the owner's name for the data; `about` describes it in a sentence.
        shown_epsilon: the budget of the one model that promise, confusion and reliability are about.
        promise: its statement, and what the budget means, sentence by sentence.
        confusion: test nodes by true class (row) and predicted class (column), under the headline's access, `cached`.
        total_epsilon, total_delta: the ledger's total.
    """

    format: Literal[4] = FORMAT
    data_set: str
    about: str
    time: str
    version: str
    shown_epsilon: float
    promise: tuple[str, ...]
    models: tuple[ModelScores, ...]
    noise: tuple[NoiseLevel, ...]
    class_names: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]
    reliability: tuple[ReliabilityBin, ...]
    settings: dict[str, str]
    ledger: tuple[LedgerLine, ...]
    total_epsilon: float
    total_delta: float

    def __post_init__(self) -> None:
        size = len(self.class_names)
        scores = [score for model in self.models for score in (*model.none, *model.cached, *model.own_edges)]
        problems = {
            "a confusion matrix of another size than the classes": [len(row) for row in self.confusion]
            != [size] * size,
            "no private model with a positive epsilon and scores with and without own edges": not self.private
            or any(not (m.epsilon and m.epsilon > 0 and m.none and m.own_edges) for m in self.private),
            "a budget whose noise is not told": {m.epsilon for m in self.private} != {n.epsilon for n in self.noise},
            "a noise level that is not positive": any(not 0 < n.noise_to_edge < math.inf for n in self.noise),
            "a score outside [0, 1]": any(not 0 <= score <= 1 for score in scores),
            "no reliability": not self.reliability,
        }
        for problem, found in problems.items():
            if found:
                raise ValueError(problem)

    @property
    def private(self) -> tuple[ModelScores, ...]:
        """The private models."""
        return self.of_kind("private")

    def of_kind(self, kind: str) -> tuple[ModelScores, ...]:
        """The models of one kind."""
        return tuple(model for model in self.models if model.kind == kind)


def mean_and_deviation(scores: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation over runs; one run has none, shown as 0.

    Example:
        >>> mean_and_deviation([0.5, 0.7, 0.9])
        (0.7, 0.2)
    """
    spread = statistics.stdev(scores) if len(scores) > 1 else 0.0
    return round(statistics.fmean(scores), 12), round(spread, 12)


def verdict(data: ReportData) -> tuple[str, ...]:
    """What the comparison shows, also when it is not what one hoped for. From own-edges scores: for the operator."""
    controls = [model for model in data.of_kind("one-hop") + data.of_kind("self-training") if model.own_edges]
    sentences = []
    if controls:
        best = max(controls, key=lambda model: statistics.fmean(model.own_edges))
        above = [model for model in data.private if _beats(model.own_edges, best.own_edges)]
        level = f"the stronger zero-budget control ({best.name}: {statistics.fmean(best.own_edges):.3f})"
        if above:
            budgets = ", ".join(f"{model.epsilon:g}" for model in above)
            sentences.append(f"With own edges the private model beats {level} at epsilon {budgets}.")
        below = [model for model in data.private if model not in above]
        if below:
            budgets = ", ".join(f"{model.epsilon:g}" for model in below)
            sentences.append(
                f"With own edges the private model does not beat {level} at epsilon {budgets}: there a model that never "
                "saw an edge in training and costs no budget does as well or better."
            )
    free = data.of_kind("edge-free")
    if free and free[0].none:
        better = [model for model in data.private if _beats(model.none, free[0].none)]
        said = f"beats it at epsilon {', '.join(f'{m.epsilon:g}' for m in better)}" if better else "never beats it"
        sentences.append(
            f"Where no edge is read at prediction, the edge-free model reaches {statistics.fmean(free[0].none):.3f}; the "
            f"private model {said}."
        )
    runs = len(data.private[0].own_edges)
    note = "'Beats' means: by more than the standard deviation of the difference over the runs."
    sentences.append(note if runs > 1 else "This is one run: a small difference may be chance.")
    return tuple(sentences)


def _beats(scores: Sequence[float], others: Sequence[float]) -> bool:
    """Run by run, since runs share their encoder."""
    if len(scores) != len(others):
        return statistics.fmean(scores) > statistics.fmean(others)
    mean, deviation = mean_and_deviation([mine - theirs for mine, theirs in zip(scores, others, strict=True)])
    return mean > deviation


def to_json(data: ReportData) -> bytes:
    """The record as JSON."""
    return msgspec.json.format(msgspec.json.encode(data), indent=1) + b"\n"


def from_json(text: bytes) -> ReportData:
    """Read a record back; anything missing, unknown or of the wrong type raises `InputError`."""
    try:
        return msgspec.json.decode(text, type=ReportData)
    except (ValueError, RecursionError) as error:
        rule, fix = f"must be a whole run record of format {FORMAT}", "Run gcon demo again."
        raise InputError("run.json", rule=rule, got=str(error)[:200], fix=fix) from None
