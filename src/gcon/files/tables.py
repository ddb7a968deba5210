"""Graphs in files: nodes and edges as CSV, TSV, Parquet, or NumPy's arrays. The formats are described in the readers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

from gcon.files.convert_files import Conversion, convert_files
from gcon.files.edge_files import EdgeOptions, problems_of_edges, read_edges, read_public_edges
from gcon.files.file_problems import Problem, require_readers
from gcon.files.node_files import NodeTable, inspect_nodes, read_node_features, read_node_ids, read_nodes
from gcon.files.node_ids import NodeIds
from gcon.files.write_files import write_edges, write_nodes

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
    "write_edges",
    "write_nodes",
]


def check_files(
    nodes_path: str | Path,
    edges_path: str | Path | None = None,
    *,
    id_column: str = "id",
    label_column: str = "label",
    split_column: str = "split",
    features_path: str | Path | None = None,
    num_classes: int | None = None,
    classes: Sequence[object] | None = None,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    **edge_options: Unpack[EdgeOptions],
) -> list[Problem]:
    """Everything that is wrong with a pair of files; an empty list if nothing is.

    Args: those of `read_nodes` and `read_edges`.

    Privacy:
        Reads the edges. What it says about them depends on them (whether a kind of problem occurs), so it is for the
        operator's eyes; it holds no id, row or count from the edges file.
    """
    require_readers()
    _, ids, problems = inspect_nodes(
        nodes_path,
        id_column=id_column,
        label_column=label_column,
        split_column=split_column,
        features_path=features_path,
        num_classes=num_classes,
        classes=classes,
        drop=drop,
        categorical=categorical,
    )
    if edges_path is not None:
        problems += problems_of_edges(Path(edges_path), ids=ids, **edge_options)
    return problems
