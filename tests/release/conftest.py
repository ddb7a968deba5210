"""A small graph, its aggregates, and ledgers that remember the order of events; small releases on disk."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pytest
import torch

import gcon
from gcon.edges.graph import PrivateGraph, private_graph
from gcon.edges.schemes import Schemes
from gcon.files.datasets import social_circles
from gcon.files.datasets.synthetic import social_circles_parts
from gcon.learn.encoder import Encoder
from gcon.learn.perceptron import EncoderSettings, train_encoder
from gcon.learn.pseudo_labels import TrainingRows, training_rows
from gcon.mechanisms.aggregates import BoundedAggregates, aggregate_privately
from gcon.mechanisms.losses import loss_by_name
from gcon.mechanisms.objective_perturbation import ObjectivePerturbation
from gcon.mechanisms.objective_plan import NoisePlan, make_plan
from gcon.methods.objective_model import ModelSettings
from gcon.privacy.budget import Budget
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.opening import map_private
from gcon.privacy.randomness import SystemRandomness
from gcon.release.store import save_release

SCHEMES = Schemes(restart=0.8, steps=(2,))


class SpyLedger:
    """A ledger that writes into a list of events whenever it is paid."""

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
    aggregates: BoundedAggregates
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

    def mechanism(self, *plans) -> ObjectivePerturbation:
        return ObjectivePerturbation(plans=plans or (self.plan(),), mask=self.rows.mask, targets=self.rows.targets)

    def ledger(self, **options) -> SpyLedger:
        return SpyLedger(self.events, clock=lambda: datetime(2030, 1, 2, tzinfo=UTC), **options)

    def watched(self, aggregates=None) -> BoundedAggregates:
        """The same aggregates; an event says when they are opened."""
        aggregates = aggregates or self.aggregates

        def look(value):
            self.events.append("open")
            return value

        return replace(aggregates, value=map_private(look, aggregates.value, "watched aggregates"))

    def propagated(self, schemes) -> BoundedAggregates:
        return aggregate_privately(self.graph.edges, self.encoder.encode(self.graph.nodes.features), schemes)

    def settings(self) -> ModelSettings:
        return ModelSettings(
            schemes=SCHEMES,
            inference_restart=0.25,
            loss="soft-margin",
            class_names=self.graph.nodes.class_names,
            training_nodes=self.graph.nodes.fingerprint,
        )


@pytest.fixture(scope="session")
def parts():
    torch.manual_seed(0)
    graph = social_circles(60, num_classes=3, mean_degree=4, num_features=6, per_class=8, seed=1, name="circles")
    encoder = train_encoder(graph.nodes, EncoderSettings(hidden=4, epochs=20))
    rows = training_rows(graph.nodes, encoder, "all")
    aggregates = aggregate_privately(graph.edges, encoder.encode(graph.nodes.features), SCHEMES)
    return graph, encoder, rows, aggregates


@pytest.fixture
def kit(parts) -> Kit:
    return Kit(*parts)


# ---- releases on disk


@pytest.fixture(scope="session")
def circles():
    """Public nodes, and edges between them."""
    return social_circles_parts(60, num_classes=3, mean_degree=4, num_features=6, per_class=8, seed=1)


@pytest.fixture(scope="session")
def trained(circles):
    """Trains a small model; a test says what is different."""
    nodes, default = circles

    def trained(*, names=(), edges=default, randomness=None, **changes):
        settings = gcon.Settings(**{"epsilon": 1.0, "encoder": EncoderSettings(hidden=4, epochs=5), **changes})
        graph = private_graph(replace(nodes, class_names=names or nodes.class_names), edges, name="circles")
        ledger = gcon.MemoryLedger("circles", clock=lambda: datetime(2030, 1, 2, tzinfo=UTC))
        return gcon.train(graph, settings, ledger=ledger, randomness=randomness or SystemRandomness())

    return trained


@pytest.fixture(scope="module")
def model(trained):
    return trained(schemes=Schemes(restart=0.5, steps=(0, 2, math.inf)), names=("a", "b", "c"))


@pytest.fixture(scope="module")
def other(trained):
    return trained(epsilon=2.0)


@pytest.fixture
def folder(model, tmp_path):
    save_release(model, tmp_path / "release")
    return tmp_path / "release"


@pytest.fixture(scope="session")
def contents():
    """Reads every file of a folder."""

    def contents(folder):
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    return contents


@pytest.fixture(scope="session")
def tensors_of():
    """All tensors of a model, in one order."""

    def tensors_of(model):
        encoder = model.encoder
        return [
            model.weights,
            encoder.hidden_weight,
            encoder.hidden_bias,
            encoder.head_weight,
            encoder.head_bias,
            encoder.centre,
        ]

    return tensors_of


@pytest.fixture(scope="session")
def assert_same(tensors_of):
    """Asserts that two models are the same to the last bit."""

    def assert_same(first, second):
        for one, two in zip(tensors_of(first), tensors_of(second), strict=True):
            assert (one is None) == (two is None)
            if one is not None:
                assert one.dtype == two.dtype
                assert one.shape == two.shape
                assert one.numpy().tobytes() == two.numpy().tobytes()
        assert first.encoder.unit_input is second.encoder.unit_input
        assert first.settings == second.settings
        assert [type(name) for name in first.settings.class_names] == [
            type(name) for name in second.settings.class_names
        ]
        assert first.receipt == second.receipt
        assert first.statement() == second.statement()

    return assert_same
