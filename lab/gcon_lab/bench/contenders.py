"""The same ten steps of a walk by ours and by what a user would pick instead: Z <- 0.8 T Z + 0.2 X, 16 columns, float64."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from gcon.edges.edge_list import EdgeList
from gcon.edges.schemes import Schemes, propagate
from gcon.edges.source import Edges

COLUMNS, STEPS, RESTART = 16, 10, 0.2
Walk = Callable[[], object]


def features_of(num_nodes: int, device: str = "cpu") -> Tensor:
    """Random public features, as an encoder gives them: single precision, rows no longer than 1."""
    generator = torch.Generator(device).manual_seed(1)
    features = torch.rand(num_nodes, COLUMNS, device=device, generator=generator)
    return features.div_(4 * 1.001)


def ours(edges: Edges, features: Tensor) -> Walk:
    """Whole numbers of 64 bits: the same bits wherever it runs."""
    return partial(propagate, edges, features, Schemes(restart=RESTART, steps=(STEPS,)))


def torch_csr(edges: EdgeList, features: Tensor) -> Walk:
    """Torch's sparse rows."""
    matrix = _matrix(edges)

    def walk() -> Tensor:
        origin = features.to(torch.float64)
        current = origin
        for _ in range(STEPS):
            current = torch.addmm(origin, matrix, current, beta=RESTART, alpha=1 - RESTART)
        return current

    return walk


def scipy_csr(edges: EdgeList, features: Tensor) -> Walk:
    """Scipy's sparse rows: one thread."""
    pointers, columns, weights = (each.numpy() for each in _with_loops(edges))
    matrix = scipy.sparse.csr_matrix((weights, columns, pointers), shape=(edges.num_nodes, edges.num_nodes))

    def walk() -> object:
        origin = features.numpy().astype(np.float64)
        current = origin
        for _ in range(STEPS):
            current = matrix @ current
            current *= 1 - RESTART
            current += RESTART * origin
        return current

    return walk


def appnp(edges: EdgeList, features: Tensor) -> Walk:
    """PyTorch Geometric's layer on an edge_index: a message per edge."""
    from torch_geometric.nn import APPNP

    pointers, columns, weights = _with_loops(edges)
    rows = torch.repeat_interleave(torch.arange(edges.num_nodes, device=columns.device), pointers.diff())
    layer = APPNP(STEPS, RESTART, normalize=False)
    edge_index = torch.stack([columns.long(), rows])

    def walk() -> object:
        return layer(features.to(torch.float64), edge_index, weights)

    return walk


def appnp_csr(edges: EdgeList, features: Tensor) -> Walk:
    """The same layer on sparse rows, as PyTorch Geometric advises for large graphs."""
    from torch_geometric.nn import APPNP

    matrix = _matrix(edges)
    layer = APPNP(STEPS, RESTART, normalize=False)

    def walk() -> object:
        return layer(features.to(torch.float64), matrix)

    return walk


CONTENDERS: dict[str, Callable[[EdgeList, Tensor], Walk]] = {
    "gcon": ours,
    "torch CSR": torch_csr,
    "scipy": scipy_csr,
    "PyG APPNP": appnp,
    "PyG APPNP, CSR": appnp_csr,
}


def _matrix(edges: EdgeList) -> Tensor:
    """T as torch's sparse rows, with self-loops and weights stored; 32-bit indices while they fit, as torch allows."""
    pointers, columns, weights = _with_loops(edges)
    wide, size = torch.int32 if len(columns) < 2**31 else torch.int64, (edges.num_nodes, edges.num_nodes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.sparse_csr_tensor(pointers.to(wide), columns.to(wide), weights, size=size, check_invariants=False)


def _with_loops(edges: EdgeList) -> tuple[Tensor, Tensor, Tensor]:
    """Pointers, columns and weights of T = D^-1 (A + I); the loop of a node comes last in its row."""
    device, count = edges.columns.device, edges.num_nodes
    pointers = edges.row_pointers + torch.arange(count + 1, device=device)
    columns = torch.empty(int(pointers[-1]), dtype=edges.columns.dtype, device=device)
    last = torch.zeros(len(columns), dtype=torch.bool, device=device)
    last[pointers[1:] - 1] = True
    columns[last] = torch.arange(count, dtype=columns.dtype, device=device)
    columns[~last] = edges.columns
    del last
    degrees = pointers.diff()
    return pointers, columns, torch.repeat_interleave(1 / degrees.double(), degrees)
