"""Sums over neighbours, a block of nodes at a time, so that memory does not grow with the number of edges."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import torch
from torch import Tensor

from gcon.graphs.edges import EdgeList

MOST_ENTRIES = 2**20  # neighbours a block, unless a single node has more
MOST_NODES = 2**14


def node_blocks(edges: EdgeList, *, most_entries: int = MOST_ENTRIES, most_nodes: int = MOST_NODES) -> Iterator[slice]:
    """Consecutive blocks of nodes with at most so many neighbours in total; a node with more is a block by itself."""
    pointers, start = edges.row_pointers, 0
    while start < edges.num_nodes:
        room = int(torch.searchsorted(pointers, pointers[start] + most_entries, right=True)) - 1
        stop = min(max(room, start + 1), start + most_nodes, edges.num_nodes)
        yield slice(start, stop)
        start = stop


def neighbour_sum_blocks(
    edges: EdgeList, rows: Tensor, *, most_entries: int = MOST_ENTRIES, most_nodes: int = MOST_NODES
) -> Iterator[tuple[slice, Tensor]]:
    """Block after block of A times rows. Every row is summed in the fixed order of its neighbours.

    Beyond the rows themselves: one number a neighbour of the block, and the block's sums.
    """
    for nodes in node_blocks(edges, most_entries=most_entries, most_nodes=most_nodes):
        pointers = edges.row_pointers[nodes.start : nodes.stop + 1]
        columns = edges.columns[int(pointers[0]) : int(pointers[-1])]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # torch announces that sparse CSR is in beta
            part = torch.sparse_csr_tensor(
                (pointers - pointers[0]).to(columns.dtype),
                columns,
                torch.ones(len(columns), dtype=torch.float64),
                size=(nodes.stop - nodes.start, edges.num_nodes),
                check_invariants=False,
            )
        yield nodes, part @ rows
