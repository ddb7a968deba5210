"""Two neighbouring graphs: the same public nodes, one edge more or less."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
import torch
from tests.counted import counted
from torch import Tensor

from gcon.edges.graph import PrivateGraph, private_graph
from gcon.edges.schemes import Schemes
from gcon.files.datasets.synthetic import social_circles_parts
from gcon.learn.perceptron import EncoderSettings
from gcon.methods.moments import Moments
from gcon.methods.objective import Objective
from gcon.nodes import PublicNodes
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SeededRandomness


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The full graph, and it without some of its edges."""

    nodes: PublicNodes
    edge_index: Tensor

    @property
    def full(self) -> PrivateGraph:
        return private_graph(self.nodes, self.edge_index, name="circles")

    def without(self, *positions: int) -> PrivateGraph:
        kept = [position for position in range(self.edge_index.shape[1]) if position not in positions]
        return private_graph(self.nodes, self.edge_index[:, kept], name="circles")

    @property
    def pairs(self) -> list[PrivateGraph]:
        """The graph and several neighbours: the first, the last and the middle edge missing, and one edge more."""
        size = self.edge_index.shape[1]
        linked = {frozenset(pair) for pair in self.edge_index.T.tolist()}
        extra = next([0, node] for node in range(1, self.nodes.num_nodes) if frozenset({0, node}) not in linked)
        more = private_graph(self.nodes, torch.cat([self.edge_index, torch.tensor([extra]).T], dim=1), name="circles")
        return [self.full, self.without(0), self.without(size // 2), self.without(size - 1), more]


@pytest.fixture(scope="session")
def neighbours() -> Neighbours:
    return Neighbours(*social_circles_parts(48, num_classes=3, mean_degree=4, num_features=6, per_class=6, seed=3))


@pytest.fixture
def settings() -> Objective:
    return Objective(
        epsilon=1.0, encoder=EncoderSettings(hidden=4, epochs=15), schemes=Schemes(restart=0.5, steps=(0, 2, 3))
    )


@pytest.fixture
def run(settings):
    """Train with one seed and a stopped clock; gives the model, the ledger and what was told on the way."""

    def run(graph, settings=settings, seed=11, **options):
        stages = []
        ledger = MemoryLedger("circles", clock=lambda: datetime(2030, 1, 2, tzinfo=UTC))
        noise = SeededRandomness(seed)
        model = settings.train(
            graph.nodes, graph.edges, ledger=ledger, randomness=noise, progress=stages.append, **options
        )
        return model, ledger, stages

    return run


@pytest.fixture(scope="session")
def run_moments():
    """The same for our own mechanism."""

    def run(graph, epsilon=1.0, seed=11):
        stages = []
        ledger = MemoryLedger("circles", clock=lambda: datetime(2030, 1, 2, tzinfo=UTC))
        with counted():
            model = Moments(epsilon=epsilon).train(
                graph.nodes,
                graph.edges,
                ledger=ledger,
                randomness=SeededRandomness(seed),
                progress=stages.append,
            )
        return model, ledger, stages

    return run
