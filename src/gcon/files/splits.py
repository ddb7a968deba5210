"""The splits of the paper's experiments, drawn from public labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Split:
    """Three disjoint boolean masks over the nodes."""

    train: Tensor
    validation: Tensor
    test: Tensor


def per_class_split(
    labels: Tensor,
    *,
    seed: int,
    per_class: int = 20,
    num_validation: int = 500,
    num_test: int = 1000,
    eligible: Tensor | None = None,
) -> Split:
    """Twenty labels per class, then 500 validation and 1000 test nodes (baselines, section 1).

    Args:
        labels: class numbers.
        seed: 0 is the reference split of Cora-ML.
        per_class: labelled nodes per class.
        num_validation: validation nodes.
        num_test: test nodes.
        eligible: nodes that have a real label; others are never drawn.
    """
    rng = np.random.default_rng(seed)
    values = labels.numpy()
    allowed = np.ones(values.size, dtype=bool) if eligible is None else eligible.numpy()
    train = np.concatenate(
        [
            rng.permutation(np.where((values == label) & allowed)[0])[:per_class]
            for label in range(int(values[allowed].max()) + 1)
        ]
    )
    rest = rng.permutation(np.setdiff1d(np.where(allowed)[0], train))
    return _split(values.size, train, rest[:num_validation], rest[num_validation : num_validation + num_test])


def fraction_split(
    labels: Tensor, *, seed: int, train: float = 0.6, validation: float = 0.2, eligible: Tensor | None = None
) -> Split:
    """A random split by shares of the nodes; what is left is the test part."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(labels.numel() if eligible is None else np.where(eligible.numpy())[0])
    first, second = round(train * order.size), round((train + validation) * order.size)
    return _split(labels.numel(), order[:first], order[first:second], order[second:])


def _split(num_nodes: int, *parts: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Split:
    masks = []
    for part in parts:
        mask = torch.zeros(num_nodes, dtype=torch.bool)
        mask[torch.from_numpy(part)] = True
        masks.append(mask)
    return Split(*masks)
