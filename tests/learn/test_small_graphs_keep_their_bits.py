"""Graphs up to 50,000 nodes: the same bits as before large graphs were served. The old ensemble is written out here."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import scipy.sparse
import torch
from tests.learn.regressions import class_probabilities, softmax
from threadpoolctl import threadpool_limits
from torch.nn.functional import nll_loss, normalize, one_hot

from gcon.files.datasets import social_circles_parts
from gcon.learn import sample
from gcon.learn.after_counts import after_counts
from gcon.learn.after_release import after_moments as new_after_moments
from gcon.learn.believed_counts import CountBelief, with_labels
from gcon.learn.edge_free import learn_without_edges
from gcon.learn.ensemble import Ensemble, Lesson
from gcon.learn.feature_graph import FeatureGraph, feature_graph
from gcon.learn.softmax_regression import softmax_regressions

TEMPERATURES = (0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.4, 2.0)


def regressions(rows, labels, mask, num_classes, penalties):
    with threadpool_limits(limits=1):
        tables = softmax_regressions(rows[mask], one_hot(labels[mask], num_classes), penalties)
        return [class_probabilities(rows, table) for table in tables]


def loss(answers, labels):
    return float(nll_loss(answers.clamp_min(1e-9).log(), labels))


def log_shares(labels, num_classes):
    counts = torch.bincount(labels, minlength=num_classes).double() + 1
    return (counts / counts.sum()).log()


def calibrated(given, nodes, labels, taught):
    mask = nodes.validation_mask
    shift = log_shares(nodes.labels[mask], nodes.num_classes)
    shift = shift - log_shares(labels[taught], nodes.num_classes)
    logits = given.clamp_min(1e-9).log()

    def adjusted(rows, choice):
        return softmax(rows / choice[0] + choice[1] * shift)

    choices = product(TEMPERATURES, (0.0, 0.5, 1.0))
    checked, right = logits[mask], nodes.labels[mask]
    return adjusted(logits, min(choices, key=lambda choice: loss(adjusted(checked, choice), right)))


def average(members, nodes):
    mask = nodes.validation_mask
    checked, labels = torch.stack([member[mask] for member in members]), nodes.labels[mask]
    weights, total = torch.zeros(len(members), dtype=torch.float64), torch.zeros_like(checked[0])
    for pick in range(1, 13):
        best = min(range(len(members)), key=lambda place: loss((total + checked[place]) / pick, labels))
        weights[best] += 1 / 12
        total += checked[best]
    return torch.einsum("m,mnc->nc", weights, torch.stack(members))


def pseudo_labels(answers, nodes, share):
    sure, classes = answers.max(dim=1)
    free = ~(nodes.train_mask | nodes.validation_mask)
    chosen = sure.masked_fill(~free, -1.0).topk(int(share * int(free.sum()))).indices
    taught = nodes.train_mask.clone()
    taught[chosen] = True
    return torch.where(free, classes, nodes.labels), taught


def members(nodes, views, labels, taught, penalties):
    return [
        calibrated(each, nodes, labels, taught)
        for view in views
        for each in regressions(view, labels, taught, nodes.num_classes, penalties)
    ]


def nearest(rows, count, chunk=1024):
    units = normalize(rows.to(torch.float32), dim=1)
    places, cosines = [], []
    for start in range(0, len(units), chunk):
        similar = units[start : start + chunk] @ units.T
        own = torch.arange(len(similar))
        similar[own, start + own] = -math.inf
        best = similar.topk(min(count, len(units) - 1), dim=1)
        places.append(best.indices)
        cosines.append(best.values.clamp_min(0))
    return torch.cat(places), torch.cat(cosines)


def graph(places, cosines):
    size, count = places.shape
    rows = np.repeat(np.arange(size), count)
    one_way = scipy.sparse.csr_matrix(
        (cosines.numpy().reshape(-1) ** 2, (rows, places.numpy().reshape(-1))), (size, size)
    )
    both = one_way + one_way.T
    degrees = np.asarray(both.sum(axis=1)).reshape(-1)
    roots = scipy.sparse.diags_array(1 / np.sqrt(np.where(degrees > 0, degrees, 1.0)))
    return scipy.sparse.csr_matrix(roots @ both @ roots, dtype=np.float32)


def rescaled(rows, moments, ridge, power):
    if math.isinf(ridge):
        whitening = torch.eye(rows.shape[1], dtype=torch.float64)
    else:
        energies, axes = torch.linalg.eigh(torch.from_numpy(rows.numpy().T @ rows.numpy()).double())
        whitening = axes / (energies.clamp_min(0) + ridge).sqrt()
    inner = whitening.T @ moments @ whitening
    values, vectors = torch.linalg.eigh((inner + inner.T) / 2)
    return normalize(rows @ (whitening @ vectors * values.clamp_min(0) ** power).float(), dim=1)


def standard(rows):
    centred = rows - rows.mean(dim=0)
    return centred / max(float(centred.std()), 1e-12)


def probabilities(answers):
    """As small as they may be."""
    return answers.clamp_min(1e-4) / answers.clamp_min(1e-4).sum(dim=1, keepdim=True)


def answers_of(ensemble):
    return [member.answers for member in ensemble.members]


def after_moments(nodes, free, moments):
    views = [rescaled(free.rows, moments, *each) for each in ((math.inf, 0.5), (100.0, 1.0))]
    every = [*answers_of(free.ensemble), *members(nodes, views, nodes.labels, nodes.train_mask, (1.0, 0.1))]
    every += members(nodes, views, *pseudo_labels(average(every, nodes), nodes, 0.8), (1.0, 0.1))
    return every, views


def after_the_counts(nodes, start, counts):
    """Members on counts and their evidence beside the start, as they answer by themselves, averaged."""
    own, logs, plain = start.clamp_min(1e-4).log(), counts.log1p(), standard(counts)
    shares = standard(torch.cat([logs, 3 * counts / (counts.sum(dim=1, keepdim=True) + 1)], dim=1))
    labels = torch.where(nodes.train_mask, nodes.labels, -1)
    told = CountBelief.fitted(counts, 0.0, start, labels).of(counts, 0.0, start).evidence
    alone, truth = [[plain], [shares], [standard(told), shares]], (nodes.labels, nodes.train_mask)
    every = [calibrated(softmax(own + trust * told), nodes, *truth) for trust in (0.0, 1.0, 0.5)]
    for share in (None, 0.8):
        lesson = truth if share is None else pseudo_labels(average(every, nodes), nodes, share)
        apart, both = (
            [
                each
                for groups in some
                for each in regressions(torch.cat(groups, dim=1).float(), *lesson, nodes.num_classes, (10.0, 1.0))
            ]
            for some in (alone, [[standard(own), *groups] for groups in alone])
        )
        usual = log_shares(lesson[0][lesson[1]], nodes.num_classes)
        products = [softmax(own + each.log() - usual) for each in apart]
        every.extend(calibrated(each, nodes, *lesson) for each in [*apart, *both, *products])
    return average(every, nodes)


def made(**other):
    return social_circles_parts(240, num_classes=3, per_class=8, num_test=60, feature_signal=2.0, seed=5, **other)[0]


CASES = [
    pytest.param(made(num_validation=40), id="usual"),
    pytest.param(made(num_validation=40, num_features=250), id="wide", marks=pytest.mark.slow),
]


@pytest.fixture(scope="module", params=CASES)
def trained(request):
    return request.param, learn_without_edges(request.param, seed=1)


def telling(nodes, free):
    """Moments and counts of a graph inside the classes, so that members on them are picked."""
    truth = torch.nn.functional.one_hot(nodes.labels, 3).double()
    counts = torch.from_numpy(np.random.default_rng(4).poisson(1 + 2 * truth.numpy()))
    return free.rows.double().T @ truth @ truth.T @ free.rows.double() / 20, counts


def test_the_limit_is_a_promise():
    assert sample.EXACT_NODES == 50_000
    assert sample.COMPARED_NODES == 8_000
    assert list(sample.blocks(50_000)) == [slice(0, 50_000)]
    assert len(list(sample.blocks(50_001))) > 1


def test_nearest_rows_and_their_graph():
    for seed, shape in enumerate([(300, 20), (2500, 7), (5, 3)]):
        rows = torch.from_numpy(np.random.default_rng(seed).standard_normal(shape)).float()
        found, (places, cosines) = feature_graph(rows, 20), nearest(rows, 20)
        assert torch.equal(found.places, places)
        assert torch.equal(found.cosines, cosines)
        assert np.array_equal(found.matrix.toarray(), graph(places, cosines).toarray())


def test_members_and_their_average(trained):
    nodes, free = trained
    views = [free.rows, nodes.features]
    old = members(nodes, views, nodes.labels, nodes.train_mask, (1.0, 0.1))
    new = Ensemble(nodes=nodes).taught(views, (1.0, 0.1))
    assert all(torch.equal(*pair) for pair in zip(old, answers_of(new), strict=True))
    assert torch.equal(average(old, nodes), new.answers)
    lesson = pseudo_labels(average(old, nodes), nodes, 0.5)
    old += members(nodes, views, *lesson, (1.0, 0.1))
    assert torch.equal(average(old, nodes), new.taught(views, (1.0, 0.1), [Lesson(*lesson)]).answers)


def test_answers_after_the_release(trained, monkeypatch):
    nodes, free = trained
    moments, counts = telling(nodes, free)
    found = new_after_moments(free, [(moments, 0.0)])
    every, views = after_moments(nodes, free, moments)
    assert torch.equal(found.answers, average(every, nodes))
    # A second table: what was answered before is the start. The regressions are asked as tables, and nobody is surer than 1e-4.
    start = probabilities(found.answers)
    before = replace(found, answers=start)
    second = after_counts(found, before, counts, 0.0)
    assert second.start is start
    assert torch.allclose(second.answers, after_the_counts(nodes, start, counts.double()), atol=1e-5)
    # The first one teaches features too, twice, and they join the start, as does the mean of what it made of nearest features.
    around, asked = FeatureGraph.answers_around, []
    monkeypatch.setattr(
        FeatureGraph, "answers_around", lambda self, answers: asked.append(answers) or around(self, answers)
    )
    first = after_counts(found, found, counts, 0.0)
    start = found.answers
    for heard in asked:
        taught_by = after_the_counts(nodes, start, counts.double())
        # Regressions on counts are learned in another order here, so last bits of what is averaged over nearest features differ;
        # from the same answers everything is the same to the bit.
        assert torch.allclose(heard, with_labels(taught_by, torch.where(nodes.train_mask, nodes.labels, -1)), atol=2e-3)
        lesson = pseudo_labels(taught_by, nodes, 0.8)
        pupils = [*every, *members(nodes, views[:1], *lesson, (1.0, 0.1))]
        pupils.append(calibrated(around(free.graph, heard), nodes, *lesson))
        start = average(pupils, nodes)
    assert len(asked) == 2
    assert torch.equal(first.start, start)
    published = after_the_counts(nodes, first.start, counts.double())
    assert torch.allclose(first.answers, published, atol=2e-3)
