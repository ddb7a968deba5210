"""Tables as people have them: ids instead of row numbers, named columns, labels that are missing."""

import networkx
import numpy as np
import polars
import pytest
import torch
from tests.frames import EVERY_FRAME

import gcon
from gcon.errors import InputError

IDS = [f"person {7 * row % 120:03d}" for row in range(120)]  # in no order


def fitted(*given, **more):
    return gcon.GCON(epochs=3, random_state=7).fit(*given, **more)


@pytest.mark.parametrize("frame", EVERY_FRAME)
def test_edges_by_id_give_the_model_and_answers_of_edges_by_row(parts, frame):
    expected = fitted(**parts.arrays, edges=parts.pairs())
    named = [(IDS[first], IDS[second]) for first, second in parts.pairs()]
    table = frame(parts.features, index=IDS)
    own = expected.predict_proba(parts.features, access="own-edges", edges=parts.pairs())
    score = expected.score(parts.features, parts.labels, access="own-edges", edges=parts.pairs())
    for edges in (frame(named), networkx.Graph(named)):
        model = fitted(table, frame(parts.labels, index=IDS), edges=edges, **parts.masks)
        assert model.model_.weights.equal(expected.model_.weights)
        assert np.array_equal(model.predict_proba(table, access="own-edges", edges=edges), own)
        assert model.score(table, parts.labels, access="own-edges", edges=edges) == score


def test_names_of_columns_are_kept_and_checked(parts):
    columns = [f"word {number}" for number in range(8)]
    table = polars.DataFrame(parts.features, schema=columns)
    model = fitted(table, parts.labels)
    assert model.feature_names_in_.tolist() == columns
    assert np.array_equal(model.predict(table), fitted(parts.features, parts.labels).predict(parts.features))
    with pytest.raises(InputError, match=r"^features: .*same columns.*feature names"):
        model.predict(table[columns[::-1]])


@pytest.mark.parametrize("missing", [-1, None, np.nan])
def test_nodes_without_a_label_teach_nothing_and_are_not_scored(parts, missing):
    labels = parts.labels.astype(float if isinstance(missing, float) else object)
    labels[40:] = missing
    train = np.arange(40)  # as row numbers
    expected = fitted(parts.features, parts.labels, train_mask=train)
    model = fitted(parts.features, labels)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.model_.weights.equal(expected.model_.weights)
    assert model.score(parts.features, labels) == expected.score(parts.features, parts.labels, mask=train)
    with pytest.raises(InputError, match="every node of mask needs a label"):
        model.score(parts.features, labels, mask=np.array([39, 40]))


@pytest.mark.filterwarnings(r"ignore:`torch\.jit\.script` is deprecated:DeprecationWarning")
def test_one_of_several_splits(parts):
    several = parts.pyg()
    for name in ("train_mask", "val_mask", "test_mask"):
        several[name] = torch.stack([torch.zeros(120, dtype=torch.bool), several[name]], dim=1)
    expected, model = fitted(parts.pyg()), fitted(several, split=1)
    assert model.model_.weights.equal(expected.model_.weights)
    assert model.score(several, split=1) == expected.score(parts.pyg())
    with pytest.raises(InputError, match=r"^split"):
        model.score(several)
