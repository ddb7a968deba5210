"""Predictions -> a table in a file that says who may see it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gcon.errors import InputError
from gcon.interop.file_problems import require_polars
from gcon.interop.write_files import write_frame
from gcon.predict.predictions import Predictions


def write_predictions(path: str | Path, ids: Sequence[object], predictions: Predictions) -> None:
    """Write id, label, `probability_CLASS` for every class, and `audience` (who may see it), row by row.

    Args:
        path: ends in .csv, .tsv or .parquet.
        ids: one a node, in row order.
        predictions: what to write.

    Privacy:
        A table that may not be published is readable by its owner only (mode 0600).
    """
    if len(ids) != len(predictions.classes):
        raise InputError("ids", rule="one a prediction", got=len(ids), fix="Pass the ids of the same graph.")
    require_polars()
    import polars

    columns: dict[str, object] = {"id": list(ids), "label": [str(label) for label in predictions.labels]}
    for number, name in enumerate(predictions.class_names):
        columns[f"probability_{name}"] = predictions.probabilities[:, number].numpy()
    columns["audience"] = [predictions.audience] * len(ids)
    write_frame(path, polars.DataFrame(columns), owner_only=not predictions.publishable)
