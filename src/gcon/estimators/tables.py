"""Tables of features for an estimator: scikit-learn's own checks, and columns by the rules of training."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from gcon.columns import same_features
from gcon.edges.graph import PrivateGraph, PublicGraph
from gcon.errors import InputError
from gcon.files.frames import column_names, frame_features, without
from gcon.files.inputs import Columns, as_features, read_columns

MATRIX = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_all_finite": False}


def known_columns(estimator: Any, X: Any, **given: Any) -> Columns:
    """The parts of a graph for a fitted estimator, with features as in its training; named arguments win."""
    given = {name: value for name, value in given.items() if value is not None}
    if isinstance(X, PrivateGraph):
        if not same_features(estimator.model_.feature_columns, X.nodes.feature_columns):
            rule, fix = "must have been read with the columns of training", "Read it with model_.feature_columns."
            raise InputError("X", rule=rule, got="other columns or categories", fix=fix)
        return Columns(**{"features": X.nodes.features, "edges": X.edges, "test_mask": X.nodes.test_mask, **given})
    if isinstance(X, PublicGraph):
        return Columns(**{"features": X.features, "edges": X.edges, **given})
    columns = read_columns(X, **given)
    return replace(
        columns, features=as_features(_known_features(estimator, columns.features, is_table=columns.features is X))
    )


def _known_features(estimator: Any, features: Any, *, is_table: bool) -> Any:
    """The features by the columns of training; scikit-learn has its say about a table, not about a part of a graph."""
    known = estimator.model_.feature_columns
    if known is not None and is_table and column_names(features):
        kept = without(features, known.drop)
        checked_table(estimator, kept, reset=False, skip_check_array=True)
        return frame_features(kept, known)
    if known is not None and not known.plain:
        return frame_features(features, known)
    if not is_table:
        return features
    if not hasattr(estimator, "feature_names_in_") and hasattr(features, "columns"):
        features = np.asarray(features)  # a loaded model, or one of a graph, knows its columns by their places
    return checked_table(estimator, features, reset=False, **MATRIX)


def checked_table(estimator: Any, X: Any, **how: Any) -> Any:
    """A table under scikit-learn's own checks: names, number and type of the columns."""
    try:
        return validate_data(estimator, X, **how)
    except ValueError as error:
        raise InputError(
            "features",
            rule="must be a matrix of numbers, one row per node, with the same columns at every call",
            got=f"this complaint of scikit-learn: {str(error).strip().removesuffix('.')}",
            fix="Choose the columns of training: X[list(model.feature_names_in_)]."
            if hasattr(estimator, "feature_names_in_") and column_names(X)
            else "Pass all columns of training: a matrix, PyG's Data, a networkx graph or a PrivateGraph.",
        ) from error
