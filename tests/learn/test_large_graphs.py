"""Large graphs, made small by moving the limit: a sample teaches, and the answers are about as good as the exact ones."""

import dataclasses

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from gcon.files.datasets import social_circles, social_circles_parts
from gcon.learn import edge_free, sample
from gcon.learn.after_release import rescaled_rows
from gcon.learn.edge_free import learn_without_edges
from gcon.learn.feature_graph import feature_graph, principal_directions
from gcon.learn.perceptron import train_student
from gcon.learn.sample import Sample, part_of
from gcon.methods.moments import Moments
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SeededRandomness

GRAPH = social_circles(
    3000,
    num_classes=3,
    mean_degree=40.0,
    num_features=16,
    feature_signal=2.0,
    num_validation=300,
    num_test=2000,
    seed=3,
)
NODES = GRAPH.nodes


@pytest.fixture
def large(monkeypatch):
    """A limit below the graph, a sample of a third of it, and several blocks."""
    for name, size in {"EXACT_NODES": 1000, "SAMPLE_NODES": 1000, "COMPARED_NODES": 1000, "BLOCK_NODES": 700}.items():
        monkeypatch.setattr(sample, name, size)
    edge_free._kept_large.cache_clear()
    yield
    edge_free._kept_large.cache_clear()


def learned_anew(nodes):
    edge_free._kept_large.cache_clear()
    return learn_without_edges(nodes, seed=0)


def share_right(answers):
    return float((answers.argmax(dim=1) == NODES.labels)[NODES.test_mask].double().mean())


def trained(epsilon=4.0):
    return Moments(epsilon=epsilon).train(
        NODES,
        GRAPH.edges,
        ledger=MemoryLedger("circles"),
        randomness=SeededRandomness(1),
    )


@pytest.fixture(scope="module")
def exact():
    return learn_without_edges(NODES, seed=0), trained()


@pytest.mark.slow
def test_accuracy_is_close_to_the_exact_one_and_repeats(large, exact):
    free, model = learn_without_edges(NODES, seed=0), trained()
    assert free.answers.dtype == torch.float32
    assert len(free.sample.nodes.labels) == 1000
    assert torch.equal(free.answers[free.sample.places], free.ensemble.answers.float())
    for here, there in ((free.answers, exact[0].answers), (model.answers, exact[1].answers)):
        assert torch.allclose(here.sum(dim=1).double(), torch.ones(3000, dtype=torch.float64), atol=1e-5)
        assert share_right(here) > share_right(there) - 0.03
    assert share_right(model.cached) > share_right(exact[1].cached) - 0.03
    assert share_right(model.cached) > share_right(free.answers) + 0.02  # the edges have helped
    assert abs(model.homophily - exact[1].homophily) < 0.1
    assert abs(free.neighbours_agree - exact[0].neighbours_agree) < 0.1
    edge_free._kept_large.cache_clear()
    again = trained()
    assert torch.equal(again.answers, model.answers)
    assert torch.equal(again.cached, model.cached)
    assert torch.equal(again.encoder.head_weight, model.encoder.head_weight)


@pytest.mark.slow
@pytest.mark.parametrize("size", [64, 3000])
def test_blocks_do_not_change_answers(large, monkeypatch, size):
    first = learned_anew(NODES)
    monkeypatch.setattr(sample, "BLOCK_NODES", size)
    second = learned_anew(NODES)
    assert torch.allclose(first.answers, second.answers, atol=1e-4)
    assert torch.allclose(first.expected_moments, second.expected_moments, atol=1e-2)


@pytest.mark.slow
def test_features_may_lie_in_a_file(large, tmp_path):
    table = np.lib.format.open_memmap(tmp_path / "features.npy", mode="w+", dtype=np.float32, shape=(3000, 16))
    table[:] = NODES.features.numpy()
    stored = dataclasses.replace(NODES, features=torch.from_numpy(table))
    assert torch.equal(learned_anew(stored).answers, learned_anew(NODES).answers)


@pytest.mark.slow
def test_test_labels_change_nothing(large):
    hidden = torch.where(NODES.train_mask | NODES.validation_mask, NODES.labels, -1)
    blind = dataclasses.replace(NODES, labels=hidden, test_mask=torch.zeros_like(NODES.test_mask))
    assert torch.equal(learned_anew(blind).answers, learned_anew(NODES).answers)


@pytest.mark.slow
def test_without_validation_nodes(large):
    nobody = torch.zeros_like(NODES.validation_mask)
    free = learned_anew(dataclasses.replace(NODES, validation_mask=nobody))
    assert share_right(free.answers) > 0.7


@pytest.mark.slow
def test_the_network_answers_as_the_sample_does():
    """Everybody's answers follow from the rows; the sample is a third of them, and the network is as sure as its teacher."""
    rows = normalize(NODES.features, dim=1)
    truth = torch.softmax(12 * rows[:, :3].double(), dim=1)
    places = sample.sampled(3000, 1000, seed=7)
    third = Sample(part_of(NODES, places), places, "cpu")
    found = third.everywhere(truth[places], rows)
    assert found.dtype == torch.float32
    assert torch.equal(found[places], truth[places].float())
    others = torch.ones(3000, dtype=torch.bool)
    others[places] = False
    assert float((found.argmax(dim=1) == truth.argmax(dim=1))[others].double().mean()) > 0.95
    assert float((found[others].max(dim=1).values - truth[others].max(dim=1).values).mean().abs()) < 0.02
    state = torch.random.get_rng_state()
    assert torch.equal(third.everywhere(truth[places], rows), found)
    assert torch.equal(torch.random.get_rng_state(), state)
    zeros = third.everywhere(truth[places], torch.zeros(3000, 4))
    assert bool(zeros.isfinite().all())


