"""What the edge-free models of the moments are remembered by: everything that they are trained on, and nothing else."""

import dataclasses

import torch

from gcon.baselines import moments
from gcon.datasets import social_circles_parts

NODES, _ = social_circles_parts(60, num_classes=3, per_class=5, mean_degree=4.0, feature_signal=2.0, seed=3)


def known(**other):
    return moments._Known(dataclasses.replace(NODES, **other), 0)


def test_other_nodes_with_the_same_labels_are_others():
    """The labels of the mask alone do not say whose they are."""
    labels, nobody = torch.zeros_like(NODES.labels), torch.zeros_like(NODES.test_mask)
    for name in ("train_mask", "validation_mask"):
        mask = getattr(NODES, name)
        moved = mask.clone()
        moved[mask.nonzero()[0]] = False
        moved[NODES.test_mask.nonzero()[0]] = True
        assert torch.equal(labels[mask], labels[moved])
        here = known(labels=labels, test_mask=nobody)
        assert here != known(labels=labels, test_mask=nobody, **{name: moved})
        assert here == known(labels=labels.clone(), test_mask=nobody, **{name: mask.clone()})


def test_another_number_of_classes_is_another():
    assert known(num_classes=4, class_names=()) != known(class_names=())
    assert known(class_names=()) == known(class_names=())


def test_the_model_never_sees_who_is_tested(monkeypatch):
    seen = []
    monkeypatch.setattr(moments, "_remembered", seen.append)
    assert bool(NODES.test_mask.any())
    moments.edge_free(NODES, 7)
    (found,) = seen
    assert not bool(found.nodes.test_mask.any())
    assert found.seed == 7
    for mask in ("train_mask", "validation_mask"):
        assert torch.equal(getattr(found.nodes, mask), getattr(NODES, mask))
