"""Large graphs, made small by moving the limit: a sample teaches, and the answers are about as good as the exact ones."""

import dataclasses
from functools import partial

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from gcon.files.datasets import social_circles
from gcon.learn import edge_free, ensemble, sizes, student
from gcon.learn.after_counts import after_counts
from gcon.learn.after_release import after_moments
from gcon.learn.directions import principal_rows, weighting
from gcon.learn.edge_free import learn_without_edges
from gcon.learn.feature_graph import graph_moments, nearest_rows, neighbour_graph, smoothed_rows
from gcon.learn.rescaling import rescaling
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
    monkeypatch.setattr(sizes, "EXACT_NODES", 1000)
    monkeypatch.setattr(sizes, "COMPARED_NODES", 1000)
    monkeypatch.setattr(sizes, "BLOCK_NODES", 700)
    edge_free._kept_large.cache_clear()
    yield
    edge_free._kept_large.cache_clear()


def learned_anew(nodes):
    edge_free._kept_large.cache_clear()
    return learn_without_edges(nodes, seed=0)


def joined_by_answers(free):
    start = ensemble.Ensemble.without_members(NODES)
    return start.joined_by(start.sampled([ensemble.view_of(free.answers)]), lambda lesson, mask: [])


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
    assert len(free.ensemble.members) == 1
    for here, there in ((free.answers, exact[0].answers), (model.answers, exact[1].answers)):
        assert torch.allclose(here.sum(dim=1).double(), torch.ones(3000, dtype=torch.float64), atol=1e-5)
        assert share_right(here) > share_right(there) - 0.03
    assert share_right(model.cached) > share_right(exact[1].cached) - 0.03
    assert share_right(model.cached) > share_right(free.answers) + 0.02  # the edges have helped
    assert abs(model.settings.homophily - exact[1].settings.homophily) < 0.1
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
    monkeypatch.setattr(sizes, "BLOCK_NODES", size)
    second = learned_anew(NODES)
    assert torch.allclose(first.answers, second.answers, atol=1e-4)
    assert torch.allclose(first.expected_moments, second.expected_moments, atol=1e-2)


@pytest.mark.slow
def test_features_may_lie_in_a_file(large, tmp_path):
    table = np.lib.format.open_memmap(tmp_path / "features.npy", mode="w+", dtype=np.float32, shape=(3000, 16))
    table[:] = NODES.features.numpy()
    stored = dataclasses.replace(NODES, features=torch.from_numpy(table))
    assert torch.equal(learned_anew(stored).answers, learned_anew(NODES).answers)


def test_test_labels_change_nothing(large):
    hidden = torch.where(NODES.train_mask | NODES.validation_mask, NODES.labels, -1)
    blind = dataclasses.replace(NODES, labels=hidden, test_mask=torch.zeros_like(NODES.test_mask))
    assert torch.equal(learned_anew(blind).answers, learned_anew(NODES).answers)


@pytest.mark.slow
def test_without_validation_nodes(large):
    nobody = torch.zeros_like(NODES.validation_mask)
    free = learned_anew(dataclasses.replace(NODES, validation_mask=nobody))
    assert 0 < free.loss < 2
    assert share_right(free.answers) > 0.7


@pytest.mark.slow
def test_a_sample_of_nearly_everybody_gives_nearly_the_exact_answers_after_the_release(exact, monkeypatch):
    """A large graph's ensemble differs by its sample, by float32, and by the single member that it starts from."""
    free = exact[0]
    single = joined_by_answers(free)
    truth = torch.nn.functional.one_hot(NODES.labels, 3).double()
    rows = free.rows.double()
    moments = rows.T @ truth @ truth.T @ rows / 100
    counts = torch.from_numpy(np.random.default_rng(0).poisson(1 + 2 * truth.numpy()))
    whole = after_moments(dataclasses.replace(free, ensemble=single), moments)
    with_counts = after_counts(whole, whole, counts, 0.0, NODES)
    monkeypatch.setattr(sizes, "EXACT_NODES", 2999)
    monkeypatch.setattr(ensemble, "_TRAINING_SHARE", 1.0)
    start = joined_by_answers(free)
    assert len(start.sample.features) == 2999
    sampled = after_moments(dataclasses.replace(free, ensemble=start), moments)
    assert sampled.answers.dtype == torch.float32
    assert float((sampled.answers.double() - whole.answers).abs().max()) < 0.02
    found = after_counts(sampled, sampled, counts, 0.0, NODES)
    assert found.start.dtype == torch.float32
    assert float((found.start.double() - with_counts.start).abs().max()) < 0.05
    off = (found.answers - with_counts.answers).abs()  # a pick that goes to another regression moves a few answers
    assert float(off.mean()) < 0.01
    assert float(off.max()) < 0.2
    assert float((found.answers.argmax(dim=1) == with_counts.answers.argmax(dim=1)).double().mean()) > 0.98


