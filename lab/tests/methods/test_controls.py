"""Zero-budget controls: no edge in training, one hop over own edges at inference."""

import dataclasses

import pytest
import torch
from tests.opened import open_private

from gcon.edges.edge_list import public_edges
from gcon.edges.graph import PrivateGraph, PublicGraph, private_graph
from gcon.errors import AccessRefusedError, InputError
from gcon.files.datasets import social_circles
from gcon.learn.perceptron import EncoderSettings, train_encoder
from gcon.methods.controls import EncoderAlone, EncoderOneHop
from gcon.privacy.boundary import Private
from gcon.privacy.budget import NOTHING
from gcon.privacy.ledger import Kind, MemoryLedger
from gcon_lab.methods.fitted import fit
from gcon_lab.methods.self_training import SelfTraining

pytestmark = pytest.mark.slow

ALL = (EncoderAlone, EncoderOneHop, SelfTraining)
ONE_HOP = (EncoderOneHop, SelfTraining)
CIRCLES = social_circles(240, num_classes=3, per_class=10, mean_degree=6.0, feature_signal=4.0, seed=5)
NODES = CIRCLES.nodes


class Untouchable:
    """Edges that must not be read."""

    def __getattr__(self, name):
        raise AssertionError(f"{name} of the edges was read")


def changed(nodes=NODES, **other):
    return dataclasses.replace(nodes, **other)


def with_edges(edge_index):
    return private_graph(NODES, edge_index, name="circles")


@pytest.mark.parametrize("kind", ALL)
def test_training_reads_no_edge_and_costs_nothing(kind):
    ledger = MemoryLedger("circles")
    edges = Private(Untouchable(), "edges that must not be read")
    fitted = fit(kind(), PrivateGraph(NODES, edges, CIRCLES.hygiene, "circles"), ledger=ledger)
    assert fitted.receipts == ()
    assert len(ledger.entries()) == 0
    fitted.predict(PrivateGraph(NODES, edges, CIRCLES.hygiene, "circles"), access="none")
    assert len(ledger.entries()) == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ALL)
def test_better_than_chance_and_the_same_for_a_seed(kind):
    fitted = fit(kind(seed=3), CIRCLES)
    assert fitted.score(CIRCLES, NODES.test_mask, access="none") > 0.7
    first, second = (run.predictions(CIRCLES).probabilities for run in (fitted, fit(kind(seed=3), CIRCLES)))
    assert torch.equal(first, second)
    assert torch.allclose(first.sum(dim=1), torch.ones(240, dtype=torch.float64))


@pytest.mark.parametrize("kind", ONE_HOP)
def test_own_edges_are_the_default_and_recorded_as_delivery(kind):
    ledger = MemoryLedger("circles")
    fitted = fit(kind(), CIRCLES, ledger=ledger)
    assert fitted.predictions(CIRCLES).access == "own-edges"
    assert [entry.request.kind for entry in ledger.entries()] == [Kind.DELIVERY]
    assert ledger.total() == NOTHING
    with_hop = fitted.score(CIRCLES, NODES.test_mask)
    assert with_hop > fitted.score(CIRCLES, NODES.test_mask, access="none") - 0.02
    assert ledger.entries()[-1].request.kind is Kind.DIAGNOSTIC


def test_the_encoder_alone_knows_no_edges():
    with pytest.raises(AccessRefusedError):
        fit(EncoderAlone(), CIRCLES).predict(CIRCLES, access="own-edges")


