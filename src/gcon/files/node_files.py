"""The nodes file -> ids and public nodes. All problems are reported at once, with their rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcon.columns import WITH_A_POINT, FeatureColumns
from gcon.errors import InputError, wants_memory
from gcon.files.file_problems import (
    TABLES,
    FileProblems,
    check_file,
    listed,
    raise_problems,
    shortened,
)
from gcon.files.node_features import LIST_COLUMN, numbers_only, read_features
from gcon.files.node_ids import PLAIN_NUMBER, NodeIds, read_ids
from gcon.files.readers import pl
from gcon.files.table_files import READ_ERRORS, UNFIT, open_table
from gcon.nodes import PublicNodes

NUMBERS_ONLY = "Leave it out (--drop {name}), turn it into numbers first, or train from the table as it is."
PARTS = {"train": "train", "val": "validation", "validation": "validation", "test": "test"}


@dataclass(frozen=True, eq=False)
class NodeTable:
    """What the nodes file says: the ids in row order, and the public nodes.

    Privacy:
        Everything here is public.
    """

    ids: NodeIds
    nodes: PublicNodes


def read_nodes(
    path: str | Path,
    *,
    id_column: str = "id",
    label_column: str = "label",
    split_column: str = "split",
    features_path: str | Path | None = None,
    num_classes: int | None = None,
    classes: Sequence[object] | None = None,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    feature_columns: FeatureColumns | None = None,
) -> NodeTable:
    """Read public nodes from CSV, TSV or Parquet.

    Args:
        path: the file; its ending decides the format.
        id_column: whole numbers or strings, each once.
        label_column: numbers or strings; empty, or -1, where there is none. A label on a row whose split is empty is never
            read.
        split_column: train, val, test or empty. Without this column every row with a label teaches.
        features_path: an .npz or .npy with one row per node; by default the features are the further columns, or the
            list column `features`.
        num_classes: the classes are 0 to this number, less one; at least 2.
        classes: the class list; by default the labels of the nodes that are marked train.
        drop: further columns that are no features: they are not read.
        categorical: columns of categories: one feature per category.
        feature_columns: what was done with the columns in training, to do it again: columns in any order, others are not
            read. Then nothing else is said of columns.

    Raises:
        InputError: the file breaks the format; lists everything that is wrong, with rows counted from 1 below the
            header.

    Privacy:
        Everything in this file is public; errors may show it.
    """
    chosen = None if num_classes is None and classes is None else _class_list(num_classes, classes)
    apart, problems = (id_column, label_column, split_column), FileProblems("nodes", Path(path))
    others = None if feature_columns is None else (*feature_columns.names, LIST_COLUMN)
    frame = _frame(problems, needed=apart[:2], plain=apart, drop=drop, others=others)
    ids = read_ids(frame[id_column], problems)
    texts, masks = _parts(frame, problems, label_column=label_column, split_column=split_column)
    labels, class_names = _labels(texts, masks, problems, classes=chosen)
    features, done = read_features(
        frame.drop(*apart, strict=False),
        features_path,
        problems,
        height=frame.height,
        known=feature_columns,
        categorical=categorical,
        drop=drop,
    )
    if problems.found or ids is None or features is None:
        raise_problems(problems.found)
    nodes = PublicNodes(
        features=features,
        labels=torch.from_numpy(labels),
        num_classes=len(class_names),
        train_mask=torch.from_numpy(masks["train"].copy()),
        validation_mask=torch.from_numpy(masks["validation"].copy()),
        test_mask=torch.from_numpy(masks["test"].copy()),
        class_names=tuple(class_names),
        feature_columns=done,
    )
    return NodeTable(ids, nodes)


def read_node_features(
    path: str | Path,
    *,
    id_column: str = "id",
    label_column: str = "label",
    split_column: str = "split",
    features_path: str | Path | None = None,
    feature_columns: FeatureColumns | None = None,
) -> tuple[NodeIds, Tensor]:
    """Read ids and features alone, for prediction: labels and splits may be missing, and are not read.

    Args: those of `read_nodes`. Without `feature_columns` all further columns must hold numbers, in the order of training.

    Privacy:
        Everything in this file is public; errors may show it.
    """
    problems = FileProblems("nodes", Path(path))
    apart = (id_column, label_column, split_column)
    others = None if feature_columns is None else (*feature_columns.names, LIST_COLUMN)
    frame = _frame(problems, needed=apart[:1], plain=apart[:1], others=others)
    ids = read_ids(frame[id_column], problems)
    rest = frame.drop(*apart, strict=False)
    known = feature_columns or numbers_only(rest)
    features, _ = read_features(rest, features_path, problems, height=frame.height, known=known)
    if problems.found or ids is None or features is None:
        raise_problems(problems.found)
    return ids, features


@dataclass(frozen=True, eq=False, kw_only=True)
class RawNodes:
    """What the nodes file holds, for writing it again: also labels that no split uses.

    Attributes:
        ids: in row order.
        texts: the columns label and split, those that there are.
        features: n x k, 32-bit or 64-bit.
        feature_names: the names of the columns; empty if the features are a list or an array beside the file.
    """

    ids: NodeIds
    texts: dict[str, pl.Series]
    features: NDArray[Any]
    feature_names: list[str]


def read_node_ids(path: str | Path, *, id_column: str = "id") -> NodeIds:
    """Read the ids alone.

    Privacy:
        Everything in this file is public; errors may show it.
    """
    problems = FileProblems("nodes", Path(path))
    frame = _frame(problems, needed=(id_column,), plain=(id_column,), others=())
    ids = read_ids(frame[id_column], problems)
    if ids is None:
        raise_problems(problems.found)
    return ids


def read_raw_nodes(path: Path, *, features_path: Path | None = None, drop: Sequence[str] = ()) -> RawNodes:
    """Read the nodes file as it stands, features as numbers only; labels and splits may be missing.

    Privacy:
        Everything in this file is public; errors may show it.
    """
    problems = FileProblems("nodes", path)
    frame = _frame(problems, needed=("id",), plain=("id", "label", "split"), drop=drop)
    ids = read_ids(frame["id"], problems)
    labels, _ = _parts(frame, problems)
    texts = {"label": labels, "split": frame.get_column("split", default=labels).cast(pl.String, strict=False)}
    texts = {name: texts[name] for name in texts if name in frame.columns}
    rest = frame.drop("id", "label", "split", strict=False)
    features, _ = read_features(
        rest, features_path, problems, height=frame.height, known=numbers_only(rest), fix=NUMBERS_ONLY
    )
    if problems.found or ids is None or features is None:
        raise_problems(problems.found)
    named = features_path is None and rest.columns != [LIST_COLUMN]
    return RawNodes(ids=ids, texts=texts, features=features.numpy(), feature_names=rest.columns if named else [])


def _parts(
    frame: pl.DataFrame, problems: FileProblems, *, label_column: str = "label", split_column: str = "split"
) -> tuple[pl.Series, dict[str, NDArray[np.bool_]]]:
    """Labels as strings, and the masks train, validation and test; without a column of splits all labelled rows train.

    A label is null where there is none: an empty cell, or -1 as in scikit-learn's semi-supervised models. Whole numbers stored as
    fractions (pandas with gaps) lose their point, also in text.
    """
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


def _labels(
    texts: pl.Series,
    masks: dict[str, NDArray[np.bool_]],
    problems: FileProblems,
    *,
    classes: Sequence[object] | None,
) -> tuple[NDArray[np.int64], list[object]]:
    """Class numbers (-1 outside the masks: those labels are never read), and the class list.

    By default the class list is the labels of rows marked train in order: as numbers if all labels in a split are, as strings
    otherwise.
    """
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
            "Mark a node of that class 'train', or leave the split empty (in Python also: classes=[...]).",
        )
    if not training.len():
        problems.add("needs a labelled node for training", "none", "Label some nodes (split: train).")
    elif len(names) < 2:
        problems.add("needs at least two classes", f"{names}", "With one class there is nothing to learn; -1 is none.")
    return numbers, names


def _class_list(num_classes: int | None, classes: Sequence[object] | None) -> Sequence[object]:
    """The class list that two alternative arguments ask for."""
    whole = isinstance(num_classes, int) and not isinstance(num_classes, bool) and num_classes >= 2
    if classes is None and whole:
        return range(num_classes or 0)
    names = {str(name) for name in classes or ()}
    if num_classes is None and classes is not None and len(names) == len(classes) >= 2 and not names & {"", "-1"}:
        return classes
    raise InputError(
        "num_classes, classes",
        rule="pass a whole number from 2, or a list of at least two different names (-1 and '' are none), or neither",
        got=f"{num_classes!r} and {classes!r}",
        fix="Leave one of them out.",
    )


def _frame(
    problems: FileProblems,
    *,
    needed: Sequence[str],
    plain: Sequence[str],
    drop: Sequence[str] = (),
    others: Sequence[str] | None = None,
) -> pl.DataFrame:
    """The table, or an `InputError` if it cannot be read or lacks columns that are needed.

    Plain columns hold no lists. Those of `drop` must be there and are not read; of the rest, only `others` if they are named.
    """
    path = problems.path
    check_file(path, "nodes", suffixes=TABLES)
    try:
        table = open_table(path)
        types = [(name, kind) for name, kind in table.types if name not in drop]
        if others is not None:
            types = [(name, kind) for name, kind in types if name in (*plain, *others)]
        for name, kind in types:
            if kind.startswith(UNFIT) or (name in plain and "list<" in kind):
                rule = f"column {shortened(repr(name), 80)}: must hold numbers or words, or be the lists of features"
                problems.add(rule, f"type {kind.removeprefix(UNFIT)}", "Convert it, or leave it out: --drop NAME.")
        names = [name for name, _ in table.types]
        repeated = sorted(name for name, times in Counter(names).items() if times > 1)
        if repeated:
            got = f"{listed(repeated)} more than once"
            problems.add("every column needs a name of its own", got, "Rename or drop one of them.")
        fit = [name for name, _ in types]
        if "" in fit:
            fix = "Write the table without it (pandas: index=False), name it, or leave it out: --drop ''."
            problems.add("every column needs a name", "one without (as pandas writes its index)", fix)
        batches = [] if problems.found else list(table.batches(fit))
        frame = pl.concat(batches) if batches else pl.DataFrame({name: [] for name in fit})
    except READ_ERRORS as error:
        if wants_memory(error):
            raise MemoryError from None
        got, fix = (str(error).splitlines() or ["an error"])[0], "Write the file again, in UTF-8."
        if re.search("Expected [0-9]+ columns, got", got):
            fix = f"Give every row as many fields as the header, separated by commas, or by tabs in a .tsv. {WITH_A_POINT}"
        problems.add("must be readable", got, fix)
    if problems.found:
        raise_problems(problems.found)
    missing = [name for name in (*needed, *drop) if name not in names]
    if missing:
        fix = "Drop columns that are there, by their names."
        if any(name in needed for name in missing):
            fix = "Rename columns in the file: id, label and split are called so, and all others are features."
        if {"source", "target"} <= set(names):
            fix = "These are edges: pass the two files the other way round."
        elif len(names) == 1 and set(names[0]) & set(";\t|"):
            fix = "Separate the fields by commas, or by tabs in a file that ends in .tsv."
        problems.add(f"needs the columns {listed(missing)}", f"none of that name among {listed(names)}", fix)
    elif kept := [name for name in needed if name in drop]:
        problems.add("cannot do without a column that is dropped", listed(kept), "Do not drop it.")
    elif not frame.height:
        problems.add("needs at least one node", "no rows", "Add the nodes.")
    if problems.found:
        raise_problems(problems.found)
    return frame
