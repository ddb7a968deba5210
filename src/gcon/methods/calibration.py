"""Whether probabilities can be taken at their word: the one definition, of scores and of pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class ReliabilityBin:
    """Nodes whose top probability lies from low to high: how sure the model was, and how often it was right."""

    low: float
    high: float
    count: int
    confidence: float
    accuracy: float


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


def calibration_error(groups: Sequence[ReliabilityBin]) -> float:
    """The expected calibration error: the mean distance between what a model says of itself and how often it is right."""
    return sum(group.count * abs(group.accuracy - group.confidence) for group in groups) / sum(
        group.count for group in groups
    )
