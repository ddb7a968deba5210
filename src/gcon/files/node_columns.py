"""The columns of the nodes file: ids, splits and labels, each with all that is wrong in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gcon.files.file_problems import FileProblems, listed
from gcon.files.node_ids import PLAIN_NUMBER, NodeIds, ids_of_series

if TYPE_CHECKING:
    import polars as pl

PARTS = {"train": "train", "val": "validation", "validation": "validation", "test": "test"}


def read_ids(column: pl.Series, problems: FileProblems) -> NodeIds | None:
    """The ids, if every row has one of its own."""
    import polars as pl

    lost = column.is_null()
    if column.dtype == pl.String:
        lost = lost | (column.fill_null("") == "")
    repeated = column.is_duplicated() & ~lost
    name = f"column {column.name!r}"
    problems.add_rows(lost.to_numpy(), f"{name}: every row needs an id", "none", "Add it, or drop the row.")
    problems.add_rows(repeated.to_numpy(), f"{name}: every id may occur once", "repeated ids", "Keep one row per node.")
    if lost.any() or repeated.any():
        return None
    ids = ids_of_series(column)
    if ids is None:
        problems.add(f"{name}: ids must be whole numbers or strings", f"type {column.dtype}", "Convert the ids.")
    return ids


def read_splits(
    column: pl.Series | None, labelled: NDArray[np.bool_], problems: FileProblems
) -> dict[str, NDArray[np.bool_]]:
    """The masks train, validation and test; without a split column every row with a label is for training."""
    import polars as pl

    if column is None:
        nobody = np.zeros(labelled.size, dtype=bool)
        return {"train": labelled, "validation": nobody, "test": nobody.copy()}
    values = column.cast(pl.String, strict=False).fill_null("")
    masks = {part: np.zeros(labelled.size, dtype=bool) for part in PARTS.values()}
    for word, part in PARTS.items():
        masks[part] |= (values == word).to_numpy()
    strange = ~values.is_in(["", *PARTS]).to_numpy()
    problems.add_rows(
        strange,
        f"column {column.name!r}: must be train, val, test or empty",
        _some(values, strange),
        "Use these words, in small letters and without blanks.",
    )
    return masks


def read_labels(
    column: pl.Series,
    masks: dict[str, NDArray[np.bool_]],
    problems: FileProblems,
    *,
    classes: Sequence[object] | None,
) -> tuple[NDArray[np.int64], list[object]]:
    """Class numbers (-1 outside the masks: those labels are never read), and the class list."""
    import polars as pl

    used = masks["train"] | masks["validation"] | masks["test"]
    # Labels outside the splits leave here, before anything looks at them.
    values = label_text(column).to_frame("label").select(pl.when(pl.Series(used)).then("label"))["label"]
    lost = used & values.is_null().to_numpy()
    rule, fix = f"column {column.name!r}: a row with a split needs a label", "Label the row, or leave its split empty."
    problems.add_rows(lost, rule, "none", fix)
    training = values.filter(pl.Series(masks["train"])).drop_nulls()
    names = _class_names(training, values) if classes is None else list(classes)
    place = {str(name): number for number, name in enumerate(names)}
    found = values.replace_strict(place, default=-1, return_dtype=pl.Int64)
    numbers = np.where(used, found.fill_null(-1).to_numpy(), -1).astype(np.int64)
    strange = used & ~lost & (numbers < 0)
    if names or classes is not None:
        problems.add_rows(
            strange,
            f"column {column.name!r}: labels must lie in the class list {names[:20]}",
            _some(values, strange),
            "Pass classes=[...], or label a training node of that class, or leave the split empty.",
        )
    if not training.len():
        problems.add("needs a labelled node for training", "none", "Label some nodes (split: train).")
    elif len(names) < 2:
        problems.add("needs at least two classes", f"{names}", "With one class there is nothing to learn.")
    return numbers, names


def _some(values: pl.Series, rows: NDArray[np.bool_]) -> str:
    """The first of the different values in these rows."""
    import polars as pl

    return listed(sorted(set(values.filter(pl.Series(rows)).to_list()))[:3])


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
