"""Every rule of the public node table has its own message."""

import math
import warnings

import pytest
import torch

from gcon.columns import FeatureColumns
from gcon.edges.edge_list import public_edges
from gcon.edges.graph import PublicGraph, private_graph
from gcon.errors import AnswersWarning, GconError, InputError
from gcon.nodes import PublicNodes, features_fingerprint, warn_of_scales
from gcon.privacy.boundary import Private


def mask(*chosen):
    return torch.tensor([node in chosen for node in range(6)])


def table(**changes):
    fields = {
        "features": torch.arange(12.0).reshape(6, 2),
        "labels": torch.tensor([0, 1, 0, 1, 0, -1]),
        "num_classes": 2,
        "train_mask": mask(0, 1),
        "validation_mask": mask(2),
        "test_mask": mask(3, 4),
    }
    return PublicNodes(**fields | changes)


def test_a_good_table():
    nodes = table()
    assert nodes.num_nodes == 6
    assert nodes.class_names == (0, 1)
    assert table(class_names=("red", "blue")).class_names == ("red", "blue")


@pytest.mark.parametrize("features", [torch.ones(6, 2, dtype=torch.int64), torch.zeros(6, 1).half()])
def test_features_of_any_number_type(features):
    assert table(features=features).num_nodes == 6


def test_validation_and_test_may_be_empty():
    assert table(validation_mask=mask(), test_mask=mask()).num_nodes == 6


def test_rows_outside_all_masks_are_never_read():
    assert table(labels=torch.tensor([0, 1, 0, 1, 0, 99])).num_nodes == 6


def with_value(row, value):
    features = torch.ones(6, 2)
    features[row, 1] = value
    return features


@pytest.mark.parametrize(
    ("changes", "parameter", "rule", "got"),
    [
        ({"features": torch.ones(6)}, "features", "must be a matrix", "1 dimensions"),
        ({"features": torch.ones(6, 2, 1)}, "features", "must be a matrix", "3 dimensions"),
        ({"features": torch.ones(0, 2)}, "features", "needs at least one node", "no rows"),
        ({"features": torch.ones(6, 0)}, "features", "needs at least one column", "zero width"),
        ({"features": with_value(4, math.nan)}, "features", "must be finite", "NaN or infinity in row 4"),
        ({"features": with_value(2, math.inf)}, "features", "must be finite", "NaN or infinity in row 2"),
        ({"features": with_value(2, -math.inf)}, "features", "must be finite", "NaN or infinity in row 2"),
        (
            {"train_mask": mask(0, 1).long()},
            "train_mask",
            "must hold one boolean per node (6)",
            "torch.int64 of shape (6,)",
        ),
        (
            {"validation_mask": mask(2)[:5]},
            "validation_mask",
            "must hold one boolean per node (6)",
            "torch.bool of shape (5,)",
        ),
        (
            {"test_mask": mask(3)[:, None]},
            "test_mask",
            "must hold one boolean per node (6)",
            "torch.bool of shape (6, 1)",
        ),
        (
            {"validation_mask": mask(0, 1, 2)},
            "train_mask, validation_mask",
            "must not overlap",
            "2 shared nodes",
        ),
        ({"test_mask": mask(1, 3)}, "train_mask, test_mask", "must not overlap", "1 shared nodes"),
        ({"test_mask": mask(2)}, "validation_mask, test_mask", "must not overlap", "1 shared nodes"),
        ({"train_mask": mask()}, "train_mask", "needs at least one labelled node", "an empty mask"),
        ({"num_classes": 1}, "labels", "need at least two classes", "1 class"),
        ({"num_classes": 0}, "labels", "need at least two classes", "0 classes"),
        (
            {"labels": torch.zeros(5, dtype=torch.int64)},
            "labels",
            "must hold one class number per node (6)",
            "torch.int64 of shape (5,)",
        ),
        (
            {"labels": torch.zeros(6, 2, dtype=torch.int64)},
            "labels",
            "must hold one class number per node (6)",
            "torch.int64 of shape (6, 2)",
        ),
        (
            {"labels": torch.zeros(6)},
            "labels",
            "must hold one class number per node (6)",
            "torch.float32 of shape (6,)",
        ),
        (
            {"labels": torch.zeros(6, dtype=torch.bool)},
            "labels",
            "must hold one class number per node (6)",
            "torch.bool of shape (6,)",
        ),
        (
            {"labels": torch.tensor([0, 2, 0, 1, 0, 0])},
            "labels",
            "must lie in the class list 0..1 for every node in a mask",
            "2 in row 1",
        ),
        (
            {"test_mask": mask(3, 5)},
            "labels",
            "must lie in the class list 0..1 for every node in a mask",
            "-1 in row 5",
        ),
    ],
)
def test_bad_tables(changes, parameter, rule, got):
    with pytest.raises(InputError) as raised:
        table(**changes)
    error = raised.value
    assert (error.parameter, error.rule, error.got) == (parameter, rule, got)
    assert error.fix.endswith(".")
    assert str(error) == f"{parameter}: {rule}; got {got}. {error.fix}"
    assert isinstance(error, GconError)
    assert isinstance(error, ValueError)


def test_a_table_cannot_be_changed():
    with pytest.raises(AttributeError):
        table().num_classes = 3


def test_the_fingerprint_knows_values_and_shape():
    features = torch.arange(12.0).reshape(6, 2)
    assert table().fingerprint == features_fingerprint(features) == features_fingerprint(features.double())
    assert features_fingerprint(features.T.contiguous().T) == features_fingerprint(features)
    assert features_fingerprint(features.reshape(2, 6)) != features_fingerprint(features)
    assert features_fingerprint(features + 1) != features_fingerprint(features)


def test_joining_nodes_with_edges():
    edge_index = torch.tensor([[0, 1], [1, 2]])
    private = private_graph(table(), edge_index, name="mine")
    public = PublicGraph(table().features, public_edges(edge_index, private.nodes.num_nodes))
    assert isinstance(private.edges, Private)
    assert isinstance(private.hygiene, Private)
    assert private.name == "mine"
    assert private_graph(table(), edge_index).name == "unnamed"
    assert public.edges.degrees.tolist() == [1, 2, 1, 0, 0, 0]


def test_an_edge_to_nowhere_is_refused():
    with pytest.raises(InputError, match="numbered 0 to 5"):
        private_graph(table(), torch.tensor([[0], [6]]))


def test_columns_of_very_different_scales_are_named_with_the_way_out():
    rows = torch.tensor([[0.0, -2e5, 0.5, 0.0], [199.0, 3.0, 0.0, 0.0]] * 3)
    columns = FeatureColumns(names=("age", "income", "share", "nothing"))
    with pytest.warns(
        AnswersWarning, match=r"'income' reaches 2e\+05, but 'age' 199, 'share' 0\.5\. Divide each column"
    ):
        warn_of_scales(table(features=rows, feature_columns=columns))
    with pytest.warns(AnswersWarning, match="'column 1' reaches"):
        warn_of_scales(table(features=rows))
    rows[:, 1] /= 1000
    rows[:, 2] += 1
    words = (torch.rand(6, 4000) < 0.001).float()  # rare words, and some that never occur
    for features in (rows, words, torch.zeros(6, 2), torch.ones(6, 2, dtype=torch.int64)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warn_of_scales(table(features=features))
