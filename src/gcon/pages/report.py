"""What a report is made from: the record of one comparison of models, as data that survives a trip through JSON.

`report_page.page` makes the HTML from it. A record holds numbers that were measured with private edges (`own_edges`), so
it is for the operator, like the page.
"""

from __future__ import annotations

import dataclasses
import json
import math
import statistics
import types
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

from torch import Tensor

from gcon.errors import InputError

FORMAT = 3
OPERATOR_ONLY = "Diagnostic for the operator, not for publication"
KINDS = ("edge-free", "one-hop", "self-training", "private", "paper", "non-private")


@dataclass(frozen=True, kw_only=True)
class ModelScores:
    """Micro-F1 on the test nodes, one number per run.

    Attributes:
        kind: one of `KINDS`.
        name: in words.
        epsilon: of a private model; None where nothing is paid or nothing is promised.
        none: without reading an edge at prediction; empty if that was not measured.
        own_edges: with every node's own edges. For the operator only.
        cached: without reading an edge, with what was released of every training node; empty if that was not measured.
    """

    kind: str
    name: str
    epsilon: float | None
    none: tuple[float, ...]
    own_edges: tuple[float, ...]
    cached: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class NoiseLevel:
    """What one budget means: the noise over what one edge can change, and for an attacker. Public numbers."""

    epsilon: float
    noise_to_edge: float
    best_advantage: float
    true_positive_rate: float


@dataclass(frozen=True, kw_only=True)
class ReliabilityBin:
    """Test nodes whose top probability lies from low to high: how sure the model was, and how often it was right."""

    low: float
    high: float
    count: int
    confidence: float
    accuracy: float


@dataclass(frozen=True, kw_only=True)
class LedgerLine:
    """One entry of the ledger."""

    number: int
    time: str
    kind: str
    purpose: str
    epsilon: float
    delta: float
    outcome: str


@dataclass(frozen=True, kw_only=True)
class ReportData:
    """One comparison, complete.

    Attributes:
        data_set: the owner's name for the data; `about` describes it in a sentence.
        shown_epsilon: the budget of the one model that promise, confusion and reliability are about.
        promise: its statement, and what the budget means, sentence by sentence.
        confusion: test nodes by true class (row) and predicted class (column), no edge read at prediction.
        total_epsilon, total_delta: the ledger's total.
    """

    format: int = FORMAT
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
        odd = [model.kind for model in self.models if model.kind not in KINDS]
        problems = {
            f"unknown models: {odd}": bool(odd),
            "a confusion matrix of another size than the classes": [len(row) for row in self.confusion]
            != [size] * size,
            "no private model with a positive epsilon and scores under both accesses": not self.private
            or any(not (m.epsilon and m.epsilon > 0 and m.none and m.own_edges) for m in self.private),
            "a budget whose noise is not told": {m.epsilon for m in self.private} != {n.epsilon for n in self.noise},
            "a noise level that is not positive": any(not 0 < n.noise_to_edge < math.inf for n in self.noise),
            "a score outside [0, 1]": any(
                not 0 <= s <= 1 for m in self.models for s in (*m.none, *m.cached, *m.own_edges)
            ),
            "no reliability": not self.reliability,
        }
        for problem, found in problems.items():
            if found:
                raise _damaged(problem)

    @property
    def private(self) -> tuple[ModelScores, ...]:
        """The private models."""
        return self.of_kind("private")

    def of_kind(self, kind: str) -> tuple[ModelScores, ...]:
        """The models of one kind."""
        return tuple(model for model in self.models if model.kind == kind)


def confusion_counts(predicted: Tensor, labels: Tensor, num_classes: int) -> tuple[tuple[int, ...], ...]:
    """Nodes by true class (row) and predicted class (column).

    Example:
        >>> import torch
        >>> confusion_counts(torch.tensor([0, 1, 1]), torch.tensor([0, 0, 1]), 2)
        ((1, 1), (0, 1))
    """
    counts = (labels * num_classes + predicted).bincount(minlength=num_classes**2)
    return tuple(map(tuple, counts.reshape(num_classes, num_classes).tolist()))


def reliability_bins(probabilities: Tensor, labels: Tensor, *, count: int = 10) -> tuple[ReliabilityBin, ...]:
    """Nodes in groups of equal size, by the probability of their predicted class, from unsure to sure."""
    confidence, classes = probabilities.max(dim=1)
    right = classes == labels
    groups = confidence.argsort(stable=True).tensor_split(count)
    return tuple(
        ReliabilityBin(
            low=float(confidence[group].min()),
            high=float(confidence[group].max()),
            count=len(group),
            confidence=float(confidence[group].mean()),
            accuracy=float(right[group].double().mean()),
        )
        for group in groups
        if len(group)
    )


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


def to_json(data: ReportData) -> str:
    """The record as strict JSON; infinity is the string "inf"."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(entry) for key, entry in value.items()}
        if isinstance(value, list | tuple):
            return [plain(entry) for entry in value]
        return "inf" if value == math.inf else value

    return json.dumps(plain(dataclasses.asdict(data)), allow_nan=False, indent=1) + "\n"


def from_json(text: str) -> ReportData:
    """Read a record back; anything missing, unknown or of the wrong type raises `InputError`."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise _damaged("something that is not JSON") from None
    if isinstance(content, dict) and content.get("format") != FORMAT:
        raise _damaged(f"format {repr(content.get('format'))[:40]}")
    try:
        found: ReportData = _typed(ReportData, content, "the record")
    except OverflowError:
        raise _damaged("a number beyond all floats") from None
    return found


def _typed(kind: Any, value: Any, where: str) -> Any:
    """Build a value of a type from JSON: records, tuples, mappings, optional values, numbers and words."""
    origin, arguments = get_origin(kind), get_args(kind)
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        if not isinstance(value, dict) or set(value) != set(hints):
            raise _damaged(f"missing or unknown keys in {where}")
        return kind(**{name: _typed(hint, value[name], name) for name, hint in hints.items()})  # type: ignore[operator]
    if origin is tuple and isinstance(value, list):
        return tuple(_typed(arguments[0], entry, where) for entry in value)
    if origin is dict and isinstance(value, dict):
        return {key: _typed(arguments[1], entry, where) for key, entry in value.items()}
    if origin in (Union, types.UnionType):
        return None if value is None else _typed(arguments[0], value, where)
    if kind is float and (value == "inf" or (type(value) in (int, float) and not math.isnan(value))):
        return float(value)
    if kind in (int, str) and type(value) is kind:
        return value
    raise _damaged(f"a wrong value in {where}")


def _damaged(problem: str) -> InputError:
    return InputError(
        "run.json", rule=f"must be a whole run record of format {FORMAT}", got=problem, fix="Run gcon demo again."
    )
