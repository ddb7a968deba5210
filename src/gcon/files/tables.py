"""Graphs in files: nodes and edges as CSV, TSV, Parquet, or NumPy's arrays. The formats are described in the readers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from gcon.errors import AnswersWarning, InputError, warn_caller
from gcon.files.convert_files import Conversion, convert_files
from gcon.files.edge_files import problems_of_edges, read_edges, read_public_edges
from gcon.files.file_problems import Problem
from gcon.files.node_files import NodeTable, read_node_features, read_node_ids, read_nodes
from gcon.files.node_ids import NodeIds
from gcon.files.write_files import write_edges, write_nodes
from gcon.nodes import FEWEST_SCORED, PublicNodes, warn_of_scales

__all__ = [
    "Conversion",
    "NodeIds",
    "NodeTable",
    "Problem",
    "check_files",
    "convert_files",
    "read_edges",
    "read_node_features",
    "read_node_ids",
    "read_nodes",
    "read_public_edges",
    "warn_of_parts",
    "write_edges",
    "write_nodes",
]


def check_files(
    nodes_path: str | Path,
    edges_path: str | Path | None = None,
    *,
    source_column: str = "source",
    target_column: str = "target",
    header: bool = True,
    ignore_columns: Sequence[str] = (),
    **node_options: Any,
) -> list[Problem]:
    """Everything that is wrong with a pair of files; an empty list if nothing is.

    What is not wrong but spoils a model is an `AnswersWarning`: columns of very different scales, no nodes to score or choose by.

    Args: those of `read_nodes` and `read_edges`.

    Privacy:
        Reads the edges. What it says about them depends on them (whether a kind of problem occurs), so it is for the
        operator's eyes; it holds no id, row or count from the edges file.
    """
    problems: list[Any] = []
    ids = None
    try:
        table = read_nodes(nodes_path, **node_options)
        ids = table.ids
        warn_of_scales(table.nodes)
        warn_of_parts(table.nodes)
    except InputError as error:
        if not error.problems:  # it is about an argument
            raise
        problems += error.problems
        with suppress(InputError):
            ids = read_node_ids(nodes_path, id_column=node_options.get("id_column", "id"))
    if edges_path is not None:
        problems += problems_of_edges(
            Path(edges_path),
            ids=ids,
            source_column=source_column,
            target_column=target_column,
            header=header,
            ignore_columns=ignore_columns,
        )
    return problems


def warn_of_parts(nodes: PublicNodes) -> None:
    """Warn if nobody can be scored, or nothing chosen, on nodes that taught nothing."""
    test, validation = int(nodes.test_mask.sum()), int(nodes.validation_mask.sum())
    if test < FEWEST_SCORED:
        warn_caller(
            f"split: {test or 'no'} node{'s are' if test != 1 else ' is'} marked 'test' (column 'split'), and fewer than "
            f"{FEWEST_SCORED} cannot say how good a model is. Mark some that have a label.",
            AnswersWarning,
        )
    if not validation:
        warn_caller(
            "split: no nodes are marked 'val': choices are made by nodes that teach, which is slower and somewhat less right; "
            "of many a fifth is set aside for it. Mark some that have a label, if you can spare them, or say how common classes "
            "are, if that is publicly known (--class-share, in Python class_shares).",
            AnswersWarning,
        )
