"""Learning from released counts: what they are believed to be, and regressions that can be asked at any counts."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import one_hot

from gcon.edges.edge_list import public_edges
from gcon.files.datasets.synthetic import social_circles_parts
from gcon.learn import sample
from gcon.learn.after_counts import AfterCounts, CountModel, after_counts, count_inputs
from gcon.learn.after_release import after_moments
from gcon.learn.believed_counts import CountBelief
from gcon.learn.edge_free import learn_without_edges
from gcon.learn.ensemble import Ensemble
from gcon.learn.sample import Sample
from gcon.mechanisms.counts import geometric_deviation


def geometric_noise(rate, shape, seed):
    """Two-sided geometric noise."""
    draws = np.random.default_rng(seed).geometric(-math.expm1(-rate), size=(2, *shape))
    return torch.from_numpy(draws[0] - draws[1])


def exact_counts(edge_index, codes, num_codes):
    edges = public_edges(edge_index, len(codes))
    return torch.stack([codes[edges.neighbours(node)].bincount(minlength=num_codes) for node in range(len(codes))])


def graph(**changed):
    given = {"num_classes": 4, "num_features": 8, "feature_signal": 2.0, "per_class": 15, "mean_degree": 8, "seed": 3}
    return social_circles_parts(400, **(given | changed))


def sure_answers(labels, num_classes, sureness=0.7):
    return torch.full((len(labels), num_classes), (1 - sureness) / (num_classes - 1)).scatter_(
        1, labels[:, None], sureness
    )


def after(nodes):
    """The ensemble after moments that say nothing much."""
    free = learn_without_edges(nodes, seed=0)
    return after_moments(free, [(free.rows.double().T @ free.rows.double(), 0.0)])


def answering(before, answers):
    """The same, with other answers."""
    return replace(before, answers=answers)


def with_nodes(before, nodes):
    """The same, taught by other labels from now on."""
    return replace(before, free=replace(before.free, sample=Sample(nodes, slice(None), "cpu")))


# ---- regressions that can be asked at any counts


def test_inputs_by_hand():
    answers, counts = torch.tensor([[0.25, 0.75], [0.0, 1.0]]), torch.tensor([[3, 1], [-2, 0]])
    evidence = torch.tensor([[-0.1, -2.0], [-0.7, -0.7]], dtype=torch.float64)
    by_hand = [
        [math.log(0.25), math.log(0.75), 3, 1, math.log(4), math.log(2), 9 / 5, 3 / 5, -0.1, -2.0, 1],
        [math.log(1e-4), 0, 0, 0, 0, 0, 0, 0, -0.7, -0.7, 1],
    ]
    found = count_inputs(answers, counts, evidence)
    assert torch.allclose(found, torch.tensor(by_hand, dtype=torch.float64), rtol=1e-12)


def test_a_model_is_an_average_of_softmax_regressions():
    generator = torch.Generator().manual_seed(0)
    tables = torch.randn(3, 16, 3, generator=generator, dtype=torch.float64)
    model = CountModel(torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64), tables)
    start, counts = torch.rand(7, 3, generator=generator), torch.randint(0, 9, (7, 3), generator=generator)
    inputs = count_inputs(start, counts, torch.rand(7, 3, generator=generator).double())
    by_hand = sum(w * torch.softmax(inputs @ t, dim=1) for w, t in zip(model.weights, model.tables, strict=True))
    assert torch.allclose(model.answers(inputs), by_hand)
    assert torch.equal(model.answers(inputs[:0]), torch.zeros(0, 3, dtype=torch.float64))


def released(num_classes=4, *, rate=1.0, **changed):
    """Public nodes, the ensemble without counts, and a noisy table."""
    nodes, edge_index = graph(num_classes=num_classes, **changed)
    before = after(nodes)
    codes = torch.where(nodes.train_mask, nodes.labels, before.answers.argmax(dim=1))
    noisy = exact_counts(edge_index, codes, num_classes) + geometric_noise(rate, (400, num_classes), 7)
    return nodes, before, noisy, geometric_deviation(rate)


def check(found: AfterCounts, num_classes, size=400):
    assert found.start.shape == found.answers.shape == (size, num_classes)
    kept = len(found.model.weights)
    assert found.model.tables.shape == (kept, 5 * num_classes + 1, num_classes)
    assert found.model.weights.dtype == found.model.tables.dtype == found.answers.dtype == torch.float64
    assert bool((found.model.weights > 0).all())
    assert float(found.model.weights.sum()) == pytest.approx(1)
    assert bool(found.model.tables.isfinite().all())
    assert bool((found.answers >= 0).all())
    assert torch.allclose(found.answers.sum(dim=1), torch.ones(size, dtype=torch.float64))


def test_tables_give_what_the_fitted_regressions_give(monkeypatch):
    """The members of the ensemble, asked one by one at the believed counts, and averaged by its weights."""
    nodes, before, noisy, deviation = released()
    ensembles, joined = [], Ensemble.joined_by

    def watched(self, *given, **named):
        ensembles.append(joined(self, *given, **named))
        return ensembles[-1]

    monkeypatch.setattr(Ensemble, "joined_by", watched)
    start = before.answers.clamp_min(1e-3)
    start = start / start.sum(dim=1, keepdim=True)
    found = after_counts(before, answering(before, start), noisy, deviation)
    check(found, 4)
    published = ensembles[-1]
    # The start, and twice Bayes' rule; then by true and by pseudo-labels six regressions on counts, six beside the start, and
    # six products.
    assert len(published.members) == 3 + 2 * 18
    assert torch.allclose(found.answers, published.answers, atol=1e-5)
    assert found.twins == published.twins == ()
    assert torch.equal(found.model.weights, published.weights[published.weights > 0])
    labels = torch.where(nodes.train_mask, nodes.labels, -1)
    belief = CountBelief.fitted(noisy, deviation, start, labels)
    assert torch.equal(found.belief.proportions, belief.proportions)
    believed = belief.of(noisy, deviation, start)
    inputs = count_inputs(start, believed.counts, believed.evidence)
    assert torch.allclose(found.model.answers(inputs), published.answers, atol=1e-5)
    # Asked again at other counts: the same as regressions of their own would answer, row by row.
    other = count_inputs(start, believed.counts.flip(0), believed.evidence.flip(0))
    asked = found.model.answers(other)
    assert not torch.allclose(asked, found.answers, atol=0.05)
    assert torch.allclose(asked[17:18], found.model.answers(other[17:18]))


@pytest.mark.slow
@pytest.mark.parametrize("num_classes", [2, 3, 6])
def test_shapes(num_classes):
    _, before, noisy, deviation = released(num_classes)
    check(after_counts(before, before, noisy, deviation), num_classes)


def test_counts_that_tell_make_better_answers():
    nodes, before, noisy, deviation = released(feature_signal=1.0, homophily=0.8, mean_degree=12)
    found = after_counts(before, before, noisy, deviation)
    right = [
        float((each.argmax(dim=1) == nodes.labels)[nodes.test_mask].double().mean())
        for each in (before.answers, found.answers)
    ]
    assert right[1] > right[0] + 0.05


@pytest.mark.slow
def test_test_labels_change_nothing():
    nodes, before, noisy, deviation = released()
    found = after_counts(before, before, noisy, deviation)
    known = nodes.train_mask | nodes.validation_mask
    blind = replace(nodes, labels=torch.where(known, nodes.labels, -1), test_mask=torch.zeros_like(known))
    other = with_nodes(before, blind)
    again = after_counts(other, other, noisy, deviation)
    assert torch.equal(again.answers, found.answers)
    assert torch.equal(again.model.tables, found.model.tables)


@pytest.mark.slow
@pytest.mark.parametrize("validation", [True, False])
def test_a_class_that_nobody_taught(validation):
    """It may be asked about all the same: counts by its code are a column like any other."""
    nodes, edge_index = graph()
    nodes = replace(nodes, train_mask=nodes.train_mask & (nodes.labels != 2))
    if not validation:
        nodes = replace(nodes, validation_mask=torch.zeros_like(nodes.validation_mask))
    before, truth = after(nodes), exact_counts(edge_index, nodes.labels, 4)
    found = after_counts(before, before, truth + geometric_noise(1.0, truth.shape, 1), geometric_deviation(1.0))
    check(found, 4)
    if not validation:
        assert float(found.answers[:, 2].max()) < 0.2


def test_one_class_was_taught():
    nodes, edge_index = graph()
    nobody = torch.zeros_like(nodes.validation_mask)
    nodes = replace(nodes, train_mask=nodes.train_mask & (nodes.labels == 1), validation_mask=nobody)
    before, truth = after(nodes), exact_counts(edge_index, nodes.labels, 4)
    found = after_counts(before, before, truth, 0.0)
    check(found, 4)
    assert bool((found.answers.argmax(dim=1) == 1).all())


def judged_and_right(seed, *, true_labels):
    """Without validation nodes: the share of judges, and of test nodes, that are answered right; and of these before counts."""
    given = {"num_validation": 0, "feature_signal": 1.0, "homophily": 0.8, "mean_degree": 12, "seed": seed}
    nodes, edge_index = graph(**given)
    truth, labels = nodes.labels, nodes.labels.clone()
    if not true_labels:
        mixed = torch.randperm(int(nodes.train_mask.sum()), generator=torch.Generator().manual_seed(seed))
        labels[nodes.train_mask] = labels[nodes.train_mask][mixed]
    nodes = replace(nodes, labels=labels)
    before = after(nodes)
    codes = torch.where(nodes.train_mask, labels, before.answers.argmax(dim=1))
    noisy = exact_counts(edge_index, codes, 4) + geometric_noise(1.0, (400, 4), 7)
    found, judges = after_counts(before, before, noisy, geometric_deviation(1.0)), before.ensemble.judges
    check(found, 4)
    assert len(found.model.weights) == 3 + 2 * 18  # a third of the picks is all of them
    judged = judges.crossed((found.answers, *found.twins)).argmax(dim=1) == judges.labels
    right = [(each.argmax(dim=1) == truth)[nodes.test_mask] for each in (found.answers, before.answers)]
    return [float(each.double().mean()) for each in (judged, *right)]


def test_without_validation_nodes_counts_are_chosen_by_training_nodes():
    """The same members, and counts that tell are used; nobody is judged by what its own label taught."""
    judged, right, before = np.mean([judged_and_right(seed, true_labels=True) for seed in range(3)], axis=0)
    assert right > before + 0.05
    assert judged < right + 0.12  # in sample nearly all of them are right


@pytest.mark.slow
def test_labels_that_say_nothing_are_not_found_out_by_the_twins():
    """Mixed labels: whoever learned from a judge's own label would answer more than chance, a quarter, of them right."""
    judged, _, _ = np.mean([judged_and_right(seed, true_labels=False) for seed in range(6)], axis=0)
    assert judged < 0.25 + 3 * (0.25 * 0.75 / 360) ** 0.5 + 0.05  # the weights were chosen by these labels


