"""Bad input is refused before anything is trained or paid, with a message that helps and tells nothing private."""

import copy
import math
import traceback
import warnings

import joblib
import networkx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch

import gcon
from gcon.errors import BudgetExceededError, GconError, InputError, LedgerError, PromiseWarning, UnprovenBoundError
from gcon.methods.predictions import checked_access

pytestmark = pytest.mark.filterwarnings(r"ignore:`torch\.jit\.script` is deprecated:DeprecationWarning")

SETTINGS = [
    # setting, named in the message as, shown as (None: not a value but a description)
    ({"epsilon": 0}, "epsilon", "0"),
    ({"epsilon": -1.0}, "epsilon", "-1.0"),
    ({"epsilon": math.nan}, "epsilon", "nan"),
    ({"epsilon": "one"}, "epsilon", "one"),
    ({"epsilon": True}, "epsilon", "True"),
    ({"epsilon": None}, "epsilon", "None"),
    ({"delta": 0.0}, "delta", "0.0"),
    ({"delta": 1.0}, "delta", "1.0"),
    ({"delta": -1e-5}, "delta", "-1e-05"),
    ({"delta": 2}, "delta", "2"),
    ({"delta": "small"}, "delta", "small"),
    ({"restart": -0.1}, "restart", "-0.1"),
    ({"restart": 1.5}, "restart", "1.5"),
    ({"restart": math.nan}, "restart", "nan"),
    ({"restart": "half"}, "restart", "'half'"),
    ({"restart": None}, "restart", "None"),
    ({"restart": 0, "steps": "inf"}, "restart", "0"),
    ({"restart": 0.0, "steps": (2, math.inf)}, "restart", "0.0"),
    ({"restart": 1e-9, "steps": math.inf}, "restart", "1e-09"),
    ({"steps": -1}, "steps", "-1"),
    ({"steps": 1.5}, "steps", "1.5"),
    ({"steps": 10**6}, "steps", "1000000"),
    ({"steps": "many"}, "steps", "'many'"),
    ({"steps": math.nan}, "steps", "nan"),
    ({"steps": True}, "steps", "True"),
    ({"steps": ()}, "steps", "none"),
    ({"steps": (2, "many")}, "steps", "'many'"),
    ({"steps": [[1, 2]]}, "steps", "[1, 2]"),
    ({"clip": 0}, "clip", "0"),
    ({"clip": 0.6}, "clip", "0.6"),
    ({"ridge": 0}, "ridge", "0"),
    ({"ridge": -1.0}, "ridge", "-1.0"),
    ({"ridge": math.nan}, "ridge", "nan"),
    ({"ridge": math.inf}, "ridge", "inf"),
    ({"ridge": "1"}, "ridge", "'1'"),
    ({"noise_share": 0}, "noise_share", "0"),
    ({"noise_share": 1}, "noise_share", "1"),
    ({"noise_share": math.nan}, "noise_share", "nan"),
    ({"margin": 0.0}, "margin", "0.0"),
    ({"margin": math.nan}, "margin", "nan"),
    ({"loss": "hinge"}, "loss", "'hinge'"),
    ({"loss": "pseudo-huber"}, "loss", "'pseudo-huber'"),
    ({"loss": "pseudo-huber:0"}, "loss", "'pseudo-huber:0'"),
    ({"loss": "pseudo-huber:-1"}, "loss", "'pseudo-huber:-1'"),
    ({"loss": "pseudo-huber:nan"}, "loss", "'pseudo-huber:nan'"),
    ({"loss": "pseudo-huber:inf"}, "loss", "'pseudo-huber:inf'"),
    ({"loss": torch.nn.MSELoss()}, "loss", "MSELoss()"),
    ({"expand": "some"}, "expand", "'some'"),
    ({"influence": "guess"}, "influence", "guess"),
    ({"inference_restart": 2}, "inference_restart", "2"),
    ({"inference_restart": -0.1}, "inference_restart", "-0.1"),
    ({"inference_restart": math.nan}, "inference_restart", "nan"),
    ({"hidden": 0}, "hidden", "0"),
    ({"hidden": 2.5}, "hidden", "2.5"),
    ({"hidden": 10**9}, "hidden", "1000000000"),
    ({"dropout": 1.0}, "dropout", "1.0"),
    ({"dropout": math.nan}, "dropout", "nan"),
    ({"weight_decay": math.nan}, "weight_decay", "nan"),
    ({"weight_decay": -1.0}, "weight_decay", "-1.0"),
    ({"learning_rate": 0.0}, "learning_rate", "0.0"),
    ({"learning_rate": math.inf}, "learning_rate", "inf"),
    ({"epochs": 0}, "epochs", "0"),
    ({"epochs": 1.5}, "epochs", "1.5"),
    ({"patience": 0}, "patience", "0"),
    ({"encoder_seed": "seed"}, "encoder_seed", "'seed'"),
    ({"classes": [0, 1]}, "y", "2 in row"),
    ({"classes": [0, 1, 1, 2]}, "classes", "[0, 1, 1, 2]"),
    ({"classes": [0]}, "y", "in row"),
    ({"classes": ["0", "1", "2"]}, "y", "in row"),
    ({"random_state": -1}, "random_state", "int"),
    ({"random_state": 1.5}, "random_state", "float"),
    ({"random_state": "seed"}, "random_state", "str"),
]


