"""What every competitor keeps: one face, and no edge read before it is paid for."""

import dataclasses
import math
import subprocess
import sys

import numpy as np
import pytest
import torch

import gcon.baselines
from gcon.baselines import LPGNet, Method, PrivateMethod
from gcon.datasets import social_circles_parts
from gcon.errors import AccessRefusedError, BudgetExceededError, InputError
from gcon.graphs.edges import public_edges
from gcon.graphs.graph import PrivateGraph, PublicGraph, private_graph
from gcon.privacy.boundary import Private
from gcon.privacy.budget import NOTHING, Budget, compose
from gcon.privacy.ledger import Kind, MemoryLedger
from gcon.privacy.opening import open_private
from gcon.privacy.randomness import SeededRandomness

NODES, EDGE_INDEX = social_circles_parts(
    100, num_classes=3, per_class=6, num_validation=25, num_test=50, mean_degree=4.0, seed=3
)
METHODS = tuple(gcon.baselines.METHODS.values())
PAYING = tuple(method for method in METHODS if issubclass(method, PrivateMethod))


def graph(edge_index=EDGE_INDEX):
    return private_graph(NODES, edge_index, name="circles")


def small(method, **settings):
    given = {"epochs": 4, "hidden": 8, "epsilon": 2.0, "delta": 1e-4} | settings
    known = {field.name for field in dataclasses.fields(method)}
    return method(**{name: value for name, value in given.items() if name in known})


class GuardedEdges:
    """Edges that may be touched only while the ledger holds an entry, and that count how often they are."""

    def __init__(self, edges, ledger):
        self.__dict__.update(_edges=edges, _ledger=ledger, touched=0)

    def __getattr__(self, name):
        if not self._ledger.entries():
            raise AssertionError(f"{name} of the edges was read before the ledger was charged")
        self.touched += 1
        return getattr(self._edges, name)

    def __setattr__(self, name, value):
        self.__dict__[name] = value


def guarded(ledger):
    plain = graph()
    edges = GuardedEdges(open_private(plain.edges), ledger)
    return PrivateGraph(NODES, Private(edges, "guarded edges"), plain.hygiene, "circles"), edges


def test_the_guard_guards():
    ledger = MemoryLedger("circles")
    _, edges = guarded(ledger)
    with pytest.raises(AssertionError, match="before the ledger was charged"):
        _ = edges.degrees
    LPGNet(epsilon=1.0, epochs=1).fit(graph(), ledger=ledger)
    assert len(edges.degrees) == 100


@pytest.mark.parametrize("kind", METHODS)
def test_settings_are_frozen_public_numbers(kind):
    method = small(kind)
    assert issubclass(kind, Method)
    assert isinstance(method.name, str)
    assert method.about.endswith(".")
    with pytest.raises(dataclasses.FrozenInstanceError):
        method.seed = 3
    for value in dataclasses.asdict(method).values():
        assert value is None or isinstance(value, int | float | str)


@pytest.mark.parametrize("kind", METHODS)
def test_fit_then_predict_under_every_access(kind):
    ledger = MemoryLedger("circles")
    fitted = small(kind).fit(graph(), ledger=ledger)
    assert fitted.trained.scorers
    first = next(iter(fitted.trained.scorers))
    for access in fitted.trained.scorers:
        asked = PublicGraph(NODES.features, public_edges(EDGE_INDEX, 100)) if access == "public-graph" else graph()
        found = fitted.predictions(asked, access=access)
        assert found.access == access
        assert found.probabilities.shape == (100, 3)
        assert found.probabilities.sum(dim=1).tolist() == pytest.approx([1.0] * 100, abs=1e-5)
        assert found.publishable == (access not in ("own-edges", "full"))
        assert fitted.predict(asked, access=access).tolist() == found.labels
        if access == "public-graph":
            continue
        right = (found.classes == NODES.labels)[NODES.test_mask].double().mean()
        assert fitted.score(graph(), NODES.test_mask, access=access) == pytest.approx(float(right))
    assert np.array_equal(fitted.predict(graph()), fitted.predict(graph(), access=first))
    # Predictions cost nothing; whatever reads edges is recorded.
    releases = [entry for entry in ledger.entries() if entry.request.kind is Kind.RELEASE]
    assert bool(releases) == (kind in PAYING)
    assert len(fitted.receipts) == len(releases)


