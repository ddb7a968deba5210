"""Own-edge answers: what node i is told depends on the edges of i alone (section 3, item 10 of the analysis)."""

from dataclasses import replace

import pytest
import torch
from tests.opened import open_private

from gcon.edges.graph import private_graph
from gcon.methods.evidence import Evidence, ExactCounts, tells
from gcon.methods.own_edges import predict_for_one_owner, predict_from_own_edges
from gcon.privacy.ledger import MemoryLedger


@pytest.fixture(scope="module")
def rng():
    return torch.Generator().manual_seed(5)


def answers(model, graph):
    return predict_from_own_edges(model, graph.nodes.features, graph.edges, ledger=MemoryLedger())


@pytest.fixture
def paper_model(neighbours, run):
    return run(neighbours.full)[0]


@pytest.fixture(params=["moments", "counts", "paper"])
def model(request, neighbours, run, run_moments):
    """Of either mechanism, and of moments in both ways that owners are answered in, whatever a noisy count says of them."""
    if request.param == "paper":
        return run(neighbours.full)[0]
    found = run_moments(neighbours.full, epsilon={"moments": 0.5, "counts": 6.0}[request.param])[0]
    found = replace(found, own_edges=True)
    assert isinstance(found.scorer().way, {"moments": Evidence, "counts": ExactCounts}[request.param])
    assert tells(found.homophily, 3)
    return found


@pytest.fixture
def strange(neighbours):
    """The graph with other features: nodes never seen, which moments answer one by one."""
    return replace(neighbours, nodes=replace(neighbours.nodes, features=neighbours.nodes.features + 0.1))


@pytest.mark.parametrize("node", [0, 7, 23, 47])
def test_edits_elsewhere_change_nothing(neighbours, model, node, rng):
    before = answers(model, neighbours.full).probabilities[node]
    own = (neighbours.edge_index == node).any(dim=0)
    others = torch.tensor([other for other in range(48) if other != node])
    for count in (0, 1, 60, 600):
        elsewhere = others[torch.randint(0, 47, (2, count), generator=rng)]
        edited = private_graph(neighbours.nodes, torch.cat([neighbours.edge_index[:, own], elsewhere], dim=1))
        assert torch.equal(answers(model, edited).probabilities[node], before)


def test_only_the_two_ends_of_an_edge_notice_it(neighbours, model):
    before = answers(model, neighbours.full).probabilities
    for position in range(0, neighbours.edge_index.shape[1], 7):
        after = answers(model, neighbours.without(position)).probabilities
        changed = (before != after).any(dim=1).nonzero()[:, 0].tolist()
        assert sorted(changed) == sorted(neighbours.edge_index[:, position].tolist())


def test_features_elsewhere_change_nothing_either(strange, model):
    edges = open_private(strange.full.edges)
    node = int(edges.degrees.argmax())
    features = strange.nodes.features.clone()
    strangers = torch.ones(48, dtype=torch.bool)
    strangers[[node, *edges.neighbours(node).tolist()]] = False
    assert strangers.any()
    features[strangers] *= -3
    after = predict_from_own_edges(model, features, strange.full.edges, ledger=MemoryLedger())
    assert torch.equal(after.probabilities[node], answers(model, strange.full).probabilities[node])


def check_rows(model, graph, atol=1e-12, **restart):
    features, edges = graph.nodes.features, open_private(graph.full.edges)
    table = predict_from_own_edges(model, features, graph.full.edges, ledger=MemoryLedger(), **restart)
    for node in range(48):
        alone = predict_for_one_owner(model, features[node], features[edges.neighbours(node)], **restart)
        torch.testing.assert_close(alone.probabilities[0], table.probabilities[node], rtol=0, atol=atol)
        assert alone.classes.tolist() == [int(table.classes[node])]


@pytest.mark.parametrize("restart", [0.0, 0.4, 1.0])
def test_one_owner_alone_gets_the_row_of_the_table(neighbours, paper_model, restart):
    check_rows(paper_model, neighbours, restart=restart)


def test_one_owner_never_seen_gets_the_row_of_the_table_of_either_mechanism(strange, model):
    check_rows(model, strange, atol=1e-6)  # the student works in float32


def test_own_edges_that_are_left_out_are_not_read(neighbours, run_moments):
    found = run_moments(neighbours.full, epsilon=6.0)[0]
    found = replace(found, own_edges=False)
    before = answers(found, neighbours.full).probabilities
    for graph in neighbours.pairs:
        assert torch.equal(answers(found, graph).probabilities, before)


def test_one_owner_without_neighbours(strange, model):
    features = strange.nodes.features
    lonely = private_graph(strange.nodes, torch.empty(2, 0, dtype=torch.int64))
    alone = predict_for_one_owner(model, features[4], features[:0])
    torch.testing.assert_close(alone.probabilities[0], answers(model, lonely).probabilities[4], rtol=0, atol=1e-6)


def test_the_order_of_neighbours_does_not_matter_to_the_answer(neighbours, model):
    features = neighbours.nodes.features
    first = predict_for_one_owner(model, features[0], features[1:9])
    second = predict_for_one_owner(model, features[0], features[1:9].flip(0))
    torch.testing.assert_close(first.probabilities, second.probabilities, rtol=0, atol=1e-12)
