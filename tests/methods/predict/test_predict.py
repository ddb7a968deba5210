"""Three kinds of access, each named in its result together with its promise."""

import inspect
import math

import pytest
import torch
from tests.opened import open_private

from gcon import GCON
from gcon.edges.edge_list import private_edges, public_edges
from gcon.edges.schemes import Schemes, propagate
from gcon.errors import AccessRefusedError, GconError, InputError, PrivateComputationError
from gcon.mechanisms.losses import loss_by_name
from gcon.methods.no_edges import predict_without_edges
from gcon.methods.own_edges import predict_for_one_owner, predict_from_own_edges
from gcon.methods.predictions import ANY_MODEL, checked_access
from gcon.methods.public_graph import predict_on_public_graph
from gcon.privacy.budget import NOTHING
from gcon.privacy.ledger import Kind, MemoryLedger, Outcome
from gcon.privacy.randomness import SeededRandomness, SystemRandomness
from gcon.privacy.statement import ACCESS_PROMISES


def close(first, second):
    torch.testing.assert_close(first, second, rtol=0, atol=1e-12)


def by_hand(model, *blocks):
    """Probabilities of blocks side by side, divided by their number as in training."""
    scores = torch.cat(blocks, dim=1) / len(blocks) @ model.weights
    return loss_by_name(model.loss, 3).probabilities(scores)


def answers(access, model, features, edge_index):
    count = len(features)
    if access == "none":
        return predict_without_edges(model, features)
    if access == "own-edges":
        return predict_from_own_edges(model, features, private_edges(edge_index, count)[0], ledger=MemoryLedger())
    return predict_on_public_graph(model, features, public_edges(edge_index, count))


ACCESSES = ["none", "own-edges", "public-graph"]


@pytest.mark.parametrize("num_nodes", [47, 49])
def test_rows_of_another_number_of_nodes_are_refused(num_nodes, model, graph):
    edges, scorer = public_edges(torch.tensor([[0, 1], [1, 2]]), num_nodes), model.scorer()
    start = scorer.start(graph.nodes.features, "own-edges")
    for answer in (scorer.own_edges, scorer.public_graph):
        with pytest.raises(InputError, match=rf"^features: must have one row per node \({num_nodes}\); got 48"):
            answer(start, edges)


@pytest.mark.parametrize("access", ACCESSES)
def test_every_result_names_its_access_and_its_promise(access, model, graph, edge_index):
    found = answers(access, model, graph.nodes.features, edge_index)
    assert found.access == access
    assert found.class_names == (0, 1, 2)
    assert found.labels == found.classes.tolist()
    assert found.classes.shape == (48,)
    assert found.probabilities.shape == (48, 3)
    assert torch.equal(found.classes, found.probabilities.argmax(dim=1))
    close(found.probabilities.sum(dim=1), torch.ones(48, dtype=torch.float64))


@pytest.mark.parametrize("access", ACCESSES)
@pytest.mark.parametrize(
    ("steps", "options", "why"),
    [
        ((2,), {"randomness": SystemRandomness()}, None),
        ((2,), {"randomness": SeededRandomness(1)}, "drawn from a seed"),
        ((2,), {"epsilon": math.inf, "randomness": SystemRandomness()}, "no noise was added"),
        ((0,), {"randomness": SeededRandomness(1)}, None),  # no edge was read: nothing to protect, and no noise
    ],
)
def test_predictions_promise_no_more_than_their_model(access, make_model, graph, edge_index, steps, options, why):
    model = make_model(*steps, **options)
    assert (model.receipt.budget == NOTHING) == (steps == (0,))
    found = answers(access, model, graph.nodes.features, edge_index)
    if why is None:
        assert found.promise == ACCESS_PROMISES[access]
        assert found.publishable == (access != "own-edges")
        assert found.audience == ("owner only" if access == "own-edges" else "public")
    else:
        assert found.promise.startswith("There is no promise: ")
        assert why in found.promise
        assert not found.publishable
        assert found.audience == "operator only"


