"""A data frame as a node table: its columns by name, as numbers or as categories, by the rules of `gcon.columns`."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gcon.columns import GAP, Cells, FeatureColumns, Trouble, category_of, features_of, kind_of_text, learn_columns
from gcon.errors import InputError

WAY_OUT = "Pass categorical=[{name}] (one feature per category) or drop=[{name}] (leaves it out)."
CORRECT = "Correct these rows: a column of numbers may have gaps only where the training table had some."


def column_names(table: Any) -> list[str]:
    """The names of a data frame's columns; none where they are no strings, or for another kind of table."""
    names = getattr(table, "columns", None)
    found = [] if names is None or callable(names) else list(names)
    return found if all(isinstance(name, str) for name in found) else []


def without(table: Any, drop: Sequence[str]) -> Any:
    """A data frame without some of its columns, those that it has."""
    names = column_names(table)
    return table[[name for name in names if name not in drop]] if set(names) & set(drop) else table


def learn_frame(table: Any, *, drop: Sequence[str], categorical: Sequence[str]) -> tuple[NDArray[Any], FeatureColumns]:
    """The features of a data frame whose columns have names, and what was done to get them.

    Args:
        table: the data frame, dropped columns taken out already.
        drop: their names.
        categorical: columns that hold categories.
    """
    names = column_names(table)
    if len(set(names)) != len(names):
        raise InputError("X", rule="every column needs a name of its own", got="one twice", fix="Rename or drop one.")
    if not names:
        raise InputError("X", rule="needs at least one column", got="none that is left", fix="Drop fewer.")

    def read(name: str) -> Cells:
        return _cells(name, table[name] if hasattr(table, "__getitem__") else np.asarray(table)[:, names.index(name)])

    known, troubles = learn_columns(names, read, categorical=categorical, drop=drop, way_out=WAY_OUT)
    if known is None:
        raise _refusal(troubles[0])
    return frame_features(table, known), known


def frame_features(table: Any, known: FeatureColumns) -> NDArray[Any]:
    """The features of a table again: columns by name where it has names, else by their places."""
    values = None if column_names(table) and hasattr(table, "__getitem__") else np.asarray(table)
    if values is not None and (values.ndim != 2 or values.shape[1] != len(known.names)):
        rule = f"must have the {len(known.names)} columns of training: {', '.join(known.names[:8])}"
        raise InputError("X", rule=rule, got=f"shape {values.shape}", fix="Pass a data frame with these names.")

    def read(name: str) -> Cells:
        return _cells(name, table[name] if values is None else values[:, known.names.index(name)])

    numbers = [name for name in known.names if name not in known.categories]
    kinds = [np.asarray(table[name]).dtype for name in numbers] if values is None else [values.dtype]
    wide = any(kind not in (np.float32, np.float16) for kind in kinds)
    matrix, troubles = features_of(known, read, height=len(table), wide=wide, fix=CORRECT)
    if troubles:
        raise _refusal(troubles[0])
    return matrix


def _cells(name: str, column: Any) -> Cells:
    declared = str(getattr(column, "dtype", "")) == "category"
    values = np.asarray(column)
    if values.dtype.kind not in "biufOUST":
        return Cells(name, None, None, None, f"type {values.dtype}")
    cells = values.tolist()

    def texts() -> list[str]:
        return [category_of(value) for value in cells]

    if declared:
        return Cells(name, None, texts, None, "categories")
    if values.dtype.kind in "biuf":
        return Cells(name, values.astype(np.float64), texts, None, "numbers")
    real = np.fromiter((isinstance(value, Real) for value in cells), dtype=bool, count=len(cells))
    numbers = np.full(len(cells), np.nan)
    numbers[real] = [float(value) for value, is_real in zip(cells, real, strict=True) if is_real]
    strange = np.fromiter((category_of(value) != GAP for value in cells), dtype=bool, count=len(cells)) & ~real
    odd = kind_of_text(str(cells[int(strange.argmax())])) if strange.any() else "text"
    return Cells(name, numbers, texts, strange, odd)


def _refusal(trouble: Trouble) -> InputError:
    rows = "" if trouble.rows is None else f" in row {int(np.flatnonzero(trouble.rows)[0])}"
    return InputError("X", rule=trouble.rule, got=f"{trouble.got}{rows}", fix=trouble.fix)
