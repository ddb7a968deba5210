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

from gcon.errors import InputError
from gcon.files.file_problems import (
    TABLES,
    FileProblems,
    Problem,
    file_problem,
    listed,
    raise_problems,
    require_readers,
    shortened,
)
from gcon.files.node_columns import label_text, read_labels, read_splits
from gcon.files.node_features import LIST_COLUMN, read_features
from gcon.files.node_ids import NodeIds, read_ids
from gcon.files.table_files import UNFIT, column_types, read_errors, table_batches
from gcon.nodes import PublicNodes

if TYPE_CHECKING:
    import polars as pl


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
    ignore_columns: Sequence[str] = (),
) -> NodeTable:
    """Read public nodes from CSV, TSV or Parquet.

    Args:
        path: the file; its ending decides the format.
        id_column: whole numbers or strings, each once.
        label_column: numbers or strings; may be empty. A label on a row whose split is empty is never read.
        split_column: train, val, test or empty. Without this column every row with a label is a training node.
        features_path: an .npz or .npy with one row per node; by default the features are the further columns, or the
            list column `features`.
        num_classes: the classes are 0 to this number, less one; at least 2.
        classes: the class list; by default the labels that occur among the training nodes.
        ignore_columns: further columns that are no features.

    Raises:
        InputError: the file breaks the format; lists everything that is wrong, with rows counted from 1 below the
            header.
        MissingExtraError: polars or pyarrow is not installed.

    Privacy:
        Everything in this file is public; errors may show it.
    """
    require_readers()
    table, _, problems = inspect_nodes(
        path,
        id_column=id_column,
        label_column=label_column,
        split_column=split_column,
        features_path=features_path,
        num_classes=num_classes,
        classes=classes,
        ignore_columns=ignore_columns,
    )
    if table is None:
        raise_problems(problems)
    return table


def read_node_features(
    path: str | Path,
    *,
    id_column: str = "id",
    label_column: str = "label",
    split_column: str = "split",
    features_path: str | Path | None = None,
    ignore_columns: Sequence[str] = (),
) -> tuple[NodeIds, Tensor]:
    """Read ids and features alone, for prediction: labels and splits may be missing, and are not read.

    Args: those of `read_nodes`.

    Privacy:
        Everything in this file is public; errors may show it.
    """
    require_readers()
    problems = FileProblems("nodes", Path(path))
    frame = _frame(problems, wanted=(id_column,), plain=(id_column,), ignored=ignore_columns)
    if frame is None:
        raise_problems(problems.found)
    ids = read_ids(frame[id_column], problems)
    rest = frame.drop(id_column, label_column, split_column, *ignore_columns, strict=False)
    features = read_features(rest, features_path, problems, height=frame.height)
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


def read_raw_nodes(path: Path, *, features_path: Path | None = None) -> RawNodes:
    """Read the nodes file as it stands; labels and splits may be missing.

    Privacy:
        Everything in this file is public; errors may show it.
    """
    import polars as pl

    problems = FileProblems("nodes", path)
    frame = _frame(problems, wanted=("id",), plain=("id", "label", "split"), ignored=())
    if frame is None:
        raise_problems(problems.found)
    ids = read_ids(frame["id"], problems)
    texts = {}
    if "label" in frame.columns:
        texts["label"] = label_text(frame["label"])
    if "split" in frame.columns:
        read_splits(frame["split"], problems)
        texts["split"] = frame["split"].cast(pl.String, strict=False)
    rest = frame.drop("id", "label", "split", strict=False)
    features = read_features(rest, features_path, problems, height=frame.height)
    if problems.found or ids is None or features is None:
        raise_problems(problems.found)
    named = features_path is None and rest.columns != [LIST_COLUMN]
    return RawNodes(ids=ids, texts=texts, features=features.numpy(), feature_names=rest.columns if named else [])


