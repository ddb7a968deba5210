"""Public nodes: features, labels and splits, checked when they are made. No edge comes near this module.

Tables too large for memory are read a batch of rows at a time; the features of many nodes may lie on disk.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from gcon.errors import InputError

BATCH_ROWS = 65_536
BATCH_ENTRIES = 2**23


@dataclass(frozen=True, eq=False, kw_only=True)
class PublicNodes:
    """The public side of a graph.

    Attributes:
        features: n x k finite numbers; they may lie in a file (a memory map), and nobody writes to them.
        labels: n class numbers in [0, num_classes); rows outside all masks are never read and may hold -1.
        num_classes: the public number of classes, at least two.
        train_mask: the labelled nodes.
        validation_mask: nodes whose labels may be used for choices (may be empty).
        test_mask: nodes whose labels are used for scores only (may be empty).
        class_names: what the class numbers stand for.

    Privacy:
        Everything here is public.
    """

    features: Tensor
    labels: Tensor
    num_classes: int
    train_mask: Tensor
    validation_mask: Tensor
    test_mask: Tensor
    class_names: tuple[object, ...] = ()

    def __post_init__(self) -> None:
        check_nodes(
            self.features,
            self.labels,
            self.num_classes,
            train_mask=self.train_mask,
            validation_mask=self.validation_mask,
            test_mask=self.test_mask,
        )
        if not self.class_names:
            object.__setattr__(self, "class_names", tuple(range(self.num_classes)))

    @property
    def num_nodes(self) -> int:
        """The public number of nodes."""
        return int(self.features.shape[0])

    @cached_property
    def fingerprint(self) -> str:
        """A checksum of the public features: tells whether two node tables are the same one."""
        return features_fingerprint(self.features)


def features_fingerprint(features: Tensor) -> str:
    """A checksum of public features (their shape and values as float32)."""
    digest = hashlib.sha256(str(tuple(features.shape)).encode())
    for rows in light_slices(tuple(features.shape)):
        digest.update(features[rows].detach().cpu().float().contiguous().numpy().tobytes())
    return digest.hexdigest()


def check_features(features: Tensor) -> None:
    """Features must be a matrix of finite numbers with at least one column and one row."""
    if features.dim() != 2:
        raise InputError(
            "features", rule="must be a matrix", got=f"{features.dim()} dimensions", fix="One row per node."
        )
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
                rule=f"must hold one boolean per node ({num_nodes})",
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
            rule=f"must hold one class number per node ({num_nodes})",
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


def row_slices(num_rows: int, batch_rows: int = BATCH_ROWS) -> Iterator[slice]:
    """Consecutive slices that cover all rows."""
    return (slice(start, min(start + batch_rows, num_rows)) for start in range(0, num_rows, batch_rows))


def light_slices(shape: tuple[int, ...]) -> Iterator[slice]:
    """The same with fewer rows where they are wide: for passes that look at every number and keep none."""
    width = max(int(shape[1]) if len(shape) > 1 else 1, 1)
    return row_slices(int(shape[0]), max(min(BATCH_ROWS, BATCH_ENTRIES // width), 1))


def mean_row(batches: Iterable[Tensor]) -> Tensor:
    """The mean of all rows, in float64: batches are added up one after another."""
    total, count = None, 0
    for batch in batches:
        sums = batch.to(torch.float64).sum(dim=0)
        total, count = sums if total is None else total + sums, count + len(batch)
    if total is None:
        raise ValueError("no rows have no mean")
    return total / count
