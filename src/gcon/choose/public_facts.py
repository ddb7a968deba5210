"""What the public side of a graph tells: nodes, labels, and how far features alone go."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from gcon.learn.edge_free import learn_without_edges
from gcon.learn.sample import with_validation
from gcon.machine import threads_for
from gcon.nodes import PublicNodes


@dataclass(frozen=True, kw_only=True)
class PublicFacts:
    """Public numbers of a graph's nodes.

    Attributes:
        num_nodes, num_features, num_classes, num_validation: sizes.
        labels_a_class: labels of every class that teach.
        neighbours_agree: how much more often than chance nodes with the nearest features share their label; 1 is always.
        edge_free_accuracy: of the model that reads no edge, on validation nodes. They also chose its average, so it
            is a little high. Without any: on labelled nodes, each answered by a twin that its label did not teach.
        edge_free_strength: the same on a scale where 0 is the largest class for everybody and 1 is all correct.
        leading_variance: of unit feature rows, along the direction in which nodes differ most.
    """

    num_nodes: int
    num_features: int
    num_classes: int
    num_validation: int
    labels_a_class: tuple[int, ...]
    neighbours_agree: float
    edge_free_accuracy: float
    edge_free_strength: float
    leading_variance: float

    @property
    def num_checked(self) -> int:
        """How many nodes the accuracy was measured on."""
        return self.num_validation or sum(self.labels_a_class)


def public_facts(nodes: PublicNodes) -> PublicFacts:
    """Train the edge-free model of `moments` and look at it.

    Privacy:
        Free: there is no argument that could hold an edge.
    """
    nodes = with_validation(nodes)
    with threads_for(*nodes.features.shape):
        model = learn_without_edges(nodes, seed=0)
    judges = model.ensemble.judges
    if judges.folds is None:
        labels, answers = nodes.labels[nodes.validation_mask], model.answers[nodes.validation_mask]
    else:  # cross-fitting, as the training judges then
        labels, answers = judges.labels, model.ensemble.judged
    accuracy = float((answers.argmax(dim=1) == labels).double().mean())
    rows = model.rows.double()
    spread = torch.linalg.eigvalsh((rows - rows.mean(dim=0)).T @ (rows - rows.mean(dim=0)) / len(rows))
    counts = torch.bincount(nodes.labels[nodes.train_mask], minlength=nodes.num_classes)
    return PublicFacts(
        num_nodes=nodes.num_nodes,
        num_features=int(nodes.features.shape[1]),
        num_classes=nodes.num_classes,
        num_validation=int(nodes.validation_mask.sum()),
        labels_a_class=tuple(counts.tolist()),
        neighbours_agree=model.neighbours_agree,
        edge_free_accuracy=accuracy,
        edge_free_strength=_strength(accuracy, labels),
        leading_variance=float(spread[-1]),
    )


def _strength(accuracy: float, labels: torch.Tensor) -> float:
    """Accuracy above that of the largest class for everybody, over what there is to gain; at least 0."""
    largest = float(torch.bincount(labels).max()) / len(labels)
    return max(0.0, (accuracy - largest) / (1 - largest)) if largest < 1 else 1.0
