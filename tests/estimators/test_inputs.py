"""Every way to pass a graph leads to the same model, the same answers and the same bill."""

import math
from dataclasses import replace

import networkx
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
import torch
from scipy.special import expit
from sklearn.base import clone
from tests.frames import StandIn

import gcon
from gcon.edges.edge_list import private_edges, public_edges
from gcon.edges.graph import private_graph
from gcon.edges.schemes import Schemes, propagate
from gcon.errors import AccessRefusedError, BudgetExceededError, InputError, PrivateComputationError
from gcon.methods.public_graph import predict_on_public_graph
from gcon.privacy.ledger import Kind, Outcome

pytestmark = pytest.mark.filterwarnings(r"ignore:`torch\.jit\.script` is deprecated:DeprecationWarning")

ACCESS = ("none", "own-edges")
FORMS = {
    "private graph": lambda parts: {"X": parts.private()},
    "pyg": lambda parts: {"X": parts.pyg()},
    "pyg, labels in a column": lambda parts: {"X": parts.pyg(y=parts.nodes.labels[:, None])},
    "pyg, transposed adjacency": lambda parts: {"X": parts.pyg(edge_index=None, adj_t=parts.torch_sparse())},
    "scipy": lambda parts: parts.arrays | {"edges": parts.scipy()},
    "scipy features": lambda parts: (
        parts.arrays | {"X": scipy.sparse.csr_array(parts.features), "edges": parts.scipy().tolil()}
    ),
    "torch sparse": lambda parts: parts.arrays | {"edges": parts.torch_sparse()},
    "pairs": lambda parts: parts.arrays | {"edges": parts.pairs()},
    "array of pairs": lambda parts: parts.arrays | {"edges": np.array(parts.pairs(), dtype=np.int32)},
    "tensors": lambda parts: (
        {name: torch.tensor(value) for name, value in parts.arrays.items()} | {"edges": parts.edge_index}
    ),
    "both directions and loops": lambda parts: (
        parts.arrays
        | {"edges": torch.cat([parts.edge_index, parts.edge_index.flip(0), torch.arange(120).repeat(2, 1)], 1)}
    ),
    "networkx": lambda parts: parts.arrays | {"edges": parts.networkx()},
    "networkx with attributes": lambda parts: {"X": parts.networkx_with_attributes()},
}


def fitted(given, **settings):
    return gcon.GCON(**{"epochs": 5, "random_state": 7, "steps": (1, 2), "restart": 0.5} | settings).fit(**given)


@pytest.fixture(scope="module")
def reference(parts):
    return fitted(FORMS["private graph"](parts))


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_model_and_answers(parts, reference, form):
    given = FORMS[form](parts)
    model = fitted(given)
    assert model.model_.weights.equal(reference.model_.weights)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.n_features_in_ == 8
    assert replace(model.model_.receipt, time="", data_set="") == replace(
        reference.model_.receipt, time="", data_set=""
    )
    asked = {"X": given["X"]}
    for access in ACCESS:
        if access == "own-edges" and "edges" in given:
            asked["edges"] = given["edges"]
        expected = reference.predictions(parts.private(), access=access)
        assert torch.equal(model.predictions(**asked, access=access).probabilities, expected.probabilities)
        assert model.predict(**asked, access=access).tolist() == expected.classes.tolist()
        assert np.array_equal(model.predict_proba(**asked, access=access), expected.probabilities.numpy())
        masked = {} if len(given) == 1 else {"y": given["y"], "mask": given["test_mask"]}
        assert model.score(**asked, **masked, access=access) == reference.score(parts.private(), access=access)


def test_own_edges_change_the_answers(parts, reference):
    without, own = (reference.predict_proba(parts.private(), access=access) for access in ACCESS)
    assert not np.allclose(without, own)


