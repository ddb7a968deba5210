"""A folder that predicts at once: the same answers as the estimator that was fitted, from every kind of table."""

import math
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.frames import EVERY_FRAME

import gcon
from gcon.columns import FeatureColumns
from gcon.edges.graph import private_graph
from gcon.errors import InputError, ReleaseFormatError
from gcon.files.datasets.synthetic import social_circles_parts
from gcon.release.layout import texts

NODES, EDGES = social_circles_parts(60, num_classes=3, mean_degree=4, num_features=6, per_class=8, seed=1)
OTHERS, OTHER_EDGES = social_circles_parts(40, num_classes=3, mean_degree=4, num_features=6, per_class=4, seed=2)
ESTIMATORS = {
    "default": gcon.NodeClassifier(epsilon=3.0, protect_edges=2),
    "paper": gcon.GCON(
        epsilon=2.0, epochs=5, steps=(1, "inf"), restart=0.6, clip=0.4, loss="pseudo-huber:0.2", inference_restart=0.2
    ),
}


def as_data(features):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # PyG still uses torch.jit
        from torch_geometric.data import Data
    return Data(x=features, edge_index=EDGES)


@pytest.fixture(scope="module", params=list(ESTIMATORS))
def fitted(request):
    return ESTIMATORS[request.param].fit(private_graph(NODES, EDGES, name="circles"))


@pytest.fixture(scope="module")
def folder(fitted, tmp_path_factory):
    target = tmp_path_factory.mktemp("releases") / "release"
    gcon.save_release(fitted.model_, target)
    return target


def test_every_access_gives_what_the_fitted_estimator_gives(fitted, folder):
    model = gcon.load(folder)
    assert type(model) is type(fitted)
    assert model.classes_.tolist() == fitted.classes_.tolist()
    features, public = NODES.features, gcon.public_graph(OTHERS.features, OTHER_EDGES)
    own_edges = {"access": "own-edges", "edges": EDGES.T.tolist()}
    asked = [(features, {}), (features, own_edges), (public, {"access": "public-graph"})]
    if "cached" in fitted.model_.accesses:
        asked.append((features, {"access": "cached"}))
    assert {"none", *(how["access"] for _, how in asked if how)} == set(fitted.model_.accesses)
    for table, how in asked:
        assert np.array_equal(model.predict(table, **how), fitted.predict(table, **how))
        assert np.array_equal(model.predict_proba(table, **how), fitted.predict_proba(table, **how))


TABLES = {"array": NODES.features.numpy(), "list": NODES.features.tolist(), "tensor": NODES.features}


@pytest.mark.parametrize("kind", [*TABLES, "PyG"])
def test_every_kind_of_table(fitted, folder, kind):
    table = as_data(NODES.features) if kind == "PyG" else TABLES[kind]
    assert np.array_equal(gcon.load(folder).predict(table), fitted.predict(NODES.features))


@pytest.mark.parametrize("frame", EVERY_FRAME)
def test_a_frame_is_taken_by_the_places_of_its_columns(fitted, folder, frame):
    table = frame(NODES.features.numpy(), columns=list("abcdef"), index=[f"person {row}" for row in range(60)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # scikit-learn warns of names that training did not see
        assert np.array_equal(gcon.load(folder).predict(table), fitted.predict(NODES.features))


def test_the_card_runs(folder, fitted, monkeypatch, capsys):
    block = re.search(r"```python\n(.*?)```", (folder / "README.md").read_text(), flags=re.DOTALL)[1]
    monkeypatch.chdir(folder.parent)
    names = {"features": NODES.features}
    exec(block.replace("path/to/this/folder", folder.name), names)
    assert np.array_equal(names["labels"], fitted.predict(NODES.features))
    assert "differentially private" in capsys.readouterr().out


def test_the_card_names_columns_but_not_thousands(fitted):
    names = tuple(f"word|{number}" for number in range(60))
    model = replace(fitted.model_, feature_columns=FeatureColumns(names=names, fill={"word|3": 0.5}))
    card = texts(model)["README.md"].decode()
    assert "word\\|49, … and 10 more." in card
    assert "| word\\|3 | a number; 0.5 where it is missing |" in card


def test_parameters_are_those_that_the_release_tells(fitted, folder):
    loaded, trained = gcon.load(folder).get_params(), fitted.get_params()
    expected = trained | {"delta": 1e-5}
    if isinstance(fitted, gcon.GCON):
        expected |= {"steps": (1.0, math.inf), "epochs": gcon.GCON().epochs}
    assert loaded == expected


def test_answers_from_own_edges_are_recorded(folder):
    ledger = gcon.MemoryLedger("circles")
    gcon.load(folder, ledger=ledger).predict(NODES.features, access="own-edges", edges=EDGES)
    assert [entry.request.kind for entry in ledger.entries()] == ["delivery"]


def test_an_estimator_takes_its_own_kind_only(fitted, folder):
    other = gcon.GCON if isinstance(fitted, gcon.NodeClassifier) else gcon.NodeClassifier
    assert torch.equal(
        type(fitted).from_model(gcon.load_release(folder)).predictions(NODES.features).probabilities,
        fitted.predictions(NODES.features).probabilities,
    )
    with pytest.raises(InputError, match=r"gcon\.load"):
        other.from_model(gcon.load_release(folder))
    with pytest.raises(ReleaseFormatError, match="missing"):
        gcon.load(folder / "nowhere")