def changed(array, *places, value):
    copy = array.copy()
    for place in places:
        copy[place] = value
    return copy


ARGUMENTS = {
    "NaN features": (lambda p: {"X": changed(p.features, (3, 2), value=math.nan)}, "features", "row 3"),
    "infinite features": (lambda p: {"X": changed(p.features, (5, 0), value=math.inf)}, "features", "row 5"),
    "NaN features in Data": (
        lambda p: {"X": p.pyg(x=torch.from_numpy(changed(p.features, (3, 2), value=math.nan)))},
        "features",
        "row 3",
    ),
    "no features in Data": (lambda p: {"X": p.pyg(x=None)}, "features", "none"),
    "zero width": (lambda p: {"X": np.empty((120, 0))}, "features", "0 feature(s)"),
    "zero rows": (lambda p: {"X": np.empty((0, 8))}, "features", "0 sample(s)"),
    "zero rows in Data": (lambda p: {"X": p.pyg(x=torch.empty(0, 8))}, "features", "no rows"),
    "zero width in Data": (lambda p: {"X": p.pyg(x=torch.empty(120, 0))}, "features", "zero width"),
    "one-dimensional features": (lambda p: {"X": p.features[:, 0]}, "features", "Expected 2D array"),
    "complex features": (lambda p: {"X": p.features + 1j}, "features", "Complex data not supported"),
    "complex features in Data": (lambda p: {"X": p.pyg(x=p.nodes.features + 1j)}, "features", "complex"),
    "words for features": (lambda p: {"X": [["word"]] * 120}, "features", "could not convert"),
    "ragged networkx features": (lambda p: {"X": odd_networkx(p, x=[1.0])}, "features", "list"),
    "networkx node without features": (lambda p: {"X": networkx.path_graph(3)}, "features", "nodes without it"),
    "unknown split in networkx": (lambda p: {"X": odd_networkx(p, split="holdout")}, "split", "'holdout'"),
    "no labels": (lambda p: {"y": None}, "y", "none"),
    "no labels in Data": (lambda p: {"X": p.pyg(y=None)}, "y", "none"),
    "too few labels": (lambda p: {"y": p.labels[:-1]}, "y", "shape (119,)"),
    "two columns of labels": (lambda p: {"y": np.stack([p.labels, p.labels], axis=1)}, "y", "shape (120, 2)"),
    "fractions for labels": (lambda p: {"y": p.labels + 0.5}, "y", "continuous"),
    "NaN among training labels": (
        lambda p: {"y": changed(p.labels.astype(float), p.masks["train_mask"], value=math.nan)},
        "y",
        "nan in row",
    ),
    "labels of several kinds": (
        lambda p: {"y": changed(p.labels.astype(object), np.flatnonzero(p.masks["train_mask"])[0], value="art")},
        "y",
        "['int', 'str']",
    ),
    "one class": (lambda p: {"y": np.zeros(120, dtype=int)}, "labels", "1 class"),
    "validation label of an unknown class": (
        lambda p: {"y": changed(p.labels, np.flatnonzero(p.masks["validation_mask"])[0], value=9)},
        "y",
        "9 in row",
    ),
    "overlapping masks": (
        lambda p: {"test_mask": p.masks["train_mask"]},
        "train_mask, test_mask",
        "36 shared nodes",
    ),
    "empty training mask": (
        lambda p: {"train_mask": np.zeros(120, dtype=bool)},
        "train_mask",
        "an empty mask",
    ),
    "short mask": (lambda p: {"train_mask": p.masks["train_mask"][:-1]}, "train_mask", "shape (119,)"),
    "mask of numbers": (lambda p: {"validation_mask": np.zeros(120, dtype=int)}, "validation_mask", "int64"),
    "mask of words": (lambda p: {"test_mask": ["no"] * 120}, "test_mask", "list"),
    "several splits": (lambda p: {"train_mask": np.ones((120, 5), dtype=bool)}, "split", "None"),
    "a split of none": (lambda p: {"split": 0}, "split", "0, and no such mask"),
    "a split that is not there": (
        lambda p: {"train_mask": np.ones((120, 5), dtype=bool), "split": 5},
        "split",
        "5",
    ),
    "rows twice": (lambda p: {"train_mask": [0, 1, 1]}, "train_mask", "int64"),
    "rows that are not there": (lambda p: {"train_mask": [0, 120]}, "train_mask", "int64"),
    "nodes without a label in a mask": (
        lambda p: {"X": p.features, "y": np.where(p.labels == 0, -1, 1)},
        "y",
        "-1 in row",
    ),
    "edge to an unknown node": (lambda p: {"edges": [(0, 987654)]}, "edges", "an end that is not a node"),
    "negative node number": (lambda p: {"edges": [(0, 1), (-987654, 2)]}, "edges", "an end that is not a node"),
    "unknown node in networkx": (
        lambda p: {"edges": networkx.Graph([(0, 987654)])},
        "edges",
        "another name",
    ),
    "float edges": (lambda p: {"edges": p.edge_index.double() + 0.987654}, "edges", "another type"),
    "boolean edges": (lambda p: {"edges": p.edge_index > 3}, "edges", "another type"),
    "edges by name": (lambda p: {"edges": [("987654", "b")]}, "edges", "list"),
    "ragged edges": (lambda p: {"edges": [(0, 1), (987654,)]}, "edges", "list"),
    "edges of the wrong shape": (lambda p: {"edges": np.full((3, 3), 98)}, "edges", "another shape"),
    "flat edges": (lambda p: {"edges": np.arange(98)}, "edges", "another shape"),
    "edges of the wrong kind": (lambda p: {"edges": {(0, 987654)}}, "edges", "set"),
    "adjacency of another size": (lambda p: {"edges": scipy.sparse.eye_array(7)}, "edges", "another shape"),
    "sparse tensor of another size": (lambda p: {"edges": torch.eye(7).to_sparse()}, "edges", "another shape"),
}


