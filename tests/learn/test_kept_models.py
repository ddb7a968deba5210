"""What edge-free models are kept by: everything that they are trained on, and nothing else."""

import dataclasses

import pytest
import torch

from gcon.files.datasets import social_circles_parts
from gcon.learn import edge_free

NODES, _ = social_circles_parts(60, num_classes=3, per_class=5, mean_degree=4.0, feature_signal=2.0, seed=3)
NOBODY = torch.zeros_like(NODES.test_mask)


def known(seed=0, **other):
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edge_free, "_kept", seen.append)
        edge_free.learn_without_edges(dataclasses.replace(NODES, **other), seed=seed)
    return seen[0]


def test_other_nodes_with_the_same_labels_are_others():
    """The labels of the mask alone do not say whose they are."""
    labels = torch.zeros_like(NODES.labels)
    for name in ("train_mask", "validation_mask"):
        mask = getattr(NODES, name)
        moved = mask.clone()
        moved[mask.nonzero()[0]] = False
        moved[NODES.test_mask.nonzero()[0]] = True
        assert torch.equal(labels[mask], labels[moved])
        here = known(labels=labels, test_mask=NOBODY)
        assert here != known(labels=labels, test_mask=NOBODY, **{name: moved})
        assert here == known(labels=labels.clone(), test_mask=NOBODY, **{name: mask.clone()})


def test_other_labels_of_the_same_nodes_are_others():
    for name in ("train_mask", "validation_mask"):
        labels = NODES.labels.clone()
        node = getattr(NODES, name).nonzero()[0]
        labels[node] = (labels[node] + 1) % 3
        assert known(labels=labels) != known()


def test_labels_of_nobody_in_a_mask_change_nothing():
    labels = NODES.labels.clone()
    labels[NODES.test_mask] = (labels[NODES.test_mask] + 1) % 3
    assert known(labels=labels) == known()
    assert hash(known(labels=labels)) == hash(known())


def test_another_number_of_classes_is_another():
    assert known(num_classes=4, class_names=()) != known(class_names=())
    assert known(class_names=()) == known(class_names=())


def test_another_seed_or_other_features_are_others():
    assert known(seed=1) != known()
    assert known(features=NODES.features + 1) != known()


def test_the_model_never_sees_who_is_tested(monkeypatch):
    seen = []
    monkeypatch.setattr(edge_free, "_kept", seen.append)
    assert bool(NODES.test_mask.any())
    edge_free.learn_without_edges(NODES, seed=7)
    (found,) = seen
    assert not bool(found.nodes.test_mask.any())
    assert found.seed == 7
    for mask in ("train_mask", "validation_mask"):
        assert torch.equal(getattr(found.nodes, mask), getattr(NODES, mask))
