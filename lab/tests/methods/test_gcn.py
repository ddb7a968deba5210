"""GCN: the same logits as PyG's layers, the same part of the graph as needed, learning, and no promise."""

import math

import numpy as np
import pytest
import scipy.sparse
import torch

import gcon
from gcon.edges.edge_list import public_edges
from gcon.edges.graph import PublicGraph
from gcon.errors import AccessRefusedError
from gcon.files.datasets import social_circles, social_circles_parts
from gcon.learn.encoder import scaled_rows
from gcon.privacy.ledger import Kind, MemoryLedger
from gcon_lab.methods import gcn
from gcon_lab.methods.gcn import GCN, GraphNetwork
from gcon_lab.methods.graph_products import normalised, reach
from gcon_lab.methods.networks import drop, is_sparse, sparse_if_worth_it, sparse_product

NODES, EDGE_INDEX = social_circles_parts(150, num_classes=3, per_class=6, num_validation=30, num_test=60, seed=4)
EDGES = public_edges(EDGE_INDEX, 150)
GRAPH = social_circles(400, num_classes=4, homophily=0.9, seed=1)


def dense_normalised(edges):
    adjacency = torch.zeros(edges.num_nodes, edges.num_nodes, dtype=torch.float64)
    index = edges.edge_index()
    adjacency[index[0], index[1]] = 1
    adjacency += torch.eye(edges.num_nodes)
    roots = adjacency.sum(dim=1).rsqrt()
    return roots[:, None] * adjacency * roots


def network(share=0.5):
    torch.manual_seed(0)
    return GraphNetwork(32, 16, 3, share)


def test_normalised_graph_is_the_formula_and_symmetric():
    found = normalised(EDGES).toarray()
    assert found.dtype == np.float32
    assert torch.allclose(torch.from_numpy(found).double(), dense_normalised(EDGES), atol=1e-7)
    assert np.array_equal(found, found.T)
    lonely = normalised(public_edges(torch.tensor([[0], [1]]), 3)).toarray()
    assert lonely[2].tolist() == [0, 0, 1]


def test_product_has_the_right_gradient():
    matrix = scipy.sparse.random_array((7, 5), density=0.4, format="csr", rng=0)
    rows = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    assert torch.allclose(sparse_product(matrix, rows), torch.from_numpy(matrix.toarray()) @ rows)
    assert torch.autograd.gradcheck(lambda given: sparse_product(matrix, given), (rows,))


def test_sparse_features_give_the_same_as_dense_ones():
    rows = (torch.rand(40, 60) < 0.05).float()
    sparse = sparse_if_worth_it(rows)
    assert is_sparse(sparse)
    assert not is_sparse(sparse_if_worth_it(torch.rand(4, 4)))
    weight = torch.randn(60, 4)
    assert torch.allclose(sparse_product(sparse, weight), rows @ weight, atol=1e-6)
    dropped = drop(sparse, 0.5, True).to_dense()
    assert set(dropped[rows > 0].tolist()) == {0.0, 2.0}
    assert (dropped[rows == 0] == 0).all()


def test_logits_are_those_of_pyg():
    nn = pytest.importorskip("torch_geometric.nn")
    model = network()
    first, second = nn.GCNConv(32, 16, bias=False), nn.GCNConv(16, 3, bias=False)
    with torch.no_grad():
        first.lin.weight.copy_(model.first.weight.T)
        second.lin.weight.copy_(model.second.weight.T)
        rows, index = scaled_rows(NODES.features, by="sum"), EDGES.edge_index()
        expected = second(torch.relu(first(rows, index)), index)
    assert torch.allclose(model.logits(NODES.features, EDGES), expected, rtol=1e-4, atol=1e-5)


def test_the_reached_part_gives_the_same_logits_and_gradients():
    model, graph = network(share=0.0), normalised(EDGES)
    rows, mask = scaled_rows(NODES.features, by="sum"), NODES.train_mask
    seen = reach(graph, mask)
    assert len(seen.inputs) < NODES.num_nodes
    assert seen.second.shape[0] == int(mask.sum())
    part = model(rows[seen.inputs], seen)
    whole = sparse_product(graph, model.before_last(rows, graph))[mask]
    assert torch.allclose(part, whole, atol=1e-6)
    gradients = [torch.autograd.grad(logits.square().sum(), list(model.parameters())) for logits in (part, whole)]
    assert all(torch.allclose(one, other, rtol=1e-4, atol=1e-5) for one, other in zip(*gradients, strict=True))


def test_only_the_first_layer_decays(monkeypatch):
    groups = []
    monkeypatch.setattr(gcn, "fit_network", lambda network, **named: groups.extend(named["groups"]))
    GCN(hidden=5, weight_decay=0.25).fit(GRAPH)
    assert [(group.get("weight_decay", 0.0), group["params"][0].shape) for group in groups] == [
        (0.25, (32, 5)),
        (0.0, (5, 4)),
    ]


def test_it_learns_far_above_chance_and_promises_nothing():
    ledger = MemoryLedger("circles")
    fitted = GCN(seed=1).fit(GRAPH, ledger=ledger)
    assert not GCN.private
    assert fitted.score(GRAPH, GRAPH.nodes.test_mask) > 0.6  # chance is 0.25
    assert math.isinf(ledger.total().epsilon)
    assert [entry.request.kind for entry in ledger.entries()] == [Kind.DECLASSIFICATION]
    assert fitted.receipts == ()


def test_accesses():
    given = gcon.edges.graph.private_graph(NODES, EDGE_INDEX)
    fitted = GCN(epochs=20).fit(given)
    full = fitted.predictions(given)
    assert full.access == "full"
    public = fitted.predictions(PublicGraph(NODES.features, EDGES), access="public-graph")
    assert torch.equal(full.probabilities, public.probabilities)
    for access in ("own-edges", "cached"):
        with pytest.raises(AccessRefusedError):
            fitted.predictions(given, access=access)


def test_the_seed_decides_everything():
    one, other = (GCN(seed=3, epochs=15).fit(GRAPH).predictions(GRAPH).probabilities for _ in range(2))
    assert torch.equal(one, other)
    assert not torch.equal(one, GCN(seed=4, epochs=15).fit(GRAPH).predictions(GRAPH).probabilities)
