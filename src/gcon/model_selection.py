"""Parts of the nodes that keep the graph whole.

A search over rows, as scikit-learn's, cuts a graph into pieces. Here all nodes and edges stay, and masks choose who teaches and
who is scored: `model.fit(X, y, edges=edges, **split_nodes(y))`, then `model.node_score(..., access="none")`, which says what it
cost and who may see it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

from gcon.errors import InputError, check_number, warn_caller
from gcon.estimators.node_score import NodeScore
from gcon.files.inputs import as_labels

Masks = dict[str, NDArray[np.bool_]]

__all__ = ["NodeScore", "node_folds", "split_nodes"]


def split_nodes(
    y: Any,
    *,
    test_size: float = 0.2,
    validation_size: float = 0.0,
    stratify: bool = True,
    random_state: int | None = None,
) -> Masks:
    """Masks for `fit`, over all nodes: train_mask, validation_mask and test_mask.

    Args:
        y: labels of all nodes, or PyG's Data; those without one (-1, None, NaN) are in no mask.
        test_size: share of the labelled nodes, in (0, 1).
        validation_size: likewise, from 0; with the test nodes less than 1.
        stratify: every class in the same shares, which needs two nodes of each at least.
        random_state: the same number gives the same masks. It has nothing to do with noise and may be public.

    Example:
        >>> masks = split_nodes([0, 1, 0, 1, 0, 1, 0, 1, -1, -1], test_size=0.5, random_state=0)
        >>> [int(mask.sum()) for mask in masks.values()]
        [4, 0, 4]

    Privacy:
        Reads public labels.
    """
    for name, value, least in (("test_size", test_size, False), ("validation_size", validation_size, True)):
        check_number(
            name,
            value,
            allowed=lambda share, least=least: 0 < share < 1 or (least and share == 0),  # type: ignore[misc]
            rule="must be a share of the labelled nodes, in (0, 1)",
            fix="For example 0.2.",
        )
    if test_size + validation_size >= 1:
        got = f"{test_size} + {validation_size}"
        raise InputError("test_size, validation_size", rule="must leave nodes to learn from", got=got, fix="Lower one.")
    labels, known = _labelled(y)
    parts = {"train_mask": known, "validation_mask": known[:0], "test_mask": known[:0]}
    for name, share in (("test_mask", test_size), ("validation_mask", validation_size)):
        if share:
            rest, size = parts["train_mask"], max(1, round(share * len(known)))
            classes = labels[rest].astype(str) if stratify else None
            try:
                parts["train_mask"], parts[name] = train_test_split(
                    rest, test_size=size, stratify=classes, random_state=random_state
                )
            except ValueError as error:
                raise _too_few(error) from None
    return {name: _mask(rows, len(labels)) for name, rows in parts.items()}


def node_folds(y: Any, n_splits: int = 5, *, stratify: bool = True, random_state: int | None = None) -> Iterator[Masks]:
    """Masks of cross-validation, one pair after another: every labelled node is a test node once.

    Every fit with one of them is a release of its own: `n_splits` of them cost `n_splits` times epsilon.

    Args:
        y: labels of all nodes, or PyG's Data; those without one are in no mask.
        n_splits: how many, from 2.
        stratify: every class in the same shares.
        random_state: the same number gives the same masks.

    Example:
        >>> [int(masks["test_mask"].sum()) for masks in node_folds([0, 1, 0, 1, 0, 1], 3)]
        [2, 2, 2]

    Privacy:
        Reads public labels.
    """
    labels, known = _labelled(y)
    kind = StratifiedKFold if stratify else KFold
    try:
        with warnings.catch_warnings(record=True) as heard:
            folds = list(
                kind(n_splits, shuffle=True, random_state=random_state).split(known, labels[known].astype(str))
            )
    except ValueError as error:
        raise _too_few(error) from None
    for warning in heard:  # at the caller's line
        warn_caller(str(warning.message), warning.category)
    for train, test in folds:
        parts = {"train_mask": known[train], "validation_mask": known[:0], "test_mask": known[test]}
        yield {name: _mask(rows, len(labels)) for name, rows in parts.items()}


def _labelled(y: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
    given = y.y if hasattr(y, "edge_index") else y
    labels, known = as_labels(given, len(given) if given is not None else 0)
    return labels, np.flatnonzero(known)


def _mask(rows: NDArray[np.int64], num_nodes: int) -> NDArray[np.bool_]:
    mask = np.zeros(num_nodes, dtype=bool)
    mask[rows] = True
    return mask


def _too_few(error: ValueError) -> InputError:
    got = f"this complaint of scikit-learn: {str(error).strip().removesuffix('.')}"
    return InputError(
        "y", rule="must have enough labelled nodes of every class", got=got, fix="Pass stratify=False, or fewer parts."
    )
