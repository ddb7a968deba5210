"""Accesses `none` and `cached`: no edge is read."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from gcon.methods.model import Model, joined, predictions_from
from gcon.methods.predictions import Predictions, checked_access
from gcon.nodes import row_slices


def predict_without_edges(model: Model, features: Tensor, *, access: str = "none", device: str = "cpu") -> Predictions:
    """Predict from public features alone; `none` works for nodes never seen, `cached` for nodes of the training table.

    Args:
        model: the released model.
        features: public features, one row per node.
        access: `none` or `cached`.
        device: where to compute: `cpu`, `cuda` or `cuda:NUMBER`.

    Privacy:
        A function of public features and the released model: predictions for all nodes may be published.
    """
    return joined(batches_without_edges(model, features, access=access, device=device))


def batches_without_edges(
    model: Model, features: Tensor, *, access: str = "none", device: str = "cpu"
) -> Iterator[Predictions]:
    """The same predictions for one batch of nodes after another: for tables that do not fit into memory.

    Everything that concerns the whole table is checked before the first batch; numbers are checked batch by batch.
    """
    kind = checked_access(access, tuple(name for name in model.accesses if name in ("none", "cached")))
    scorer = model.scorer(device=device)
    start = scorer.start_of_rows(features, kind)
    slices = row_slices(len(features)) if len(features) else iter([slice(0, 0)])
    return (predictions_from(model, scorer, scorer.without_edges(start(rows)), access=kind) for rows in slices)
