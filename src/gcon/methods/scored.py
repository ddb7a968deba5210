"""Scores -> predictions that name their access and whether the model keeps a promise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import torch
from torch import Tensor

from gcon.methods.model import Model, Scorer
from gcon.methods.predictions import Access, Predictions, why_no_promise


def predictions_from(model: Model, scorer: Scorer, scores: Tensor, *, access: Access) -> Predictions:
    """The classes with the largest scores, and their probabilities."""
    return Predictions(
        classes=scores.argmax(dim=1).cpu(),
        probabilities=scorer.probabilities(scores).cpu(),
        class_names=model.class_names,
        access=access,
        no_promise=why_no_promise(model.receipt),
    )


def joined(batches: Iterable[Predictions]) -> Predictions:
    """Predictions of consecutive nodes, batch by batch, as one table."""
    parts = list(batches)
    if len(parts) == 1:
        return parts[0]
    classes = torch.cat([part.classes for part in parts])
    return replace(parts[0], classes=classes, probabilities=torch.cat([part.probabilities for part in parts]))
