"""Scores -> predictions that name their access and whether the model keeps a promise."""

from __future__ import annotations

from torch import Tensor

from gcon.predict.predictions import Access, Predictions, why_no_promise
from gcon.predict.scorers import Scorer
from gcon.release.published import PublishedModel


def predictions_from(model: PublishedModel, scorer: Scorer, scores: Tensor, *, access: Access) -> Predictions:
    """The classes with the largest scores, and their probabilities."""
    return Predictions(
        classes=scores.argmax(dim=1),
        probabilities=scorer.probabilities(scores),
        class_names=model.class_names,
        access=access,
        no_promise=why_no_promise(model.receipt),
    )
