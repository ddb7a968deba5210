"""Labels that choices are made by, where nobody set some aside for that."""

from __future__ import annotations

from dataclasses import replace

import torch

from gcon.learn.sizes import sampled
from gcon.nodes import PublicNodes

_ENOUGH, _ENOUGH_PER_CLASS = 500, 50  # labelled nodes from which some can be spared
_SPARED, _MOST = 0.2, 500
_SEED = 3


def with_validation(nodes: PublicNodes) -> PublicNodes:
    """The same nodes; without validation nodes a fifth of the labelled ones, at most 500, become validation nodes.

    Few labels are worth more as lessons than as judges: then nothing is set aside. Reads public labels.
    """
    labelled = int(nodes.train_mask.sum())
    if bool(nodes.validation_mask.any()) or labelled < max(_ENOUGH, _ENOUGH_PER_CLASS * nodes.num_classes):
        return nodes
    spared = sampled(labelled, min(int(_SPARED * labelled), _MOST), seed=_SEED)
    mask = torch.zeros_like(nodes.train_mask)
    mask[nodes.train_mask.nonzero()[:, 0][spared]] = True
    return replace(nodes, train_mask=nodes.train_mask & ~mask, validation_mask=mask)
