"""How a released model does on public nodes with a label and no edge read: numbers that its promise covers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gcon.methods.calibration import ReliabilityBin, reliability_bins
from gcon.methods.features_only import FeaturesOnly
from gcon.methods.model import Model
from gcon.methods.no_edges import predict_without_edges
from gcon.methods.predictions import why_no_promise
from gcon.nodes import FEWEST_SCORED, PublicNodes


@dataclass(frozen=True, kw_only=True)
class ScoredNodes:
    """Scores of nodes.

    Attributes:
        access: `none` or `cached`, which read no edge; `new`, which is `none` for nodes never seen.
        count: how many they are.
        right: which of them are answered right.
        accuracy: the share of right labels.
        class_names: in the model's order.
        confusion: by true class (row) and predicted class (column).
        reliability: groups of equal size, from unsure to sure.
    """

    access: str
    count: int
    right: Tensor
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
    if int(nodes.test_mask.sum()) < FEWEST_SCORED:
        return f"the table has fewer than {FEWEST_SCORED} labelled test nodes"
    return no_measure(model, nodes, nodes.test_mask)


def no_measure(model: Model, nodes: PublicNodes, mask: Tensor) -> str | None:
    """Why labels of a table do not tell how good this model is; None if they do."""
    if taught := model.taught(nodes, mask):
        return f"{taught} of the {int(mask.sum())} scored nodes taught the model: answers for them do not tell how good it is"
    if not set(nodes.class_names) <= set(model.class_names):
        return "the table has classes that the model does not know"
    return None


def scored(model: Model, nodes: PublicNodes, *, mask: Tensor | None = None, access: str = "none") -> ScoredNodes:
    """Predict with no edge read, and compare with the labels of some nodes.

    Args:
        model: that knows the classes of the nodes.
        nodes: public ones.
        mask: which of them, all labelled; the test nodes unless told.
        access: `none`; for the nodes of the training table also `cached`, and `new`: as if they had never been seen.

    Privacy:
        A function of public nodes and the released model: as public as the model's promise makes it.
    """
    mask = nodes.test_mask if mask is None else mask
    places = {name: place for place, name in enumerate(model.class_names)}
    labels = torch.tensor([places[name] for name in nodes.class_names])[nodes.labels[mask]]
    answers = (
        FeaturesOnly(model)(nodes.features[mask])
        if access == "new"
        else predict_without_edges(model, nodes.features, access=access).probabilities[mask]
    )
    classes = answers.argmax(dim=1)
    right = classes == labels
    return ScoredNodes(
        access=access,
        count=len(right),
        right=right,
        accuracy=float(right.double().mean()),
        class_names=tuple(map(class_title, model.class_names)),
        confusion=confusion_counts(classes, labels, len(model.class_names)),
        reliability=reliability_bins(answers, labels),
    )


def confusion_counts(predicted: Tensor, labels: Tensor, num_classes: int) -> tuple[tuple[int, ...], ...]:
    """Nodes by true class (row) and predicted class (column).

    Example:
        >>> import torch
        >>> confusion_counts(torch.tensor([0, 1, 1]), torch.tensor([0, 0, 1]), 2)
        ((1, 1), (0, 1))
    """
    counts = (labels * num_classes + predicted).bincount(minlength=num_classes**2)
    return tuple(map(tuple, counts.reshape(num_classes, num_classes).tolist()))


def class_title(name: object) -> str:
    """A class for people: a bare number says nothing by itself.

    Example:
        >>> class_title("cats"), class_title(3)
        ('cats', 'class 3')
    """
    return name if isinstance(name, str) and not name.strip().lstrip("-").isdecimal() else f"class {name}"
