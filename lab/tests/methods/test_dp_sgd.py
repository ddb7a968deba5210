"""DP-SGD as a competitor: its faces, what it pays, and what its answers depend on."""

import math

import pytest
import torch
from tests.opened import open_private

from gcon.edges.edge_list import public_edges
from gcon.edges.graph import PublicGraph, private_graph
from gcon.errors import AccessRefusedError, InputError
from gcon.files.datasets.synthetic import social_circles_parts
from gcon.privacy.budget import Budget
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SeededRandomness
from gcon_lab.methods.dp_sgd import DPSGD


@pytest.fixture(scope="module")
def parts():
    return social_circles_parts(
        120, num_classes=3, mean_degree=6, num_features=8, feature_signal=2.0, per_class=15, seed=4
    )


@pytest.fixture(scope="module")
def graph(parts):
    return private_graph(*parts, name="circles")


def method(epsilon=4.0, **changes):
    options = {"hidden": 8, "steps": 10, "sampling": 1.0, "delta": 1e-5, **changes}
    return DPSGD(epsilon=epsilon, **options)


def scores(fitted, access, features, edges):
    return fitted.trained.score_functions[access](features, edges)


def test_pays_once_and_says_what(graph):
    ledger = MemoryLedger("circles")
    fitted = method(sampling=0.5).fit(graph, ledger=ledger)
    assert ledger.total() == Budget(4.0, 1e-5)
    (receipt,) = fitted.receipts
    assert receipt.keeps_promise
    assert receipt.budget == Budget(4.0, 1e-5)
    assert receipt.plan["sampling"] == 0.5
    assert receipt.plan["standard_deviation"] > 0


def test_default_delta_is_public(graph):
    fitted = method(delta=None).fit(graph)
    assert fitted.receipts[0].budget == Budget(4.0, 1e-5)


def test_accesses(parts, graph):
    fitted = method(math.inf, steps=100).fit(graph)
    nodes, edge_index = parts
    own = fitted.predictions(graph)
    assert own.access == "own-edges"
    assert len(own.labels) == nodes.num_nodes
    scaled = PublicGraph(2 * nodes.features, public_edges(edge_index, 120))  # other nodes, and the same unit rows
    public = fitted.predictions(scaled, access="public-graph")
    assert torch.equal(public.classes, own.classes)
    alone = fitted.predictions(graph, access="none")
    assert not torch.equal(alone.probabilities, own.probabilities)
    assert fitted.score(graph, nodes.test_mask) > 0.5
    with pytest.raises(AccessRefusedError):
        fitted.predictions(graph, access="public-graph")
    with pytest.raises(AccessRefusedError):
        fitted.predictions(PublicGraph(nodes.features, public_edges(edge_index, 120)), access="own-edges")


def test_answers_from_own_edges_read_own_edges_only(parts, graph):
    """Dropping one edge changes the scores of its two ends and no others; without edges nothing changes."""
    nodes, edge_index = parts
    fitted = method().fit(graph)
    full = scores(fitted, "own-edges", nodes.features, public_edges(edge_index, 120))
    for dropped in (0, 17, edge_index.shape[1] - 1):
        kept = edge_index[:, torch.arange(edge_index.shape[1]) != dropped]
        less = scores(fitted, "own-edges", nodes.features, public_edges(kept, 120))
        changed = (full != less).any(dim=1).nonzero()[:, 0].tolist()
        assert sorted(changed) == sorted(edge_index[:, dropped].tolist())
    assert torch.equal(full, scores(fitted, "own-edges", nodes.features, open_private(graph.edges)))


def test_infinite_epsilon_is_the_version_without_noise(parts, graph):
    """The same as gradient descent written out here; repeatable, and without a promise."""
    nodes, edge_index = parts
    settings = method(math.inf, hidden=None, steps=25, clip=10.0, learning_rate=0.5, optimiser="sgd")
    fitted = settings.fit(graph)
    rows = torch.nn.functional.normalize(nodes.features.double(), dim=1)
    dense = torch.eye(120, dtype=torch.float64)
    dense[tuple(public_edges(edge_index, 120).edge_index())] = 1
    means = dense / dense.sum(dim=1, keepdim=True) @ rows
    weights = torch.zeros(8, 3, dtype=torch.float64)
    targets = torch.nn.functional.one_hot(nodes.labels[nodes.train_mask], 3).double()
    for _ in range(25):
        residuals = torch.softmax(means[nodes.train_mask] @ weights, dim=1) - targets
        weights -= 0.5 * means[nodes.train_mask].T @ residuals / len(targets)
    found = scores(fitted, "own-edges", nodes.features, open_private(graph.edges))
    assert torch.allclose(found, means @ weights, atol=1e-5)  # gradients are rounded to fixed point
    assert not fitted.receipts[0].keeps_promise
    again = settings.fit(graph)
    assert torch.equal(scores(again, "own-edges", nodes.features, open_private(graph.edges)), found)


def test_noise_differs_between_runs(parts, graph):
    nodes, _ = parts
    one, other = (scores(method().fit(graph), "none", nodes.features, None) for _ in range(2))
    assert not torch.equal(one, other)
    seeded = [method().fit(graph, randomness=SeededRandomness(3)) for _ in range(2)]
    assert torch.equal(*(scores(fitted, "none", nodes.features, None) for fitted in seeded))
    assert not seeded[0].receipts[0].keeps_promise


def test_seeded_noise_is_charged_as_no_promise(graph):
    ledger = MemoryLedger("circles")
    method().fit(graph, ledger=ledger, randomness=SeededRandomness(3))
    assert math.isinf(ledger.total().epsilon)


@pytest.mark.parametrize(
    "changes",
    [
        *({"sampling": wrong} for wrong in (0.0, 1.1, math.nan, "half")),
        *({"steps": wrong} for wrong in (0, 10.5, True, 100_001, "ten")),
        *({"clip": wrong} for wrong in (-1.0, 0.0, 1e-7, math.inf, math.nan)),
        *({"learning_rate": wrong} for wrong in (0.0, -1.0, 1.5e308, math.inf, math.nan, None)),
        *({"hidden": wrong} for wrong in (0, 8.5, True, "wide")),
        *({"optimiser": wrong} for wrong in ("lbfgs", None)),
    ],
)
def test_bad_settings_are_refused_when_they_are_made(changes):
    for epsilon in (1.0, math.inf):
        with pytest.raises(InputError, match=next(iter(changes))):
            method(epsilon, **changes)


def test_a_delta_that_cannot_be_planned_is_refused_before_anything_is_paid(graph):
    ledger = MemoryLedger("circles")
    with pytest.raises(InputError, match="delta"):
        method(sampling=0.5, delta=1e-25).fit(graph, ledger=ledger)
    assert not ledger.entries()


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_weights_are_finite_at_the_largest_rate(graph, optimiser):
    fitted = method(learning_rate=1e6, optimiser=optimiser, hidden=None).fit(graph)
    assert bool(torch.isfinite(scores(fitted, "none", graph.nodes.features, None)).all())