def odd_networkx(parts, **attributes):
    graph = parts.networkx_with_attributes()
    graph.nodes["person 003"].update(attributes)
    return graph


@pytest.fixture
def untrained(monkeypatch):
    """Fail if the encoder is trained: settings and inputs must be refused before."""

    def train_encoder(*_):
        raise AssertionError("the encoder was trained before the input was checked")

    monkeypatch.setattr("gcon.methods.objective.train_encoder", train_encoder)


def refused(ledger, fit):
    with pytest.raises(GconError) as caught:
        fit()
    assert ledger.entries() == ()
    return caught.value


def check_message(error, parameter, shown):
    assert isinstance(error, InputError)
    assert parameter in error.parameter.split(", ") or parameter == error.parameter
    assert shown in str(error.got)
    for part in (error.parameter, error.rule, str(error.got), error.fix):
        assert len(part.strip()) > 0
        assert part in str(error)
    assert error.fix.endswith(".")


@pytest.mark.parametrize(("settings", "parameter", "shown"), SETTINGS, ids=lambda value: str(value)[:40])
@pytest.mark.usefixtures("untrained")
def test_bad_settings(parts, settings, parameter, shown):
    ledger = gcon.MemoryLedger()
    model = gcon.GCON(**settings, ledger=ledger)
    error = refused(ledger, lambda: model.fit(**parts.arrays, edges=parts.pairs()))
    check_message(error, parameter, shown)


