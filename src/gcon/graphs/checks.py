"""Checks of public inputs: each failure names the parameter, the rule, the value and the way out."""

from __future__ import annotations

import torch
from torch import Tensor

from gcon.errors import InputError
from gcon.graphs.rows import light_slices


def check_features(features: Tensor) -> None:
    """Features must be a matrix of finite numbers with at least one column and one row."""
    if features.dim() != 2:
        raise InputError("features", rule="must be a matrix", got=f"{features.dim()} dimensions", fix="One row a node.")
    if features.shape[0] == 0:
        raise InputError("features", rule="needs at least one node", got="no rows", fix="Pass the public node table.")
    if features.shape[1] == 0:
        raise InputError(
            "features",
            rule="needs at least one column",
            got="zero width",
            fix="Without any features, pass one constant column or an edge-free embedding.",
        )
    for rows in light_slices(tuple(features.shape)):
        finite = torch.isfinite(features[rows]).all(dim=1)
        if not bool(finite.all()):
            row = rows.start + int((~finite).nonzero()[0])
            raise InputError(
                "features",
                rule="must be finite",
                got=f"NaN or infinity in row {row}",
                fix="Fill in or drop such values.",
            )


def check_nodes(
    features: Tensor,
    labels: Tensor,
    num_classes: int,
    *,
    train_mask: Tensor,
    validation_mask: Tensor,
    test_mask: Tensor,
) -> None:
    """Check a public node table as a whole."""
    check_features(features)
    masks = {"train_mask": train_mask, "validation_mask": validation_mask, "test_mask": test_mask}
    num_nodes = features.shape[0]
    for name, mask in masks.items():
        if mask.dtype != torch.bool or tuple(mask.shape) != (num_nodes,):
            raise InputError(
                name,
                rule=f"must hold one boolean a node ({num_nodes})",
                got=f"{mask.dtype} of shape {tuple(mask.shape)}",
                fix="Pass a boolean vector.",
            )
    _check_disjoint(masks)
    if not bool(train_mask.any()):
        raise InputError(
            "train_mask", rule="needs at least one labelled node", got="an empty mask", fix="Label some nodes."
        )
    if num_classes < 2:
        raise InputError(
            "labels",
            rule="need at least two classes",
            got=f"{num_classes} class{'es' if num_classes != 1 else ''}",
            fix="With one class there is nothing to learn.",
        )
    _check_labels(labels, num_nodes, num_classes, used=train_mask | validation_mask | test_mask)


def _check_disjoint(masks: dict[str, Tensor]) -> None:
    names = list(masks)
    for position, first in enumerate(names):
        for second in names[position + 1 :]:
            shared = int((masks[first] & masks[second]).sum())
            if shared:
                raise InputError(
                    f"{first}, {second}",
                    rule="must not overlap",
                    got=f"{shared} shared nodes",
                    fix="Give every node to one part of the split at most.",
                )


def _check_labels(labels: Tensor, num_nodes: int, num_classes: int, *, used: Tensor) -> None:
    if tuple(labels.shape) != (num_nodes,) or labels.is_floating_point() or labels.dtype == torch.bool:
        raise InputError(
            "labels",
            rule=f"must hold one class number a node ({num_nodes})",
            got=f"{labels.dtype} of shape {tuple(labels.shape)}",
            fix="Number the classes from 0; put -1 where the label is unknown.",
        )
    wrong = used & ((labels < 0) | (labels >= num_classes))
    if bool(wrong.any()):
        row = int(wrong.nonzero()[0])
        raise InputError(
            "labels",
            rule=f"must lie in the class list 0..{num_classes - 1} for every node in a mask",
            got=f"{int(labels[row])} in row {row}",
            fix="Correct the label, or take the node out of the masks.",
        )
