"""Members of an ensemble: regressions, calibration, the greedy average, and pseudo-labels."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from tests.learn.regressions import class_probabilities
from torch.nn.functional import nll_loss, one_hot

from gcon.files.datasets import social_circles_parts
from gcon.learn.ensemble import Ensemble, Lesson, Member, pseudo_labels
from gcon.learn.softmax_regression import softmax_regressions

NODES, _ = social_circles_parts(90, num_classes=3, per_class=8, num_validation=30, num_test=30, seed=4)
NOBODY = torch.zeros(90, dtype=torch.bool)


def true_labels(nodes):
    return Lesson(nodes.labels, nodes.train_mask)


def softmax_regression(rows, lesson, num_classes, penalty):
    told = one_hot(lesson.labels[lesson.mask], num_classes)
    (table,) = softmax_regressions(rows[lesson.mask], told, [penalty])
    return class_probabilities(rows, table)


def joined(answers, nodes, *, validation_shares=True):
    start = Ensemble(nodes=nodes, validation_shares=validation_shares)
    (member,) = start.joined_by([[answers]], [true_labels(nodes)]).members
    return member


def calibrated(answers, nodes, **how):
    return joined(answers, nodes, **how).answers


def as_it_is(answers, mask):
    return Member(1.0, torch.zeros(3, dtype=torch.float64), answers, answers[mask], loss=math.nan)


def best_average(members, nodes):
    ensemble = Ensemble(nodes=nodes, members=tuple(as_it_is(each, nodes.validation_mask) for each in members))
    average = sum(weight * each for weight, each in zip(ensemble.weights, members, strict=True))
    assert torch.allclose(average, ensemble.answers, rtol=1e-15)
    return ensemble.answers


def random_answers(seed):
    return torch.from_numpy(np.random.default_rng(seed).dirichlet(np.ones(3), size=90))


def sure_answers(labels, confidence):
    wrong = (1 - confidence) / 2
    return torch.full((90, 3), wrong, dtype=torch.float64).scatter(1, labels[:, None], confidence)


def loss_of(answers, nodes=NODES):
    return float(nll_loss(answers[nodes.validation_mask].log(), nodes.labels[nodes.validation_mask]))


def are_probabilities(answers):
    return bool((answers >= 0).all()) and torch.allclose(answers.sum(dim=1), torch.ones(90, dtype=torch.float64))


def test_the_loss_of_a_member_is_that_of_its_judged_answers():
    """Their mean negative log-probability of the true labels, also where answers are sure and wrong."""
    flipped = torch.where(torch.arange(90) % 2 == 0, (NODES.labels + 1) % 3, NODES.labels)
    for answers in (random_answers(6), sure_answers(flipped, 1.0)):
        for shares in (True, False):
            member = joined(answers, NODES, validation_shares=shares)
            assert torch.equal(member.judged, member.answers[NODES.validation_mask])
            assert member.loss == pytest.approx(loss_of(member.answers))
            assert math.isfinite(member.loss)


def test_a_regression_is_the_minimum_of_its_loss(monkeypatch):
    """Sum of losses plus penalty/2 times squared weights (not the bias): no gradient is left in the logits' terms."""
    monkeypatch.setattr("gcon.learn.softmax_regression._STEEP_WHITE", 5e-5)  # members stop sooner: they are averaged
    rows = NODES.features[:, :4].float()
    answers = softmax_regression(rows, true_labels(NODES), 3, 0.7)
    assert are_probabilities(answers)
    mask = NODES.train_mask
    missed = answers[mask] - torch.nn.functional.one_hot(NODES.labels[mask], 3).double()
    weights = -rows[mask].double().T @ missed / 0.7  # from the gradient being 0
    logits = rows.double() @ weights
    shift = answers.log() - logits
    shift = shift - shift.mean(dim=1, keepdim=True)
    assert float((shift - shift[0]).abs().max()) < 1e-2  # the bias, the same for all nodes
    assert float(missed.sum(dim=0).abs().max()) < 1e-2


def test_a_regression_knows_only_the_classes_it_was_taught():
    taught = NODES.train_mask & (NODES.labels != 1)
    answers = softmax_regression(NODES.features, Lesson(NODES.labels, taught), 3, 1.0)
    assert are_probabilities(answers)
    assert float(answers[:, 1].max()) < 1e-9
    single = NODES.train_mask & (NODES.labels == 1)
    answers = softmax_regression(NODES.features, Lesson(NODES.labels, single), 3, 1.0)
    assert torch.allclose(answers, torch.eye(3, dtype=torch.float64)[[1]].expand(90, 3), atol=1e-9)


def test_a_larger_penalty_makes_answers_less_sure():
    loose, strict = (softmax_regression(NODES.features, true_labels(NODES), 3, penalty) for penalty in (0.1, 100.0))
    assert float(strict.max(dim=1).values.mean()) < float(loose.max(dim=1).values.mean()) - 0.1


