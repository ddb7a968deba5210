"""Large graphs, made small by moving the limit: a sample teaches, and the answers are about as good as the exact ones."""

import dataclasses

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from gcon.files.datasets import social_circles
from gcon.learn import large_features, remembered, sampled_pool, sizes, student
from gcon.learn.after_release import SampledAfter, WholeAfter, ensemble_after_release
from gcon.learn.feature_graph import (
    nearest_rows,
    neighbour_graph,
    principal_rows,
    smoothed_rows,
    weighted_rows,
)
from gcon.learn.large_edge_free import train_large_edge_free
from gcon.methods.moments import MomentsTraining, train_moments
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
    monkeypatch.setattr(sampled_pool, "SAMPLED_NODES", 1000)
    monkeypatch.setattr(sizes, "BLOCK_NODES", 700)
    remembered._remembered_large.cache_clear()
    yield
    remembered._remembered_large.cache_clear()


def share_right(answers):
    return float((answers.argmax(dim=1) == NODES.labels)[NODES.test_mask].double().mean())


def trained(epsilon=4.0):
    return train_moments(
        NODES,
        GRAPH.edges,
        MomentsTraining(epsilon=epsilon),
        ledger=MemoryLedger("circles"),
        randomness=SeededRandomness(1),
    )


@pytest.fixture(scope="module")
def exact():
    return remembered.edge_free(NODES, 0), trained()


@pytest.mark.slow
def test_accuracy_is_close_to_the_exact_path_and_repeats(large, exact):
    free, model = remembered.edge_free(NODES, 0), trained()
    assert free.answers.dtype == torch.float32
    assert len(free.members) == 1
    for one, other in ((free.answers, exact[0].answers), (model.answers, exact[1].answers)):
        assert torch.allclose(one.sum(dim=1).double(), torch.ones(3000, dtype=torch.float64), atol=1e-5)
        assert share_right(one) > share_right(other) - 0.03
    assert share_right(model.cached) > share_right(exact[1].cached) - 0.03
    assert share_right(model.cached) > share_right(free.answers) + 0.02  # the edges have helped
    assert abs(model.settings.homophily - exact[1].settings.homophily) < 0.1
    assert abs(free.neighbours_agree - exact[0].neighbours_agree) < 0.1
    remembered._remembered_large.cache_clear()
    again = trained()
    assert torch.equal(again.answers, model.answers)
    assert torch.equal(again.cached, model.cached)
    assert torch.equal(again.encoder.head_weight, model.encoder.head_weight)


@pytest.mark.slow
@pytest.mark.parametrize("size", [64, 3000])
def test_blocks_do_not_change_answers(large, monkeypatch, size):
    one = train_large_edge_free(NODES, seed=0)
    monkeypatch.setattr(sizes, "BLOCK_NODES", size)
    other = train_large_edge_free(NODES, seed=0)
    assert torch.allclose(one.answers, other.answers, atol=1e-4)
    assert torch.allclose(one.base.moments, other.base.moments, atol=1e-2)


def test_features_may_lie_in_a_file(large, tmp_path):
    table = np.lib.format.open_memmap(tmp_path / "features.npy", mode="w+", dtype=np.float32, shape=(3000, 16))
    table[:] = NODES.features.numpy()
    stored = dataclasses.replace(NODES, features=torch.from_numpy(table))
    assert torch.equal(train_large_edge_free(stored, seed=0).answers, train_large_edge_free(NODES, seed=0).answers)


def test_test_labels_change_nothing(large):
    hidden = torch.where(NODES.train_mask | NODES.validation_mask, NODES.labels, -1)
    blind = dataclasses.replace(NODES, labels=hidden, test_mask=torch.zeros_like(NODES.test_mask))
    assert torch.equal(train_large_edge_free(blind, seed=0).answers, train_large_edge_free(NODES, seed=0).answers)


def test_without_validation_nodes(large):
    nobody = torch.zeros_like(NODES.validation_mask)
    blind = dataclasses.replace(NODES, validation_mask=nobody)
    free = train_large_edge_free(blind, seed=0)
    assert free.base.loss == torch.inf
    assert share_right(free.answers) > 0.7


