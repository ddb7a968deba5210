"""The nodes file -> ids and public nodes. All problems are reported at once, with their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcon.columns import FeatureColumns
from gcon.errors import InputError, wants_memory
from gcon.files.file_problems import (
    TABLES,
    FileProblems,
    file_problem,
    listed,
    raise_problems,
    require_readers,
    shortened,
)
from gcon.files.node_columns import known_labels, read_labels, read_splits
from gcon.files.node_features import LIST_COLUMN, numbers_only, read_features
from gcon.files.node_ids import NodeIds, read_ids
from gcon.files.table_files import UNFIT, TableFile, read_errors
from gcon.nodes import PublicNodes

if TYPE_CHECKING:
    import polars as pl

NUMBERS_ONLY = "Leave it out (--drop {name}), turn it into numbers first, or train from the table as it is."


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
        split_column: train, val, test or empty. Without this column every row with a label is a training node.
        features_path: an .npz or .npy with one row per node; by default the features are the further columns, or the
            list column `features`.
        num_classes: the classes are 0 to this number, less one; at least 2.
        classes: the class list; by default the labels that occur among the training nodes.
        drop: further columns that are no features: they are not read.
        categorical: columns of categories: one feature per category.
        feature_columns: what was done with the columns in training, to do it again: columns in any order, others are not
            read. Then nothing else is said of columns.

    Raises:
        InputError: the file breaks the format; lists everything that is wrong, with rows counted from 1 below the
            header.
        MissingExtraError: polars or pyarrow is not installed.

    Privacy:
        Everything in this file is public; errors may show it.
    """
    chosen = None if num_classes is None and classes is None else _class_list(num_classes, classes)
    apart, problems = (id_column, label_column, split_column), FileProblems("nodes", Path(path))
    others = None if feature_columns is None else (*feature_columns.names, LIST_COLUMN)
    frame = _frame(problems, needed=apart[:2], plain=apart, drop=drop, others=others)
    ids = read_ids(frame[id_column], problems)
    texts = known_labels(frame[label_column])
    if split_column in frame.columns:
        masks = read_splits(frame[split_column], problems)
    else:  # every row with a label is for training
        nobody = np.zeros(frame.height, dtype=bool)
        masks = {"train": texts.is_not_null().to_numpy(), "validation": nobody, "test": nobody}
    labels, class_names = read_labels(texts, masks, problems, classes=chosen)
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
    import polars as pl

    problems = FileProblems("nodes", path)
    frame = _frame(problems, needed=("id",), plain=("id", "label", "split"), drop=drop)
    ids = read_ids(frame["id"], problems)
    texts = {}
    if "label" in frame.columns:
        texts["label"] = known_labels(frame["label"])
    if "split" in frame.columns:
        read_splits(frame["split"], problems)
        texts["split"] = frame["split"].cast(pl.String, strict=False)
    rest = frame.drop("id", "label", "split", strict=False)
    features, _ = read_features(
        rest, features_path, problems, height=frame.height, known=numbers_only(rest), fix=NUMBERS_ONLY
    )
    if problems.found or ids is None or features is None:
        raise_problems(problems.found)
    named = features_path is None and rest.columns != [LIST_COLUMN]
    return RawNodes(ids=ids, texts=texts, features=features.numpy(), feature_names=rest.columns if named else [])


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
    require_readers()
    import polars as pl

    path = problems.path
    wrong = file_problem(path, "nodes", suffixes=TABLES)
    if wrong is not None:
        raise_problems([wrong])
    try:
        table = TableFile(path)
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
    except read_errors() as error:
        if wants_memory(error):
            raise MemoryError from None
        got = (str(error).splitlines() or ["an error"])[0]
        problems.add("must be readable", got, "Write the file again, in UTF-8.")
    if problems.found:
        raise_problems(problems.found)
    missing = [name for name in (*needed, *drop) if name not in names]
    if missing:
        fix = "Rename columns in the file, or name those that are there."
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
