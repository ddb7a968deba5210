"""The one hot loop: a step of propagation over all edges.

`multiply_plain` is the reference: obviously right, slow. `Multiplier` is what runs: the transition as a sparse matrix
with 32-bit indices, and the whole step (product, row normalisation, restart) in one call, in which every row is
summed in the fixed order of its columns. benchmarks/propagation.py compares it with torch's and scipy's own products.
"""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from gcon.graphs.edges import EdgeList
from gcon.propagate.transition import TransitionWeights


def multiply_plain(edges: EdgeList, weights: TransitionWeights, current: Tensor) -> Tensor:
    """T times a matrix, one node at a time: the reference for every faster kernel."""
    rows = [
        weights.own[node] * current[node] + weights.neighbour[node] * current[edges.neighbours(node)].sum(dim=0)
        for node in range(edges.num_nodes)
    ]
    return torch.stack(rows)


class Multiplier:
    """The transition, ready for many products.

    Privacy:
        Holds the edges; lives only inside `propagate`.
    """

    def __init__(self, edges: EdgeList, weights: TransitionWeights, device: torch.device | None = None) -> None:
        index_type = edges.columns.dtype
        values = torch.repeat_interleave(weights.neighbour, edges.degrees)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # torch announces that sparse CSR is in beta
            self._neighbours = torch.sparse_csr_tensor(
                edges.row_pointers.to(index_type),
                edges.columns,
                values,
                size=(edges.num_nodes, edges.num_nodes),
                check_invariants=False,
            ).to(device)
        self._own = weights.own[:, None].to(device)

    def step(self, current: Tensor, origin: Tensor, *, restart: float) -> Tensor:
        """(1 - restart) T current + restart origin."""
        base = torch.mul(origin, restart).addcmul_(self._own, current, value=1 - restart)
        return torch.addmm(base, self._neighbours, current, beta=1.0, alpha=1 - restart)
