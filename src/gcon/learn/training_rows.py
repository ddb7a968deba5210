"""Which nodes are in the loss, and with which targets: labelled nodes, or all nodes with pseudo-labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from gcon.errors import InputError
from gcon.learn.encoder import Encoder
from gcon.nodes import PublicNodes

Expansion = Literal["labelled", "all"]


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """The rows in the loss (a boolean mask over the nodes) and their targets, one row each, in [0, 1]."""

    mask: Tensor
    targets: Tensor

    @property
    def count(self) -> int:
        """n_1."""
        return int(self.targets.shape[0])


def training_rows(nodes: PublicNodes, encoder: Encoder, expand: Expansion) -> TrainingRows:
    """The paper's expanded training set: n_1 = labelled nodes, or all nodes.

    Unlabelled nodes get the encoder's most probable class; labelled ones keep their label. Validation and test labels
    are not used.

    Privacy:
        Pseudo-labels come from the edge-free encoder. Ones that were computed with edges would void the proof.
    """
    check_expansion(expand)
    if expand == "labelled":
        classes = nodes.labels[nodes.train_mask]
        mask = nodes.train_mask
    else:
        classes = encoder.classes(nodes.features)
        classes[nodes.train_mask] = nodes.labels[nodes.train_mask]
        mask = torch.ones_like(nodes.train_mask)
    targets = torch.zeros(len(classes), nodes.num_classes, dtype=torch.float64)
    return TrainingRows(mask, targets.scatter_(1, classes.to(torch.int64)[:, None], 1.0))


def check_expansion(expand: str) -> None:
    """One of the two rules."""
    if expand not in get_args(Expansion):
        raise InputError("expand", rule="must be 'labelled' or 'all'", got=repr(expand), fix="Use 'all'.")
