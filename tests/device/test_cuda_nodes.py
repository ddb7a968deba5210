"""The node side on a GPU: encoder and predictions are those of the processor, up to rounding."""

from __future__ import annotations

import pytest
import torch

from gcon.edges.graph import PrivateGraph
from gcon.files.datasets.synthetic import social_circles
from gcon.learn import perceptron
from gcon.learn.perceptron import EncoderSettings, train_encoder
from gcon.methods.model import joined
from gcon.methods.no_edges import predict_without_edges
from gcon.methods.objective import Objective, ObjectiveModel
from gcon.methods.own_edges import deliver_from_own_edges, predict_from_own_edges
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SeededRandomness

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device on this machine")


@pytest.fixture(scope="module")
def graph() -> PrivateGraph:
    return social_circles(600, seed=2)


@pytest.fixture(scope="module")
def model(graph) -> ObjectiveModel:
    settings = Objective(epsilon=4.0, encoder=EncoderSettings(epochs=30), device="cpu")
    return settings.train(graph.nodes, graph.edges, ledger=MemoryLedger(), randomness=SeededRandomness(4))


def close(found: torch.Tensor, expected: torch.Tensor) -> None:
    assert found.device.type == "cpu"
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_an_encoder_on_a_gpu(graph, model):
    features, there = graph.nodes.features, model.encoder.on("cuda")
    close(there.encode(features), model.encoder.encode(features))
    close(there.probabilities(features), model.encoder.probabilities(features))
    close(there.mean_hidden(features), model.encoder.mean_hidden(features))
    assert float(torch.linalg.vector_norm(there.encode(features), dim=1).max()) <= 1
    narrow = there.encode(features, dtype=torch.float32)
    assert float(torch.linalg.vector_norm(narrow.double(), dim=1).max()) <= 1


@pytest.mark.parametrize("many", [False, True])
def test_training_on_a_gpu(graph, monkeypatch, many):
    if many:
        monkeypatch.setattr(perceptron, "MANY_ROWS", 32)
        monkeypatch.setattr(perceptron, "_STEP_ROWS", 16)
        monkeypatch.setattr(perceptron, "_RUN_ROWS", 4)
    nodes = graph.nodes
    one, two = (train_encoder(nodes, EncoderSettings(), device="cuda") for _ in range(2))
    assert one.head_weight.device.type == one.centre.device.type == "cpu"
    close(one.probabilities(nodes.features), two.probabilities(nodes.features))
    here = train_encoder(nodes, EncoderSettings())
    right = [
        float((each.classes(nodes.features) == nodes.labels)[nodes.test_mask].double().mean()) for each in (one, here)
    ]
    assert right[0] > right[1] - 0.1


def test_predictions_on_a_gpu(graph, model):
    features = graph.nodes.features
    expected = predict_without_edges(model, features)
    close(predict_without_edges(model, features, device="cuda").probabilities, expected.probabilities)
    parts, options = [], {"ledger": MemoryLedger()}
    deliver_from_own_edges(model, features, graph.edges, parts.append, device="cuda", **options)
    expected = predict_from_own_edges(model, features, graph.edges, **options)
    close(joined(parts).probabilities, expected.probabilities)