@pytest.mark.slow
def test_every_node_is_labelled():
    nodes, edge_index = graph()
    nobody = torch.zeros_like(nodes.train_mask)
    nodes = replace(nodes, train_mask=~nobody, validation_mask=nobody, test_mask=nobody)
    before, truth = after(nodes), exact_counts(edge_index, nodes.labels, 4)
    check(after_counts(before, before, truth, 0.0), 4)


@pytest.mark.slow
@pytest.mark.parametrize("counts", [torch.zeros(400, 4), torch.full((400, 4), 7)], ids=["no neighbours", "all alike"])
def test_counts_that_say_nothing(counts):
    nodes, _ = graph()
    before = after(nodes)
    for deviation in (0.0, 2.0):
        check(after_counts(before, before, counts.long(), deviation), 4)


@pytest.mark.slow
def test_a_large_graph_is_asked_in_blocks(monkeypatch):
    """A sample teaches, all are asked; blocks change nothing but last bits."""
    for name, size in {"EXACT_NODES": 300, "SAMPLE_NODES": 300, "BLOCK_NODES": 128}.items():
        monkeypatch.setattr(sample, name, size)
    nodes, edge_index = graph()
    free = learn_without_edges(nodes, seed=0)
    assert len(free.sample.nodes.labels) == 300
    before = after_moments(free, [(free.rows.double().T @ free.rows.double(), 0.0)])
    assert before.answers.dtype == torch.float32
    truth = exact_counts(edge_index, nodes.labels, 4)
    noisy = truth + geometric_noise(1.0, truth.shape, 1)
    found = after_counts(before, before, noisy, geometric_deviation(1.0))
    check(found, 4)
    for name, size in {"BLOCK_NODES": 50, "EXACT_NODES": 399}.items():
        monkeypatch.setattr(sample, name, size)
        again = after_counts(before, before, noisy, geometric_deviation(1.0))
        assert torch.allclose(again.answers, found.answers, rtol=1e-10)