def _class_list(num_classes: int | None, classes: Sequence[object] | None) -> Sequence[object]:
    """The class list that two alternative arguments ask for."""
    whole = isinstance(num_classes, int) and not isinstance(num_classes, bool) and num_classes >= 2
    if classes is None and whole:
        return range(num_classes or 0)
    if num_classes is None and classes is not None and len({str(name) for name in classes}) == len(classes) >= 2:
        return classes
    raise InputError(
        "num_classes, classes",
        rule="pass a whole number from 2, or a list of at least two different names, or neither",
        got=f"{num_classes!r} and {classes!r}",
        fix="Leave one of them out.",
    )


def inspect_nodes(
    path: str | Path,
    *,
    id_column: str = "id",
    label_column: str = "label",
    split_column: str = "split",
    features_path: str | Path | None = None,
    num_classes: int | None = None,
    classes: Sequence[object] | None = None,
    ignore_columns: Sequence[str] = (),
) -> tuple[NodeTable | None, NodeIds | None, list[Problem]]:
    """A table if all goes well; the ids if they are good; and all problems. Args: those of `read_nodes`."""
    chosen = None if num_classes is None and classes is None else _class_list(num_classes, classes)
    plain, problems = (id_column, label_column, split_column), FileProblems("nodes", Path(path))
    frame = _frame(problems, wanted=plain[:2], plain=plain, ignored=ignore_columns)
    if frame is None:
        return None, None, problems.found
    ids = read_ids(frame[id_column], problems)
    texts = label_text(frame[label_column])
    if split_column in frame.columns:
        masks = read_splits(frame[split_column], problems)
    else:  # every row with a label is for training
        nobody = np.zeros(frame.height, dtype=bool)
        masks = {"train": texts.is_not_null().to_numpy(), "validation": nobody, "test": nobody}
    labels, class_names = read_labels(texts, masks, problems, classes=chosen)
    rest = frame.drop(*plain, *ignore_columns, strict=False)
    features = read_features(rest, features_path, problems, height=frame.height)
    if problems.found or ids is None or features is None:
        return None, ids, problems.found
    nodes = PublicNodes(
        features=features,
        labels=torch.from_numpy(labels),
        num_classes=len(class_names),
        train_mask=torch.from_numpy(masks["train"].copy()),
        validation_mask=torch.from_numpy(masks["validation"].copy()),
        test_mask=torch.from_numpy(masks["test"].copy()),
        class_names=tuple(class_names),
    )
    return NodeTable(ids, nodes), ids, []


def _frame(
    problems: FileProblems, *, wanted: Sequence[str], plain: Sequence[str], ignored: Sequence[str]
) -> pl.DataFrame | None:
    """The whole table, if it can be read and has the columns that are needed; those that are plain hold no lists."""
    import polars as pl

    path = problems.path
    wrong = file_problem(path, "nodes", suffixes=TABLES)
    if wrong is not None:
        problems.found.append(wrong)
        return None
    try:
        types = column_types(path)
        for name, kind in types:
            if (kind.startswith(UNFIT) and name not in ignored) or (name in plain and "list<" in kind):
                rule = f"column {shortened(repr(name), 80)}: must hold numbers or words, or be the lists of features"
                fix = "Convert it, or name it in ignore_columns."
                problems.add(rule, f"type {kind.removeprefix(UNFIT)}", fix)
        if problems.found:
            return None
        names = [name for name, _ in types]
        repeated = sorted(name for name, times in Counter(names).items() if times > 1)
        if repeated:
            got = f"{listed(repeated)} more than once"
            problems.add("every column needs a name of its own", got, "Rename or drop one of them.")
            return None
        fit = [name for name, kind in types if not kind.startswith(UNFIT)]
        batches = list(table_batches(path, fit))
        frame = pl.concat(batches) if batches else pl.DataFrame({name: [] for name in fit})
    except read_errors() as error:
        got = (str(error).splitlines() or ["an error"])[0]
        problems.add("must be readable", got, "Write the file again, in UTF-8.")
        return None
    missing = [name for name in (*wanted, *ignored) if name not in names]
    if missing:
        got = f"no {listed(missing)} among {listed(names)}"
        problems.add("needs the columns that are named", got, "Rename them, or name others.")
    if not frame.height:
        problems.add("needs at least one node", "no rows", "Add the nodes.")
    return None if problems.found else frame