@pytest.mark.parametrize("kind", METHODS)
def test_an_access_that_a_method_does_not_have(kind):
    fitted = small(kind).fit(graph())
    missing = {"none", "cached", "own-edges", "public-graph", "full"} - set(fitted.trained.scorers)
    for access in missing:
        with pytest.raises(AccessRefusedError) as refusal:
            fitted.predictions(graph(), access=access)
        assert access in str(refusal.value)
        assert next(iter(fitted.trained.scorers)) in str(refusal.value)  # what there is instead
    with pytest.raises(InputError, match="access"):
        fitted.predictions(graph(), access="everything")


@pytest.mark.parametrize("kind", METHODS)
def test_no_edge_is_read_before_it_is_paid_for(kind):
    ledger = MemoryLedger("circles")
    private, edges = guarded(ledger)
    fitted = small(kind).fit(private, ledger=ledger)
    if kind in PAYING:
        assert edges.touched > 0
        assert ledger.total() == compose(receipt.budget for receipt in fitted.receipts)
        assert ledger.total().epsilon <= 2.0
        assert all(receipt.keeps_promise for receipt in fitted.receipts)
    elif kind.private:
        assert edges.touched == 0
        assert ledger.total() == NOTHING
    else:
        assert math.isinf(ledger.total().epsilon)
    touched = edges.touched
    for access in set(fitted.trained.scorers) & {"none", "cached"}:
        fitted.predict(private, access=access)
    assert edges.touched == touched


@pytest.mark.parametrize("kind", PAYING)
def test_a_full_ledger_keeps_the_edges_shut(kind):
    ledger = MemoryLedger("circles", ceiling=Budget(1.0, 1e-3))
    private, edges = guarded(ledger)
    with pytest.raises(BudgetExceededError):
        small(kind).fit(private, ledger=ledger)
    assert edges.touched == 0
    assert ledger.total() == NOTHING
    with pytest.raises(BudgetExceededError):  # neither without noise nor with noise from a seed
        small(kind, epsilon=math.inf).fit(private, ledger=ledger)
    with pytest.raises(BudgetExceededError):
        small(kind, epsilon=0.5).fit(private, ledger=ledger, randomness=SeededRandomness(0))
    assert edges.touched == 0


@pytest.mark.parametrize("kind", PAYING)
def test_noise_has_nothing_to_do_with_the_seed_of_the_weights(kind):
    fitted = [small(kind, seed=3).fit(graph()) for _ in range(2)]
    first, second = (model.predictions(graph()).probabilities for model in fitted)
    assert not torch.equal(first, second)
    assert fitted[0].receipts[0].randomness == "operating system"


@pytest.mark.parametrize("kind", PAYING)
def test_noise_from_a_seed_repeats_and_promises_nothing(kind):
    results = []
    for _ in range(2):
        ledger = MemoryLedger("circles")
        fitted = small(kind).fit(graph(), ledger=ledger, randomness=SeededRandomness(7))
        results.append(fitted.predictions(graph()).probabilities)
        assert math.isinf(ledger.total().epsilon)
        assert not fitted.receipts[0].keeps_promise
    assert torch.equal(*results)


@pytest.mark.parametrize("kind", METHODS)
def test_training_leaves_the_global_generator_alone(kind):
    torch.manual_seed(11)
    before = torch.get_rng_state()
    small(kind).fit(graph())
    assert torch.equal(before, torch.get_rng_state())


WORKERS = """
import hashlib, os, sys, torch
torch.set_num_threads(1)
from gcon.datasets import social_circles
from gcon.baselines import gap, lpgnet, progap
from gcon.privacy.randomness import SystemRandomness

graph = social_circles(60, num_classes=3, per_class=5, num_validation=10, num_test=20, seed=1)
randomness = SystemRandomness()  # made before the fork and shared by all workers
gap.GAP(epsilon=1.0, epochs=1, hidden=4).fit(graph)  # torch loads its optimisers once, before the fork
children = []
for _ in range(3):
    if os.fork() == 0:
        for module, method in ((gap, gap.GAP), (lpgnet, lpgnet.LPGNet), (progap, progap.ProGAP)):
            fitted = method(epsilon=1.0, delta=1e-4, epochs=2, hidden=4).fit(graph, randomness=randomness)
            scores = fitted.predictions(graph).probabilities
            os.write(1, f"{method.name} {hashlib.sha256(scores.numpy().tobytes()).hexdigest()}\\n".encode())
        os._exit(0)
for _ in range(3):
    assert os.wait()[1] == 0
"""


@pytest.mark.skipif(not hasattr(subprocess.os, "fork"), reason="needs fork")
def test_worker_processes_draw_different_noise():
    done = subprocess.run([sys.executable, "-c", WORKERS], capture_output=True, text=True, timeout=300, check=True)
    lines = done.stdout.split("\n")[:-1]
    assert len(lines) == 9
    assert len(set(lines)) == 9
