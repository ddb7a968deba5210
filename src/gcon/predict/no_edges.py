"""Accesses `none` and `cached`: no edge is read."""

from __future__ import annotations

from torch import Tensor

from gcon.predict.predictions import Predictions, checked_access
from gcon.predict.scored import predictions_from
from gcon.predict.scorers import scorer_of
from gcon.release.published import PublishedModel


def predict_without_edges(model: PublishedModel, features: Tensor, *, access: str = "none") -> Predictions:
    """Predict from public features alone; `none` works for nodes never seen, `cached` for the training nodes.

    Privacy:
        A function of public features and the released model: predictions for all nodes may be published.
    """
    kind = checked_access(access, tuple(name for name in model.accesses if name in ("none", "cached")))
    scorer = scorer_of(model)
    return predictions_from(model, scorer, scorer.without_edges(scorer.start(features, kind)), access=kind)
