"""The columns of the nodes file: ids, splits and labels, each with all that is wrong in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gcon.files.file_problems import Problem, in_rows, listed, shortened
from gcon.files.node_ids import PLAIN_NUMBER, NodeIds, ids_of_series

if TYPE_CHECKING:
    import polars as pl

PARTS = {"train": "train", "val": "validation", "validation": "validation", "test": "test"}


def node_problem(
    path: Path, rule: str, got: str, fix: str, *, rows: NDArray[np.bool_] | None = None, file: str = "nodes"
) -> Problem:
    """A problem of a public file, with the rows it is in."""
    where: dict[str, Any] = {} if rows is None else in_rows(rows)
    return Problem(file, path.name, shortened(rule), shortened(got), fix, **where)


def read_ids(path: Path, column: pl.Series) -> tuple[NodeIds | None, list[Problem]]:
    """The ids, if every row has one of its own."""
    import polars as pl

    name, problems = repr(column.name), []
    lost = column.is_null()
    if column.dtype == pl.String:
        lost = lost | (column.fill_null("") == "")
    if lost.any():
        problems.append(
            node_problem(
                path, f"column {name}: every row needs an id", "none", "Add it, or drop the row.", rows=lost.to_numpy()
            )
        )
    repeated = column.is_duplicated() & ~lost
    if repeated.any():
        problems.append(
            node_problem(
                path,
                f"column {name}: every id may occur once",
                "repeated ids",
                "Keep one row a node.",
                rows=repeated.to_numpy(),
            )
        )
    ids = None if problems else ids_of_series(column)
    if ids is None and not problems:
        problems.append(
            node_problem(
                path,
                f"column {name}: ids must be whole numbers or strings",
                f"type {column.dtype}",
                "Convert the ids.",
            )
        )
    return ids, problems


def read_splits(
    path: Path, column: pl.Series | None, labelled: NDArray[np.bool_]
) -> tuple[dict[str, NDArray[np.bool_]], list[Problem]]:
    """The masks train, validation and test; without a split column every row with a label is for training."""
    import polars as pl

    if column is None:
        nobody = np.zeros(labelled.size, dtype=bool)
        return {"train": labelled, "validation": nobody, "test": nobody.copy()}, []
    values = column.cast(pl.String, strict=False).fill_null("")
    masks = {part: np.zeros(labelled.size, dtype=bool) for part in PARTS.values()}
    for word, part in PARTS.items():
        masks[part] |= (values == word).to_numpy()
    problems = []
    strange = ~values.is_in(["", *PARTS]).to_numpy()
    if strange.any():
        shown = sorted(set(values.filter(pl.Series(strange)).to_list()))[:3]
        problems.append(
            node_problem(
                path,
                f"column {column.name!r}: must be train, val, test or empty",
                listed(shown),
                "Use these words, in small letters and without blanks.",
                rows=strange,
            )
        )
    return masks, problems


def read_labels(
    path: Path,
    column: pl.Series,
    masks: dict[str, NDArray[np.bool_]],
    *,
    classes: Sequence[object] | None,
) -> tuple[NDArray[np.int64], list[object], list[Problem]]:
    """Class numbers (-1 outside the masks: those labels are never read), the class list, and what is wrong."""
    import polars as pl

    used = masks["train"] | masks["validation"] | masks["test"]
    # Labels outside the splits leave here, before anything looks at them.
    values = label_text(column).to_frame("label").select(pl.when(pl.Series(used)).then("label"))["label"]
    problems = []
    lost = used & values.is_null().to_numpy()
    if lost.any():
        problems.append(
            node_problem(
                path,
                f"column {column.name!r}: a row with a split needs a label",
                "none",
                "Label the row, or leave its split empty.",
                rows=lost,
            )
        )
    training = values.filter(pl.Series(masks["train"])).drop_nulls()
    names = _class_names(training, values) if classes is None else list(classes)
    place = {str(name): number for number, name in enumerate(names)}
    written = values.to_frame("label").with_columns(
        pl.col("label").replace_strict(place, default=-1, return_dtype=pl.Int64).alias("class")
    )
    numbers = np.where(used, written["class"].fill_null(-1).to_numpy(), -1).astype(np.int64)
    strange = used & ~lost & (numbers < 0)
    if strange.any() and (names or classes is not None):
        shown = sorted(set(values.filter(pl.Series(strange)).to_list()))[:3]
        problems.append(
            node_problem(
                path,
                f"column {column.name!r}: labels must lie in the class list {names[:20]}",
                listed(shown),
                "Pass classes=[...], or label a training node of that class, or leave the split empty.",
                rows=strange,
            )
        )
    if not training.len():
        problems.append(
            node_problem(path, "needs a labelled node for training", "none", "Label some nodes (split: train).")
        )
    elif len(names) < 2:
        problems.append(
            node_problem(path, "needs at least two classes", f"{names}", "With one class there is nothing to learn.")
        )
    return numbers, names, problems


def has_label(column: pl.Series) -> NDArray[np.bool_]:
    """Which rows have a label at all."""
    return label_text(column).is_not_null().to_numpy()


def label_text(column: pl.Series) -> pl.Series:
    """Labels as strings, null where empty; whole numbers stored as fractions (pandas with gaps) lose their point."""
    import polars as pl

    if column.dtype.is_float():
        column = column.fill_nan(None)
        whole = column.cast(pl.Int64, strict=False)
        column = whole if bool((whole.cast(column.dtype) == column).all()) else column
    text = column.cast(pl.String, strict=False)
    return text.to_frame("label").select(pl.when(pl.col("label") != "").then("label"))["label"]


def _class_names(training: pl.Series, used: pl.Series) -> list[object]:
    """The labels of the training rows in order: as numbers if all labels in a split are, as strings otherwise."""
    import polars as pl

    found = training.unique()
    if bool(used.drop_nulls().str.contains(PLAIN_NUMBER).all()):
        numbers = found.cast(pl.Int64, strict=False)
        if numbers.null_count() == 0:
            return list(numbers.sort().to_list())
    return list(found.sort().to_list())
