"""Edge stores for tests: made from random pairs, and compared with the same graph in memory."""

import numpy as np
import torch
from tests.opened import open_private

from gcon.edges.edge_list import private_edges
from gcon.edges.stored import StoredEdges
from gcon.files.edge_store import write_edge_store


def random_pairs(num_nodes, count, seed=0):
    return np.random.default_rng(seed).integers(0, num_nodes, (2, count))


def cut(pairs, size):
    return [pairs[:, start : start + size] for start in range(0, pairs.shape[1], size)]


def write(target, pairs, num_nodes, *, size=50, memory_bytes=4096, **how):
    write_edge_store(cut(pairs, size), target, num_nodes=num_nodes, memory_bytes=memory_bytes, **how)


def assert_same(target, pairs, num_nodes):
    edges, hygiene = private_edges(torch.from_numpy(pairs), num_nodes)
    expected, store = open_private(edges), StoredEdges(target)
    found = store.load()
    assert found.columns.dtype == expected.columns.dtype
    assert torch.equal(found.row_pointers, expected.row_pointers)
    assert torch.equal(found.columns, expected.columns)
    assert store.hygiene == open_private(hygiene)
    store.verify()
