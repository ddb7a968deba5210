"""The columns of the nodes file: splits and labels, each with all that is wrong in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gcon.files.file_problems import FileProblems
from gcon.files.node_ids import PLAIN_NUMBER

if TYPE_CHECKING:
    import polars as pl

PARTS = {"train": "train", "val": "validation", "validation": "validation", "test": "test"}


def read_parts(
    frame: pl.DataFrame, problems: FileProblems, *, label_column: str = "label", split_column: str = "split"
) -> tuple[pl.Series, dict[str, NDArray[np.bool_]]]:
    """Labels as strings, and the masks train, validation and test; without a column of splits all labelled rows train.

    A label is null where there is none: an empty cell, or -1 as in scikit-learn's semi-supervised models. Whole numbers stored as
    fractions (pandas with gaps) lose their point, also in text.
    """
    import polars as pl

    column = frame[label_column] if label_column in frame.columns else pl.repeat("", frame.height, eager=True)
    if column.dtype == pl.String:
        words = column.to_frame("label").select(pl.when(pl.col("label") != "").then("label"))["label"]
        numbers = words.cast(pl.Float64, strict=False)
        if numbers.null_count() == words.null_count() and bool(words.str.contains(".", literal=True).any()):
            column = numbers
    if column.dtype.is_float():
        column = column.fill_nan(None)
        whole = column.cast(pl.Int64, strict=False)
        column = whole if bool((whole.cast(column.dtype) == column).all()) else column
    known = ~pl.col("label").is_in(["", "-1", "-1.0"])
    texts = column.cast(pl.String, strict=False).to_frame("label").select(pl.when(known).then("label"))["label"]
    masks = {part: np.zeros(frame.height, dtype=bool) for part in PARTS.values()}
    if split_column not in frame.columns:
        return texts.alias(label_column), masks | {"train": texts.is_not_null().to_numpy()}
    splits = frame[split_column].cast(pl.String, strict=False).fill_null("")
    for word, part in PARTS.items():
        masks[part] |= (splits == word).to_numpy()
    problems.add_rows(
        ~splits.is_in(["", *PARTS]).to_numpy(),
        f"column {split_column!r}: must be train, val, test or empty",
        splits,
        "Use these words, in small letters and without blanks.",
    )
    return texts.alias(label_column), masks


def read_labels(
    texts: pl.Series,
    masks: dict[str, NDArray[np.bool_]],
    problems: FileProblems,
    *,
    classes: Sequence[object] | None,
) -> tuple[NDArray[np.int64], list[object]]:
    """Class numbers (-1 outside the masks: those labels are never read), and the class list.

    By default the class list is the labels of the training rows in order: as numbers if all labels in a split are, as strings
    otherwise.
    """
    import polars as pl

    used = masks["train"] | masks["validation"] | masks["test"]
    # Labels outside the splits leave here, before anything looks at them.
    values = texts.to_frame("label").select(pl.when(pl.Series(used)).then("label"))["label"]
    lost = used & values.is_null().to_numpy()
    rule, fix = f"column {texts.name!r}: a row with a split needs a label", "Label the row, or leave its split empty."
    problems.add_rows(lost, rule, "none", fix)
    training = values.filter(pl.Series(masks["train"])).drop_nulls()
    if classes is None:
        words = training.unique()
        plain = bool(values.drop_nulls().str.contains(PLAIN_NUMBER).all())
        whole = words.cast(pl.Int64, strict=False) if plain else words
        classes = (words if whole.null_count() else whole).sort().to_list()
    names = list(classes)
    place = {str(name): number for number, name in enumerate(names)}
    found = values.replace_strict(place, default=-1, return_dtype=pl.Int64)
    numbers = np.where(used, found.fill_null(-1).to_numpy(), -1).astype(np.int64)
    strange = used & ~lost & (numbers < 0)
    if names:
        problems.add_rows(
            strange,
            f"column {texts.name!r}: labels must lie in the class list {names[:20]}",
            values,
            "Label a training node of that class, or leave the split empty (in Python also: classes=[...]).",
        )
    if not training.len():
        problems.add("needs a labelled node for training", "none", "Label some nodes (split: train).")
    elif len(names) < 2:
        problems.add("needs at least two classes", f"{names}", "With one class there is nothing to learn; -1 is none.")
    return numbers, names
