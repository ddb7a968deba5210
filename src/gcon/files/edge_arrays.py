"""Edges in .npz: PyG's edge_index, or a sparse adjacency matrix as scipy saves it. Loading never runs code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from gcon.files.array_files import TooLargeError, load_archive
from gcon.files.edge_problems import edge_problem, unreadable
from gcon.files.edges import as_edge_index
from gcon.files.file_problems import Problem
from gcon.files.node_ids import NodeIds

SPARSE = {"format", "shape", "data", "indices", "indptr", "row", "col", "offsets", "_is_array", "coords"}


def scan_arrays(
    path: Path, *, ids: NodeIds | None, ignored: Sequence[str] = ()
) -> tuple[list[NDArray[Any]], list[Problem]]:
    """The ends as rows of the nodes file (bare and private!), or what is wrong."""
    try:
        index, matrix, listed = load_archive(path, ("edge_index",))
        fits = matrix is not None and ids is not None and matrix.shape == (len(ids), len(ids))
        entries = [as_edge_index(matrix, num_nodes=len(ids)).numpy()] if fits and ids is not None else []
    except TooLargeError:
        return [], [edge_problem(path, "unpacked")]
    except Exception as error:
        return [], [edge_problem(path, unreadable(error))]
    names = set(listed)
    if not names:
        return [], [edge_problem(path, "unreadable")]
    further = sorted(names - set(ignored) - ({"edge_index"} if index is not None else SPARSE))
    problems = [edge_problem(path, "further", names=further)] if further else []
    if index is None:
        if matrix is None:
            return [], [edge_problem(path, "arrays", names=sorted(names))]
        if ids is None or fits:
            return ([], problems) if problems else (entries, [])
        return [], [*problems, edge_problem(path, "matrix")]
    if index.ndim != 2 or index.shape[0] != 2 or index.dtype.kind not in "iu":
        problems.append(edge_problem(path, "shape"))
    elif ids is not None:
        if ids.numbers is not None and not ids.are_row_numbers:
            problems.append(edge_problem(path, "row numbers"))
        elif index.size and (int(index.min()) < 0 or int(index.max()) >= len(ids)):
            problems.append(edge_problem(path, "unknown"))
    return ([], problems) if problems else ([index], [])
