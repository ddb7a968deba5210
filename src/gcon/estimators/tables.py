"""Tables of features for an estimator: scikit-learn's own checks, and columns by the rules of training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data
from torch import Tensor

from gcon.columns import FeatureColumns, same_features
from gcon.edges.graph import PrivateGraph, PublicGraph
from gcon.errors import InputError
from gcon.files.frames import column_names, frame_features, learn_frame, without
from gcon.files.inputs import as_features, read_columns

MATRIX = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_all_finite": False}


def learned_features(
    estimator: Any, X: Any, *, drop: Sequence[str], categorical: Sequence[str]
) -> tuple[Any, FeatureColumns | None]:
    """The features to train on; and what was done with the columns, if they have names."""
    names = column_names(X)
    if not names:
        return _checked(estimator, X, reset=True, **MATRIX), None
    lost = [name for name in drop if name not in names]
    if lost:
        fix = "Pass a list of names." if isinstance(drop, str) else f"X has {names[:8]}."
        raise InputError(
            "drop", rule="must name columns of X", got=repr(drop if isinstance(drop, str) else lost[0]), fix=fix
        )
    return learn_frame(without(X, drop), drop=drop, categorical=categorical)


def known_features(estimator: Any, X: Any) -> Tensor:
    """The features of nodes for a fitted estimator, with the columns of its training."""
    known = estimator.model_.feature_columns
    if isinstance(X, PrivateGraph):
        if not same_features(known, X.nodes.feature_columns):
            rule, fix = "must have been read with the columns of training", "Read it with model_.feature_columns."
            raise InputError("X", rule=rule, got="other columns or categories", fix=fix)
        return X.nodes.features
    if isinstance(X, PublicGraph):
        return X.features
    features = read_columns(X).features
    if known is not None and features is X and column_names(X):
        kept = without(X, known.drop)
        _checked(estimator, kept, reset=False, skip_check_array=True)
        return as_features(frame_features(kept, known))
    if known is not None and not known.plain:
        return as_features(frame_features(features, known))
    if features is not X:
        return as_features(features)
    if not hasattr(estimator, "feature_names_in_") and hasattr(X, "columns"):
        X = np.asarray(X)  # a loaded model, or one of a graph, knows its columns by their places
    return as_features(_checked(estimator, X, reset=False, **MATRIX))


def _checked(estimator: Any, X: Any, **how: Any) -> Any:
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
            else "Pass the matrix X, PyG's Data, a networkx graph or a PrivateGraph.",
        ) from error