def test_members_come_one_per_view_and_penalty():
    views = [NODES.features, NODES.features[:, :5], NODES.features[:, 5:]]
    ensemble = Ensemble(nodes=NODES).taught(views, (1.0, 0.1))
    members = [member.answers for member in ensemble.members]
    assert len(members) == 6
    assert all(are_probabilities(member) for member in members)
    told = one_hot(NODES.labels[NODES.train_mask], 3)
    table = softmax_regressions(views[1][NODES.train_mask], told, (1.0, 0.1))[1]
    alone = calibrated(class_probabilities(views[1], table), NODES)
    assert torch.equal(members[3], alone)


def test_calibration_cools_what_is_too_sure_and_sharpens_what_is_not_sure_enough():
    flipped = torch.where(torch.arange(90) % 4 == 0, (NODES.labels + 1) % 3, NODES.labels)
    for confidence in (0.999, 0.4):
        given = sure_answers(flipped, confidence)
        found = calibrated(given, NODES)
        assert are_probabilities(found)
        assert loss_of(found) < loss_of(given) - 0.1
        assert torch.equal(found.argmax(dim=1), flipped)


@pytest.mark.parametrize("shares", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_calibration_never_raises_the_validation_loss(seed, shares):
    given = random_answers(seed)
    assert loss_of(calibrated(given, NODES, validation_shares=shares)) <= loss_of(given) + 1e-12


def test_calibration_moves_towards_the_shares_of_the_validation_labels():
    labels = torch.where(NODES.validation_mask, 2, NODES.labels)  # training labels have equal shares
    nodes = dataclasses.replace(NODES, labels=labels)
    given = random_answers(5)
    kept = calibrated(given, nodes, validation_shares=False)
    shifted = calibrated(given, nodes)
    assert torch.equal(kept.argmax(dim=1), given.argmax(dim=1))  # a temperature alone changes no answer
    assert float(shifted[:, 2].mean()) > float(kept[:, 2].mean()) + 0.2


def test_the_best_average_is_no_worse_than_its_best_member():
    for start in range(5):
        members = [random_answers(seed) for seed in range(10 * start, 10 * start + 6)]
        found = best_average(members, NODES)
        assert are_probabilities(found)
        assert loss_of(found) <= min(loss_of(member) for member in members) + 1e-12


def test_the_best_average_is_the_perfect_member():
    perfect = sure_answers(NODES.labels, 0.98)
    wrong = sure_answers((NODES.labels + 1) % 3, 0.98)
    assert torch.allclose(best_average([wrong, perfect, wrong], NODES), perfect)


def test_the_best_average_mixes_members_that_know_different_things():
    half = torch.arange(90) % 2 == 0
    uniform = torch.full((90, 3), 1 / 3, dtype=torch.float64)
    perfect = sure_answers(NODES.labels, 0.98)
    members = [torch.where(half[:, None], perfect, uniform), torch.where(half[:, None], uniform, perfect)]
    found = best_average(members, NODES)
    assert loss_of(found) < min(map(loss_of, members)) - 0.05
    assert torch.equal(found.argmax(dim=1), NODES.labels)


def test_labels_outside_validation_do_not_choose():
    members = [random_answers(seed) for seed in range(4)]
    other = dataclasses.replace(NODES, labels=torch.where(NODES.validation_mask, NODES.labels, 0))
    assert torch.equal(best_average(members, NODES), best_average(members, other))


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_pseudo_labels_by_hand(share):
    answers = random_answers(7)
    lesson = pseudo_labels(answers, NODES, share)
    free = [node for node in range(90) if not (NODES.train_mask[node] or NODES.validation_mask[node])]
    surest = sorted(free, key=lambda node: -float(answers[node].max()))[: int(share * len(free))]
    expected = set(surest) | set(NODES.train_mask.nonzero()[:, 0].tolist())
    assert set(lesson.mask.nonzero()[:, 0].tolist()) == expected
    for node in expected:
        own = NODES.labels[node] if NODES.train_mask[node] else answers[node].argmax()
        assert int(lesson.labels[node]) == int(own)


def test_pseudo_labels_never_read_hidden_labels():
    hidden = torch.where(NODES.train_mask | NODES.validation_mask, NODES.labels, -1)
    blind = dataclasses.replace(NODES, labels=hidden, test_mask=NOBODY)
    first, second = (pseudo_labels(random_answers(1), nodes, 0.8) for nodes in (NODES, blind))
    assert torch.equal(first.mask, second.mask)
    assert torch.equal(first.labels, second.labels)


def test_everybody_labelled_leaves_nobody_to_teach():
    everybody = dataclasses.replace(NODES, train_mask=~NOBODY, validation_mask=NOBODY, test_mask=NOBODY)
    assert bool(pseudo_labels(random_answers(1), everybody, 0.8).mask.all())
