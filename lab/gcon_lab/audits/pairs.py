"""Pairs of neighbouring graphs to audit on: small worst cases, an edge in a given graph, and a search for bad pairs.

All graphs here are made up or declared public; nothing private is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gcon.edges.edge_list import EdgeList, public_edges
from gcon.mechanisms.statistic import Statistic


@dataclass(frozen=True, eq=False)
class EdgePair:
    """Two graphs on the same nodes that differ in one edge, or in as many as the promise is for."""

    joined: EdgeList
    apart: EdgeList


def edge_pair(others: list[tuple[int, int]], edge: tuple[int, int], num_nodes: int) -> EdgePair:
    """The graph of the other edges, with and without this edge."""
    apart = public_edges(torch.tensor(others, dtype=torch.int64).reshape(-1, 2).T, num_nodes)
    return EdgePair(joined=with_edges(apart, torch.tensor([edge])), apart=apart)


def with_edges(edges: EdgeList, pairs: Tensor) -> EdgeList:
    """The graph and these pairs (k x 2)."""
    return public_edges(torch.cat([edges.edge_index(), pairs.T], dim=1), edges.num_nodes)


def is_linked(edges: EdgeList, pair: tuple[int, int]) -> bool:
    return bool((edges.neighbours(pair[0]) == pair[1]).any())


def two_nodes() -> EdgePair:
    """Two nodes, joined and not: the worst case of most statistics."""
    return edge_pair([], (0, 1), 2)


def path_of_four() -> EdgePair:
    """0 - 1 and 2 - 3, and the edge {1, 2} between them."""
    return edge_pair([(0, 1), (2, 3)], (1, 2), 4)


def star_and_node(leaves: int) -> EdgePair:
    """A hub (0) with leaves (2, ...), and the edge between the hub and a lonely node (1)."""
    return edge_pair([(0, leaf) for leaf in range(2, leaves + 2)], (0, 1), leaves + 2)


def copies(edges: EdgeList, count: int) -> EdgeList:
    """`count` disjoint copies of a small graph: so many independent runs of a mechanism that works node by node.

    Every arc stays as it is listed: nothing is symmetrised or dropped.
    """
    size, entries = edges.num_nodes, len(edges.columns)
    pointers = edges.row_pointers[:-1].repeat(count) + torch.arange(count).repeat_interleave(size) * entries
    columns = edges.columns.repeat(count) + (torch.arange(count) * size).repeat_interleave(entries)
    return EdgeList(
        torch.cat([pointers, torch.tensor([count * entries])]), columns.to(edges.columns.dtype), size * count
    )


def listed_twice() -> EdgePair:
    """An un-symmetrised input with both arcs of an edge, symmetrised by a reader that forgets to drop duplicates."""
    arcs = [(0, 1), (1, 0)]
    return EdgePair(joined=_directed(2 * arcs, 2), apart=_directed([], 2))


def directed_star(leaves: int) -> EdgePair:
    """An un-symmetrised input: leaves that point to a hub, and the arc from the hub to a lonely node.

    `public_edges` would symmetrise it; these lists are made by hand, as a reader that forgets to would.
    """
    arcs = [(leaf, 0) for leaf in range(2, leaves + 2)]
    return EdgePair(joined=_directed([(0, 1), *arcs], leaves + 2), apart=_directed(arcs, leaves + 2))


def _directed(arcs: list[tuple[int, int]], num_nodes: int) -> EdgeList:
    ordered = torch.tensor(sorted(arcs), dtype=torch.int64).reshape(-1, 2)
    degrees = torch.bincount(ordered[:, 0], minlength=num_nodes)
    pointers = torch.cat([torch.zeros(1, dtype=torch.int64), degrees.cumsum(0)])
    return EdgeList(pointers, ordered[:, 1].to(torch.int32), num_nodes)


MakeStatistic = Callable[[Tensor, Tensor], Statistic]


def search_pairs(make: MakeStatistic, *, num_nodes: int, tries: int) -> float:
    """The largest change of a statistic over its claimed sensitivity that a search meets; above 1 the claim is false.

    Random small graphs, features and classes, each climbed from: toggle a pair, turn a sign, change a class.

    Args:
        make: n x 1 features (1 or -1) and n x 2 one-hot classes -> the statistic.
        num_nodes: of every graph.
        tries: pairs to compute in total.
    """
    generator = np.random.default_rng(0)  # of the search, not of any noise
    pairs = np.stack(np.triu_indices(num_nodes, 1), axis=1)
    best, tried = 0.0, 0
    while tried < tries:
        state = _State(
            generator.random(len(pairs)) < generator.choice([0.1, 0.3, 0.6]),
            generator.integers(0, 2, num_nodes),
            generator.integers(0, 2, num_nodes),
            int(generator.integers(len(pairs))),
        )
        ratio = _ratio(make, state, pairs, num_nodes)
        tried += 1
        idle = 0
        while idle < 2 * len(pairs) and tried < tries:
            moved = state.moved(generator)
            other = _ratio(make, moved, pairs, num_nodes)
            tried += 1
            idle = 0 if other > ratio + 1e-12 else idle + 1
            if other >= ratio:
                state, ratio = moved, other
        best = max(best, ratio)
    return best


@dataclass(frozen=True, eq=False)
class _State:
    edges: np.ndarray[tuple[int], np.dtype[np.bool_]]
    signs: np.ndarray[tuple[int], np.dtype[np.int64]]
    classes: np.ndarray[tuple[int], np.dtype[np.int64]]
    edge: int

    def moved(self, generator: np.random.Generator) -> _State:
        edges, signs, classes, edge = self.edges.copy(), self.signs.copy(), self.classes.copy(), self.edge
        kind = generator.integers(4)
        if kind == 0:
            edge = int(generator.integers(len(edges)))
        else:
            changed = (edges, signs, classes)[int(kind) - 1]
            place = generator.integers(len(changed))
            changed[place] = 1 - changed[place]
        return _State(edges, signs, classes, edge)

    def pair(self, pairs: np.ndarray[tuple[int, int], np.dtype[np.int64]], num_nodes: int) -> EdgePair:
        others = self.edges.copy()
        others[self.edge] = False
        low, high = pairs[self.edge]
        return edge_pair([(int(u), int(v)) for u, v in pairs[others]], (int(low), int(high)), num_nodes)


def _ratio(
    make: MakeStatistic, state: _State, pairs: np.ndarray[tuple[int, int], np.dtype[np.int64]], num_nodes: int
) -> float:
    classes = torch.nn.functional.one_hot(torch.from_numpy(state.classes), 2).to(torch.float64)
    statistic = make(torch.from_numpy(2.0 * state.signs - 1)[:, None], classes)
    if statistic.sensitivity == 0:
        return 0.0
    pair = state.pair(pairs, num_nodes)
    change = statistic.of(pair.joined) - statistic.of(pair.apart)
    return float(torch.linalg.vector_norm(change)) / statistic.sensitivity