@pytest.mark.parametrize("seed", [None, 7])
def test_predictions_name_their_access_and_promise(parts, other_parts, seed):
    model = fitted(FORMS["private graph"](parts), random_state=seed)
    public = gcon.public_graph(other_parts.features, other_parts.pairs())
    found = [model.predictions(parts.private(), access=access) for access in ACCESS]
    found.append(model.predictions(public, access="public-graph"))
    assert [one.access for one in found] == ["none", "own-edges", "public-graph"]
    assert [one.publishable for one in found] == ([True, False, True] if seed is None else [False] * 3)
    assert len({one.promise for one in found}) == 3
    assert found[0].labels == model.predict(parts.private()).tolist()


@pytest.mark.parametrize("change", [np.asarray, list, torch.tensor, lambda x: x.tolist()])
def test_plain_features_of_any_kind(parts, reference, change):
    assert np.array_equal(reference.predict(change(parts.features)), reference.predict(parts.private()))


def test_string_labels(parts, reference):
    names = np.array(["art", "music", "sport"])
    model = fitted(parts.arrays | {"y": names[parts.labels], "edges": parts.pairs()})
    assert model.model_.weights.equal(reference.model_.weights)
    assert model.classes_.tolist() == names.tolist()
    assert model.predict(parts.features).tolist() == names[reference.predict(parts.features)].tolist()
    assert model.predictions(parts.features).class_names == ("art", "music", "sport")
    test = parts.masks["test_mask"]
    assert model.score(parts.features, names[parts.labels], mask=test) == reference.score(parts.private())


def test_marks_of_no_label_that_numpy_made_words_of_are_no_classes(parts):
    names = ["art", "music", "sport"]
    for mark in (-1, -1.0, np.nan, ""):
        labels = np.array([names[label] if row % 2 else mark for row, label in enumerate(parts.labels)])
        assert labels.dtype.kind == "U"
        assert gcon.GCON(epochs=1).fit(parts.features, labels, edges=[]).classes_.tolist() == names


def test_labels_outside_the_masks_are_never_read(parts, reference):
    used = np.logical_or.reduce(list(parts.masks.values()))
    free = ~(used & ~parts.masks["test_mask"])
    masks = {name: mask for name, mask in parts.masks.items() if name != "test_mask"}
    for unknown, kind in ((-1, int), (np.nan, float), (None, object)):
        labels = parts.labels.astype(kind)
        labels[free] = unknown
        model = fitted({"X": parts.features, "y": labels, "edges": parts.pairs(), **masks})
        assert model.model_.weights.equal(reference.model_.weights)


def test_networkx_nodes_without_a_label_are_not_for_training(parts):
    graph = parts.networkx_with_attributes()
    train = parts.masks["train_mask"]
    for node, labelled in zip(graph.nodes, train, strict=True):
        del graph.nodes[node]["split"]
        if not labelled:
            del graph.nodes[node]["y"]
    expected = fitted({"X": parts.features, "y": parts.labels, "edges": parts.pairs(), "train_mask": train})
    assert fitted({"X": graph}).model_.weights.equal(expected.model_.weights)


def test_a_networkx_graph_built_from_its_edges_gives_rows_that_no_edge_chooses(parts):
    """Node order of such a graph is private: two graphs that differ in one edge must give the same public table."""
    everything = parts.networkx_with_attributes()
    attributes = dict(everything.nodes(data=True))

    def rebuilt(pairs):
        graph = networkx.Graph(pairs)
        graph.add_nodes_from(attributes)
        networkx.set_node_attributes(graph, attributes)
        return graph

    pairs = list(everything.edges)
    whole, less = (fitted({"X": rebuilt(kept)}).model_ for kept in (pairs, pairs[1:]))
    assert (whole.record(), whole.class_names) == (less.record(), less.class_names)
    assert whole.encoder.head_weight.equal(less.encoder.head_weight)
    with pytest.raises(InputError, match="named by their row"):
        fitted(parts.arrays | {"edges": networkx.Graph(pairs)})


def test_given_classes_set_the_order_and_may_hold_more(parts, reference):
    model = fitted(parts.arrays | {"edges": parts.pairs()}, classes=[2, 0, 1, 5])
    assert model.classes_.tolist() == [2, 0, 1, 5]
    assert model.model_.weights.shape == (32, 4)
    assert model.predict_proba(parts.features).shape == (120, 4)
    assert set(model.predict(parts.features)) <= {0, 1, 2, 5}
    # A score goes by the names of the classes, not by their places.
    test = parts.masks["test_mask"]
    share = (model.predict(parts.features) == parts.labels)[test].mean()
    assert model.score(parts.private()) == pytest.approx(share)
    assert model.score(parts.features, parts.labels, mask=test) == pytest.approx(share)


