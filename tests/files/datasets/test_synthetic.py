"""The synthetic graph meets what was asked of it."""

import math

import pytest
import torch
from tests.opened import open_private

from gcon.edges.edge_list import public_edges
from gcon.errors import InputError
from gcon.files.datasets import social_circles, social_circles_parts
from gcon.privacy.boundary import Private


def inside_share(nodes, edge_index):
    return float((nodes.labels[edge_index[0]] == nodes.labels[edge_index[1]]).double().mean())


@pytest.mark.parametrize("homophily", [0.0, 0.2, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("mean_degree", [2.0, 10.0, 40.0])
@pytest.mark.parametrize("degree_tail", [2.1, 2.5, math.inf])
def test_mean_degree_and_homophily_are_met(homophily, mean_degree, degree_tail):
    nodes, edge_index = social_circles_parts(
        2_000, homophily=homophily, mean_degree=mean_degree, degree_tail=degree_tail, seed=3
    )
    edges = public_edges(edge_index, 2_000)
    assert float(edges.degrees.double().mean()) == pytest.approx(mean_degree, rel=0.05)
    assert inside_share(nodes, edge_index) == pytest.approx(homophily, abs=0.03)


def test_edges_come_once_and_without_loops():
    nodes, edge_index = social_circles_parts(1_000, mean_degree=30, seed=2)
    assert edge_index.dtype == torch.int64
    assert bool((edge_index[0] != edge_index[1]).all())
    assert public_edges(edge_index, nodes.num_nodes).columns.numel() == 2 * edge_index.shape[1] == 30_000


def test_dense_graphs_end_too():
    nodes, edge_index = social_circles_parts(60, num_classes=2, mean_degree=29, homophily=0.49, per_class=5)
    assert edge_index.shape[1] == 870
    assert inside_share(nodes, edge_index) == pytest.approx(0.49, abs=0.01)


def test_degrees_have_a_heavy_tail():
    def largest(tail):
        _, edge_index = social_circles_parts(20_000, degree_tail=tail, mean_degree=10, seed=5)
        return int(torch.bincount(edge_index.flatten()).max())

    assert largest(math.inf) < 40
    assert largest(2.5) > 200


def test_the_tail_has_the_asked_exponent():
    # Hill's estimator on the degrees from 30 to 300, below the cut-off of sqrt(100_000 * 10) = 1000.
    _, edge_index = social_circles_parts(100_000, degree_tail=2.5, mean_degree=10, num_features=1, seed=1)
    degrees = torch.bincount(edge_index.flatten()).double()
    share = float((degrees >= 300).sum() / (degrees >= 30).sum())
    assert -math.log10(share) == pytest.approx(1.5, abs=0.15)


def test_every_class_gets_its_share_of_edges():
    nodes, edge_index = social_circles_parts(8_000, num_classes=8, degree_tail=3.0, seed=4)
    ends = torch.bincount(nodes.labels[edge_index.flatten()], minlength=8).double()
    assert float(ends.min() / ends.max()) > 0.7
    between = nodes.labels[edge_index]
    between = between[:, between[0] != between[1]]
    pairs = torch.bincount(between[0] * 8 + between[1], minlength=64).reshape(8, 8)
    pairs = (pairs + pairs.T)[~torch.eye(8, dtype=torch.bool)]
    assert float(pairs.min() / pairs.max()) > 0.5


def test_classes_and_split():
    nodes = social_circles(1_003, num_classes=4, per_class=7, num_validation=100, num_test=200).nodes
    assert sorted(torch.bincount(nodes.labels).tolist()) == [250, 251, 251, 251]
    assert torch.bincount(nodes.labels[nodes.train_mask]).tolist() == [7] * 4
    assert (int(nodes.validation_mask.sum()), int(nodes.test_mask.sum())) == (100, 200)


@pytest.mark.parametrize(("num_nodes", "sizes"), [(5_000, (500, 1000)), (140, (20, 40)), (80, (0, 0))])
def test_default_split_sizes(num_nodes, sizes):
    nodes, _ = social_circles_parts(num_nodes, mean_degree=4)
    assert (int(nodes.validation_mask.sum()), int(nodes.test_mask.sum())) == sizes


@pytest.mark.parametrize("signal", [0.0, 1.0, 5.0])
def test_feature_signal_is_the_length_of_the_class_means(signal):
    nodes, _ = social_circles_parts(20_000, feature_signal=signal, num_features=16, mean_degree=1)
    for label in range(nodes.num_classes):
        rows = nodes.features[nodes.labels == label]
        assert float(rows.mean(dim=0).norm()) == pytest.approx(signal, abs=0.2)
        assert float(rows.std(dim=0).mean()) == pytest.approx(1.0, abs=0.05)


def test_same_seed_same_graph():
    (first, edges), (again, edges_again) = (social_circles_parts(500, seed=9) for _ in range(2))
    _, others = social_circles_parts(500, seed=10)
    assert torch.equal(edges, edges_again)
    assert torch.equal(first.features, again.features)
    assert torch.equal(first.labels, again.labels)
    assert torch.equal(first.train_mask, again.train_mask)
    assert not torch.equal(edges, others)


def test_the_private_graph_holds_the_same_edges():
    graph = social_circles(300, seed=9, name="mine")
    nodes, edge_index = social_circles_parts(300, seed=9)
    assert isinstance(graph.edges, Private)
    assert graph.name == "mine"
    assert torch.equal(graph.nodes.features, nodes.features)
    assert torch.equal(open_private(graph.edges).columns, public_edges(edge_index, 300).columns)


def test_no_edges_at_all():
    assert social_circles_parts(100, mean_degree=0)[1].shape == (2, 0)


@pytest.mark.parametrize(
    ("parameter", "options"),
    [
        ("num_nodes", {"num_nodes": 7}),
        ("num_nodes", {"num_nodes": 100.0}),
        ("num_classes", {"num_classes": 1}),
        ("num_classes", {"num_classes": True}),
        ("mean_degree", {"mean_degree": -1.0}),
        ("mean_degree", {"mean_degree": math.inf}),
        ("mean_degree", {"mean_degree": math.nan}),
        ("homophily", {"homophily": 1.1}),
        ("homophily", {"homophily": -0.1}),
        ("homophily", {"homophily": math.nan}),
        ("degree_tail", {"degree_tail": 2.0}),
        ("degree_tail", {"degree_tail": math.nan}),
        ("num_features", {"num_features": 0}),
        ("feature_signal", {"feature_signal": -1.0}),
        ("per_class", {"per_class": 0}),
        ("per_class", {"per_class": 51}),
        ("num_validation", {"num_validation": 121}),
        ("num_validation", {"num_validation": -1}),
        ("num_test", {"num_validation": 100, "num_test": 21}),
        ("seed", {"seed": -1}),
        ("seed", {"seed": 0.5}),
    ],
)
def test_bad_parameters_are_named(parameter, options):
    with pytest.raises(InputError, match=f"^{parameter}: ") as raised:
        social_circles(**{"num_nodes": 200} | options)
    assert raised.value.parameter == parameter


@pytest.mark.parametrize(
    ("where", "options"),
    [
        ("inside", {"homophily": 1.0, "mean_degree": 30.0}),
        ("between", {"homophily": 0.0, "mean_degree": 90.0}),
    ],
)
def test_too_many_edges_for_the_nodes(where, options):
    with pytest.raises(InputError, match=f"mean_degree: must leave half of the .* pairs {where} classes"):
        social_circles(200, **options)
