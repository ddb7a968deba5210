"""Who judges members: validation nodes, or training nodes that are asked without what their own labels taught."""

import dataclasses

import pytest
import torch

from gcon.files.datasets import social_circles_parts
from gcon.learn.edge_free import learn_without_edges
from gcon.learn.ensemble import Ensemble, Lesson, pseudo_labels

NODES, _ = social_circles_parts(90, num_classes=3, per_class=8, num_validation=30, num_test=30, seed=4)
BLIND = dataclasses.replace(NODES, validation_mask=torch.zeros(90, dtype=torch.bool))
PENALTIES = (1.0, 0.1)


def test_validation_nodes_are_asked_as_they_are():
    start, answers = Ensemble(nodes=NODES), torch.rand(90, 3).double()
    assert torch.equal(start.judges.mask, NODES.validation_mask)
    assert len(start.lessons) == 1
    [found] = start.joined_by([[answers]], start.lessons).members
    assert torch.equal(found.judged, found.answers[NODES.validation_mask])
    assert found.twins == ()


def test_every_training_node_is_judged_once_and_never_after_its_own_label():
    start = Ensemble(nodes=BLIND)
    whole, *others = start.lessons
    assert torch.equal(whole.mask, NODES.train_mask)
    left_out = torch.stack([whole.mask & ~lesson.mask for lesson in others])
    assert torch.equal(left_out.sum(dim=0), NODES.train_mask.long())
    assert not any(bool((lesson.mask & ~NODES.train_mask).any()) for lesson in others)
    # Twin k says k: so every judge must hear the twin of its own part, and the members themselves are never asked.
    told = [torch.full((90, 3), float(place)).double() for place in range(len(start.lessons))]
    heard = start.judges.crossed(told)[:, 0]
    assert torch.equal(heard, 1 + left_out.long().argmax(dim=0)[NODES.train_mask].double())


@pytest.mark.parametrize("count", [1, 3])
def test_fewer_training_nodes_than_parts(count):
    """As many parts as nodes; a single one has no others to learn from, and judges what it taught."""
    mask = torch.zeros(90, dtype=torch.bool)
    mask[NODES.train_mask.nonzero()[:count, 0]] = True
    few = dataclasses.replace(BLIND, train_mask=mask)
    taught = Ensemble(nodes=few).taught([few.features], PENALTIES)
    assert all(each.judged.shape == (count, 3) for each in taught.members)
    assert len(taught.twins) == count
    assert all(bool(lesson.mask.any()) for lesson in taught.lessons)


def test_every_part_has_its_share_of_every_class():
    judges = Ensemble(nodes=BLIND).judges
    for label in range(3):
        sizes = judges.folds[judges.labels == label].bincount(minlength=3)
        assert int(sizes.max()) - int(sizes.min()) <= 1


@pytest.mark.parametrize("nodes", [NODES, BLIND], ids=["validation nodes", "none"])
def test_pupils_are_judged_for_themselves(nodes):
    """Also without validation nodes: pseudo-labels of a twin come from twins, so the labels of its part are not behind them."""
    views = [nodes.features, nodes.features[:, :5]]
    first = Ensemble(nodes=nodes).taught(views, PENALTIES)
    lessons = first.surest(0.5)
    both = first.taught(views, PENALTIES, lessons)
    assert float(both.weights.sum()) == pytest.approx(1)
    pairs = zip(both.members[:4], both.members[4:], strict=True)
    assert not any(torch.equal(one.judged, two.judged) for one, two in pairs)
    if nodes is BLIND:
        assert float(both.weights.min()) >= 1 / 3 / 8 - 1e-12  # a third of the picks is everybody


def test_no_label_of_a_part_reaches_its_twins():
    """Not through pseudo-labels either: with other labels in a part, what its twins answer is the same to the last bit."""
    parts = Ensemble(nodes=BLIND)
    for place, lesson in enumerate(parts.lessons[1:]):
        hidden = NODES.train_mask & ~lesson.mask
        other = dataclasses.replace(BLIND, labels=torch.where(hidden, (BLIND.labels + 1) % 3, BLIND.labels))
        found = []
        for nodes in (BLIND, other):
            ensemble = dataclasses.replace(parts, nodes=nodes)
            object.__setattr__(ensemble, "lessons", [Lesson(nodes.labels, each.mask) for each in parts.lessons])
            members = ensemble.taught([nodes.features], PENALTIES).members
            weights = torch.full((len(members),), 1 / len(members))
            raw = [torch.softmax(each.twins[place].double().log() * each.temperature, dim=1) for each in members]
            average = sum(weight * each for weight, each in zip(weights, raw, strict=True))
            found.append((raw, pseudo_labels(average, dataclasses.replace(nodes, train_mask=lesson.mask), 0.5)))
        (one, taught), (two, also) = found
        assert all(torch.allclose(left, right, atol=1e-6) for left, right in zip(one, two, strict=True))
        assert torch.equal(taught.mask, also.mask)
        assert torch.equal(taught.labels[taught.mask], also.labels[also.mask])


def test_what_is_right_by_the_training_nodes_gets_the_picks():
    random = torch.from_numpy(torch.rand(90, 3, generator=torch.Generator().manual_seed(1)).numpy())
    right = torch.full((90, 3), 0.1).scatter_(1, BLIND.labels[:, None], 0.8)
    start = Ensemble(nodes=BLIND)
    tables = [(each / each.sum(dim=1, keepdim=True)).double() for each in (random, right)]
    joined = start.joined_by([tables] * len(start.lessons), start.lessons)
    assert joined.weights.tolist() == pytest.approx([1 / 6, 5 / 6])


def test_examples_of_answers_are_not_taught_by_their_own_labels():
    """Training nodes are answered too surely; without others to ask, they are answered by who did not see their label."""
    free, blind = learn_without_edges(NODES, seed=0), learn_without_edges(BLIND, seed=0)
    labels, answers = blind.examples
    assert torch.equal(labels, NODES.labels[NODES.train_mask])
    assert torch.equal(answers, blind.ensemble.moved()[1])
    surer = blind.answers[NODES.train_mask].gather(1, labels[:, None]).mean()
    assert float(answers.gather(1, labels[:, None]).mean()) < float(surer) - 0.02
    labels, answers = free.examples
    known = NODES.train_mask | NODES.validation_mask
    assert torch.equal(labels, NODES.labels[known])
    assert torch.equal(answers, free.answers[known])