def test_delta_comes_from_the_number_of_nodes_alone(parts):
    sizes = []
    for edges in (parts.pairs(), [], parts.pairs()[:1]):
        sizes.append(fitted(parts.arrays | {"edges": edges}).model_.receipt.budget.delta)
    assert sizes == [1e-5] * 3
    assert fitted(parts.arrays, delta=1e-3).model_.receipt.budget.delta == 1e-3


def test_delta_of_a_large_graph():
    nodes = 26_000
    features = np.random.default_rng(0).normal(size=(nodes, 2)).astype(np.float32)
    model = gcon.GCON(epochs=1, hidden=None, expand="labelled").fit(features, np.arange(nodes) % 2, edges=[(0, 1)])
    assert model.model_.receipt.budget.delta == 1 / (10 * nodes)


def test_every_fit_is_charged_and_clones_share_the_ledger(parts):
    ledger = gcon.MemoryLedger("circles")
    model = gcon.GCON(epsilon=0.5, epochs=2, ledger=ledger)
    copy = clone(model)
    assert copy.ledger is ledger
    for one in (model, copy, model):
        one.fit(parts.private())
    assert [entry.request.kind for entry in ledger.entries()] == [Kind.RELEASE] * 3
    assert ledger.total() == gcon.Budget(1.5, 3e-5)
    assert [one.model_.receipt.total.epsilon for one in (copy, model)] == [1.0, 1.5]


def test_a_ceiling_stops_the_next_fit_and_keeps_the_old_model(parts):
    ledger = gcon.MemoryLedger("circles", ceiling=gcon.Budget(1.0, 1e-4))
    model = gcon.GCON(epsilon=0.8, epochs=2, ledger=ledger).fit(parts.private())
    released = model.model_
    with pytest.raises(BudgetExceededError):
        model.fit(parts.private())
    assert model.model_ is released
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize("edges", [None, [], np.empty((2, 0), dtype=int), scipy.sparse.csr_array((120, 120))])
def test_no_edges_train_like_any_others_and_are_charged(parts, edges):
    ledger = gcon.MemoryLedger()
    model = gcon.GCON(epsilon=0.5, epochs=2, ledger=ledger).fit(**parts.arrays, edges=edges)
    full = gcon.GCON(epsilon=0.5, epochs=2, ledger=ledger).fit(**parts.arrays, edges=parts.pairs())
    (without, with_edges) = ledger.entries()
    assert without.outcome is Outcome.RELEASED
    assert without.request == with_edges.request
    assert model.model_.receipt.plan == full.model_.receipt.plan
    assert model.predict(parts.features, access="own-edges", edges=[]).shape == (120,)


def test_a_public_graph_must_be_declared_and_be_another_one(parts, other_parts, reference):
    for undeclared in (parts.pyg(), other_parts.pyg(), other_parts.private(), other_parts.features):
        with pytest.raises(AccessRefusedError, match="declared public"):
            reference.predict(undeclared, access="public-graph")
    for declared in (gcon.public_graph(parts.pyg()), gcon.public_graph(parts.features.astype(np.float64), [])):
        with pytest.raises(AccessRefusedError, match="trained on"):
            reference.predict(declared, access="public-graph")
        with pytest.raises(AccessRefusedError, match="declared public"):
            reference.predict(declared, access="own-edges")


def test_another_public_graph_is_propagated_in_full(other_parts, reference):
    edges = public_edges(other_parts.edge_index, 120)
    expected = predict_on_public_graph(reference.model_, other_parts.nodes.features, edges)
    forms = (
        gcon.public_graph(other_parts.pyg()),
        gcon.public_graph(other_parts.features, other_parts.scipy()),
        gcon.public_graph(other_parts.features, edges),
        gcon.public_graph(other_parts.networkx_with_attributes()),
    )
    for public in forms:
        assert np.array_equal(reference.predict(public, access="public-graph"), expected.classes.numpy())
        share = reference.score(public, other_parts.labels, access="public-graph")
        assert share == pytest.approx((expected.classes.numpy() == other_parts.labels).mean())
        assert reference.predict(public).shape == (120,)


