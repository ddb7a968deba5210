"""Small releases on disk."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime

import pytest

import gcon
from gcon.edges.graph import private_graph
from gcon.edges.schemes import Schemes
from gcon.files.datasets.synthetic import social_circles_parts
from gcon.learn.perceptron import EncoderSettings
from gcon.methods.objective import Objective
from gcon.privacy.randomness import SystemRandomness
from gcon.release.store import save_release


@pytest.fixture(scope="session")
def circles():
    """Public nodes, and edges between them."""
    return social_circles_parts(60, num_classes=3, mean_degree=4, num_features=6, per_class=8, seed=1)


@pytest.fixture(scope="session")
def trained(circles):
    """Trains a small model; a test says what is different."""
    nodes, default = circles

    def trained(*, names=(), edges=default, randomness=None, **changes):
        method = Objective(**{"epsilon": 1.0, "encoder": EncoderSettings(hidden=4, epochs=5), **changes})
        graph = private_graph(replace(nodes, class_names=names or nodes.class_names), edges, name="circles")
        ledger = gcon.MemoryLedger("circles", clock=lambda: datetime(2030, 1, 2, tzinfo=UTC))
        noise = randomness or SystemRandomness()
        return method.train(graph.nodes, graph.edges, ledger=ledger, randomness=noise)

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
        assert first.record() == second.record()
        assert first.class_names == second.class_names
        assert [type(name) for name in first.class_names] == [type(name) for name in second.class_names]
        assert first.receipt == second.receipt
        assert first.statement() == second.statement()

    return assert_same