def test_the_sample_has_labels_first_and_repeats(monkeypatch):
    assert ensemble.Ensemble.without_members(NODES).places == slice(None)
    monkeypatch.setattr(sizes, "EXACT_NODES", 1000)
    places = ensemble.Ensemble.without_members(NODES).places
    assert len(places) == 1000
    assert bool((places[1:] > places[:-1]).all())
    assert torch.equal(places, ensemble.Ensemble.without_members(NODES).places)
    chosen = torch.zeros(3000, dtype=torch.bool)
    chosen[places] = True
    assert bool(chosen[NODES.train_mask].all())
    assert int((chosen & NODES.validation_mask).sum()) == 200  # a fifth of the sample at most
    everybody = dataclasses.replace(
        NODES,
        train_mask=~NODES.validation_mask,
        test_mask=torch.zeros_like(NODES.test_mask),
    )
    chosen = ensemble.Ensemble.without_members(everybody).places
    assert int(everybody.train_mask[chosen].sum()) == 600


@pytest.mark.parametrize("kind", ["numbers", "words", "constant column"])
def test_directions_of_a_sample_are_nearly_those_of_everybody(monkeypatch, kind):
    random = np.random.default_rng(1)
    features = torch.from_numpy(random.standard_normal((900, 12)) * random.uniform(0.1, 10, 12) + 3).float()
    if kind == "words":
        features = (torch.from_numpy(random.random((900, 12))) < 0.1).float()
    if kind == "constant column":
        features[:, 4] = 1e4
    weigh = weighting(features)
    assert torch.equal(weigh(features[5:9]), weigh(features)[5:9])
    expected = weigh(features)
    assert torch.allclose(weighting(features[:600])(features), expected, atol=0.25)
    monkeypatch.setattr(sizes, "EXACT_NODES", 300)
    monkeypatch.setattr(sizes, "BLOCK_NODES", 128)
    sampled = principal_rows(features, features[:300], weigh, 200)
    assert torch.allclose(sampled @ sampled.T, expected @ expected.T, atol=1e-3)  # all directions are kept: a rotation
    sample, unit = features[sizes.sampled(900, 300, seed=1)], partial(normalize, dim=1)
    plain, weighted = (principal_rows(features, sample, weigh, 5) for weigh in (unit, weighting(sample)))
    assert plain.shape == weighted.shape == (900, 5)
    units = unit(features)
    kept = units.square().sum() - torch.linalg.svdvals(units)[5:].square().sum()  # by the five best directions
    assert float(plain.square().sum()) > 0.97 * float(kept)


def test_smoothing_moments_and_rescaling_in_parts(monkeypatch):
    rows = normalize(NODES.features[:400, :10], dim=1)
    graph = neighbour_graph(nearest_rows(rows, 8))
    [smoothed], moments = smoothed_rows(graph, rows, [0.3]), graph_moments(graph, rows)
    rescaled = rescaling(rows, moments, ridge=1.0, power=1.0)(rows)
    by_hand = rows.double().numpy().T @ graph.toarray() @ rows.double().numpy()
    assert np.allclose(moments.numpy(), by_hand, atol=1e-3)
    monkeypatch.setattr("gcon.learn.feature_graph._COLUMNS", 3)
    assert torch.equal(smoothed_rows(graph, rows, [0.3])[0], smoothed)
    monkeypatch.setattr(sizes, "EXACT_NODES", 100)
    monkeypatch.setattr(sizes, "BLOCK_NODES", 64)
    assert torch.allclose(graph_moments(graph, rows), moments, rtol=1e-9)
    in_parts = rescaling(rows, moments, ridge=1.0, power=1.0)
    found = torch.cat([in_parts(rows[nodes]) for nodes in sizes.blocks(400)])
    assert torch.allclose(found.abs(), rescaled.abs(), atol=1e-5)  # axes have no sign


def test_the_student_of_a_large_graph_learns_from_a_sample(monkeypatch):
    answers = torch.softmax(4 * NODES.features[:, :3], dim=1)
    everybody = student.train_student(NODES.features, answers)
    monkeypatch.setattr(sizes, "EXACT_NODES", 1500)
    some = student.train_student(NODES.features, answers)
    assert not torch.equal(some.head_weight, everybody.head_weight)
    first, second = (each.probabilities(NODES.features).argmax(dim=1) for each in (some, everybody))
    assert float((first == second).double().mean()) > 0.95
