"""The symmetrically normalised graph S = D^-1/2 (A + I) D^-1/2 times rows, with gradients, on public edges only.

A network that is trained on few labelled nodes needs few rows of S: `reach` cuts out the part that they can see.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from gcon.edges.source import Edges
from gcon.methods.method import Trained
from gcon.nodes import PublicNodes
from gcon_lab.mechanisms.plain_sums import in_memory
from gcon_lab.methods.competitor import CompetitorMethod, PaidEdges


@dataclass(frozen=True, eq=False, kw_only=True)
class Reach:
    """What two products with S need in order to score some nodes.

    Attributes:
        inputs: the nodes within two steps, whose features are read.
        first: rows of S for the nodes within one step, columns for `inputs`.
        second: rows of S for the scored nodes, columns for the nodes within one step.
    """

    inputs: Tensor
    first: scipy.sparse.csr_matrix
    second: scipy.sparse.csr_matrix


class ExactNetwork(Protocol):
    """A network that is trained with exact edges."""

    def logits(self, features: Tensor, edges: Edges) -> Tensor:
        """Of all nodes of a public graph, in evaluation mode."""


@dataclass(frozen=True, kw_only=True)
class ExactMethod(CompetitorMethod):
    """A network that trains and answers with exact edges: those of its training, or another graph's that are public.

    Privacy:
        None: the edges are declassified, and the ledger's total becomes infinite.
    """

    about = "Not private: trains and answers with the exact edges of all nodes."
    private = False

    def learn(self, nodes: PublicNodes, edges: PaidEdges) -> Trained:
        opened = edges.declassify(f"{self.name.upper()}, a baseline that is not private")
        network = self._network(nodes, opened)

        def public_graph(features: Tensor, given: Edges | None) -> Tensor:
            assert given is not None
            return network.logits(features, given)

        def full(features: Tensor, _: Edges | None) -> Tensor:
            return network.logits(features, opened)

        return Trained(score_functions={"full": full, "public-graph": public_graph})

    @abstractmethod
    def _network(self, nodes: PublicNodes, edges: Edges) -> ExactNetwork:
        """Train it."""


def roots_of_degrees(edges: Edges) -> Tensor:
    """1 / sqrt(degree + 1) of every node, the self-loop included."""
    return (in_memory(edges).degrees.to(torch.float64) + 1).rsqrt()


def normalised(edges: Edges) -> scipy.sparse.csr_matrix:
    """S in float32, with D the degrees of A + I. It equals its transpose."""
    roots = roots_of_degrees(edges).to(torch.float32).numpy()
    listed = in_memory(edges)
    columns = listed.columns.numpy()
    pointers = listed.row_pointers.numpy().astype(columns.dtype)
    values = np.repeat(roots, listed.degrees.numpy()) * roots[columns]
    size = edges.num_nodes
    neighbours = scipy.sparse.csr_matrix((values, columns, pointers), shape=(size, size))
    return scipy.sparse.csr_matrix(neighbours + scipy.sparse.diags_array(roots**2, format="csr"))


def reach(graph: scipy.sparse.csr_matrix, scored: Tensor) -> Reach:
    """The part of S that the nodes of a mask see in two products."""
    second, middle = _used_columns(graph[scored.numpy()])
    first, inputs = _used_columns(graph[middle])
    return Reach(inputs=torch.from_numpy(inputs), first=first, second=second)


def _used_columns(
    rows: scipy.sparse.csr_matrix,
) -> tuple[scipy.sparse.csr_matrix, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    used = np.zeros(rows.shape[1], dtype=bool)
    used[rows.indices] = True
    places = (np.cumsum(used) - 1).astype(rows.indices.dtype)
    shape = (rows.shape[0], int(used.sum()))
    return scipy.sparse.csr_matrix((rows.data, places[rows.indices], rows.indptr), shape=shape), np.flatnonzero(used)
