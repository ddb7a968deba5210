"""Features: numeric columns of the nodes file, its list column `features`, or an .npz/.npy beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcon.files.array_files import TOO_LARGE, TooLargeError, dense, load_archive, map_array, tensor_over
from gcon.files.file_problems import Problem, file_problem
from gcon.files.node_columns import node_problem
from gcon.nodes import light_slices

if TYPE_CHECKING:
    import polars as pl

LIST_COLUMN = "features"


def features_of_table(path: Path, frame: pl.DataFrame) -> tuple[Tensor | None, list[Problem]]:
    """Features from all columns that are left: 32-bit numbers, or 64-bit where the file stores such."""
    import polars as pl

    if not frame.width:
        return None, [node_problem(path, "needs features", "no further column", "Add columns, or pass features_path.")]
    nested = any(isinstance(dtype, pl.List | pl.Array) for dtype in frame.dtypes)
    if nested:
        if frame.columns != [LIST_COLUMN]:
            got = ", ".join(repr(name) for name in frame.columns[:5])
            rule = f"features must be one list column {LIST_COLUMN!r} or columns of numbers, not both"
            return None, [node_problem(path, rule, got, "Drop or ignore the others.")]
        return _features_of_lists(path, frame[LIST_COLUMN])
    wide = any(dtype == pl.Float64 for dtype in frame.dtypes)
    matrix = np.empty((frame.height, frame.width), dtype=np.float64 if wide else np.float32)
    problems = []
    for place, column in enumerate(frame.iter_columns()):
        numbers: pl.Series | None = column
        if not column.dtype.is_numeric():
            numbers = column.cast(pl.Float64, strict=False) if column.dtype in (pl.String, pl.Boolean) else None
        if numbers is None:
            rule, got = f"column {column.name!r}: features must be numbers", f"type {column.dtype}"
            problems.append(node_problem(path, rule, got, "Convert it, or name it in ignore_columns."))
            continue
        with np.errstate(over="ignore"):
            matrix[:, place] = numbers.cast(pl.Float64).fill_null(np.nan).to_numpy()
        wrong = ~np.isfinite(matrix[:, place])
        if wrong.any():
            problems.append(
                node_problem(
                    path,
                    f"column {column.name!r}: features must be finite numbers",
                    "text, nothing, NaN or infinity",
                    "Fill in such values, or name the column in ignore_columns.",
                    rows=wrong,
                )
            )
    return (None if problems else torch.from_numpy(matrix)), problems


def _features_of_lists(path: Path, column: pl.Series) -> tuple[Tensor | None, list[Problem]]:
    import polars as pl

    lists = column.cast(pl.List(column.dtype.inner)) if isinstance(column.dtype, pl.Array) else column
    inner = lists.dtype.inner if isinstance(lists.dtype, pl.List) else None
    if inner is None or not inner.is_numeric():
        rule = f"column {column.name!r}: features must be lists of numbers"
        return None, [node_problem(path, rule, f"type {column.dtype}", "Convert it.")]
    lengths = lists.list.len().fill_null(0).to_numpy()
    width = int(np.bincount(lengths.astype(np.int64)).argmax()) if lengths.size else 0
    uneven = lengths != width
    if uneven.any() or not width:
        rule = f"column {column.name!r}: every list must have the same length, at least 1"
        got = "another length" if uneven.any() else "empty lists"
        return None, [node_problem(path, rule, got, "Repair these rows.", rows=uneven if uneven.any() else None)]
    dtype = np.float64 if inner == pl.Float64 else np.float32
    with np.errstate(over="ignore"):
        flat = lists.explode().cast(pl.Float64).fill_null(np.nan).to_numpy().astype(dtype)
    return _checked(path, flat.reshape(-1, width), file="nodes")


def features_of_arrays(path: Path, num_nodes: int) -> tuple[Tensor | None, list[Problem]]:
    """Features from .npy, or from .npz (array `features` or `x`, or a sparse matrix as scipy saves it).

    The rows of an .npy with 32-bit or 64-bit numbers, row after row, are not read into memory: the file is mapped.
    """
    wrong = file_problem(path, "features", suffixes=(".npz", ".npy"))
    if wrong is not None:
        return None, [wrong]
    try:
        values, names = _load(path)
    except TooLargeError as error:
        fix = "Save it as a plain array (numpy.save, .npy)."
        return None, [node_problem(path, TOO_LARGE, str(error), fix, file="features")]
    except Exception:  # whatever numpy, zipfile or scipy say about a broken file
        rule, fix = "must be readable by numpy without pickle", "Write it again as plain numbers."
        return None, [node_problem(path, rule, "a damaged or foreign file", fix, file="features")]
    if values is None:
        rule, fix = "must hold an array 'features' or 'x', or a sparse matrix as scipy saves it", "Rename the array."
        return None, [node_problem(path, rule, f"{names}", fix, file="features")]
    if values.ndim != 2 or values.shape[0] != num_nodes or not values.shape[1] or values.dtype.kind not in "fiub":
        rule = f"must be a matrix of numbers with one row for each of the {num_nodes} nodes"
        got = f"{values.dtype} of shape {values.shape}"
        return None, [node_problem(path, rule, got, "Use the order of the nodes file.", file="features")]
    dtype = np.float64 if values.dtype == np.float64 else np.float32
    with np.errstate(over="ignore"):
        return _checked(path, np.require(values, dtype=dtype, requirements=["C", "A"]), file="features")


def _load(path: Path) -> tuple[NDArray[Any] | None, list[str]]:
    if path.suffix.lower() == ".npy":
        return map_array(path), []
    values, matrix, names = load_archive(path, ("features", "x"))
    return (values if matrix is None else dense(path, matrix)), names


def _checked(path: Path, matrix: NDArray[Any], *, file: str) -> tuple[Tensor | None, list[Problem]]:
    wrong = np.empty(len(matrix), dtype=bool)
    for rows in light_slices(matrix.shape):
        wrong[rows] = ~np.isfinite(matrix[rows]).all(axis=1)
    if wrong.any():
        fix = "Fill in or drop such values."
        return None, [node_problem(path, "features must be finite", "NaN or infinity", fix, rows=wrong, file=file)]
    return tensor_over(matrix), []
