"""Graphs and numbers on which a kernel must agree with the reference bit for bit."""

import torch
from tests.edges.kernels import multiply_plain

from gcon.edges.edge_list import EdgeList, public_edges
from gcon.edges.fixed_point import Walk, column_units

WIDTHS = (1, 3, 16)
WALKS = (Walk(), Walk(restart=0.2), Walk(restart=0.8, clip=0.05), Walk(restart=1.0), Walk(restart=0.3, self_weight=4.5))


def random_graph(num_nodes: int, num_edges: int, seed: int) -> EdgeList:
    generator = torch.Generator().manual_seed(seed)
    return public_edges(torch.randint(num_nodes, (2, num_edges), generator=generator), num_nodes)


def star(num_leaves: int) -> EdgeList:
    """Node 3 is joined to all others: more neighbours than sums of 63 bits hold."""
    others = torch.tensor([node for node in range(num_leaves + 1) if node != 3])
    return public_edges(torch.stack([torch.full_like(others, 3), others]), num_leaves + 1)


GRAPHS = {
    "no edge": lambda: random_graph(7, 0, 0),
    "one node": lambda: random_graph(1, 0, 0),
    "sparse": lambda: random_graph(200, 150, 1),
    "dense": lambda: random_graph(40, 3000, 2),
    "star": lambda: star(9000),
}


def state(num_nodes: int, width: int, seed: int, *, bits: int = 49, extreme: bool = False) -> torch.Tensor:
    """Whole numbers up to 2^bits; the extreme ones are all at the end, so that sums are as large as they can be."""
    if extreme:
        return torch.full((num_nodes, width), 2**bits - 1, dtype=torch.int64)
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-(2**bits), 2**bits, (num_nodes, width), generator=generator)


def expected_step(
    edges: EdgeList, current: torch.Tensor, origin: torch.Tensor, walk: Walk, scale: torch.Tensor | None = None
) -> torch.Tensor:
    return step_of(multiply_plain, edges, current, origin, walk, scale)


def scaled_origin(num_nodes: int, width: int, seed: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Features and what makes them whole numbers of at most 49 bits; some lie half-way between two."""
    features = torch.randn(num_nodes, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    scale = 1 / column_units(features)
    features[::3] = (state(len(features[::3]), width, seed, bits=40) + 0.5) / scale
    return features.to(dtype), 1 / column_units(features.to(dtype))


def expected_totals(edges: EdgeList, rows: torch.Tensor) -> torch.Tensor:
    return totals_of(multiply_plain, edges, rows)


def step_of(
    kernel, edges: EdgeList, current: torch.Tensor, origin: torch.Tensor, walk: Walk, scale: torch.Tensor | None = None
) -> torch.Tensor:
    out = torch.full_like(current, -(2**62))
    for block in edges.blocks(current.device):
        kernel.walk_step(block, current, origin, scale, walk=walk, out=out[block.nodes])
    return out


def totals_of(kernel, edges: EdgeList, rows: torch.Tensor) -> torch.Tensor:
    return torch.cat([kernel.neighbour_totals(block, rows) for block in edges.blocks(rows.device)])
