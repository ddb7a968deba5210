"""Which nodes are in the loss, and with which targets."""

from dataclasses import replace

import pytest
import torch

from gcon.errors import InputError
from gcon.learn.perceptron import EncoderSettings, train_encoder
from gcon.learn.training_rows import training_rows


@pytest.fixture(scope="module")
def encoder(nodes):
    return train_encoder(nodes, EncoderSettings(hidden=5, epochs=3))


def test_labelled_nodes_only(nodes, encoder):
    rows = training_rows(nodes, encoder, "labelled")
    assert torch.equal(rows.mask, nodes.train_mask)
    assert rows.count == 30
    assert torch.equal(rows.targets.argmax(dim=1), nodes.labels[nodes.train_mask])


def test_all_nodes(nodes, encoder):
    rows = training_rows(nodes, encoder, "all")
    assert rows.mask.all()
    assert rows.count == 120
    classes = rows.targets.argmax(dim=1)
    assert torch.equal(classes[nodes.train_mask], nodes.labels[nodes.train_mask])
    predicted = encoder.probabilities(nodes.features).argmax(dim=1)
    assert torch.equal(classes[~nodes.train_mask], predicted[~nodes.train_mask])
    # The encoder is poor on purpose, so the two rules can be told apart.
    assert not torch.equal(predicted[nodes.train_mask], nodes.labels[nodes.train_mask])
    assert not torch.equal(classes[~nodes.train_mask], nodes.labels[~nodes.train_mask])


@pytest.mark.parametrize("expand", ["labelled", "all"])
def test_targets_are_one_hot(nodes, encoder, expand):
    targets = training_rows(nodes, encoder, expand).targets
    assert targets.dtype == torch.float64
    assert set(targets.unique().tolist()) == {0.0, 1.0}
    assert (targets.sum(dim=1) == 1).all()
    assert targets.shape[1] == 3


@pytest.mark.parametrize("expand", ["labelled", "all"])
def test_validation_and_test_labels_are_not_used(nodes, encoder, expand):
    labels = nodes.labels.clone()
    labels[~nodes.train_mask] = (labels[~nodes.train_mask] + 1) % 3
    expected = training_rows(nodes, encoder, expand)
    found = training_rows(replace(nodes, labels=labels), encoder, expand)
    assert torch.equal(found.targets, expected.targets)
    assert torch.equal(found.mask, expected.mask)


def test_unknown_labels_do_not_matter(nodes, encoder):
    labels = nodes.labels.clone()
    used = nodes.train_mask | nodes.validation_mask | nodes.test_mask
    labels[~used] = -1
    expected = training_rows(nodes, encoder, "all").targets
    assert torch.equal(training_rows(replace(nodes, labels=labels), encoder, "all").targets, expected)


def test_the_labels_are_left_alone(nodes, encoder):
    before = nodes.labels.clone()
    training_rows(nodes, encoder, "all")
    assert torch.equal(nodes.labels, before)


@pytest.mark.parametrize("expand", ["", "some", "ALL", None, True])
def test_bad_expansions(nodes, encoder, expand):
    with pytest.raises(InputError, match=r"^expand"):
        training_rows(nodes, encoder, expand)
