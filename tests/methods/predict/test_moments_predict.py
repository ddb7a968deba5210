"""The default's model under every access: released answers for the training nodes, the student for all others."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gcon
from gcon.edges.edge_list import private_edges, public_edges
from gcon.errors import AccessRefusedError, AnswersWarning, InputError
from gcon.files.datasets.synthetic import social_circles_parts
from gcon.methods.evidence import ExactCounts, scores_from_far, scores_with_own_edges
from gcon.methods.moments import Moments, owners_way
from gcon.methods.no_edges import predict_without_edges
from gcon.methods.own_edges import predict_for_one_owner, predict_from_own_edges
from gcon.methods.public_graph import predict_on_public_graph, refuse_training_nodes
from gcon.privacy.budget import NOTHING
from gcon.privacy.ledger import Kind, MemoryLedger, Outcome
from gcon.privacy.randomness import SeededRandomness, SystemRandomness
from gcon.privacy.statement import ACCESS_PROMISES

SIZE = 80
SHAPE = {"num_classes": 3, "num_features": 6, "feature_signal": 2.0, "per_class": 8}
NODES, EDGES = social_circles_parts(SIZE, mean_degree=15, seed=3, **SHAPE)
OTHERS, OTHER_EDGES = social_circles_parts(24, mean_degree=4, seed=9, **SHAPE)


def trained(epsilon=8.0, randomness=None):
    return Moments(epsilon=epsilon).train(
        NODES,
        private_edges(EDGES, SIZE)[0],
        ledger=MemoryLedger("circles"),
        randomness=randomness or SeededRandomness(3),
    )


@pytest.fixture(scope="module")
def model():
    found = trained()
    assert found.cached is not None
    assert isinstance(found.scorer().way, ExactCounts)
    return found


@pytest.fixture(scope="module", params=["counts", "no counts"])
def either(request, model):
    """Both ways in which owners are answered."""
    if request.param == "counts":
        return model
    found = trained(epsilon=1.0)
    assert found.cached is None
    assert found.own_edges
    assert found.homophily > 0.5
    return found


@pytest.fixture(scope="module")
def kept():
    """With a promise."""
    return trained(randomness=SystemRandomness())


def own(model, features, edge_index, **options):
    edges = private_edges(edge_index, len(features))[0]
    return predict_from_own_edges(model, features, edges, ledger=MemoryLedger(), **options)


def close(first, second, atol=1e-12):
    torch.testing.assert_close(first, second, rtol=0, atol=atol)


# ---- the training table


def test_the_training_table_uses_the_released_answers(model):
    none = predict_without_edges(model, NODES.features)
    cached = predict_without_edges(model, NODES.features, access="cached")
    close(none.probabilities, model.answers.double(), 1e-6)
    close(cached.probabilities, model.cached.double(), 1e-6)
    assert not torch.equal(none.probabilities, cached.probabilities)
    assert (none.access, cached.access) == ("none", "cached")


def test_owners_are_answered_from_the_released_answers_and_their_edges(either):
    way, rows = owners_way(either.best_answers, either.labels, either.counts, either.homophily)
    scores = scores_with_own_edges(way, rows, public_edges(EDGES, SIZE), 3)
    close(own(either, NODES.features, EDGES).probabilities, torch.softmax(scores, dim=1))
    assert not torch.equal(own(either, NODES.features, EDGES[:, :0]).probabilities, torch.softmax(scores, dim=1))


def test_without_counts_cached_is_none():
    model = trained(epsilon=0.05)
    assert model.cached is None
    one, two = (predict_without_edges(model, NODES.features, access=access) for access in ("none", "cached"))
    assert torch.equal(one.probabilities, two.probabilities)


def test_every_access_says_what_it_is_of_this_model(model):
    counted, bare = model, replace(trained(epsilon=0.05, randomness=SystemRandomness()), own_edges=False)
    words = counted.access_words
    assert words == {access: ACCESS_PROMISES[access] for access in counted.accesses}
    told = bare.access_words
    assert told["cached"].startswith("No counts were released, so this gives what `none` gives. No edge is read")
    assert told["own-edges"].startswith("Own edges are left out")
    assert {**told, "cached": "", "own-edges": ""} == {**words, "cached": "", "own-edges": ""}
    assert bare.statement().fields["access"] == told
    found = predict_without_edges(bare, NODES.features, access="cached")
    assert found.promise == told["cached"]
    assert own(bare, NODES.features, EDGES).promise == told["own-edges"]
    assert torch.equal(
        own(bare, NODES.features, EDGES).probabilities, own(bare, NODES.features, EDGES[:, :0]).probabilities
    )


@pytest.mark.parametrize("validation", [100, 0], ids=["validation", "none"])
@pytest.mark.parametrize("epsilon", [1.0, 0.3], ids=["counts", "no counts"])
def test_edges_that_tell_nothing_are_left_out(validation, epsilon):
    """Exact counts would be noise to their owners: regressions on noisy counts learned nothing but chance."""
    shape = {"num_classes": 3, "num_features": 12, "feature_signal": 3.0, "per_class": 20, "num_validation": validation}
    nodes, edges = social_circles_parts(600, mean_degree=40, homophily=1 / 3, seed=5, **shape)
    private = private_edges(edges, 600)[0]
    found = Moments(epsilon=epsilon).train(
        nodes, private, ledger=MemoryLedger("chance"), randomness=SeededRandomness(2)
    )
    assert (found.cached is None) == (epsilon < 1)
    assert not found.own_edges
    published = predict_without_edges(found, nodes.features, access="cached")
    mine = predict_from_own_edges(found, nodes.features, private, ledger=MemoryLedger())
    assert torch.equal(mine.classes, published.classes)


def test_labels_that_taught_a_model_are_known(model):
    every = torch.ones(SIZE, dtype=torch.bool)
    assert model.taught(NODES, every) == int(NODES.train_mask.sum())
    assert model.taught(NODES, ~NODES.train_mask) == 0
    assert model.taught(OTHERS, torch.ones(24, dtype=torch.bool)) == 0


def test_a_row_from_the_service_is_the_row_of_the_table(either):
    """One node at a time, from its row and the numbers of its neighbours: the same probabilities."""
    for features, edge_index in ((NODES.features, EDGES), (OTHERS.features, OTHER_EDGES)):
        table, edges = own(either, features, edge_index).probabilities, public_edges(edge_index, len(features))
        scorer = either.scorer()
        of_one = scorer.own_edges_of_one(scorer.start(features, "own-edges"))
        for node in range(len(features)):
            close(torch.from_numpy(of_one(node, edges.neighbours(node).numpy())), table[node])


def test_predictions_are_better_than_chance(model):
    for found in (predict_without_edges(model, NODES.features, access="cached"), own(model, NODES.features, EDGES)):
        assert float((found.classes == NODES.labels).double().mean()) > 0.6


# ---- other nodes


@pytest.mark.parametrize("rows", [slice(0, SIZE - 1), slice(5, 6), slice(None, None, 2)], ids=str)
def test_a_part_of_the_training_table_is_answered_by_the_student(model, rows):
    features = NODES.features[rows]
    expected = model.encoder.probabilities(features).double()
    with pytest.warns(AnswersWarning, match="as nodes never seen"):
        close(predict_without_edges(model, features).probabilities, expected, 1e-6)
    assert not torch.allclose(expected, model.answers[rows].double(), atol=1e-4)


def test_another_order_of_the_training_nodes_is_answered_by_the_student(model):
    with pytest.warns(AnswersWarning, match="as nodes never seen"):
        found = predict_without_edges(model, NODES.features.flip(0)).probabilities
    close(found, model.encoder.probabilities(NODES.features.flip(0)).double(), 1e-6)


def test_nodes_never_seen_are_answered_by_the_student(either):
    model = either
    start = model.encoder.probabilities(OTHERS.features).double()
    close(predict_without_edges(model, OTHERS.features).probabilities, start, 1e-6)
    scorer, edges = model.scorer(), public_edges(OTHER_EDGES, 24)
    rows = scorer.way.rows(model.encoder.probabilities(OTHERS.features))
    near = scores_with_own_edges(scorer.way, rows, edges, 3)
    close(own(model, OTHERS.features, OTHER_EDGES).probabilities, torch.softmax(near, dim=1))
    far = scores_from_far(start, edges, model.homophily)
    assert far.any()
    close(predict_on_public_graph(model, OTHERS.features, edges).probabilities, torch.softmax(near + far, dim=1))


def test_cached_is_refused_for_other_nodes(model):
    for features, got in (
        (OTHERS.features, "others"),
        (NODES.features + 1e-3, "others"),
        (NODES.features[:-1], "a part of it"),
        (NODES.features.flip(0), "another order"),
    ):
        with pytest.raises(InputError, match=rf"^nodes: must be the training table .* got .*{got}"):
            predict_without_edges(model, features, access="cached")


@pytest.mark.parametrize("access", ["own-edges", "public-graph", "full"])
def test_without_edges_there_are_two_accesses(model, access):
    with pytest.raises(AccessRefusedError, match="What there is: none, cached"):
        predict_without_edges(model, NODES.features, access=access)


def test_one_owner_alone_gets_the_row_of_the_table(either):
    model = either
    table, edges = own(model, OTHERS.features, OTHER_EDGES), public_edges(OTHER_EDGES, 24)
    for node in range(24):
        alone = predict_for_one_owner(model, OTHERS.features[node], OTHERS.features[edges.neighbours(node)])
        close(alone.probabilities[0], table.probabilities[node], 1e-6)  # the student works in float32
        assert alone.classes.tolist() == [int(table.classes[node])]


# ---- own edges


PAIRS = st.tuples(st.integers(0, 23), st.integers(0, 23)).filter(lambda pair: pair[0] != pair[1])
GRAPHS = st.lists(PAIRS, max_size=60).map(lambda pairs: torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(edges=GRAPHS, node=st.integers(0, 23), changed=st.lists(PAIRS, min_size=1, max_size=8), seen=st.booleans())
def test_an_edge_elsewhere_changes_no_bit_of_an_answer(either, edges, node, changed, seen):
    """Edges that do not touch the node are added where they are not, and removed where they are."""
    features = NODES.features if seen else OTHERS.features
    linked = {frozenset(pair) for pair in edges.T.tolist()}
    after = linked ^ {frozenset(pair) for pair in changed if node not in pair}
    other = torch.tensor([sorted(pair) for pair in after], dtype=torch.int64).reshape(-1, 2).T
    one, two = (own(either, features, index).probabilities[node] for index in (edges, other))
    assert torch.equal(one, two)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(order=st.permutations(range(10)))
def test_the_order_of_neighbours_does_not_matter(model, order):
    known = OTHERS.features[1:11]
    one, two = (predict_for_one_owner(model, OTHERS.features[0], rows) for rows in (known, known[list(order)]))
    close(one.probabilities, two.probabilities)
    pairs = torch.tensor([[0] * 10, list(range(1, 11))])
    one, two = (own(model, OTHERS.features, index) for index in (pairs, pairs[:, list(order)].flip(0)))
    close(one.probabilities, two.probabilities)


def test_the_ends_of_an_edge_notice_it(model):
    """The property above is not empty: an edge changes the answers of its two ends, and of nobody else."""
    before = own(model, OTHERS.features, OTHER_EDGES).probabilities
    for place in range(OTHER_EDGES.shape[1]):
        kept = torch.cat([OTHER_EDGES[:, :place], OTHER_EDGES[:, place + 1 :]], dim=1)
        moved = (own(model, OTHERS.features, kept).probabilities != before).any(dim=1)
        assert set(moved.nonzero()[:, 0].tolist()) == set(OTHER_EDGES[:, place].tolist())


def test_a_delivery_is_recorded_and_costs_nothing(model):
    ledger = MemoryLedger("circles", ceiling=NOTHING)
    edges = private_edges(EDGES, SIZE)[0]
    predict_from_own_edges(model, NODES.features, edges, ledger=ledger, purpose="monthly answers")
    (entry,) = ledger.entries()
    assert (entry.request.kind, entry.outcome) == (Kind.DELIVERY, Outcome.RELEASED)
    assert ledger.total() == NOTHING


@pytest.mark.parametrize("restart", [0.0, 0.5, 7.0])
def test_a_restart_belongs_to_the_other_mechanism(model, restart):
    ledger = MemoryLedger()
    with pytest.raises(InputError, match=r"^inference_restart: belongs to models of the paper"):
        own(model, NODES.features, EDGES, restart=restart)
    with pytest.raises(InputError, match=r"^inference_restart"):
        predict_for_one_owner(model, NODES.features[0], NODES.features[1:3], restart=restart)
    assert not ledger.entries()


def test_wrong_features_are_refused_before_anything_is_recorded(model):
    ledger, edges = MemoryLedger(), private_edges(EDGES, SIZE)[0]
    with pytest.raises(InputError, match=r"^features"):
        predict_from_own_edges(model, NODES.features[:, :5], edges, ledger=ledger)
    with pytest.raises(AccessRefusedError, match="public-graph"):
        predict_from_own_edges(model, NODES.features, public_edges(EDGES, SIZE), ledger=ledger)
    assert not ledger.entries()
    for access in ("none", "cached"):
        with pytest.raises(InputError, match=r"^features"):
            predict_without_edges(model, NODES.features[:, :5], access=access)


# ---- public graphs


def test_public_graph_refuses_private_edges_and_the_training_table(model):
    with pytest.raises(AccessRefusedError, match="these are private"):
        predict_on_public_graph(model, OTHERS.features, private_edges(OTHER_EDGES, 24)[0])
    with pytest.raises(AccessRefusedError, match="that the model was trained on"):
        refuse_training_nodes(model, NODES.features)
    refuse_training_nodes(model, OTHERS.features)
    with pytest.raises(InputError, match=r"^features: must have one row per node"):
        predict_on_public_graph(model, OTHERS.features[:5], public_edges(OTHER_EDGES, 24))


def test_the_estimator_refuses_the_training_table_too():
    classifier = gcon.NodeClassifier(random_state=1).fit(gcon.edges.graph.private_graph(NODES, EDGES, name="circles"))
    shown = gcon.public_graph(NODES.features, edges=EDGES)
    with pytest.raises(AccessRefusedError, match="that the model was trained on"):
        classifier.predict(shown, access="public-graph")
    others = gcon.public_graph(OTHERS.features, edges=OTHER_EDGES)
    assert classifier.predict(others, access="public-graph").shape == (24,)


# ---- promises


def test_what_is_promised(kept, model):
    for found, audience in (
        (predict_without_edges(kept, NODES.features), "public"),
        (predict_without_edges(kept, NODES.features, access="cached"), "public"),
        (own(kept, NODES.features, EDGES), "owner only"),
        (predict_on_public_graph(kept, OTHERS.features, public_edges(OTHER_EDGES, 24)), "public"),
        (predict_without_edges(model, NODES.features), "operator only"),
        (own(model, NODES.features, EDGES), "operator only"),
    ):
        assert found.audience == audience
