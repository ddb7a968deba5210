"""Scikit-learn's estimator checks: both estimators, without edges, behave like any other classifier."""

import copy
import math
import pickle
import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

import gcon

pytestmark = pytest.mark.slow

# Few epochs for speed. The checks themselves put a seed into random_state wherever they compare two fits.
CHECKED = [
    gcon.GCON(epochs=30),  # private: the noise of epsilon 1 is in every weight
    gcon.GCON(epsilon=math.inf, epochs=30),
    gcon.GCON(epochs=30, hidden=None, steps=(0, "inf"), loss="pseudo-huber:0.2", expand="labelled"),
]

# The training table as a whole has released answers; any other table, its own rows in another order included, is
# answered by the student.
OTHER_TABLES = {
    "check_methods_sample_order_invariance": "another order of the training table is another table",
    "check_methods_subset_invariance": "a part of the training table is another table",
}

# As in its own semi-supervised models, which this check leaves out by name.
MINUS_ONE = {"check_classifiers_classes": "takes -1 for a class, where it means that a node has no label"}

# Checks that an estimator with a ledger cannot pass, and must not.
WITH_LEDGER = {
    "check_estimators_overwrite_params": "copies the parameters, and a ledger is never copied: both could spend the rest",
    "check_set_params": "copies the parameters, and a ledger is never copied: both could spend the rest",
}


@parametrize_with_checks(CHECKED, expected_failed_checks=lambda _: MINUS_ONE)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([gcon.NodeClassifier()], expected_failed_checks=lambda _: OTHER_TABLES | MINUS_ONE)
def test_scikit_learn_checks_of_the_default(estimator, check):
    check(estimator)


def test_checks_with_a_ledger():
    results = check_estimator(
        gcon.GCON(epochs=5, epsilon=1e3, ledger=gcon.MemoryLedger("checks")),
        expected_failed_checks=WITH_LEDGER | MINUS_ONE,
        on_skip=None,
    )
    failed = {result["check_name"] for result in results if result["status"] == "xfail"}
    assert failed == set(WITH_LEDGER | MINUS_ONE)
    for result in results:
        assert result["status"] != "xfail" or re.search(
            "ledger cannot be copied or stored|-1, None and NaN", str(result["exception"])
        )


def test_a_ledger_is_never_copied_or_stored_with_the_default_either():
    model = gcon.NodeClassifier(ledger=gcon.MemoryLedger("checks"))
    assert clone(model).ledger is model.ledger  # shared, so both pay
    for copying in (copy.deepcopy, pickle.dumps):
        with pytest.raises(Exception, match="ledger cannot be copied or stored"):
            copying(model)


SEED = 987654321


@pytest.mark.parametrize(
    "outer",
    [
        gcon.NodeClassifier(random_state=SEED),
        gcon.GCON(random_state=SEED),
        gcon.GCON(random_state=np.int64(SEED), epsilon=2.0, classes=[0, 1], steps=(1, 2), restart=0.5, ridge=2.0),
        make_pipeline(StandardScaler(), gcon.NodeClassifier(random_state=SEED)),
        GridSearchCV(gcon.GCON(random_state=SEED), {"epsilon": [1.0]}),
    ],
    ids=["default", "paper", "numpy", "pipeline", "search"],
)
def test_a_seed_is_never_shown(outer):
    shown = [
        repr(outer),
        str(outer),
        estimator_html_repr(outer),
        str(outer._repr_mimebundle_()),
        str(outer.get_params()),
    ]
    assert not [text for text in shown if str(SEED) in text]
    assert all("<hidden>" in text for text in shown[:2])


BOTH = [gcon.NodeClassifier(), gcon.GCON(epochs=5)]


def seeded(estimator):
    return clone(estimator).set_params(random_state=SEED)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", BOTH, ids=["default", "paper"])
def test_a_hidden_seed_still_works(parts, estimator):
    model = seeded(estimator)
    assert model.get_params()["random_state"] == SEED
    copies = [clone(model), clone(clone(model)), pickle.loads(pickle.dumps(model)), type(model)(**model.get_params())]
    expected = model.fit(parts.private()).model_.tensors()
    for other in copies:
        assert other.random_state == SEED
        found = other.fit(parts.private()).model_.tensors()
        assert set(found) == set(expected)
        assert all(tensor.equal(expected[name]) for name, tensor in found.items())
    assert model.set_params(random_state=None).get_params()["random_state"] is None


@pytest.mark.parametrize("estimator", BOTH, ids=["default", "paper"])
def test_a_fitted_model_shows_and_keeps_no_seed(parts, estimator):
    model = seeded(estimator).fit(parts.private())
    assert str(SEED) not in estimator_html_repr(model) + repr(model.model_) + str(model.statement())
    assert str(SEED).encode() not in pickle.dumps(model.model_)
    assert SEED.to_bytes(4, "little") not in pickle.dumps(model.model_)


@pytest.mark.parametrize("estimator", BOTH, ids=["default", "paper"])
def test_fitted_attributes_are_the_released_model_and_public_facts(parts, estimator):
    model = clone(estimator).fit(parts.private())
    fitted = {name for name in vars(model) if name.endswith("_")}
    assert fitted == {"model_"}  # what else a fitted one tells follows from it


@pytest.mark.parametrize("estimator", [gcon.NodeClassifier, gcon.GCON])
def test_not_fitted(estimator):
    for method in ("predict", "predict_proba", "predictions", "score"):
        with pytest.raises(NotFittedError):
            getattr(estimator(), method)(np.ones((3, 2)))
    with pytest.raises(NotFittedError):
        estimator().statement()


ROWS = {
    "scores": cross_val_score,
    "search": lambda model, X, y: GridSearchCV(model, {"epsilon": [1.0, 4.0]}, cv=2).fit(X, y),
    "in a pipeline": lambda model, X, y: cross_validate(make_pipeline(StandardScaler(), model), X, y, cv=2),
    "with edges": lambda model, X, y: cross_val_score(model, X, y, params={"edges": [(0, len(X) - 1)]}),
}


@pytest.mark.parametrize("search", ROWS.values(), ids=ROWS)
def test_searches_over_rows_are_refused_and_nothing_is_paid(parts, search):
    ledger = gcon.MemoryLedger("search")
    with pytest.raises(ValueError, match=r"rows of a whole graph.*gcon\.model_selection"):
        search(gcon.GCON(epochs=3, ledger=ledger), parts.features, parts.labels)
    assert not ledger.entries()


def test_parameters_may_be_numbers_of_numpy(parts):
    given = {"epsilon": np.int64(4), "restart": np.float32(0.9), "steps": np.arange(1, 3)}
    model = gcon.GCON(epochs=3, **given).fit(parts.private())
    assert model.model_.receipt.budget.epsilon == 4
    assert model.model_.schemes.steps == (1, 2)
