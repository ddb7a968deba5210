"""Edges as other libraries write them -> PyG's 2 x k edge_index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gcon.errors import InputError
from gcon.privacy.frames import without_frames


@without_frames
def as_edge_index(
    edges: Any, *, num_nodes: int, ids: Sequence[Any] | None = None, values: Sequence[str] = ()
) -> Tensor:
    """Read edges of any of the supported kinds; nothing that was said of them is dropped silently.

    Args:
        edges: None (no edges), a sparse adjacency (scipy, torch), a networkx graph, PyG's 2 x k edge_index (a tensor is
            always that), a list of pairs, or a NumPy array of either shape; a 2 x 2 array is refused, since its meaning
            would depend on the number of edges. Or a data frame of two columns.
        num_nodes: the public number of nodes.
        ids: names of the rows, for data frames and networkx graphs; None for the numbers of rows. Arrays, tensors and
            lists hold numbers of rows, always.
        values: what PyG's Data says of its edges beside their ends, by name: refused.

    Privacy:
        The result is bare: the caller wraps it at once. Errors hold no value from it.
    """
    for name in values:
        raise InputError(
            name,
            rule="is not used: every edge counts the same",
            got=f"data.{name}",
            fix=f"If that is what you want, say so: data.{name} = None.",
        )
    if edges is None:
        return torch.empty(2, 0, dtype=torch.int64)
    if hasattr(edges, "tocoo"):
        return _from_scipy(edges, num_nodes)
    if isinstance(edges, Tensor) and edges.layout != torch.strided:
        return _from_torch_sparse(edges, num_nodes)
    if hasattr(edges, "number_of_nodes") and hasattr(edges, "edges"):
        return _by_name(list(edges.nodes), list(edges.edges()), num_nodes, ids)
    if hasattr(edges, "columns") and hasattr(edges, "to_numpy"):
        if len(edges.columns) != 2:
            rule, fix = "a data frame must have two columns, the ends of every edge", "Choose them: edges[['a', 'b']]."
            raise InputError("edges", rule=rule, got="other columns", fix=fix)
        pairs = edges.to_numpy().tolist()
        return _by_name([], pairs, num_nodes, ids)
    try:
        index = edges if isinstance(edges, Tensor) else torch.as_tensor(np.asarray(edges))
    except (TypeError, ValueError, RuntimeError):
        index = None
    if index is None:  # raised here, so that no traceback shows the edges
        raise InputError(
            "edges",
            rule="must be an edge_index, a list of pairs, a scipy sparse matrix, a networkx graph or a data frame",
            got=type(edges).__name__,
            fix="Pass row numbers, or ids in a data frame of two columns; an empty list is a graph without edges.",
        )
    if index.numel() == 0:
        return torch.empty(2, 0, dtype=torch.int64)
    if isinstance(edges, Tensor):
        return index
    if isinstance(edges, np.ndarray):
        if tuple(index.shape) == (2, 2):
            raise InputError(
                "edges",
                rule="a 2 x 2 array can be read both ways",
                got="two rows and two columns",
                fix="Pass a list of pairs, or PyG's edge_index as a tensor.",
            )
        return index.T if index.dim() == 2 and index.shape[1] == 2 else index
    # A list is a list of pairs, whatever its length.
    return index.T if index.dim() == 2 and index.shape[1] == 2 else index.reshape(-1)


def _from_scipy(matrix: Any, num_nodes: int) -> Tensor:
    _check_square(matrix, num_nodes)
    entries = matrix.tocoo()
    present = entries.data != 0
    ends = np.stack([entries.row[present], entries.col[present]]).astype(np.int64)
    return torch.from_numpy(ends)


def _from_torch_sparse(matrix: Tensor, num_nodes: int) -> Tensor:
    _check_square(matrix, num_nodes)
    entries = matrix.detach().to_sparse_coo().coalesce()
    index: Tensor = entries.indices()[:, entries.values() != 0]
    return index


def _check_square(matrix: Any, num_nodes: int) -> None:
    if tuple(matrix.shape) != (num_nodes, num_nodes):
        raise InputError(
            "edges",
            rule=f"an adjacency matrix must be {num_nodes} x {num_nodes}, one row per node",
            got="another shape",  # scipy infers it from the largest end, so it is private
            fix="Use the order of the node table, and give the matrix its shape.",
        )


def rows_of(ids: Sequence[Any]) -> Mapping[Any, int]:
    """The row of every id."""
    rows = {each: row for row, each in enumerate(ids)}
    if len(rows) != len(ids):
        rule, fix = "the index must name every node once", "Use unique ids: features.set_index(...)."
        raise InputError("features", rule=rule, got="an id that occurs twice", fix=fix)
    return rows


def _by_name(nodes: list[Any], pairs: list[Any], num_nodes: int, ids: Sequence[Any] | None) -> Tensor:
    """Edges between names. The order in which a graph has its nodes is that of its edges: private, so it chooses no row."""
    rows = rows_of(range(num_nodes) if ids is None else ids)
    try:
        known = all(name in rows for name in nodes)
        ends = [(rows[first], rows[second]) for first, second in pairs] if known else None
    except (KeyError, TypeError, ValueError):
        ends = None
    if ends is None:  # raised here, so that no traceback shows the edges
        named = f"their row, 0 to {num_nodes - 1}" if ids is None else "an id in the index of the features"
        raise InputError(
            "edges",
            rule=f"nodes of a networkx graph or of a data frame must be named by {named}",
            got="another name",
            fix="Give the features (a data frame) those names as index, of the same type: 1 and '1' differ.",
        )
    return torch.tensor(ends, dtype=torch.int64).reshape(-1, 2).T
