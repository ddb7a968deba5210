"""Lemma 1 and Lemma A: rows of the propagation sum to one, and no column sums to more than its degree allows."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.proofs.sharp import column_constant

from gcon.edges.edge_list import EdgeList, public_edges
from gcon.edges.schemes import Schemes, propagate

STEPS = (1, 2, 3, 5, 10, math.inf)
RESTARTS = (0.1, 0.2, 0.4, 0.6, 0.8, 0.95)
ROUNDING = 1e-12
searched = settings(max_examples=200, deadline=None, derandomize=True)


def propagation_blocks(edges: EdgeList, one_hot: torch.Tensor, schemes: Schemes) -> list[np.ndarray]:
    """R_m of every scheme, read off by propagating one-hot features."""
    aggregates = propagate(edges, one_hot, schemes) * schemes.num_blocks
    return [block.numpy() for block in aggregates.split(one_hot.shape[1], dim=1)]


def check_rows_and_columns(
    blocks: list[np.ndarray], degrees: np.ndarray, schemes: Schemes, size: int, *, clip: float
) -> None:
    """Blocks hold many graphs of `size` nodes one below the other."""
    degrees = degrees.reshape(-1, size)
    for steps, block in zip(schemes.steps, blocks, strict=True):
        matrix = block.reshape(-1, size, size)
        columns = matrix.sum(axis=1)
        # Stopping the limit early leaves at most (1 - restart)^T in every entry.
        tolerance = ROUNDING + (schemes.truncation(degrees.size) if math.isinf(steps) else 0.0)
        assert matrix.min() >= 0
        np.testing.assert_allclose(matrix.sum(axis=2), 1, atol=tolerance)
        assert (columns <= np.maximum((degrees + 1) * clip, 1) + tolerance).all()
        if math.isinf(steps) and clip == 0.5:
            assert (columns <= (degrees + 1) * column_constant(degrees, schemes.restart) + tolerance).all()


@pytest.mark.parametrize("clip", [0.5, 0.35, 0.2, 0.1])
@pytest.mark.parametrize("restart", RESTARTS)
def test_all_graphs_up_to_six_nodes(small_graphs, restart, clip):
    schemes = Schemes(restart=restart, steps=STEPS, clip=clip)
    edges = small_graphs.graphs
    one_hot = small_graphs.tiled(torch.eye(6, dtype=torch.float64), edges)
    blocks = propagation_blocks(edges, one_hot, schemes)
    check_rows_and_columns(blocks, edges.degrees.numpy(), schemes, 6, clip=clip)


@pytest.mark.parametrize("clip", [0.5, 0.2])
def test_no_restart_with_finite_steps(small_graphs, clip):
    schemes = Schemes(restart=0.0, steps=(1, 2, 5, 20), clip=clip)
    edges = small_graphs.graphs
    one_hot = small_graphs.tiled(torch.eye(6, dtype=torch.float64), edges)
    blocks = propagation_blocks(edges, one_hot, schemes)
    check_rows_and_columns(blocks, edges.degrees.numpy(), schemes, 6, clip=clip)


@st.composite
def larger_graphs(draw: st.DrawFn) -> EdgeList:
    """Trees with a few more edges: hubs, long paths and everything in between."""
    num_nodes = draw(st.integers(2, 30))
    parents = [
        draw(st.integers(max(0, child - draw(st.integers(1, child))), child - 1)) for child in range(1, num_nodes)
    ]
    pairs = list(zip(parents, range(1, num_nodes), strict=True))
    node = st.integers(0, num_nodes - 1)
    pairs += draw(st.lists(st.tuples(node, node), max_size=2 * num_nodes))
    return public_edges(torch.tensor(pairs, dtype=torch.int64).T, num_nodes)


@pytest.mark.slow
@searched
@given(edges=larger_graphs(), restart=st.sampled_from(RESTARTS), clip=st.sampled_from([0.5, 0.25, 0.1]))
def test_larger_graphs(edges, restart, clip):
    schemes = Schemes(restart=restart, steps=STEPS, clip=clip)
    blocks = propagation_blocks(edges, torch.eye(edges.num_nodes, dtype=torch.float64), schemes)
    check_rows_and_columns(blocks, edges.degrees.numpy(), schemes, edges.num_nodes, clip=clip)


@searched
@given(edges=larger_graphs(), steps=st.integers(1, 8), clip=st.sampled_from([0.5, 0.3]))
def test_the_reversibility_identity(edges, steps, clip):
    """1' T^m e_i = pi_i E[1 / pi(X_m)] with pi_i = max(k_i + 1, 1/p): what the column bounds are read off from."""
    power = propagation_blocks(
        edges, torch.eye(edges.num_nodes, dtype=torch.float64), Schemes(restart=0.0, steps=(steps,), clip=clip)
    )[0]
    weight = np.maximum(edges.degrees.numpy() + 1, 1 / clip)
    np.testing.assert_allclose(power.sum(axis=0), weight * (power @ (1 / weight)), atol=ROUNDING)


@pytest.mark.parametrize("leaves", [1, 2, 7, 50, 400])
@pytest.mark.parametrize("restart", RESTARTS)
def test_the_star_attains_the_column_constant(leaves, restart):
    edges = public_edges(torch.stack([torch.zeros(leaves, dtype=torch.int64), torch.arange(1, leaves + 1)]), leaves + 1)
    centre = torch.zeros(leaves + 1, leaves + 1, dtype=torch.float64).fill_diagonal_(1.0)[:, :1]
    column = propagate(edges, centre, Schemes(restart=restart, steps=(math.inf,)))
    assert float(column.sum()) == pytest.approx((leaves + 1) * float(column_constant(leaves, restart)), abs=1e-9)