def test_the_encoder_is_that_of_gcon_and_the_hop_is_a_mean():
    encoder = train_encoder(NODES, EncoderSettings(seed=2))
    expected = encoder.probabilities(NODES.features).double()
    alone = fit(EncoderAlone(seed=2), CIRCLES).predictions(CIRCLES).probabilities
    assert torch.allclose(alone, expected, atol=1e-9)
    with_loops = torch.eye(240, dtype=torch.float64)
    edges = open_private(CIRCLES.edges)
    for node in range(240):
        with_loops[node, edges.columns[edges.row_pointers[node] : edges.row_pointers[node + 1]]] = 1
    mean = with_loops / with_loops.sum(dim=1, keepdim=True)
    hop = fit(EncoderOneHop(seed=2, inference_restart=0.3), CIRCLES).predictions(CIRCLES).probabilities
    assert torch.allclose(hop, 0.7 * mean @ expected + 0.3 * expected, atol=1e-6)


@pytest.mark.parametrize("kind", ONE_HOP)
def test_an_answer_depends_on_own_edges_only(kind):
    path = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
    fitted = fit(kind(), CIRCLES)
    before = fitted.predictions(with_edges(path)).probabilities
    after = fitted.predictions(with_edges(torch.cat([path, torch.tensor([[3], [9]])], dim=1))).probabilities
    moved = (before != after).any(dim=1)
    assert set(moved.nonzero()[:, 0].tolist()) == {3, 9}


@pytest.mark.parametrize("kind", ONE_HOP)
def test_restart_one_leaves_the_edges_out(kind):
    check_no_hop(fit(kind(inference_restart=1.0), CIRCLES))


def test_no_hop_where_feature_neighbours_do_not_agree():
    check_no_hop(fit(SelfTraining(least_agreement=1.0), CIRCLES))


def check_no_hop(fitted):
    """The same bits whatever the edges; only the walk's rounding tells them from answers without any walk."""
    graphs = (CIRCLES, with_edges(torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])))
    one, other = (fitted.predictions(graph, access="own-edges").probabilities for graph in graphs)
    assert torch.equal(one, other)
    assert torch.allclose(one, fitted.predictions(CIRCLES, access="none").probabilities, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "wrong", [{"inference_restart": 1.5}, {"neighbours": 0}, {"rounds": 1.5}, {"taught_share": -0.1}]
)
def test_settings_are_checked(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        SelfTraining(**wrong)


def test_self_training_answers_for_its_own_nodes_only():
    fitted = fit(SelfTraining(), CIRCLES)
    others = PublicGraph(NODES.features + 1, public_edges(torch.tensor([[0], [1]]), 240))
    with pytest.raises(InputError, match="nodes of the training"):
        fitted.predict(others, access="none")
    entries = len(fitted.ledger.entries())
    strangers = private_graph(changed(features=NODES.features + 1), torch.tensor([[0], [1]]))
    for ask in (fitted.predict, lambda given: fitted.score(given, NODES.test_mask)):
        with pytest.raises(InputError, match="trained on"):  # not withheld by a gate, and not recorded
            ask(strangers)
    assert len(fitted.ledger.entries()) == entries


@pytest.mark.slow
def test_self_training_without_validation_and_with_one_class():
    nobody = torch.zeros_like(NODES.validation_mask)
    blind = private_graph(changed(validation_mask=nobody), torch.tensor([[0], [1]]))
    assert fit(SelfTraining(), blind).score(blind, NODES.test_mask, access="none") > 0.7
    one_class = NODES.train_mask & (NODES.labels == 1)
    lonely = private_graph(changed(train_mask=one_class, validation_mask=nobody), torch.tensor([[0], [1]]))
    assert set(fit(SelfTraining(), lonely).predict(lonely, access="none").tolist()) == {1}


def test_labels_outside_training_and_validation_are_not_read():
    hidden = torch.where(NODES.train_mask | NODES.validation_mask, NODES.labels, -1)
    nodes = changed(labels=hidden, test_mask=torch.zeros_like(NODES.test_mask))
    blind = private_graph(nodes, torch.tensor([[0], [1]]))
    first, second = (fit(SelfTraining(), graph).predictions(graph, access="none") for graph in (blind, CIRCLES))
    assert torch.equal(first.probabilities, second.probabilities)
