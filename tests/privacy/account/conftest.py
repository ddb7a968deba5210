"""A small graph, its aggregates, and ledgers that remember the order of events."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
import torch

from gcon.edges.graph import PrivateGraph
from gcon.edges.schemes import Schemes
from gcon.files.datasets import social_circles
from gcon.learn.encoder import Encoder
from gcon.learn.perceptron import EncoderSettings, train_encoder
from gcon.learn.training_rows import TrainingRows, training_rows
from gcon.mechanisms.aggregates import Aggregates
from gcon.mechanisms.losses import loss_by_name
from gcon.mechanisms.objective_perturbation import ObjectivePerturbation
from gcon.mechanisms.objective_plan import NoisePlan, make_plan
from gcon.privacy.boundary import Private
from gcon.privacy.budget import Budget
from gcon.privacy.gates import declassify
from gcon.privacy.ledger import MemoryLedger

SCHEMES = Schemes(restart=0.8, steps=(2,))


class SpyLedger:
    """A ledger that writes into a list of events whenever it is paid."""

    counted = True

    def __init__(self, events: list[str], **options) -> None:
        self._ledger = MemoryLedger(**options)
        self._events = events

    @property
    def data_set(self):
        return self._ledger.data_set

    def reserve(self, request):
        reservation = self._ledger.reserve(request)
        self._events.append("reserve")
        return reservation

    def settle(self, reservation, outcome):
        self._events.append(f"settle as {outcome}")
        return self._ledger.settle(reservation, outcome)

    def entries(self):
        return self._ledger.entries()

    def total(self):
        return self._ledger.total()


@dataclass(frozen=True, eq=False)
class Kit:
    """Everything that a release needs, with the parts that tests change as arguments."""

    graph: PrivateGraph
    encoder: Encoder
    rows: TrainingRows
    aggregates: Aggregates
    events: list[str] = field(default_factory=list)

    def plan(self, epsilon=1.0, delta=1e-5, *, aggregates=None, **changes) -> NoisePlan:
        aggregates = aggregates or self.aggregates
        arguments = {
            "loss": loss_by_name("soft-margin", self.graph.nodes.num_classes),
            "num_features": aggregates.num_columns,
            "num_labelled": self.rows.count,
            "edge_influence": aggregates.edge_influence,
            "ridge": 1.0,
        }
        return make_plan(Budget(epsilon, delta), **{**arguments, **changes})

    def mechanism(self, *plans, aggregates=None) -> ObjectivePerturbation:
        return ObjectivePerturbation(
            aggregates=aggregates or self.aggregates,
            plans=plans or (self.plan(),),
            mask=self.rows.mask,
            targets=self.rows.targets,
        )

    def ledger(self, **options) -> SpyLedger:
        return SpyLedger(self.events, clock=lambda: datetime(2030, 1, 2, tzinfo=UTC), **options)

    def watched(self) -> Private:
        """The same edges; an event says when they are opened."""
        edges = declassify(self.graph.edges, reason="a test", ledger=MemoryLedger())

        def run(function):
            self.events.append("open")
            return function(edges)

        return Private(edges, "watched edges", run=run)

    def propagated(self, schemes) -> Aggregates:
        return Aggregates(self.encoder.encode(self.graph.nodes.features), schemes)


@pytest.fixture(scope="session")
def parts():
    torch.manual_seed(0)
    graph = social_circles(60, num_classes=3, mean_degree=4, num_features=6, per_class=8, seed=1, name="circles")
    encoder = train_encoder(graph.nodes, EncoderSettings(hidden=4, epochs=20))
    rows = training_rows(graph.nodes, encoder, "all")
    aggregates = Aggregates(encoder.encode(graph.nodes.features), SCHEMES)
    return graph, encoder, rows, aggregates


@pytest.fixture
def kit(parts) -> Kit:
    return Kit(*parts)
