"""The default on graphs that nobody would bring: nothing breaks, and answers stay probabilities."""

import dataclasses
import math

import pytest
import torch

from gcon.edges.graph import private_graph
from gcon.files.datasets import social_circles_parts
from gcon.privacy.randomness import SeededRandomness
from gcon_lab.methods import Moments
from gcon_lab.methods.fitted import fit

SIZE = 200
ACCESSES = ("own-edges", "none", "cached")
NOBODY = torch.zeros(SIZE, dtype=torch.bool)
NODES, EDGES = social_circles_parts(SIZE, num_classes=3, per_class=10, mean_degree=4.0, feature_signal=2.0, seed=3)


def all_answers(graph, epsilon):
    fitted = fit(Moments(epsilon=epsilon), graph, randomness=SeededRandomness(1))
    return [fitted.predictions(graph, access=access).probabilities for access in ACCESSES]


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, math.inf])
@pytest.mark.parametrize(
    ("edge_index", "other"),
    [
        (EDGES, {"validation_mask": NOBODY}),
        (EDGES, {"test_mask": NOBODY}),
        (EDGES[:, :0], {}),
        (torch.triu_indices(SIZE, SIZE, 1), {}),
        (EDGES[:, (EDGES > 100).all(dim=0)], {}),
        (EDGES, {"train_mask": NODES.train_mask & (NODES.labels != 2)}),
        (EDGES, {"train_mask": NODES.train_mask & (NODES.labels == 2), "validation_mask": NOBODY}),
        (EDGES, {"features": torch.zeros(SIZE, 2)}),
        (EDGES, {"features": torch.eye(SIZE)}),
    ],
    ids=[
        "no validation",
        "no test",
        "no edges",
        "all edges",
        "isolated",
        "missing class",
        "one class",
        "zeros",
        "identity",
    ],
)
def test_unusual_graphs(edge_index, other, epsilon):
    graph = private_graph(dataclasses.replace(NODES, **other), edge_index, name="circles")
    for found in all_answers(graph, epsilon):
        assert torch.allclose(found.sum(dim=1), torch.ones(SIZE, dtype=torch.float64))


def test_without_edges_the_answers_of_all_accesses_agree_under_noise():
    own, none, cached = all_answers(private_graph(NODES, EDGES[:, :0], name="circles"), 1.0)
    assert torch.equal(none, cached)
    assert torch.equal(own.argmax(dim=1), none.argmax(dim=1))


@pytest.mark.slow
def test_the_only_class_that_was_taught_is_the_answer():
    one = dataclasses.replace(NODES, train_mask=NODES.train_mask & (NODES.labels == 1), validation_mask=NOBODY)
    for found in all_answers(private_graph(one, EDGES, name="circles"), 1.0):
        assert bool((found.argmax(dim=1) == 1).all())


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 2, 6])
@pytest.mark.parametrize("epsilon", [0.5, math.inf])
def test_a_handful_of_nodes_and_two_classes(size, epsilon):
    everybody = torch.ones(size, dtype=torch.bool)
    small = dataclasses.replace(
        NODES,
        features=NODES.features[:size],
        labels=torch.arange(size) % 2,
        num_classes=2,
        train_mask=everybody,
        validation_mask=~everybody,
        test_mask=~everybody,
        class_names=(),
    )
    graph = private_graph(small, torch.triu_indices(size, size, 1), name="few")
    assert all(bool(torch.isfinite(found).all()) for found in all_answers(graph, epsilon))


@pytest.mark.slow
def test_features_of_which_no_two_are_alike():
    """All cosines are negative, so the public graph is empty and expects nothing."""
    corners = torch.eye(4) - 0.25
    labels, masks = torch.tensor([0, 1, 0, 1]), torch.tensor([[1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 0, 0]]).bool()
    nodes = dataclasses.replace(
        NODES,
        features=corners,
        labels=labels,
        num_classes=2,
        train_mask=masks[0],
        validation_mask=masks[1],
        test_mask=masks[2],
        class_names=(),
    )
    graph = private_graph(nodes, torch.tensor([[0, 1], [2, 3]]), name="corners")
    assert all(bool(torch.isfinite(found).all()) for found in all_answers(graph, 1.0))
