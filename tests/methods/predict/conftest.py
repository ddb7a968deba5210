"""A small released model, and another graph that it has never seen."""

from __future__ import annotations

import math

import pytest
import torch

from gcon.edges.graph import PrivateGraph, private_graph
from gcon.edges.schemes import Schemes
from gcon.files.datasets.synthetic import social_circles_parts
from gcon.learn.perceptron import EncoderSettings
from gcon.methods.objective import Objective, ObjectiveModel
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SeededRandomness

STEPS = (0, 2, math.inf)


def circles(num_nodes: int, seed: int):
    return social_circles_parts(
        num_nodes, num_classes=3, mean_degree=4, num_features=6, feature_signal=4.0, per_class=6, seed=seed
    )


def trained(graph: PrivateGraph, steps=STEPS, *, epsilon=50.0, randomness=None, **options) -> ObjectiveModel:
    """Noise from a seed unless told otherwise: such a model keeps no promise."""
    settings = Objective(
        epsilon=epsilon,
        encoder=EncoderSettings(hidden=4, epochs=20),
        schemes=Schemes(restart=0.5, steps=steps),
        inference_restart=0.25,
        **options,
    )
    return settings.train(graph.nodes, graph.edges, ledger=MemoryLedger(), randomness=randomness or SeededRandomness(1))


@pytest.fixture(scope="session")
def graph() -> PrivateGraph:
    return private_graph(*circles(48, 3), name="circles")


@pytest.fixture(scope="session")
def edge_index() -> torch.Tensor:
    return circles(48, 3)[1]


@pytest.fixture(scope="session")
def other():
    """Nodes and edges of another graph, with nodes never seen."""
    return circles(36, 9)


@pytest.fixture(scope="session")
def model(graph) -> ObjectiveModel:
    return trained(graph)


@pytest.fixture(scope="session")
def make_model(graph):
    return lambda *steps, **options: trained(graph, steps, **options)