@pytest.mark.usefixtures("untrained")
def test_what_the_ledger_refuses_is_refused_before_the_training(parts):
    ledger = gcon.MemoryLedger("circles", ceiling=gcon.Budget(0.5, 1e-4))
    error = refused(ledger, lambda: gcon.GCON(epsilon=1.0, ledger=ledger).fit(**parts.arrays, edges=parts.pairs()))
    assert isinstance(error, BudgetExceededError)


@pytest.mark.parametrize("case", ARGUMENTS)
@pytest.mark.usefixtures("untrained")
def test_bad_arguments(parts, case):
    make, parameter, shown = ARGUMENTS[case]
    changes = make(parts)
    graph_object = "X" in changes and not isinstance(changes["X"], np.ndarray | list)
    given = changes if graph_object else parts.arrays | {"edges": parts.pairs()} | changes
    ledger = gcon.MemoryLedger()
    error = refused(ledger, lambda: gcon.GCON(ledger=ledger).fit(**given))
    check_message(error, parameter, shown)
    if parameter == "edges":
        assert "987654" not in "".join(traceback.format_exception(error))
        assert error.__context__ is None


@pytest.mark.parametrize(
    "settings",
    [
        {"influence": "sharp", "restart": 0.45, "steps": 3},
        {"influence": "sharp", "restart": 0.8, "steps": 2, "clip": 0.25},
    ],
)
@pytest.mark.usefixtures("untrained")
def test_a_bound_without_a_proof_is_refused(parts, settings):
    ledger = gcon.MemoryLedger()
    error = refused(ledger, lambda: gcon.GCON(**settings, ledger=ledger).fit(parts.private()))
    assert isinstance(error, UnprovenBoundError)
    for part in (
        "influence='sharp'",
        f"restart={settings['restart']}",
        f"steps={settings['steps']}",
        "Use influence='auto'",
    ):
        assert part in str(error)


@pytest.fixture(scope="module")
def model(parts):
    return gcon.GCON(epochs=2).fit(parts.private())


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predictions", "score"])
def test_features_at_prediction(parts, model, method):
    ask = getattr(model, method)
    more = (parts.labels,) if method == "score" else ()
    for features, shown in (
        (parts.features[:, :5], "X has 5 features, but GCON is expecting 8"),
        (changed(parts.features, (7, 1), value=math.nan), "row 7"),
        (parts.features[0], "Expected 2D array"),
    ):
        with pytest.raises(InputError) as caught:
            ask(features, *more)
        check_message(caught.value, "features", shown)
    narrow, broken = parts.nodes.features[:, :5], parts.nodes.features.clone()
    broken[7, 1] = math.nan
    for data, shown in ((parts.pyg(x=narrow), "5"), (parts.pyg(x=broken), "row 7")):
        for access in ("none", "own-edges"):
            with pytest.raises(InputError) as caught:
                ask(data, access=access)
            check_message(caught.value, "features", shown)


@pytest.mark.parametrize("access", ["all", "", None, "Own-Edges"])
def test_unknown_access(parts, model, access):
    for ask in (model.predict, model.predict_proba, model.predictions, model.score):
        with pytest.raises(InputError) as caught:
            ask(parts.private(), access=access)
        check_message(caught.value, "access", repr(access))


def test_bad_edges_at_prediction(parts, model):
    for edges in ([(0, 987654)], np.full((3, 3), 98), parts.edge_index.double()):
        with pytest.raises(InputError) as caught:
            model.predict(parts.features, access="own-edges", edges=edges)
        assert caught.value.parameter == "edges"
        assert "98" not in str(caught.value)


