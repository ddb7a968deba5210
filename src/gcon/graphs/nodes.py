"""Public nodes: features, labels and splits. No edge comes near this module."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

from gcon.graphs.checks import check_nodes
from gcon.graphs.rows import light_slices


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