def test_reading_own_edges_is_recorded(parts):
    ledger = gcon.MemoryLedger()
    model = fitted({"X": parts.private()}, ledger=ledger)
    for access in ACCESS:
        model.predict(parts.private(), access=access)
        model.score(parts.private(), access=access)
    kinds = [entry.request.kind for entry in ledger.entries()]
    assert kinds == [Kind.RELEASE, Kind.DELIVERY, Kind.DIAGNOSTIC]
    diagnostic = ledger.entries()[-1].request
    assert "not for publication" in diagnostic.mechanism
    assert diagnostic.cost.epsilon == 0


def test_edges_that_are_named_are_read_instead_of_those_of_the_graph(parts, other_parts):
    """As private ones, whatever graph stands beside them: wrapped or bare, and recorded in the estimator's ledger."""
    ledger = gcon.MemoryLedger()
    model, named = fitted({"X": parts.private()}, ledger=ledger), other_parts.pairs()
    expected = model.predict_proba(parts.features, access="own-edges", edges=named)
    assert not np.allclose(expected, model.predict_proba(parts.private(), access="own-edges"))
    declared = gcon.public_graph(parts.features, parts.pairs())
    for graph in (parts.private(), declared, parts.pyg(), parts.features):
        for edges in (named, other_parts.private().edges):
            before = len(ledger.entries())
            assert np.array_equal(model.predict_proba(graph, access="own-edges", edges=edges), expected)
            assert [entry.request.kind for entry in ledger.entries()[before:]] == [Kind.DELIVERY]
        with pytest.raises(AccessRefusedError, match="declared public"):
            model.predict(graph, access="own-edges", edges=declared.edges)


@pytest.mark.parametrize("ends", [(0, 1), (0, 150)])
def test_wrapped_edges_of_other_nodes_are_refused_whatever_they_join(parts, reference, ends):
    edges = private_edges(torch.tensor(ends)[:, None], 200)[0]
    with pytest.raises(PrivateComputationError):
        reference.predict(parts.features, access="own-edges", edges=edges)


def test_edges_that_would_not_be_read_are_refused(parts, reference):
    with pytest.raises(InputError, match="own-edges"):
        reference.predict(parts.features, edges=parts.pairs())
    with pytest.raises(InputError, match="own-edges"):
        reference.score(parts.features, parts.labels, edges=parts.pairs())
    with pytest.raises(InputError, match="needed"):
        reference.predict(parts.features, access="own-edges")


def test_a_score_needs_labels_a_mask_that_fits_and_no_weights(parts, reference):
    with pytest.raises(InputError, match="labels are needed"):
        reference.score(parts.features)
    with pytest.raises(InputError, match="one label per node"):
        reference.score(parts.features, parts.labels[:-1])
    for mask in (np.ones(3, dtype=bool), np.ones(120)):
        with pytest.raises(InputError, match="one boolean per node"):
            reference.score(parts.features, parts.labels, mask=mask)
        with pytest.raises(InputError, match="one boolean per node"):
            reference.score(parts.private(), mask=mask)
    with pytest.raises(InputError, match="sample_weight"):
        reference.score(parts.features, parts.labels, np.ones(120))


