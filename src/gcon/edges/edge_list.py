"""Edges: one simple undirected graph on a public node set, bare when public, wrapped when private."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcon.edges.source import LocalEdges, RowBlock
from gcon.errors import InputError
from gcon.privacy.boundary import Private, without_frames

EDGES, CLEANED = "edges of a simple undirected graph", "counts of cleaned edges"  # what is told of the private ones


@dataclass(frozen=True, eq=False)
class EdgeList(LocalEdges):
    """A simple undirected graph as sorted neighbour lists (compressed sparse rows, both directions of every edge).

    Attributes:
        row_pointers: int64, length `num_nodes + 1`; node i's neighbours are `columns[row_pointers[i]:row_pointers[i+1]]`.
        columns: neighbour ids in rising order; int32 while they fit.
        num_nodes: the public number of nodes.

    Privacy:
        A bare `EdgeList` is public. Private edges exist only as `Private[EdgeList]`.
    """

    row_pointers: Tensor
    columns: Tensor
    num_nodes: int
    _elsewhere: dict[torch.device, RowBlock] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def degrees(self) -> Tensor:
        return self.row_pointers.diff()

    def blocks(self, device: torch.device) -> Iterator[RowBlock]:
        """One block with everything: nothing is copied, but for the first pass on a GPU, where the edges stay for the next."""
        if device not in self._elsewhere:
            pointers, columns = self.row_pointers.to(device), self.columns.to(device)
            self._elsewhere[device] = RowBlock(slice(0, self.num_nodes), pointers, columns, self.num_nodes)
        yield self._elsewhere[device]

    def neighbours(self, node: int) -> Tensor:
        """The ids that one node shares an edge with."""
        return self.columns[int(self.row_pointers[node]) : int(self.row_pointers[node + 1])].long()

    @cached_property
    def _arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int32 | np.int64]]:
        return self.row_pointers.numpy(), self.columns.numpy()

    def neighbour_array(self, node: int) -> NDArray[np.int32 | np.int64]:
        """The same as an array, without a copy: for many single questions."""
        pointers, columns = self._arrays
        return columns[pointers[node] : pointers[node + 1]]

    def edge_index(self) -> Tensor:
        """Both directions of every edge as PyG's 2 x 2|E| matrix."""
        rows = torch.repeat_interleave(torch.arange(self.num_nodes), self.degrees)
        return torch.stack([rows, self.columns.long()])


@dataclass(frozen=True)
class EdgeHygiene:
    """What cleaning removed. These counts depend on the edges, so they stay private with them."""

    given: int
    self_loops: int
    duplicates: int
    kept: int


def public_edges(edge_index: Tensor, num_nodes: int) -> EdgeList:
    """A graph whose edges everybody may know.

    Args:
        edge_index: 2 x k integers in [0, num_nodes), any direction, any order, repeats and loops allowed.
        num_nodes: the number of nodes.

    Privacy:
        The caller declares the edges public; nothing is promised about them.
    """
    return simple_undirected(edge_index, num_nodes)[0]


@without_frames
def private_edges(edge_index: Tensor, num_nodes: int) -> tuple[Private[EdgeList], Private[EdgeHygiene]]:
    """Take in private edges: symmetrise, drop self-loops, drop duplicates, in that order, and wrap.

    The sensitivity bounds are false for directed graphs (proofs, directed star), so there is no way around this.

    Privacy:
        Reads the edges; reveals nothing. Errors say what is wrong, never where.
    """
    edges, hygiene = simple_undirected(edge_index, num_nodes)
    return Private(edges, EDGES), Private(hygiene, CLEANED)


def simple_undirected(edge_index: Tensor, num_nodes: int) -> tuple[EdgeList, EdgeHygiene]:
    """The graph (bare: the caller wraps it, or says that it is public), and what cleaning removed."""
    if edge_index.dim() != 2 or edge_index.shape[0] != 2:
        rule = "must have two rows, one end of every edge in each (PyG's edge_index)"
        fix = "Transpose a list of pairs; pass an empty 2 x 0 matrix for a graph without edges."
        raise InputError("edges", rule=rule, got="another shape", fix=fix)
    if edge_index.dtype == torch.bool or edge_index.is_floating_point() or edge_index.is_complex():
        rule, fix = "must hold integer node numbers", "Convert the ids to integers."
        raise InputError("edges", rule=rule, got="another type", fix=fix)
    # 32-bit numbers are taken as they are: half the memory.
    edge_index = edge_index.detach().to("cpu", torch.int32 if edge_index.dtype == torch.int32 else torch.int64)
    if edge_index.numel() and (int(edge_index.min()) < 0 or int(edge_index.max()) >= num_nodes):
        rule = f"every end must be a node, numbered 0 to {num_nodes - 1}"
        fix = "Add the missing nodes to the node table, or drop their edges; parts of the nodes: gcon.model_selection."
        raise InputError("edges", rule=rule, got="an end that is not a node", fix=fix)
    source, target = edge_index[0].numpy(), edge_index[1].numpy()
    size = max(num_nodes, 1)
    # An unordered pair is one key, low * n + high: taking the pair symmetrises, equal keys are duplicates.
    keys = np.minimum(source, target).astype(np.int64, copy=False)
    keys *= size
    keys += np.maximum(source, target)
    proper = source != target
    self_loops = int(proper.size - np.count_nonzero(proper))
    if self_loops:
        keys = keys[proper]
    del proper
    keys.sort()
    fresh = np.ones(keys.size, dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=fresh[1:])
    if not fresh.all():
        keys = keys[fresh]
    del fresh
    kept = int(keys.size)
    both = np.empty(2 * kept, dtype=np.int64)  # the keys, and those of the other direction: high * n + low
    both[:kept] = keys
    np.remainder(keys, size, out=both[kept:])
    both[kept:] *= size
    keys //= size
    both[kept:] += keys
    del keys
    both.sort()
    pointers = np.searchsorted(both, np.arange(num_nodes + 1) * size)
    both %= size
    narrow = max(num_nodes, both.size) < 2**31
    columns = torch.from_numpy(both.astype(np.int32) if narrow else both)
    given = int(source.size)
    hygiene = EdgeHygiene(given=given, self_loops=self_loops, duplicates=given - self_loops - kept, kept=kept)
    return EdgeList(torch.from_numpy(pointers), columns, num_nodes), hygiene
