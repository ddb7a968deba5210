"""The edge-free ensemble: what it cannot read, what it is made of, and unusual inputs."""

import dataclasses
import inspect

import numpy as np
import pytest
import torch
from torch.nn.functional import nll_loss

from gcon.files.datasets import social_circles_parts
from gcon.learn import after_release, edge_free, ensemble, feature_graph
from gcon.learn.edge_free import learn_without_edges

NODES, _ = social_circles_parts(
    120, num_classes=3, per_class=8, num_validation=30, num_test=60, feature_signal=3.0, seed=6
)
NOBODY = torch.zeros(120, dtype=torch.bool)


def changed(**other):
    return dataclasses.replace(NODES, **other)


def are_probabilities(answers):
    return bool((answers >= 0).all()) and torch.allclose(
        answers.sum(dim=1), torch.ones(len(answers), dtype=torch.float64)
    )


def share_right(answers):
    return float((answers.argmax(dim=1) == NODES.labels)[NODES.test_mask].double().mean())


def members_of(free):
    return [member.answers for member in free.ensemble.members]


@pytest.fixture(scope="module")
def trained():
    return learn_without_edges(NODES, seed=1)


def test_there_is_no_way_in_for_edges():
    assert set(inspect.signature(learn_without_edges).parameters) == {"nodes", "seed", "device"}
    for module in (after_release, edge_free, ensemble, feature_graph):
        assert not {"EdgeList", "Private", "PrivateGraph", "propagate"} & set(vars(module))


def test_the_parts_of_the_model(trained):
    views, pupils, penalties = 8, 4, 2
    # Labels that spread over two graphs, two networks, regressions, and pupils on the better half of the views.
    assert len(members_of(trained)) == 2 + 2 + (views + pupils) * penalties
    assert all(are_probabilities(member) for member in members_of(trained))
    assert are_probabilities(trained.answers)
    assert share_right(trained.answers) > 0.8
    assert trained.neighbours_agree > 0.2
    assert trained.rows.shape == (120, 32)
    assert torch.allclose(trained.rows.norm(dim=1), torch.ones(120), atol=1e-5)


def test_the_average_is_no_worse_on_validation_labels_than_any_member(trained):
    mask = NODES.validation_mask
    losses = [nll_loss(each[mask].log(), NODES.labels[mask]) for each in (trained.answers, *members_of(trained))]
    assert float(losses[0]) <= float(min(losses)) + 1e-12


def test_expected_moments_are_those_of_the_public_graph(trained):
    """Features are few here, so that all directions are kept and the graph can be built from the unit rows."""
    graph = feature_graph.feature_graph(trained.rows, 20).matrix.toarray()
    rows = trained.rows.double().numpy()
    assert np.allclose(trained.expected_moments.numpy(), rows.T @ graph @ rows, atol=1e-4)
    assert np.allclose(trained.expected_moments, trained.expected_moments.T, atol=1e-5)


def test_the_same_seed_gives_the_same_bits_and_leaves_the_global_generator_alone(trained):
    state = torch.random.get_rng_state()
    edge_free.forget_learned()
    again, other = learn_without_edges(NODES, seed=1), learn_without_edges(NODES, seed=2)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(torch.equal(*pair) for pair in zip(members_of(trained), members_of(again), strict=True))
    assert torch.equal(trained.answers, again.answers)
    assert not torch.equal(members_of(trained)[6], members_of(other)[6])  # the encoder; those before have no seed


def test_test_labels_change_nothing(trained):
    hidden = torch.where(NODES.train_mask | NODES.validation_mask, NODES.labels, -1)
    for nodes in (
        changed(labels=torch.where(NODES.test_mask, 0, NODES.labels)),
        changed(labels=hidden, test_mask=NOBODY),
    ):
        found = learn_without_edges(nodes, seed=1)
        assert torch.equal(found.answers, trained.answers)
        assert found.neighbours_agree == trained.neighbours_agree


def test_without_validation_nodes(trained):
    found = learn_without_edges(changed(validation_mask=NOBODY), seed=1)
    assert are_probabilities(found.answers)
    assert share_right(found.answers) > 0.7


@pytest.mark.slow
@pytest.mark.parametrize(
    "validation", [NOBODY, pytest.param(NODES.validation_mask, marks=pytest.mark.slow)], ids=["none", "some"]
)
def test_a_class_without_training_labels(validation):
    taught = NODES.train_mask & (NODES.labels != 2)
    found = learn_without_edges(changed(train_mask=taught, validation_mask=validation), seed=1)
    assert are_probabilities(found.answers)
    others = NODES.test_mask & (NODES.labels != 2)
    assert float((found.answers.argmax(dim=1) == NODES.labels)[others].double().mean()) > 0.7


@pytest.mark.slow
def test_a_single_class():
    one = NODES.train_mask & (NODES.labels == 1)
    found = learn_without_edges(changed(train_mask=one, validation_mask=NOBODY), seed=1)
    assert bool((found.answers.argmax(dim=1) == 1).all())
    assert found.neighbours_agree == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "features",
    [
        torch.ones(120, 4),
        torch.zeros(120, 4),
        torch.eye(120),
        NODES.features[:, :1],
        -NODES.features,
        torch.where(torch.arange(120)[:, None] % 3 == 0, 0.0, NODES.features),
        NODES.features.double() * 1e20,
        (NODES.features > 1.5).to(torch.int64),
    ],
    ids=["constant", "zeros", "identity", "one column", "negated", "zero rows", "large", "whole numbers"],
)
def test_unusual_features(features):
    found = learn_without_edges(changed(features=features), seed=1)
    assert are_probabilities(found.answers)
    for table in (found.rows, found.expected_moments):
        assert bool(torch.isfinite(table).all())
    assert found.rows.shape[1] == min(200, features.shape[1])


@pytest.mark.slow
def test_negated_features_are_as_good(trained):
    assert share_right(learn_without_edges(changed(features=-NODES.features), seed=1).answers) > 0.8


def test_more_columns_than_directions():
    """All n directions are kept where that is less than the width."""
    wide = torch.cat([NODES.features, torch.zeros(120, 300)], dim=1)
    assert learn_without_edges(changed(features=wide), seed=1).rows.shape == (120, 120)


def test_a_class_with_more_labels_is_not_louder_for_that(monkeypatch):
    heard = []
    around = feature_graph.FeatureGraph.answers_around
    monkeypatch.setattr(
        feature_graph.FeatureGraph,
        "answers_around",
        lambda self, answers, **how: heard.append(answers) or around(self, answers, **how),
    )
    taught = NODES.train_mask | (NODES.test_mask & (NODES.labels == 0))
    learn_without_edges(changed(train_mask=taught, test_mask=NOBODY), seed=1)
    assert len(heard) == 2
    for seeds in heard:
        assert torch.allclose(seeds.sum(dim=0), torch.ones(3))
        assert torch.equal(seeds[taught].argmax(dim=1), NODES.labels[taught])
        assert not bool(seeds[~taught].any())


def test_two_nodes_a_class():
    nodes, _ = social_circles_parts(
        6, num_classes=3, per_class=1, num_validation=1, num_test=2, mean_degree=0.0, seed=1
    )
    found = learn_without_edges(nodes, seed=1)
    assert are_probabilities(found.answers)
    assert found.rows.shape == (6, 6)
