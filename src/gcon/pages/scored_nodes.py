"""How a released model does on public test nodes with no edge read: numbers that its promise covers."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from gcon.methods.model import Model
from gcon.methods.no_edges import predict_without_edges
from gcon.methods.predictions import why_no_promise
from gcon.nodes import PublicNodes
from gcon.pages.report import ReliabilityBin, confusion_counts, reliability_bins

FEWEST = 20  # test nodes: fewer say nothing


@dataclass(frozen=True, kw_only=True)
class ScoredNodes:
    """Scores of test nodes.

    Attributes:
        count: how many they are.
        accuracy: the share of right labels.
        class_names: in the model's order.
        confusion: by true class (row) and predicted class (column).
        reliability: groups of equal size, from unsure to sure.
    """

    count: int
    accuracy: float
    class_names: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]
    reliability: tuple[ReliabilityBin, ...]


def reason_against(model: Model, nodes: PublicNodes | None) -> str | None:
    """Why test nodes are not scored on a public page; None if they may be."""
    reason = why_no_promise(model.receipt)
    if reason is not None:
        return f"the model keeps no promise ({reason}), so what it says about nodes is not for the public"
    if nodes is None:
        return "no table of public nodes was given"
    if int(nodes.test_mask.sum()) < FEWEST:
        return f"the table has fewer than {FEWEST} labelled test nodes"
    if not set(nodes.class_names) <= set(model.class_names):
        return "the table has classes that the model does not know"
    return None


def scored(model: Model, nodes: PublicNodes) -> ScoredNodes:
    """Predict with no edge read, and compare with the labels of the test nodes.

    Privacy:
        A function of public nodes and the released model. Only for a model that keeps a promise (`reason_against`).
    """
    places = {name: place for place, name in enumerate(model.class_names)}
    # A label of -1, unknown, is in no mask and stays the last entry.
    labels = torch.tensor([*(places[name] for name in nodes.class_names), -1])[nodes.labels]
    found = predict_without_edges(model, nodes.features)
    mask = nodes.test_mask
    return ScoredNodes(
        count=int(mask.sum()),
        accuracy=float((found.classes[mask] == labels[mask]).double().mean()),
        class_names=tuple(str(name) for name in model.class_names),
        confusion=confusion_counts(found.classes, labels, mask, len(model.class_names)),
        reliability=reliability_bins(found.probabilities, labels, mask),
    )
