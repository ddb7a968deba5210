"""Rows by the ids of a data frame: labels and masks that have an index follow it, and edges may name its ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gcon.errors import InputError


def row_ids(table: Any) -> Sequence[Any] | None:
    """The ids of a table's rows; None where it has no index (a list's `index` is a function)."""
    index = getattr(table, "index", None)
    return None if index is None or callable(index) else list(index)


def rows_of(ids: Sequence[Any]) -> Mapping[Any, int]:
    """The row of every id."""
    rows = {each: row for row, each in enumerate(ids)}
    if len(rows) != len(ids):
        rule, fix = "the index must name every node once", "Use unique ids: features.set_index(...)."
        raise InputError("features", rule=rule, got="an id that occurs twice", fix=fix)
    return rows


def by_rows(values: Any, name: str, ids: Sequence[Any] | None) -> Any:
    """Public values of nodes, in the order of the ids if they have an index of their own; edges and the rest as they are."""
    own = row_ids(values)
    if name == "edges" or ids is None or own is None or own == ids:
        return values
    rows = rows_of(own) if set(own) == set(ids) else {}
    if not rows or len(own) != len(ids):
        raise InputError(
            "y" if name == "labels" else name,
            rule="must have the index of the features, in any order",
            got="another index",
            fix="Reindex it, or pass .to_numpy() if its rows are in the order of the features.",
        )
    return np.asarray(values)[[rows[each] for each in ids]]
