"""Why the graph must be symmetric: on a directed star one edge moves more rows than any constant bounds."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import pytest
import torch

from gcon.edges.edge_list import private_edges
from gcon.edges.schemes import Schemes, propagate
from gcon.mechanisms.influence import paper_influence, sharp_influence, simple_influence
from gcon.privacy.boundary import Private
from gcon.privacy.opening import apply_private

HUB, OTHER = 0, 1
T = TypeVar("T")


def opened(private: Private[T]) -> T:
    return apply_private(lambda value: value, private)


def directed_star(leaves: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Leaves point to the hub; the hub points nowhere, or (with the edge) to the other node. Features +1, other -1."""
    num_nodes = leaves + 2
    without = np.zeros((num_nodes, num_nodes))
    without[2:, HUB] = 1
    with_edge = without.copy()
    with_edge[HUB, OTHER] = 1
    features = np.ones(num_nodes)
    features[OTHER] = -1
    return with_edge, without, features


def directed_aggregates(adjacency: np.ndarray, features: np.ndarray, *, restart: float, steps: int) -> np.ndarray:
    """The paper's propagation taken literally on an adjacency matrix that is not symmetric."""
    transition = adjacency + np.eye(len(adjacency))
    transition /= transition.sum(axis=1, keepdims=True)
    current = features
    for _ in range(steps):
        current = (1 - restart) * transition @ current + restart * features
    return current


@pytest.mark.parametrize(
    ("restart", "leaves", "expected"),
    [(0.2, 10, 4.32), (0.2, 100, 33.12), (0.2, 1000, 321.12), (0.8, 10, 0.42), (0.8, 100, 2.22), (0.8, 1000, 20.22)],
)
def test_one_directed_edge_moves_every_leaf(restart, leaves, expected):
    with_edge, without, features = directed_star(leaves)
    moved = np.abs(
        directed_aggregates(with_edge, features, restart=restart, steps=2)
        - directed_aggregates(without, features, restart=restart, steps=2)
    ).sum()
    assert moved == pytest.approx(expected, abs=1e-9)
    if (restart, leaves) != (0.8, 10):
        assert moved > paper_influence(restart, 2)
    assert paper_influence(0.2, 2) == pytest.approx(2.88)
    assert paper_influence(0.8, 2) == pytest.approx(0.48)


def test_no_constant_bounds_the_directed_change():
    changes = []
    for leaves in (10, 20, 40, 80):
        with_edge, without, features = directed_star(leaves)
        sides = [directed_aggregates(side, features, restart=0.2, steps=2) for side in (with_edge, without)]
        changes.append(np.abs(sides[0] - sides[1]).sum())
    np.testing.assert_allclose(np.diff(changes), 0.32 * np.array([10, 20, 40]))


@pytest.mark.parametrize("restart", [0.2, 0.8])
@pytest.mark.parametrize("leaves", [10, 100, 1000])
def test_taking_edges_in_symmetrises_them_and_the_bounds_hold(restart, leaves):
    with_edge, without, features = directed_star(leaves)
    schemes = Schemes(restart=restart, steps=(2,))
    column = torch.from_numpy(features)[:, None]
    aggregates = []
    for adjacency in (with_edge, without):
        edges = opened(private_edges(torch.from_numpy(np.argwhere(adjacency).T), leaves + 2)[0])
        dense = np.zeros_like(adjacency)
        dense[tuple(edges.edge_index().numpy())] = 1
        np.testing.assert_array_equal(dense, np.maximum(adjacency, adjacency.T))
        aggregates.append(propagate(edges, column, schemes))
    moved = float((aggregates[0] - aggregates[1]).abs().sum())
    assert moved <= paper_influence(restart, 2)
    assert moved <= 2 * simple_influence(restart, 2)
    assert moved <= 2 * sharp_influence(restart, 2)


def test_reciprocal_arcs_self_loops_and_repeats_are_one_undirected_edge():
    messy = torch.tensor([[0, 1, 0, 2, 2, 1], [1, 0, 1, 2, 1, 2]])
    edges, hygiene = private_edges(messy, 3)
    assert opened(edges).degrees.tolist() == [1, 2, 1]
    counts = opened(hygiene)
    assert (counts.given, counts.self_loops, counts.duplicates, counts.kept) == (6, 1, 3, 2)
