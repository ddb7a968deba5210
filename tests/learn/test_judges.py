"""Who judges members: validation nodes, or training nodes that are asked without what their own labels taught."""

import dataclasses
from itertools import product

import pytest
import torch
from tests.learn.regressions import class_probabilities
from torch.nn.functional import one_hot

from gcon.files.datasets import social_circles_parts
from gcon.learn.edge_free import learn_without_edges
from gcon.learn.ensemble import Ensemble, pseudo_labels
from gcon.learn.softmax_regression import softmax_regressions

NODES, _ = social_circles_parts(90, num_classes=3, per_class=8, num_validation=30, num_test=30, seed=4)
BLIND = dataclasses.replace(NODES, validation_mask=torch.zeros(90, dtype=torch.bool))
PENALTIES = (1.0, 0.1)


def nobody_asks(lesson, mask):
    raise AssertionError("validation nodes are asked as they are")


def test_validation_nodes_are_asked_as_they_are():
    start, answers = Ensemble(nodes=NODES), torch.rand(90, 3).double()
    assert torch.equal(start.judges.mask, NODES.validation_mask)
    [found] = start.joined_by([answers], start.lesson, nobody_asks).members
    assert torch.equal(found.judged, found.answers[NODES.validation_mask])


def test_every_training_node_is_asked_once_and_never_after_its_own_label():
    start, asked = Ensemble(nodes=BLIND), torch.zeros(90, dtype=torch.long)
    told = torch.rand(90, 3).double()

    def ask(lesson, mask):
        asked[mask] += 1
        assert not bool((lesson.mask & mask).any())
        assert torch.equal(lesson.mask | mask, NODES.train_mask)
        return [told[mask]]

    [found] = start.joined_by([told], start.lesson, ask).members
    assert torch.equal(asked.bool(), NODES.train_mask)
    assert int(asked.max()) == 1
    assert torch.equal(found.judged, found.answers[NODES.train_mask])  # in the order of the nodes


@pytest.mark.parametrize("count", [1, 3])
def test_fewer_training_nodes_than_parts(count):
    """Nobody is asked about no node, or after no lesson; who was taught by nobody says nothing."""
    mask = torch.zeros(90, dtype=torch.bool)
    mask[NODES.train_mask.nonzero()[:count, 0]] = True
    few = dataclasses.replace(BLIND, train_mask=mask)
    taught = Ensemble(nodes=few).taught([few.features], PENALTIES)
    assert all(each.judged.shape == (count, 3) for each in taught.members)
    assert (count == 1) == bool((taught.members[0].judged == 1 / 3).all())


def test_every_part_has_its_share_of_every_class():
    judges = Ensemble(nodes=BLIND).judges
    for label in range(3):
        sizes = judges.folds[judges.labels == label].bincount(minlength=5)
        assert int(sizes.max()) - int(sizes.min()) <= 1


@pytest.mark.parametrize("nodes", [NODES, BLIND], ids=["validation nodes", "none"])
def test_pupils(nodes):
    """By validation nodes pupils are judged for themselves; else as their twins, with whom they share their weight."""
    views = [nodes.features, nodes.features[:, :5]]
    first = Ensemble(nodes=nodes).taught(views, PENALTIES)
    lesson = pseudo_labels(first.answers, nodes, 0.5)
    both = first.taught(views, PENALTIES, lesson)
    twins = list(zip(both.members[:4], both.members[4:], strict=True))
    weights = both.weights
    assert float(weights.sum()) == pytest.approx(1)
    if nodes is NODES:
        assert not any(torch.equal(one.judged, two.judged) for one, two in twins)
        return
    assert all(one.judged is two.judged for one, two in twins)
    assert torch.equal(weights[:4], weights[4:])
    assert float(weights.min()) >= 1 / 3 / 8 - 1e-12  # a third of the picks is everybody
    teacher, others = first.answers, ~nodes.train_mask
    told = one_hot(lesson.labels[lesson.mask], 3)
    for (_, pupil), (view, penalty) in zip(twins, product(views, PENALTIES), strict=True):
        # Nearer to the average that taught it than without calibration.
        table = softmax_regressions(view[lesson.mask], told, PENALTIES)[PENALTIES.index(penalty)]
        raw = class_probabilities(view[others], table)
        distances = [-float((teacher[others] * each.log()).sum()) for each in (pupil.answers[others], raw)]
        assert distances[0] <= distances[1] + 1e-9
    assert any(pupil.temperature != 1 for _, pupil in twins)


def test_what_is_right_by_the_training_nodes_gets_the_picks():
    random = torch.from_numpy(torch.rand(90, 3, generator=torch.Generator().manual_seed(1)).numpy())
    right = torch.full((90, 3), 0.1).scatter_(1, BLIND.labels[:, None], 0.8)
    start = Ensemble(nodes=BLIND)
    tables = [(each / each.sum(dim=1, keepdim=True)).double() for each in (random, right)]
    joined = start.joined_by(tables, start.lesson, lambda lesson, mask: [each[mask] for each in tables])
    assert joined.weights.tolist() == pytest.approx([1 / 6, 5 / 6])


def test_examples_of_answers_are_not_taught_by_their_own_labels():
    """Training nodes are answered too surely; without others to ask, they are answered by who did not see their label."""
    free, blind = learn_without_edges(NODES, seed=0), learn_without_edges(BLIND, seed=0)
    labels, answers = blind.examples
    assert torch.equal(labels, NODES.labels[NODES.train_mask])
    assert answers is blind.ensemble.judged
    surer = blind.answers[NODES.train_mask].gather(1, labels[:, None]).mean()
    assert float(answers.gather(1, labels[:, None]).mean()) < float(surer) - 0.02
    labels, answers = free.examples
    known = NODES.train_mask | NODES.validation_mask
    assert torch.equal(labels, NODES.labels[known])
    assert torch.equal(answers, free.answers[known])
