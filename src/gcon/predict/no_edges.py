"""Access `none`: no edge is read."""

from __future__ import annotations

from torch import Tensor

from gcon.predict.predictions import Predictions, from_blocks
from gcon.release.model import ReleasedModel


def predict_without_edges(model: ReleasedModel, features: Tensor) -> Predictions:
    """Predict from public features alone; works for nodes never seen.

    Privacy:
        A function of public features and the released model: predictions for all nodes may be published.
    """
    encoded = model.encoder.encode(features)
    return from_blocks(model, encoded, encoded, access="none")
