"""Pairs of nodes: linked ones and unlinked ones to tell apart, and a graph with or without one of them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gcon.edges.edge_list import EdgeList, public_edges
from gcon.errors import InputError
from gcon_lab.attacks.view import Pair
from gcon_lab.audits.pairs import is_linked, with_edges


@dataclass(frozen=True, eq=False)
class LabelledPairs:
    """Pairs (k x 2) and whether each is linked."""

    pairs: Tensor
    linked: Tensor

    def part(self, chosen: Tensor) -> LabelledPairs:
        """Some of them: places, or a mask."""
        return LabelledPairs(self.pairs[chosen], self.linked[chosen])


def sample_pairs(edges: EdgeList, each: int, *, seed: int = 0) -> LabelledPairs:
    """As many linked as unlinked pairs, at most `each`, in random order.

    First ends are few: all edges of a random node are taken before the next one, and its unlinked pairs are as many, with
    random second ends. So an attack that asks once per first end is cheap, and both kinds have the same first ends.
    """
    generator = torch.Generator().manual_seed(seed)
    linked: list[Pair] = []
    apart: list[Pair] = []
    for node in torch.randperm(edges.num_nodes, generator=generator).tolist():
        friends = edges.neighbours(node)
        taken = friends[torch.randperm(len(friends), generator=generator)][: each - len(linked)]
        excluded = {node, *friends.tolist()}
        drawn = [other for other in _random_nodes(edges.num_nodes, generator) if other not in excluded][: len(taken)]
        linked += [(node, other) for other in taken[: len(drawn)].tolist()]
        apart += [(node, other) for other in drawn]
        if len(linked) >= each:
            break
    if not linked:
        raise InputError("edges", rule="must have some, and not all", got="a graph without", fix="Attack another one.")
    order = torch.randperm(2 * len(linked), generator=generator)
    truth = torch.tensor([True] * len(linked) + [False] * len(apart))
    return LabelledPairs(torch.tensor(linked + apart)[order], truth[order])


def _random_nodes(num_nodes: int, generator: torch.Generator) -> list[int]:
    """Some nodes in random order: all of a small graph, a few thousand of a large one."""
    drawn = torch.randperm(num_nodes, generator=generator)[:4000]
    return [int(node) for node in drawn]


def without_edge(edges: EdgeList, pair: Pair) -> EdgeList:
    index = edges.edge_index()
    low, high = min(pair), max(pair)
    same = (torch.minimum(index[0], index[1]) == low) & (torch.maximum(index[0], index[1]) == high)
    return public_edges(index[:, ~same], edges.num_nodes)


def absent_and_present(edges: EdgeList, pair: Pair) -> tuple[EdgeList, EdgeList]:
    """The two graphs that differ in the pair alone; one of them is the given object itself."""
    if is_linked(edges, pair):
        return without_edge(edges, pair), edges
    return edges, with_edges(edges, torch.tensor([pair]))
