"""The labels that the default is measured with: whose labels teach, and whose are for choices."""

import pytest
import torch

from gcon_lab.experiments.default_method import LABELS
from gcon_lab.experiments.sweep.graphs import open_graph


def kinds(nodes):
    taught = torch.bincount(nodes.labels[nodes.train_mask], minlength=nodes.num_classes).tolist()
    return taught, int(nodes.validation_mask.sum()), int(nodes.test_mask.sum())


@pytest.mark.parametrize("labels", LABELS)
def test_masks_are_apart_and_only_known_labels_are_in_them(labels):
    nodes = LABELS[labels](open_graph("circles-5-0.9-weak", 0).graph.nodes, 3)
    masks = torch.stack([nodes.train_mask, nodes.validation_mask, nodes.test_mask])
    assert int(masks.sum(dim=0).max()) == 1
    assert bool((nodes.labels[masks.any(dim=0)] >= 0).all())


def test_redrawn_labels_are_others_of_the_same_numbers_and_depend_on_the_run_alone():
    nodes = open_graph("circles-5-0.9-weak", 0).graph.nodes
    drawn, again, other = (LABELS["redrawn"](nodes, run) for run in (3, 3, 4))
    assert kinds(drawn) == kinds(other) == kinds(nodes)
    assert torch.equal(drawn.train_mask, again.train_mask)
    for name in ("train_mask", "validation_mask", "test_mask"):
        assert not torch.equal(getattr(drawn, name), getattr(other, name))
    bare = LABELS["redrawn-bare"](nodes, 3)
    assert torch.equal(bare.train_mask, drawn.train_mask)
    assert not bool(bare.validation_mask.any())


def test_five_labels_per_class_teach_and_uneven_ones_are_as_many():
    nodes = open_graph("circles-5-0.9-weak", 0).graph.nodes
    assert set(kinds(LABELS["five"](nodes, 0))[0]) == {5}
    assert sum(kinds(LABELS["uneven"](nodes, 0))[0]) == sum(kinds(nodes)[0])
    assert LABELS["told"](nodes, 0).class_shares is not None
