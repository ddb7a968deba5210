"""Features: numeric columns of the nodes file, its list column `features`, or an .npz/.npy beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcon.columns import Cells, FeatureColumns, Trouble, category_of, features_of, kind_of_text, learn_columns
from gcon.errors import InputError, wants_memory
from gcon.files.array_files import dense, load_archive, tensor_over
from gcon.files.file_problems import TOO_LARGE, FileProblems, Problem, TooLargeError, check_file, listed
from gcon.files.readers import pl
from gcon.nodes import row_slices

LIST_COLUMN = "features"
WAY_OUT = "Add --categorical {name} (one feature per category) or --drop {name} (leaves it out); in Python categorical=, drop=."
CORRECT = "Correct these rows: a column of numbers may have gaps only where the training table had some."


def read_features(
    frame: pl.DataFrame,
    features_path: str | Path | None,
    problems: FileProblems,
    *,
    height: int,
    known: FeatureColumns | None = None,
    categorical: Sequence[str] = (),
    drop: Sequence[str] = (),
    fix: str = CORRECT,
) -> tuple[Tensor | None, FeatureColumns | None]:
    """Features from the columns that are left, or from an array beside the table; 64-bit where the file stores such.

    And what was done with the columns; None where they have no names.

    Args:
        frame: the columns that are left.
        features_path: an array beside the table.
        problems: gets what is wrong.
        height: number of nodes.
        known: what was done in training: it is done again, with columns in any order, and others are not read.
        categorical: columns that hold categories, where nothing is known yet.
        drop: columns that were left out before.
        fix: what to do about cells that are no numbers, where that is known.
    """
    if features_path is not None or any(isinstance(dtype, pl.List | pl.Array) for dtype in frame.dtypes):
        if categorical or not (known is None or known.plain):
            rule = "must hold the features as columns, since some are categorical or have gaps"
            problems.add(rule, "an array or lists", "Pass the table that holds these columns.")
            return None, None
        return _without_names(frame, features_path, problems, height=height), known
    if not frame.width:
        problems.add(
            "needs features",
            "no further column",
            "Add columns, or pass an array: --features FILE (in Python features_path=).",
        )
        return None, None

    def read(name: str) -> Cells:
        """Text is read as numbers where it can be; a column of categories, in Parquet, is text."""
        column, dtype = frame[name], frame[name].dtype
        words = dtype in (pl.Categorical, pl.Enum)
        if not (dtype.is_numeric() or words or dtype in (pl.String, pl.Boolean, pl.Null)):
            return Cells(name, None, None, None, f"type {dtype}")

        def texts() -> list[str]:
            if words or dtype == pl.String:
                return column.cast(pl.String).fill_null("").to_list()
            return [category_of(value) for value in column.to_list()]

        if words:
            return Cells(name, None, texts, None, "categories")
        numbers = column.cast(pl.Float64, strict=False)
        strange = (numbers.is_null() & column.is_not_null()).to_numpy() if dtype == pl.String else None
        odd = "text"
        if strange is not None and strange.any():
            odd = kind_of_text(column[int(strange.argmax())])
        return Cells(name, numbers.fill_null(np.nan).to_numpy(), texts, strange, odd)

    troubles: list[Trouble] = []
    if known is None:
        known, troubles = learn_columns(frame.columns, read, categorical=categorical, drop=drop, way_out=WAY_OUT)
    elif lost := [name for name in known.names if name not in frame.columns]:
        problems.add("needs the columns that the model was trained on", f"no {listed(lost)}", "Add or rename them.")
        return None, None
    if known is not None:
        wide = any(frame[name].dtype == pl.Float64 for name in known.names if name not in known.categories)
        matrix, troubles = features_of(known, read, height=height, wide=wide, fix=fix)
    for trouble in troubles:
        if trouble.rows is None:
            problems.add(trouble.rule, trouble.got, trouble.fix)
        else:
            problems.add_rows(trouble.rows, trouble.rule, trouble.got, trouble.fix)
    return (None, None) if known is None or troubles else (torch.from_numpy(matrix), known)


def numbers_only(frame: pl.DataFrame) -> FeatureColumns | None:
    """What to do where nothing is prepared: every column is a number."""
    return FeatureColumns(names=tuple(frame.columns)) if frame.width else None


def _without_names(
    frame: pl.DataFrame, features_path: str | Path | None, problems: FileProblems, *, height: int
) -> Tensor | None:
    """Features from an array beside the table, or from its one column of lists."""
    if features_path is not None:
        features, found = features_of_arrays(Path(features_path), height)
        problems.found += found
        if frame.width:
            rule, fix = "may hold no features beside features_path", "Leave them out: --drop NAME."
            problems.add(rule, listed(frame.columns), fix)
        return features
    if frame.columns == [LIST_COLUMN]:
        return _features_of_lists(frame[LIST_COLUMN], problems)
    got = ", ".join(repr(name) for name in frame.columns[:5])
    rule = f"features must be one list column {LIST_COLUMN!r} or columns of numbers, not both"
    problems.add(rule, got, "Leave the others out: --drop NAME.")
    return None


def _features_of_lists(column: pl.Series, problems: FileProblems) -> Tensor | None:
    lists = column.cast(pl.List(column.dtype.inner)) if isinstance(column.dtype, pl.Array) else column
    inner = lists.dtype.inner if isinstance(lists.dtype, pl.List) else None
    if inner is None or not inner.is_numeric():
        problems.add(
            f"column {column.name!r}: features must be lists of numbers", f"type {column.dtype}", "Convert it."
        )
        return None
    lengths = lists.list.len().fill_null(0).to_numpy()
    width = int(np.bincount(lengths.astype(np.int64)).argmax()) if lengths.size else 0
    rule = f"column {column.name!r}: every list must have the same length, at least 1"
    uneven = lengths != width
    problems.add_rows(uneven, rule, "another length", "Repair these rows.")
    if not uneven.any() and not width:
        problems.add(rule, "empty lists", "Repair these rows.")
    if uneven.any() or not width:
        return None
    dtype = np.float64 if inner == pl.Float64 else np.float32
    with np.errstate(over="ignore"):
        flat = lists.explode().cast(pl.Float64).fill_null(np.nan).to_numpy().astype(dtype)
    return _if_finite(flat.reshape(-1, width), problems)


def features_of_arrays(path: Path, num_nodes: int) -> tuple[Tensor | None, list[Problem]]:
    """Features from .npy, or from .npz (array `features` or `x`, or a sparse matrix as scipy saves it); and what is wrong.

    The rows of an .npy with 32-bit or 64-bit numbers, row after row, are not read into memory: the file is mapped, and must stay
    as it is while they are in use. One that is written anew beside it and renamed does no harm.
    """
    problems = FileProblems("features", path)
    values: NDArray[Any] | None = None
    try:
        check_file(path, "features", suffixes=(".npz", ".npy"))
        if path.suffix.lower() == ".npy":
            # Where it lies: nothing is read before it is asked for. Refuses pickles, archives and files that are too short.
            values, names = np.lib.format.open_memmap(path, mode="r"), list[str]()
        else:
            values, matrix, names = load_archive(path, ("features", "x"))
            values = values if matrix is None else dense(path, matrix)
    except InputError as error:
        return None, [each for each in error.problems if isinstance(each, Problem)]
    except TooLargeError as error:
        problems.add(TOO_LARGE, str(error), "Save it as a plain array (numpy.save, .npy).")
        return None, problems.found
    except Exception as error:  # whatever numpy, zipfile or scipy say about a broken file
        if wants_memory(error):
            raise MemoryError from None
        rule, fix = "must be readable by numpy without pickle", "Write it again as plain numbers."
        problems.add(rule, "a damaged or foreign file", fix)
        return None, problems.found
    if values is None:
        rule = "must hold an array 'features' or 'x', or a sparse matrix as scipy saves it"
        problems.add(rule, f"{names}", "Rename the array.")
        return None, problems.found
    if values.ndim != 2 or values.shape[0] != num_nodes or not values.shape[1] or values.dtype.kind not in "fiub":
        rule = f"must be a matrix of numbers with one row for each of the {num_nodes} nodes"
        problems.add(rule, f"{values.dtype} of shape {values.shape}", "Use the order of the nodes file.")
        return None, problems.found
    dtype = np.float64 if values.dtype == np.float64 else np.float32
    with np.errstate(over="ignore"):
        return _if_finite(np.require(values, dtype=dtype, requirements=["C", "A"]), problems), problems.found


def _if_finite(matrix: NDArray[Any], problems: FileProblems) -> Tensor | None:
    wrong = np.empty(len(matrix), dtype=bool)
    for rows in row_slices(len(matrix), width=matrix.shape[1]):
        wrong[rows] = ~np.isfinite(matrix[rows]).all(axis=1)
    problems.add_rows(wrong, "features must be finite", "NaN or infinity", "Fill in or drop such values.")
    return None if wrong.any() else tensor_over(matrix)