def test_codes_are_what_regressions_are_taught_on():
    """A column per code, in their order: another numbering of the codes is another model, asked with other counts."""
    nodes, before, noisy, deviation = released()
    found = after_counts(before, before, noisy, deviation)
    order = torch.tensor([2, 0, 3, 1])
    start = before.answers[:, order]
    moved = torch.argsort(order)[nodes.labels]
    renamed = with_nodes(before, replace(nodes, labels=moved))
    other = after_counts(renamed, answering(renamed, start), noisy[:, order], deviation)
    check(other, 4)
    same = after_counts(before, replace(before), noisy, deviation)
    assert torch.allclose(other.answers, same.answers[:, order], atol=0.02)
    assert one_hot(found.answers.argmax(dim=1), 4).sum() == 400


# ---- what counts are worth


def test_the_gain_tells_counts_that_say_something_from_counts_by_chance():
    gains = []
    for homophily in (0.8, 0.25):  # of four classes: a quarter is chance
        nodes, edges = graph(homophily=homophily, mean_degree=20, num_validation=100)
        before = after(nodes)
        counts = exact_counts(edges, nodes.labels, 4) + geometric_noise(0.5, (400, 4), 1)
        once = after_counts(before, before, counts, geometric_deviation(0.5))
        twice = after_counts(before, once, counts, geometric_deviation(0.5))
        assert twice.gain >= once.gain  # what an earlier table told is not forgotten
        gains.append(once.gain)
    assert gains[0] > 0.1
    assert gains[1] < 0.02
