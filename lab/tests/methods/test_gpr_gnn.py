"""GPR-GNN: the polynomial by hand and PyG's APPNP, its start, its stopping rule, learning, and no promise."""

import dataclasses
import math

import pytest
import torch
from torch import nn

from gcon.edges.edge_list import public_edges
from gcon.edges.graph import PublicGraph, private_graph
from gcon.errors import AccessRefusedError, InputError
from gcon.files.datasets import social_circles, social_circles_parts
from gcon.learn.encoder import scaled_rows
from gcon.privacy.ledger import MemoryLedger
from gcon_lab.methods import gpr_gnn
from gcon_lab.methods.gpr_gnn import GPRGNN, PowersNetwork, start_weights
from gcon_lab.methods.graph_products import normalised
from gcon_lab.methods.networks import Training, fit_network

NODES, EDGE_INDEX = social_circles_parts(120, num_classes=3, per_class=6, num_validation=30, num_test=60, seed=4)
EDGES = public_edges(EDGE_INDEX, 120)
GRAPH = social_circles(400, num_classes=4, homophily=0.9, seed=1)


def network(weights):
    torch.manual_seed(0)
    return PowersNetwork(32, 16, 3, (0.5, 0.5), weights).eval()


def test_logits_are_the_polynomial():
    weights = torch.tensor([0.5, -1.0, 0.0, 2.0])
    model, rows = network(weights), scaled_rows(NODES.features, by="sum")
    graph = torch.from_numpy(normalised(EDGES).toarray()).double()
    with torch.no_grad():
        scores = model.scores(rows).double()
        expected = sum(weights[k].double() * torch.linalg.matrix_power(graph, k) @ scores for k in range(4))
    assert torch.allclose(model.logits(NODES.features, EDGES).double(), expected, rtol=1e-4, atol=1e-5)


def test_start_values_give_appnp():
    """With g_k = a (1 - a)^k and g_K = (1 - a)^K the sum is K steps of personalised PageRank."""
    layers = pytest.importorskip("torch_geometric.nn")
    model = network(start_weights(10, 0.1))
    with torch.no_grad():
        scores = model.scores(scaled_rows(NODES.features, by="sum"))
        expected = layers.APPNP(K=10, alpha=0.1)(scores, EDGES.edge_index())
    assert torch.allclose(model.logits(NODES.features, EDGES), expected, rtol=1e-4, atol=1e-5)


def test_start_values():
    assert start_weights(3, 0.9).sum() == pytest.approx(1.0)
    assert start_weights(3, 0.5).tolist() == [0.5, 0.25, 0.125, 0.125]
    assert start_weights(2, 0.5, "first").tolist() == [1, 0, 0]
    assert start_weights(2, 0.5, "last").tolist() == [0, 0, 1]
    for wrong in ({"steps": 0}, {"restart": 1.5}, {"restart": math.nan}, {"start": "all"}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            GPRGNN(**wrong)


def test_the_weights_of_powers_are_learnt_without_decay(monkeypatch):
    seen = []
    monkeypatch.setattr(gpr_gnn, "fit_network", lambda model, **named: seen.append((model, named["groups"])))
    GPRGNN(weight_decay=0.25).fit(GRAPH)
    model, groups = seen[0]
    assert [group.get("weight_decay", 0.0) for group in groups] == [0.25, 0.0]
    assert groups[1]["params"] == [model.weights]
    assert sum(len(group["params"]) for group in groups) == len(list(model.parameters()))
    graph = normalised(EDGES)
    model.eval()(scaled_rows(NODES.features, by="sum"), graph).square().sum().backward()
    assert model.weights.grad.abs().min() > 0


class Worsening(nn.Module):
    """Its validation loss falls for some evaluations and then rises."""

    def __init__(self, turn):
        super().__init__()
        self.weight, self.turn, self.evaluations = nn.Parameter(torch.zeros(1)), turn, 0

    def forward(self):
        if not self.training:
            self.evaluations += 1
        margin = self.turn - abs(self.evaluations - self.turn)
        return torch.stack([margin + 0 * self.weight, 0 * self.weight], dim=1)


@pytest.mark.parametrize(("window", "stopped"), [(None, 60), (4, 12), (20, 21), (100, 60)])
def test_training_stops_when_the_loss_exceeds_its_recent_mean(window, stopped):
    model, labels = Worsening(turn=10), torch.tensor([0])
    training = Training(epochs=60, window=window)
    fit_network(model, training=training, train=(model, labels), validation=(model, labels))
    assert model.evaluations == stopped


@pytest.mark.parametrize(("homophily", "restart"), [(0.95, 0.1), (0.05, 0.9)])
def test_it_learns_far_above_chance_from_friends_and_from_opposites(homophily, restart):
    """Two circles whose features say little: most of what is known about a node is whom it knows."""
    nodes, edge_index = social_circles_parts(400, num_classes=2, homophily=homophily, feature_signal=1.0, seed=1)
    nodes = dataclasses.replace(nodes, features=nodes.features.clamp(min=0))
    graph, ledger = private_graph(nodes, edge_index), MemoryLedger("circles")
    fitted = GPRGNN(seed=1, epochs=150, restart=restart, score_dropout=0.0).fit(graph, ledger=ledger)
    assert not GPRGNN.private
    assert fitted.score(graph, nodes.test_mask) > 0.9  # chance is 0.5, a perceptron reaches 0.66
    assert math.isinf(ledger.total().epsilon)


def test_accesses():
    fitted = GPRGNN(epochs=10).fit(GRAPH)
    assert fitted.predictions(GRAPH).access == "full"
    features = torch.randn(5, 32)
    small = PublicGraph(features, public_edges(torch.tensor([[0, 1], [1, 2]]), 5))
    assert len(fitted.predictions(small, access="public-graph").classes) == 5
    with pytest.raises(AccessRefusedError):
        fitted.predictions(GRAPH, access="own-edges")
