"""The default estimator: every way to pass a graph, every access, and unusual graphs."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.base import clone

import gcon
from gcon.edges.graph import private_graph
from gcon.errors import AccessRefusedError, BudgetExceededError, InputError
from gcon.privacy.budget import Budget
from gcon.privacy.ledger import Kind

pytestmark = pytest.mark.filterwarnings(r"ignore:`torch\.jit\.script` is deprecated:DeprecationWarning")

FORMS = {
    "private graph": lambda parts: {"X": parts.private()},
    "pyg": lambda parts: {"X": parts.pyg()},
    "scipy": lambda parts: parts.arrays | {"edges": parts.scipy()},
    "scipy features": lambda parts: (
        parts.arrays | {"X": scipy.sparse.csr_array(parts.features), "edges": parts.scipy().tolil()}
    ),
    "pairs": lambda parts: parts.arrays | {"edges": parts.pairs()},
    "networkx": lambda parts: parts.arrays | {"edges": parts.networkx()},
    "networkx with attributes": lambda parts: {"X": parts.networkx_with_attributes()},
}


def fitted(given, **settings):
    return gcon.NodeClassifier(**{"random_state": 7, "epsilon": 4.0} | settings).fit(**given)


def tensors(model):
    return model.model_.tensors() | {"student": model.model_.encoder.head_weight}


@pytest.fixture(scope="module")
def reference(parts):
    return fitted(FORMS["private graph"](parts))


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_model_and_answers(parts, reference, form):
    given = FORMS[form](parts)
    model, expected = fitted(given), tensors(reference)
    assert {name: tensor.shape for name, tensor in tensors(model).items()} == {
        name: tensor.shape for name, tensor in expected.items()
    }
    assert all(torch.equal(tensor, expected[name]) for name, tensor in tensors(model).items())
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.n_features_in_ == 8
    edges = {"edges": given["edges"]} if "edges" in given else {}
    for access in ("none", "cached", "own-edges"):
        more = edges if access == "own-edges" else {}
        found = model.predict_proba(given["X"], access=access, **more)
        assert np.array_equal(found, reference.predict_proba(parts.private(), access=access))


def test_the_default_is_what_the_package_calls_a_node_classifier(reference):
    assert isinstance(reference.model_, gcon.MomentsModel)
    assert reference.model_.accesses == ("none", "cached", "own-edges", "public-graph")


def test_other_nodes(reference, parts, other_parts):
    assert reference.predict(other_parts.features).shape == (120,)
    assert reference.predict(other_parts.private(), access="own-edges").shape == (120,)
    shown = gcon.public_graph(other_parts.pyg())
    assert reference.predict(shown, access="public-graph").shape == (120,)
    with pytest.raises(InputError, match="must be the training table"):
        reference.predict(other_parts.features, access="cached")
    with pytest.raises(AccessRefusedError, match="trained on"):
        reference.predict(gcon.public_graph(parts.pyg()), access="public-graph")
    with pytest.raises(AccessRefusedError):
        reference.predict(other_parts.private(), access="public-graph")
    with pytest.raises(AccessRefusedError):
        reference.predict(parts.features, access="full")


def test_scores_are_of_the_test_nodes_and_edges_of_one_access(reference, parts):
    graph, mask = parts.private(), parts.masks["test_mask"]
    for access in ("none", "cached"):
        right = reference.predict(graph, access=access) == parts.labels
        assert reference.score(graph, access=access) == pytest.approx(right[mask].mean(), abs=1e-12)
        with pytest.raises(InputError, match=r"^edges"):
            reference.predict(parts.features, access=access, edges=parts.pairs())
    assert 0 <= reference.score(graph, access="own-edges") <= 1
    with pytest.raises(InputError, match=r"^edges"):
        reference.predict(parts.features, access="own-edges")


def test_the_ledger_pays_before_and_refuses(parts):
    ledger = gcon.MemoryLedger("circles", ceiling=Budget(1.5, 1e-4))
    model = gcon.NodeClassifier(epsilon=1.0, ledger=ledger).fit(parts.private())
    assert ledger.total() == Budget(1.0, 1e-5)
    assert model.model_.receipt.keeps_promise
    assert "(1, 1e-05)-differentially private" in str(model.statement())
    model.predict(parts.private(), access="cached")
    model.predict(parts.private(), access="own-edges")
    model.score(parts.private(), access="own-edges")
    assert [entry.request.kind for entry in ledger.entries()] == [Kind.RELEASE, Kind.DELIVERY, Kind.DIAGNOSTIC]
    with pytest.raises(BudgetExceededError):
        clone(model).set_params(ledger=ledger).fit(parts.private())
    assert ledger.total() == Budget(1.0, 1e-5)


@pytest.mark.parametrize(
    ("name", "value"),
    [("epsilon", 0), ("epsilon", "one"), ("delta", 2.0), ("encoder_seed", -1), ("random_state", -1), ("ledger", 3)],
)
def test_wrong_parameters_are_refused_before_anything_is_charged(parts, name, value):
    ledger = gcon.MemoryLedger("circles")
    with pytest.raises(InputError):
        gcon.NodeClassifier(**{"ledger": ledger, name: value}).fit(parts.private())
    assert not ledger.entries()


def test_a_failed_fit_keeps_the_model_of_the_one_before(parts):
    ledger = gcon.MemoryLedger("circles", ceiling=Budget(1.0, 1e-4))
    model = gcon.NodeClassifier(epsilon=1.0, ledger=ledger).fit(parts.private())
    before = model.model_
    with pytest.raises(BudgetExceededError):
        model.fit(parts.private())
    assert model.model_ is before


def test_no_validation_nodes(parts):
    nobody = torch.zeros(120, dtype=torch.bool)
    graph = private_graph(replace(parts.nodes, validation_mask=nobody), parts.edge_index, name="circles")
    model = gcon.NodeClassifier(epsilon=4.0, random_state=7).fit(graph)
    assert model.score(graph) > 0.4


@pytest.mark.slow
@pytest.mark.parametrize("edges", [None, [], np.empty((2, 0), dtype=np.int64)], ids=["none", "list", "array"])
def test_no_edges(parts, edges):
    model = gcon.NodeClassifier(random_state=7).fit(parts.features, parts.labels, edges=edges)
    assert model.predict_proba(parts.features).shape == (120, 3)
    own = model.predict(parts.features, access="own-edges", edges=[])
    assert own.shape == (120,)


def test_a_plain_matrix_without_masks_learns_all_labels(parts):
    model = gcon.NodeClassifier(epsilon=math.inf).fit(parts.features, parts.labels, edges=parts.pairs())
    assert np.mean(model.predict(parts.features) == parts.labels) > 0.6
    assert not model.model_.receipt.keeps_promise


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3, 5])
def test_tiny_graphs(parts, size):
    labels = np.arange(size) % 2
    for epsilon in (0.1, 1.0, math.inf):
        model = gcon.NodeClassifier(epsilon=epsilon, random_state=3).fit(
            parts.features[:size], labels, edges=[(0, size - 1)]
        )
        for access, more in (("none", {}), ("cached", {}), ("own-edges", {"edges": [(0, 1)]})):
            found = model.predict_proba(parts.features[:size], access=access, **more)
            assert np.isfinite(found).all()
        assert np.isfinite(model.predict_proba(parts.features[:1])).all()


def test_names_of_classes(parts):
    names = np.array(["red", "green", "blue"])[parts.labels]
    model = gcon.NodeClassifier(random_state=1, classes=["red", "green", "blue"]).fit(
        parts.features, names, edges=parts.pairs()
    )
    assert model.classes_.tolist() == ["red", "green", "blue"]
    assert set(model.predict(parts.features)) <= set(names)


def test_several_edges_are_protected_together(parts):
    graph, ledger = parts.private(), gcon.MemoryLedger("circle")
    several = gcon.NodeClassifier(epsilon=2.0, protect_edges=3, ledger=ledger)
    assert clone(several).get_params()["protect_edges"] == 3
    model = several.fit(graph).model_
    one = gcon.NodeClassifier(epsilon=2.0).fit(graph).model_
    assert model.receipt.plan["distance"] == pytest.approx(one.receipt.plan["distance"] / 3, rel=1e-9)
    assert [each.standard_deviation for each in model.statistics[:2]] == pytest.approx(
        [3 * each.standard_deviation for each in one.statistics[:2]], rel=1e-9
    )
    assert model.by_edges()[3] == model.receipt.budget == ledger.total()
    assert model.by_edges()[2].epsilon < 2.0 < one.by_edges()[2].epsilon
    assert "for any 3 edges together" in str(several.statement())
    for wrong in (0, 11, 1.5, "2"):
        with pytest.raises(InputError, match="protect_edges"):
            gcon.NodeClassifier(protect_edges=wrong).fit(graph)


def test_nothing_is_stated_for_several_edges_without_a_promise(parts):
    for settings in ({"random_state": 1}, {"epsilon": math.inf}):
        model = gcon.NodeClassifier(**settings).fit(parts.private()).model_
        assert model.by_edges() == {}
        assert "by_edges" not in model.statement().fields
