"""DPGCN: one noisy graph, paid once; own edges move one row only; without noise it is the GCN."""

import math

import pytest
import torch

import gcon
from gcon.edges.edge_list import public_edges
from gcon.edges.graph import private_graph
from gcon.errors import AccessRefusedError, BudgetExceededError, InputError
from gcon.files.datasets import social_circles_parts
from gcon.privacy.ledger import Kind, MemoryLedger
from gcon.privacy.randomness import SeededRandomness
from gcon_lab.methods.dpgcn import DPGCN, last_layer
from gcon_lab.methods.gcn import GCN

NODES, EDGE_INDEX = social_circles_parts(150, num_classes=3, per_class=6, num_validation=30, num_test=60, seed=4)
EDGES = public_edges(EDGE_INDEX, 150)
GRAPH = private_graph(NODES, EDGE_INDEX, name="circles")
VARIANTS = ["top-pairs", "random-flips"]


def star(node, edges=EDGES):
    """The graph in which only this node's edges are left."""
    others = edges.neighbours(node)
    return public_edges(torch.stack([torch.full_like(others, node), others]), edges.num_nodes)


@pytest.mark.parametrize("variant", VARIANTS)
def test_answers_from_own_edges_depend_on_own_edges_only(variant):
    scorer = DPGCN(epsilon=4.0, variant=variant, epochs=10).fit(GRAPH).trained.score_functions["own-edges"]
    everything = scorer(NODES.features, EDGES)
    for node in range(0, 150, 7):
        assert torch.equal(scorer(NODES.features, star(node))[node], everything[node])
    nobody = scorer(NODES.features, public_edges(torch.empty(2, 0, dtype=torch.int64), 150))
    assert (nobody != everything).any(dim=1).sum() > 100


def test_one_edge_moves_the_rows_of_its_ends_only():
    scorer = DPGCN(epsilon=4.0, epochs=10).fit(GRAPH).trained.score_functions["own-edges"]
    before = scorer(NODES.features, EDGES)
    for dropped in range(0, EDGE_INDEX.shape[1], 40):
        kept = torch.arange(EDGE_INDEX.shape[1]) != dropped
        after = scorer(NODES.features, public_edges(EDGE_INDEX[:, kept], 150))
        changed = (before != after).any(dim=1).nonzero()[:, 0].tolist()
        assert changed == sorted(EDGE_INDEX[:, dropped].tolist())


def test_last_layer_by_hand():
    noisy = public_edges(torch.tensor([[0, 1, 2], [1, 2, 3]]), 4)
    own = public_edges(torch.tensor([[0, 0, 1], [2, 3, 3]]), 4)
    messages = torch.randn(4, 3, dtype=torch.float64)
    true_degrees, noisy_degrees = [3, 2, 2, 3], [2, 3, 3, 2]  # with the self-loop
    found = last_layer(messages, noisy=noisy, own=own)
    for node in range(4):
        expected = messages[node] / true_degrees[node]
        for other in own.neighbours(node).tolist():
            expected = expected + messages[other] / math.sqrt(true_degrees[node] * noisy_degrees[other])
        assert torch.allclose(found[node], expected)


@pytest.mark.parametrize("variant", VARIANTS)
def test_infinite_epsilon_is_the_gcn_on_the_true_graph(variant):
    exact = GCN(epochs=30, patience=None, seed=2).fit(GRAPH).predictions(GRAPH).probabilities
    ledger = MemoryLedger("circles")
    fitted = DPGCN(epsilon=math.inf, variant=variant, epochs=30, seed=2).fit(GRAPH, ledger=ledger)
    assert math.isinf(ledger.total().epsilon)
    assert torch.equal(fitted.predictions(GRAPH, access="cached").probabilities, exact)
    own = fitted.predictions(GRAPH, access="own-edges").probabilities
    assert torch.allclose(own, exact.double(), atol=1e-5)


@pytest.mark.parametrize("variant", VARIANTS)
def test_it_is_charged_once_with_pure_epsilon(variant):
    ledger = MemoryLedger("circles")
    fitted = DPGCN(epsilon=2.0, delta=1e-3, variant=variant, epochs=5).fit(GRAPH, ledger=ledger)
    assert ledger.total() == gcon.Budget(2.0, 0.0)
    assert fitted.receipts[0].keeps_promise
    assert fitted.receipts[0].budget == gcon.Budget(2.0, 0.0)
    fitted.predict(GRAPH)
    assert [entry.request.kind for entry in ledger.entries()] == [Kind.RELEASE]
    fitted.predict(GRAPH, access="own-edges")
    assert [entry.request.kind for entry in ledger.entries()] == [Kind.RELEASE, Kind.DELIVERY]
    assert ledger.total() == gcon.Budget(2.0, 0.0)


@pytest.mark.parametrize("variant", VARIANTS)
def test_noise_differs_between_runs_with_one_seed(variant, released):
    for _ in range(2):
        DPGCN(epsilon=4.0, variant=variant, epochs=2, seed=7).fit(GRAPH)
    first, second = (line.value for line in released)
    assert not torch.equal(first.row_pointers, second.row_pointers)


def test_a_seed_for_the_noise_is_charged_as_infinite():
    ledger = MemoryLedger("circles")
    fitted = DPGCN(epsilon=1.0, epochs=2).fit(GRAPH, ledger=ledger, randomness=SeededRandomness(3))
    assert math.isinf(ledger.total().epsilon)
    assert not fitted.receipts[0].keeps_promise


def test_what_does_not_fit_is_refused_before_anything_is_paid():
    ledger = MemoryLedger("circles")
    with pytest.raises(InputError, match="most_pairs"):
        DPGCN(epsilon=0.5, variant="random-flips", most_pairs=100).fit(GRAPH, ledger=ledger)
    with pytest.raises(InputError, match="variant"):
        DPGCN(epsilon=0.5, variant="lapgraph").fit(GRAPH, ledger=ledger)
    with pytest.raises(InputError, match="epsilon"):
        DPGCN(epsilon=0.0)
    assert list(ledger.entries()) == []
    with pytest.raises(BudgetExceededError):
        DPGCN(epsilon=2.0).fit(GRAPH, ledger=MemoryLedger("circles", ceiling=gcon.Budget(1.0, 0.0)))


def test_accesses_and_learning():
    fitted = DPGCN(epsilon=16.0, variant="random-flips", epochs=200).fit(GRAPH)
    assert fitted.predictions(GRAPH).access == "cached"
    for access in ("cached", "own-edges"):  # at epsilon 16 hardly any pair is flipped
        assert fitted.score(GRAPH, NODES.test_mask, access=access) > 0.5
    with pytest.raises(AccessRefusedError):
        fitted.predictions(GRAPH, access="full")