@pytest.mark.parametrize("access", ACCESSES)
@pytest.mark.parametrize("loss", ["soft-margin", "pseudo-huber:0.2"])
def test_unseen_nodes_on_another_graph(access, make_model, other, loss):
    nodes, edge_index = other
    found = answers(access, make_model(0, 2, loss=loss), nodes.features, edge_index)
    assert found.classes.shape == (36,)
    assert found.probabilities.isfinite().all()
    assert found.access == access


@pytest.mark.parametrize("access", ACCESSES)
def test_predictions_are_better_than_chance(access, model, graph, edge_index):
    found = answers(access, model, graph.nodes.features, edge_index)
    assert float((found.classes == graph.nodes.labels).double().mean()) > 0.5


def test_none_is_the_default():
    for method in (GCON.predictions, GCON.predict, GCON.predict_proba, GCON.score):
        assert inspect.signature(method).parameters["access"].default == "none"


def test_none_reads_no_edge(model, graph):
    encoded = model.encoder.encode(graph.nodes.features)
    found = predict_without_edges(model, graph.nodes.features)
    close(found.probabilities, by_hand(model, encoded, encoded, encoded))
    assert "edges" not in inspect.signature(predict_without_edges).parameters


def test_none_answers_each_row_by_itself(model, graph):
    whole = predict_without_edges(model, graph.nodes.features).probabilities
    alone = torch.cat([predict_without_edges(model, row[None]).probabilities for row in graph.nodes.features])
    torch.testing.assert_close(alone, whole, rtol=0, atol=1e-6)


def test_own_edges_by_hand(model, graph):
    """((1 - a_I) T + a_I I) X for schemes with steps; blocks without steps keep the identity; the factor is 1/s."""
    encoded = model.encoder.encode(graph.nodes.features)
    one_hop = propagate(open_private(graph.edges), encoded, Schemes(restart=0.25, steps=(1,)))
    found = predict_from_own_edges(model, graph.nodes.features, graph.edges, ledger=MemoryLedger())
    close(found.probabilities, by_hand(model, encoded, one_hop, one_hop))


def test_public_graph_by_hand(model, graph, edge_index):
    encoded = model.encoder.encode(graph.nodes.features)
    edges = public_edges(edge_index, 48)
    blocks = [propagate(edges, encoded, Schemes(restart=0.5, steps=(count,))) for count in (0, 2, math.inf)]
    close(predict_on_public_graph(model, graph.nodes.features, edges).probabilities, by_hand(model, *blocks))


def test_without_steps_all_accesses_agree(make_model, graph, edge_index):
    model = make_model(0)
    found = [answers(access, model, graph.nodes.features, edge_index).probabilities for access in ACCESSES]
    close(found[0], found[1])
    close(found[0], found[2])


def test_own_edges_with_restart_one_equal_none(model, graph):
    own = predict_from_own_edges(model, graph.nodes.features, graph.edges, ledger=MemoryLedger(), restart=1.0)
    close(own.probabilities, predict_without_edges(model, graph.nodes.features).probabilities)


def test_the_restart_of_the_model_is_the_default(model, graph):
    found = [
        predict_from_own_edges(model, graph.nodes.features, graph.edges, ledger=MemoryLedger(), restart=restart)
        for restart in (None, 0.25, 0.9)
    ]
    assert torch.equal(found[0].probabilities, found[1].probabilities)
    assert not torch.allclose(found[0].probabilities, found[2].probabilities)


def test_clipping_holds_at_inference_too(make_model, graph):
    clipped = make_model(2)
    object.__setattr__(clipped, "schemes", Schemes(restart=0.5, steps=(2,), clip=0.1))
    encoded = clipped.encoder.encode(graph.nodes.features)
    edges = open_private(graph.edges)
    one_hop = propagate(edges, encoded, Schemes(restart=0.25, steps=(1,), clip=0.1))
    found = predict_from_own_edges(clipped, graph.nodes.features, graph.edges, ledger=MemoryLedger())
    close(found.probabilities, by_hand(clipped, one_hop))
    for node in (0, 5, 30):
        alone = predict_for_one_owner(clipped, graph.nodes.features[node], graph.nodes.features[edges.neighbours(node)])
        close(alone.probabilities[0], found.probabilities[node])


