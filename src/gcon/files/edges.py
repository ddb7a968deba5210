"""Edges as other libraries write them -> PyG's 2 x k edge_index."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from gcon.errors import InputError
from gcon.privacy.frames import without_frames


@without_frames
def as_edge_index(edges: Any, *, num_nodes: int) -> Tensor:
    """Read edges of any of the supported kinds.

    Args:
        edges: None (no edges), a sparse adjacency (scipy, torch), a networkx graph, PyG's 2 x k edge_index (a tensor is
            always that), a list of pairs, or a NumPy array of either shape; a 2 x 2 array is refused, since its meaning
            would depend on the number of edges.
        num_nodes: the public number of nodes.

    Privacy:
        The result is bare: the caller wraps it at once. Errors hold no value from it.
    """
    if edges is None:
        return torch.empty(2, 0, dtype=torch.int64)
    if hasattr(edges, "tocoo"):
        return _from_scipy(edges, num_nodes)
    if isinstance(edges, Tensor) and edges.layout != torch.strided:
        return _from_torch_sparse(edges, num_nodes)
    if hasattr(edges, "number_of_nodes") and hasattr(edges, "edges"):
        return _from_networkx(edges, num_nodes)
    try:
        index = edges if isinstance(edges, Tensor) else torch.as_tensor(np.asarray(edges))
    except (TypeError, ValueError, RuntimeError):
        index = None
    if index is None:  # raised here, so that no traceback shows the edges
        raise InputError(
            "edges",
            rule="must be an edge_index, a list of pairs, a scipy sparse matrix or a networkx graph",
            got=type(edges).__name__,
            fix="Pass node numbers; an empty list is a graph without edges.",
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


def _from_networkx(graph: Any, num_nodes: int) -> Tensor:
    # The order of graph.nodes is the order in which edges were added: it is private and must not choose rows.
    rows = range(num_nodes)
    if any(node not in rows for node in graph.nodes):
        raise InputError(
            "edges",
            rule=f"nodes of a networkx graph must be named by their row, 0 to {num_nodes - 1}",
            got="another name",
            fix="Rename them with networkx.relabel_nodes(graph, {name: row, ...}).",
        )
    return torch.tensor(list(graph.edges()), dtype=torch.int64).reshape(-1, 2).T
