"""Plain sums over neighbours, A x: no self-loop and no normalisation."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from gcon.edges.edge_list import in_memory
from gcon.edges.source import Edges


def adjacency(edges: Edges, values: Tensor | None = None) -> Tensor:
    """The symmetric adjacency matrix as sparse rows; by default every entry is 1 in float64."""
    listed = in_memory(edges)
    entries = torch.ones(len(listed.columns), dtype=torch.float64) if values is None else values
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch announces that sparse CSR is in beta
        return torch.sparse_csr_tensor(
            listed.row_pointers.to(listed.columns.dtype),
            listed.columns,
            entries,
            size=(edges.num_nodes, edges.num_nodes),
            check_invariants=False,
        )


def neighbour_sums(edges: Edges, rows: Tensor) -> Tensor:
    """Row i is the sum of the rows of i's neighbours.

    One edge {u, v} adds row v to the sum of u and row u to the sum of v, and changes nothing else.
    """
    sums: Tensor = adjacency(edges) @ rows.to(torch.float64)
    return sums