def test_own_edges_refuse_public_edges(model, graph, edge_index):
    ledger = MemoryLedger()
    with pytest.raises(AccessRefusedError, match="access='public-graph'"):
        predict_from_own_edges(model, graph.nodes.features, public_edges(edge_index, 48), ledger=ledger)
    assert not ledger.entries()


def test_public_graph_refuses_private_edges(model, graph):
    with pytest.raises(AccessRefusedError, match="these are private"):
        predict_on_public_graph(model, graph.nodes.features, graph.edges)


def test_a_delivery_is_recorded_and_costs_nothing(model, graph):
    ledger = MemoryLedger("circles", ceiling=NOTHING)
    predict_from_own_edges(model, graph.nodes.features, graph.edges, ledger=ledger, purpose="monthly answers")
    (entry,) = ledger.entries()
    assert (entry.request.kind, entry.outcome) == (Kind.DELIVERY, Outcome.RELEASED)
    assert entry.request.purpose == "monthly answers"
    assert ledger.total() == NOTHING


@pytest.mark.parametrize("restart", [-0.1, 1.1, math.nan, math.inf])
def test_a_bad_restart_is_refused_before_anything_is_opened(model, graph, restart):
    ledger = MemoryLedger()
    with pytest.raises(InputError, match=r"^inference_restart"):
        predict_from_own_edges(model, graph.nodes.features, graph.edges, ledger=ledger, restart=restart)
    with pytest.raises(InputError, match=r"^inference_restart"):
        predict_for_one_owner(model, graph.nodes.features[0], graph.nodes.features[1:3], restart=restart)
    assert not ledger.entries()


@pytest.mark.parametrize("access", ["", "all", "None", "own_edges", "PUBLIC-GRAPH"])
def test_unknown_accesses(access):
    with pytest.raises(InputError, match=r"^access"):
        checked_access(access, ANY_MODEL)


@pytest.mark.parametrize("access", ACCESSES)
def test_known_accesses(access):
    assert checked_access(access, ANY_MODEL) == access


@pytest.mark.parametrize("access", ["cached", "full"])
def test_accesses_that_this_model_does_not_have(access, model, graph):
    with pytest.raises(AccessRefusedError, match="What there is: none, own-edges"):
        checked_access(access, model.accesses)
    with pytest.raises(AccessRefusedError):
        predict_without_edges(model, graph.nodes.features, access=access)


@pytest.mark.parametrize("access", ACCESSES)
def test_features_of_another_width_are_refused(access, model, graph, edge_index):
    with pytest.raises(InputError, match=r"^features"):
        answers(access, model, graph.nodes.features[:, :5], edge_index)


def test_features_for_another_number_of_nodes_are_refused(model, graph, edge_index):
    ledger = MemoryLedger()
    with pytest.raises(PrivateComputationError):
        predict_from_own_edges(model, graph.nodes.features[:40], graph.edges, ledger=ledger)
    assert ledger.entries()[0].outcome is Outcome.WITHHELD
    with pytest.raises(GconError):
        predict_on_public_graph(model, graph.nodes.features[:40], public_edges(edge_index, 48))


def test_labels_are_the_names_of_the_classes(model, graph):
    object.__setattr__(model, "class_names", ("red", "green", "blue"))
    try:
        found = predict_without_edges(model, graph.nodes.features)
        assert found.labels == [("red", "green", "blue")[number] for number in found.classes.tolist()]
    finally:
        object.__setattr__(model, "class_names", (0, 1, 2))


def test_own_edges_take_neighbours_in_any_order(model, graph, edge_index):
    first = answers("own-edges", model, graph.nodes.features, edge_index)
    second = answers("own-edges", model, graph.nodes.features, edge_index.flip(0).flip(1))
    assert torch.equal(first.probabilities, second.probabilities)