def test_a_public_graph_is_checked_too(parts):
    with pytest.raises(InputError, match="features"):
        gcon.public_graph(changed(parts.features, (0, 0), value=math.inf), [])
    with pytest.raises(InputError, match="edges"):
        gcon.public_graph(parts.features, [(0, 500)])
    with pytest.raises(InputError, match="graph already"):
        gcon.public_graph(parts.private())


@pytest.mark.usefixtures("untrained")
def test_a_private_graph_brings_its_own_parts(parts):
    for more in ({"y": parts.labels}, {"edges": parts.pairs()}, {"train_mask": parts.masks["train_mask"]}):
        ledger = gcon.MemoryLedger()
        error = refused(ledger, lambda more=more, ledger=ledger: gcon.GCON(ledger=ledger).fit(parts.private(), **more))
        check_message(error, "X", "also")


@pytest.mark.usefixtures("untrained")
def test_a_path_is_no_ledger(parts):
    with pytest.raises(InputError) as caught:
        gcon.GCON(ledger="ledger.jsonl").fit(parts.private())
    check_message(caught.value, "ledger", "str")


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_a_fitted_model_is_stored_without_its_ledger_and_says_so(parts, tmp_path, kind):
    ledger = gcon.MemoryLedger("friends") if kind == "memory" else gcon.FileLedger(tmp_path / "l", data_set="friends")
    model = gcon.GCON(epochs=2, ledger=ledger).fit(parts.private())
    joblib.dump(model, tmp_path / "model.joblib")
    stored = joblib.load(tmp_path / "model.joblib")
    assert np.array_equal(stored.predict_proba(parts.features), model.predict_proba(parts.features))
    assert stored.predict(parts.features, access="own-edges", edges=parts.pairs()).shape == (len(parts.features),)
    for copied in (stored, copy.copy(model), copy.deepcopy(model)):
        for asked in ({}, {"pay": 5.0}):  # what is recorded, and what is charged, is so in a ledger that others can see
            with pytest.raises(LedgerError, match="stored without the ledger of 'friends'"):
                copied.node_score(parts.private(), access="own-edges", **asked)
    assert "detached from the ledger of 'friends'" in repr(stored)
    assert str(tmp_path).encode() not in (tmp_path / "model.joblib").read_bytes()
    with pytest.raises(LedgerError, match=r"set_params\(ledger=\.\.\.\)"):
        stored.fit(parts.private())
    assert len(ledger.entries()) == 1
    stored.set_params(ledger=ledger).fit(parts.private())
    assert len(ledger.entries()) == 2


def test_forgotten_edges_are_said(parts):
    with pytest.warns(PromiseWarning, match=r"edges=\[\] if there are none"):
        gcon.GCON(epochs=2, ledger=gcon.MemoryLedger("friends")).fit(parts.features, parts.labels)
    with pytest.warns(PromiseWarning, match=r"epsilon is spent on it all the same"):
        gcon.NodeClassifier().fit(parts.features, parts.labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PromiseWarning)
        gcon.GCON(epochs=2, ledger=gcon.MemoryLedger("friends")).fit(parts.features, parts.labels, edges=[])


@pytest.mark.usefixtures("untrained")
def test_labels_are_no_feature(parts):
    frame = pd.DataFrame(np.asarray(parts.features)).add_prefix("f")
    frame["team"] = np.asarray(parts.labels)
    with pytest.raises(InputError) as caught:
        gcon.GCON().fit(frame, frame["team"], edges=parts.pairs())
    check_message(caught.value, "X", "'team'")
    assert "drop=['team']" in caught.value.fix


@pytest.mark.parametrize(("said", "meant"), [("own_edges", "own-edges"), ("cache", "cached")])
def test_a_misspelt_access_is_guessed(said, meant):
    with pytest.raises(InputError, match=f"Perhaps you mean '{meant}'"):
        checked_access(said, ("none", "cached", "own-edges"))


def test_a_path_in_the_place_of_features_says_what_to_do(tmp_path):
    for path in ("nodes.csv", tmp_path / "nodes.csv"):
        with pytest.raises(
            InputError, match=r"^X: must hold the features themselves; got a path, '.*nodes\.csv'\. Read"
        ):
            gcon.GCON().fit(path, [0, 1])
