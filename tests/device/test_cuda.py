"""The processor and a GPU run the same code: the same seed gives the same model, up to rounding."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
import torch

from gcon import GCON, NodeClassifier
from gcon.edges.edge_list import public_edges
from gcon.edges.graph import PrivateGraph
from gcon.edges.schemes import Schemes, propagate
from gcon.errors import InputError
from gcon.files.datasets.synthetic import social_circles, social_circles_parts
from gcon.learn.perceptron import EncoderSettings
from gcon.machine import chosen_device
from gcon.methods.objective import Objective, ObjectiveModel
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SeededRandomness

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device on this machine")
SCHEMES = {
    "two steps": Schemes(restart=0.8, steps=(2,)),
    "several": Schemes(restart=0.6, steps=(0, 1, 10)),
    "the limit": Schemes(restart=0.5, steps=(math.inf,)),
    "clipped": Schemes(restart=0.8, steps=(2,), clip=0.1),
    "no edge": Schemes(restart=1.0, steps=(2,)),
}


@pytest.fixture(scope="module")
def graph() -> PrivateGraph:
    return social_circles(400, seed=2)


def trained(graph: PrivateGraph, device: str, **options) -> ObjectiveModel:
    settings = Objective(
        epsilon=options.pop("epsilon", 2.0), encoder=EncoderSettings(epochs=20), device=device, **options
    )
    return settings.train(graph.nodes, graph.edges, ledger=MemoryLedger(), randomness=SeededRandomness(4))


def test_what_auto_stands_for():
    assert chosen_device("auto") == ("cuda" if torch.cuda.is_available() else "cpu")
    assert chosen_device("cpu") == "cpu"


@pytest.mark.parametrize("device", ["", "gpu", "CPU", "cuda:", "cuda:-1", "cuda:one", "meta", "cuda:99", None, 0])
def test_a_device_that_is_none_or_not_there_is_refused_before_anything_is_paid(device):
    with pytest.raises(InputError, match=r"^device"):
        Objective(epsilon=1.0, device=device)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_without_a_gpu_cuda_is_refused_and_auto_is_the_processor(graph):
    with pytest.raises(InputError, match="0 usable GPUs"):
        GCON(device="cuda", epochs=5).fit(graph)
    assert torch.equal(trained(graph, "auto").weights, trained(graph, "cpu").weights)


def test_the_estimators_take_a_device(graph):
    first, second = (GCON(device="cpu", epochs=5, random_state=3).fit(graph).model_.weights for _ in range(2))
    assert torch.equal(first, second)
    with pytest.raises(InputError, match=r"^device"):
        NodeClassifier(device="gpu").fit(graph)
    first, second = (NodeClassifier(device="cpu", random_state=3).fit(graph).model_.answers for _ in range(2))
    assert torch.equal(first, second)


IN_A_FORK = """
import os
from gcon.files.datasets.synthetic import social_circles
from gcon.methods.moments import Moments
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SeededRandomness

settings, graph = Moments(epsilon=1.0, device="cpu"), social_circles(200, seed=2)
if child := os.fork():
    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
settings.train(graph.nodes, graph.edges, ledger=MemoryLedger(), randomness=SeededRandomness(4))
"""


@gpu
def test_the_processor_serves_forked_processes_beside_a_gpu():
    """Settings that asked the driver would leave a fork with a broken one, which torch finds when it differentiates."""
    subprocess.run([sys.executable, "-c", IN_A_FORK], check=True, timeout=100)


@gpu
@pytest.mark.parametrize("epsilon", [0.3, 8.0])
def test_one_seed_gives_the_same_statistics(graph, epsilon):
    """Sums over edges are whole numbers: what is released is the same bit for bit, and so is what follows."""
    found, expected = (
        NodeClassifier(epsilon=epsilon, device=device, random_state=3).fit(graph).model_ for device in ("cuda", "cpu")
    )
    for one, other in zip(found.statistics, expected.statistics, strict=True):
        assert torch.equal(one.value, other.value)
    assert len(found.tables) == len(expected.tables)
    for one, other in zip(found.tables, expected.tables, strict=True):
        assert torch.equal(one.value, other.value)
    assert torch.equal(found.best_answers, expected.best_answers)


@gpu
@pytest.mark.parametrize("schemes", SCHEMES.values(), ids=SCHEMES)
def test_aggregates_on_the_gpu(schemes):
    nodes, edge_index = social_circles_parts(400, seed=2)
    edges = public_edges(edge_index, nodes.num_nodes)
    features = torch.nn.functional.normalize(nodes.features.double(), dim=1)
    found = propagate(edges, features.cuda(), schemes)
    assert found.is_cuda
    assert torch.equal(found.cpu(), propagate(edges, features, schemes))  # walks are whole numbers: bit for bit


@gpu
@pytest.mark.parametrize("loss", ["soft-margin", "pseudo-huber:0.2"])
@pytest.mark.parametrize("expand", ["all", "labelled"])
@pytest.mark.parametrize("schemes", SCHEMES.values(), ids=SCHEMES)
def test_one_seed_gives_one_model(graph, schemes, expand, loss):
    options = {"schemes": schemes, "expand": expand, "loss": loss}
    found, expected = (trained(graph, device, **options) for device in ("cuda", "cpu"))
    assert found.weights.device.type == "cpu"
    scale = float(expected.weights.abs().max())
    # Both are certified minimisers of the same objective, with the same noise on top.
    torch.testing.assert_close(found.weights, expected.weights, rtol=0, atol=1e-8 * scale)
    assert torch.equal(found.encoder.encode(graph.nodes.features), expected.encoder.encode(graph.nodes.features))


@gpu
def test_without_noise_too(graph):
    found, expected = (trained(graph, device, epsilon=math.inf).weights for device in ("cuda", "cpu"))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-8 * float(expected.abs().max()))


@gpu
def test_small_ridges_need_true_hessians(graph):
    options = {"ridge": 1e-4, "epsilon": math.inf, "schemes": Schemes(restart=0.8, steps=(2,))}
    found, expected = (trained(graph, device, **options).weights for device in ("cuda:0", "cpu"))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5 * float(expected.abs().max()))
