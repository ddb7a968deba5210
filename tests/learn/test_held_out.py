"""Without validation nodes some of many labels are set aside; of few labels none."""

from dataclasses import replace

import pytest
import torch

from gcon.files.datasets.synthetic import social_circles_parts
from gcon.learn.sample import with_validation


def labelled(count: int, *, num_validation: int = 0, num_classes: int = 4):
    nodes, _ = social_circles_parts(3000, num_classes=num_classes, per_class=5, num_validation=num_validation, seed=2)
    free = ~(nodes.validation_mask | nodes.test_mask)
    mask = torch.zeros_like(free)
    mask[free.nonzero()[:count, 0]] = True
    return replace(nodes, train_mask=mask)


@pytest.mark.parametrize(("count", "classes"), [(40, 4), (499, 4), (549, 11)])
def test_few_labels_all_teach(count, classes):
    nodes = labelled(count, num_classes=classes)
    assert with_validation(nodes) is nodes


@pytest.mark.parametrize(("count", "spared"), [(500, 100), (1500, 300)])
def test_of_many_labels_a_fifth_is_set_aside(count, spared):
    nodes = labelled(count)
    found = with_validation(nodes)
    assert int(found.validation_mask.sum()) == spared
    assert torch.equal(found.train_mask | found.validation_mask, nodes.train_mask)
    assert not bool((found.train_mask & found.validation_mask).any())
    assert torch.equal(found.test_mask, nodes.test_mask)
    assert torch.equal(with_validation(nodes).validation_mask, found.validation_mask)


def test_at_most_five_hundred_are():
    nodes = labelled(1000)
    nodes = replace(nodes, train_mask=torch.ones_like(nodes.train_mask), test_mask=torch.zeros_like(nodes.test_mask))
    assert int(with_validation(nodes).validation_mask.sum()) == 500


def test_validation_nodes_of_ones_own_are_enough():
    nodes = labelled(1500, num_validation=3)
    assert with_validation(nodes) is nodes