def test_everybody_teaches_up_to_the_limit(monkeypatch):
    few = social_circles_parts(60, num_classes=3, per_class=5, num_features=4, seed=3)[0]
    monkeypatch.setattr(sample, "EXACT_NODES", 60)
    everybody = learn_without_edges(few, seed=0)
    assert everybody.sample.places == slice(None)
    assert torch.equal(everybody.sample.nodes.features, few.features)
    assert everybody.answers is everybody.ensemble.answers
    monkeypatch.setattr(sample, "EXACT_NODES", 59)
    monkeypatch.setattr(sample, "SAMPLE_NODES", 50)
    assert len(learned_anew(few).sample.places) == 50


def test_the_sample_has_labels_first_and_repeats(monkeypatch):
    monkeypatch.setattr(sample, "SAMPLE_NODES", 1000)
    places = Sample.of(NODES).places
    assert len(places) == 1000
    assert bool((places[1:] > places[:-1]).all())
    assert torch.equal(places, Sample.of(NODES).places)
    chosen = torch.zeros(3000, dtype=torch.bool)
    chosen[places] = True
    assert bool(chosen[NODES.train_mask].all())
    assert int((chosen & NODES.validation_mask).sum()) == 200  # a fifth of the sample at most
    labelled = dataclasses.replace(
        NODES,
        train_mask=~NODES.validation_mask,
        test_mask=torch.zeros_like(NODES.test_mask),
    )
    assert int(labelled.train_mask[Sample.of(labelled).places].sum()) == 600


@pytest.mark.parametrize("kind", ["numbers", "words", "constant column"])
def test_directions_of_a_sample_are_nearly_those_of_everybody(monkeypatch, kind):
    random = np.random.default_rng(1)
    features = torch.from_numpy(random.standard_normal((900, 12)) * random.uniform(0.1, 10, 12) + 3).float()
    if kind == "words":
        features = (torch.from_numpy(random.random((900, 12))) < 0.1).float()
    if kind == "constant column":
        features[:, 4] = 1e4
    weigh = principal_directions(features, 200).weigh
    assert torch.equal(weigh(features[5:9]), weigh(features)[5:9])
    assert torch.allclose(principal_directions(features[:600], 200).weigh(features), weigh(features), atol=0.25)
    monkeypatch.setattr(sample, "EXACT_NODES", 300)
    monkeypatch.setattr(sample, "BLOCK_NODES", 128)
    directions = principal_directions(features[:300], 200)
    expected = directions.weigh(features)
    everybody = directions.unit_rows(features, "cpu")
    filled = features[:300].any(dim=1)  # rows of zeros have no direction
    assert torch.allclose(everybody[:300][filled], normalize(directions.rows, dim=1)[filled], atol=1e-4)
    assert torch.allclose(
        everybody @ everybody.T, expected @ expected.T, atol=1e-3
    )  # all directions are kept: a rotation
    directions = principal_directions(features[sample.sampled(900, 300, seed=1)], 5, weighted=False)
    assert directions.rows.shape == (300, 5)
    units = normalize(features, dim=1)
    kept = units.square().sum() - torch.linalg.svdvals(units)[5:].square().sum()  # by the five best directions
    assert float((units @ directions.axes).square().sum()) > 0.97 * float(kept)


def test_smoothing_and_rescaling_in_parts(monkeypatch):
    rows = normalize(NODES.features[:400, :10], dim=1)
    graph = feature_graph(rows, 8)
    [smoothed] = graph.smoothed(rows, [0.3])
    moments = torch.from_numpy(rows.double().numpy().T @ graph.matrix.toarray() @ rows.double().numpy())
    rescaled = rescaled_rows(rows, moments, rows=rows, ridge=1.0, power=1.0)
    monkeypatch.setattr("gcon.learn.feature_graph._COLUMNS", 3)
    assert torch.equal(graph.smoothed(rows, [0.3])[0], smoothed)
    monkeypatch.setattr(sample, "EXACT_NODES", 100)
    monkeypatch.setattr(sample, "BLOCK_NODES", 64)
    parts = [rescaled_rows(rows[nodes], moments, rows=rows, ridge=1.0, power=1.0) for nodes in sample.blocks(400)]
    found = torch.cat(parts)
    assert torch.allclose(found.abs(), rescaled.abs(), atol=1e-5)  # axes have no sign


def test_the_student_of_a_large_graph_learns_from_a_sample(monkeypatch):
    answers = torch.softmax(4 * NODES.features[:, :3], dim=1)
    everybody = train_student(NODES.features, answers)
    monkeypatch.setattr(sample, "EXACT_NODES", 1500)
    some = train_student(NODES.features, answers)
    assert not torch.equal(some.head_weight, everybody.head_weight)
    first, second = (each.probabilities(NODES.features).argmax(dim=1) for each in (some, everybody))
    assert float((first == second).double().mean()) > 0.95