def test_a_sample_of_everybody_gives_the_exact_ensemble_after_the_release(large, exact, monkeypatch):
    """The sampled ensemble differs from the whole one by its sample alone, and by the one member it starts from."""
    monkeypatch.setattr(sampled_pool, "SAMPLED_NODES", 10**6)
    monkeypatch.setattr(sampled_pool, "_TRAINING_SHARE", 1.0)
    free = dataclasses.replace(exact[0], members=(exact[0].answers,))
    truth = torch.nn.functional.one_hot(NODES.labels, 3).double()
    rows = free.base.rows.double()
    moments = rows.T @ truth @ truth.T @ rows / 100
    sums = 2 * truth + torch.from_numpy(np.random.default_rng(0).standard_normal((3000, 3)))
    sampled, whole = ensemble_after_release(NODES, free), WholeAfter(NODES, free)
    assert isinstance(sampled, SampledAfter)
    assert float((sampled.with_moments(moments).double() - whole.with_moments(moments)).abs().max()) < 0.02
    with_sums = sampled.with_sums(moments, sums).double()
    assert float((with_sums - whole.with_sums(moments, sums)).abs().max()) < 0.05


def test_the_sample_has_labels_first_and_repeats(monkeypatch):
    monkeypatch.setattr(sampled_pool, "SAMPLED_NODES", 1000)
    places = sampled_pool.sampled_places(NODES)
    assert len(places) == 1000
    assert bool((places[1:] > places[:-1]).all())
    assert torch.equal(places, sampled_pool.sampled_places(NODES))
    chosen = torch.zeros(3000, dtype=torch.bool)
    chosen[places] = True
    assert bool(chosen[NODES.train_mask].all())
    assert int((chosen & NODES.validation_mask).sum()) == 200  # a fifth of the sample at most
    everybody = dataclasses.replace(
        NODES,
        train_mask=~NODES.validation_mask,
        test_mask=torch.zeros_like(NODES.test_mask),
    )
    chosen = sampled_pool.sampled_places(everybody)
    assert int(everybody.train_mask[chosen].sum()) == 600


@pytest.mark.parametrize("kind", ["numbers", "words", "constant column"])
def test_rows_of_a_large_table_are_those_of_a_small_one(monkeypatch, kind):
    random = np.random.default_rng(1)
    features = torch.from_numpy(random.standard_normal((900, 12)) * random.uniform(0.1, 10, 12) + 3).float()
    if kind == "words":
        features = (torch.from_numpy(random.random((900, 12))) < 0.1).float()
    if kind == "constant column":
        features[:, 4] = 1e4
    monkeypatch.setattr(sizes, "BLOCK_NODES", 128)
    weighted = large_features.weighting(features)
    assert torch.allclose(weighted(features), weighted_rows(features), atol=1e-4)
    assert torch.allclose(weighted(features[5:9]), weighted(features)[5:9])
    principal = large_features.large_principal_rows(features, weighted, 200)
    expected = principal_rows(weighted_rows(features), 200)
    assert torch.allclose(principal @ principal.T, expected @ expected.T, atol=1e-3)
    monkeypatch.setattr(large_features, "DIRECTION_ROWS", 300)
    sampled = large_features.large_principal_rows(features, weighted, 200)
    assert torch.allclose(sampled @ sampled.T, expected @ expected.T, atol=1e-3)  # all directions are kept: a rotation


def test_smoothing_together_is_smoothing_one_by_one():
    rows = normalize(NODES.features[:400, :10], dim=1)
    graph, restarts = neighbour_graph(nearest_rows(rows, 8)), (0.1, 0.4, 1.0)
    found = large_features.smoothed_together(graph, rows, restarts)
    for restart, one in zip(restarts, found, strict=True):
        assert torch.allclose(one, normalize(smoothed_rows(graph, rows, restart=restart), dim=1), atol=1e-5)
    moments = rows.double().numpy().T @ graph.toarray() @ rows.double().numpy()
    assert np.allclose(large_features.graph_moments(graph, rows).numpy(), moments, atol=1e-3)
    assert torch.allclose(large_features.gram(rows), rows.double().T @ rows.double())


def test_the_student_of_a_large_graph_learns_from_a_sample(monkeypatch):
    answers = torch.softmax(4 * NODES.features[:, :3], dim=1)
    everybody = student.train_student(NODES.features, answers)
    monkeypatch.setattr(sizes, "EXACT_NODES", 1000)
    monkeypatch.setattr(student, "SAMPLED_NODES", 1500)
    some = student.train_student(NODES.features, answers)
    assert not torch.equal(some.head_weight, everybody.head_weight)
    one, other = (each.probabilities(NODES.features).argmax(dim=1) for each in (some, everybody))
    assert float((one == other).double().mean()) > 0.95