@pytest.mark.parametrize("loss", ["soft-margin", "pseudo-huber:0.3"])
@pytest.mark.parametrize("expand", ["all", "labelled"])
def test_infinite_epsilon_gives_exactly_the_minimiser(parts, loss, expand):
    """Compared with another solver on an objective written out anew."""
    ledger = gcon.MemoryLedger()
    settings = {"epsilon": math.inf, "restart": 0.4, "steps": (0, 2), "ridge": 0.05, "epochs": 20}
    model = gcon.GCON(**settings, loss=loss, expand=expand, ledger=ledger).fit(parts.private())
    encoder, nodes = model.model_.encoder, parts.nodes
    aggregates = propagate(
        public_edges(parts.edge_index, 120), encoder.encode(nodes.features), Schemes(restart=0.4, steps=(0, 2))
    ).numpy()
    classes = encoder.probabilities(nodes.features).argmax(dim=1)
    classes[nodes.train_mask] = nodes.labels[nodes.train_mask]
    rows = parts.masks["train_mask"] if expand == "labelled" else np.ones(120, dtype=bool)
    aggregates, targets = aggregates[rows], np.eye(3)[classes.numpy()[rows]]

    def objective(flat):
        weights = flat.reshape(32, 3)
        scores = aggregates @ weights
        if loss == "soft-margin":
            values, slopes = np.logaddexp(0, scores) - targets * scores, expit(scores) - targets
        else:
            gap = scores - targets
            root = np.sqrt(1 + (gap / 0.3) ** 2)
            values, slopes = 0.09 * (root - 1), gap / root
        value = values.sum() / 3 / len(scores) + 0.05 / 2 * (weights**2).sum()
        return value, (aggregates.T @ slopes / 3 / len(scores) + 0.05 * weights).ravel()

    near = scipy.optimize.minimize(objective, np.zeros(96), jac=True, method="L-BFGS-B")
    # Values of the objective differ by rounding alone this close: on some processors a search by values stops too early.
    found = scipy.optimize.root(lambda flat: objective(flat)[1], near.x, tol=1e-14)
    assert np.abs(objective(found.x)[1]).max() < 1e-10
    assert np.abs(model.model_.weights.numpy().ravel() - found.x).max() < 1e-8
    again = gcon.GCON(**settings, loss=loss, expand=expand).fit(parts.private())
    assert again.model_.weights.equal(model.model_.weights)  # no noise, whatever the randomness
    assert math.isinf(ledger.total().epsilon)
    assert not model.statement().fields["promise"]


def test_an_unseeded_finite_epsilon_is_never_the_same_twice(parts):
    first, second = (gcon.GCON(epochs=2).fit(parts.private()).model_ for _ in range(2))
    assert not first.weights.equal(second.weights)
    assert first.receipt.keeps_promise


def test_column_names_of_an_earlier_fit_are_forgotten(parts):
    names = [f"word {number}" for number in range(parts.features.shape[1])]
    table = StandIn(parts.features, columns=names)
    for given in ({"X": parts.private()}, parts.arrays):
        model = gcon.GCON(epochs=2, ledger=gcon.MemoryLedger("friends"))
        model.fit(**parts.arrays | {"X": table})
        assert model.feature_names_in_.tolist() == names
        assert model.n_features_in_ == len(names)
        assert not hasattr(model.fit(**given), "feature_names_in_")


def test_inputs_are_not_changed(parts):
    features, labels, masks = parts.features.copy(), parts.labels.copy(), {k: v.copy() for k, v in parts.masks.items()}
    edges = parts.edge_index.clone()
    model = gcon.GCON(epochs=2).fit(features, labels, edges=edges, **masks)
    model.score(features, labels, access="own-edges", edges=edges, mask=masks["test_mask"])
    assert np.array_equal(features, parts.features)
    assert np.array_equal(labels, parts.labels)
    assert all(np.array_equal(masks[name], mask) for name, mask in parts.masks.items())
    assert edges.equal(parts.edge_index)


def test_read_only_arrays_are_welcome(parts):
    arrays = {name: value.copy() for name, value in parts.arrays.items()}
    for value in arrays.values():
        value.setflags(write=False)
    assert gcon.GCON(epochs=2).fit(**arrays).predict(arrays["X"]).shape == (120,)


def test_a_private_graph_of_one_class_more_is_scored_by_name(parts, reference):
    nodes = replace(parts.nodes, num_classes=4, class_names=("a", 0, 1, 2), labels=parts.nodes.labels + 1)
    renamed = private_graph(nodes, parts.edge_index)
    assert reference.score(renamed) == reference.score(parts.private())
