"""device="cpu" means the processor: nobody asks a driver for a GPU, which takes its memory and breaks in forked processes."""

import pytest
import torch

from gcon.files.datasets import social_circles
from gcon.learn import edge_free, sample
from gcon.learn.perceptron import EncoderSettings
from gcon.machine import chosen_device
from gcon.methods.moments import Moments
from gcon.methods.objective import Objective
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SeededRandomness

GRAPH = social_circles(300, num_classes=3, num_features=8, seed=1)


@pytest.fixture(autouse=True)
def a_gpu_that_nobody_may_touch(monkeypatch):
    """As torch is where there is one, except that everything that starts CUDA is an error.

    It cannot see what torch does below Python: autograd counts devices there.
    """

    def touched(*_, **__):
        raise AssertionError("CUDA was asked")

    current = torch.accelerator.current_accelerator
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: True)
    for name in ("is_available", "device_count", "_lazy_init", "is_current_stream_capturing", "current_stream"):
        monkeypatch.setattr(torch.cuda, name, touched)
    for name in ("is_available", "device_count", "current_stream"):
        monkeypatch.setattr(torch.accelerator, name, touched)
    monkeypatch.setattr(
        torch.accelerator,
        "current_accelerator",
        lambda check_available=False: touched() if check_available else current(),
    )


def train(settings):
    return settings.train(GRAPH.nodes, GRAPH.edges, ledger=MemoryLedger("circles"), randomness=SeededRandomness(1))


def test_the_name_of_the_processor_is_not_looked_up():
    assert chosen_device("cpu") == "cpu"
    with pytest.raises(AssertionError, match="CUDA"):
        chosen_device("auto")


@pytest.mark.parametrize("limit", [50_000, 200], ids=["small graph", "large graph"])
def test_the_default_method(limit, monkeypatch):
    for name in ("EXACT_NODES", "SAMPLE_NODES"):
        monkeypatch.setattr(sample, name, limit)
    edge_free._kept_large.cache_clear()
    assert len(train(Moments(epsilon=1.0, device="cpu")).answers) == GRAPH.nodes.num_nodes
    edge_free._kept_large.cache_clear()


def test_the_papers_method():
    settings = Objective(epsilon=2.0, encoder=EncoderSettings(epochs=3), device="cpu")
    assert train(settings).weights.device.type == "cpu"
