"""Noisy edge moments: shrinking by the known noise, and features rescaled by what is left."""

import math

import numpy as np
import pytest
import scipy.linalg
import torch
from torch.nn.functional import normalize

from gcon.files.datasets import social_circles_parts
from gcon.learn.after_release import rescaled_rows, shrunk_moments
from gcon.learn.feature_graph import feature_graph, principal_directions

CLASSES = torch.arange(90) % 3


def planted(seed=0):
    """Unit rows of three classes, the moments of edges inside classes, and those of the graph of nearest rows."""
    rng = np.random.default_rng(seed)
    rows = torch.from_numpy(rng.standard_normal((90, 9)))
    rows = normalize(rows + 2 * torch.eye(9, dtype=rows.dtype)[CLASSES], dim=1)
    inside = CLASSES[:, None] == CLASSES
    joined = torch.from_numpy(rng.random((90, 90))).triu(1) > torch.where(inside, 0.7, 0.99).triu(1)
    adjacency = joined.triu(1).double()
    public = torch.from_numpy(feature_graph(rows, 10).matrix.toarray()).double()
    return rows, rows.T @ (adjacency + adjacency.T) @ rows, rows.T @ public @ rows


def symmetric_noise(seed, size=9):
    noise = torch.from_numpy(np.random.default_rng(seed).standard_normal((size, size)))
    return (noise + noise.T) / 2


def rescaled(rows, moments, **how):
    return rescaled_rows(rows, moments, rows=rows, **how)


def same_up_to_axes(first, second):
    """Whether two matrices of rows agree up to signs and order of their columns: all inner products are the same."""
    return torch.allclose(first.double() @ first.double().T, second @ second.T, atol=1e-5)


def test_without_noise_the_moments_stay_as_they_are():
    rows, truth, expected = planted()
    assert torch.equal(shrunk_moments(truth, deviation=0.0, rows=rows, expected=expected), truth)


@pytest.mark.parametrize("deviation", [1e4, 1e12, 1e140])
def test_under_huge_noise_a_multiple_of_the_expected_moments_is_left(deviation):
    rows, truth, expected = planted()
    found = shrunk_moments(truth, deviation=deviation, rows=rows, expected=expected)
    factor = float((truth * expected).sum() / expected.square().sum())
    assert factor > 0.5
    assert torch.allclose(found, factor * expected, rtol=1e-9)


def test_moments_against_the_expected_ones_leave_nothing():
    rows, _, expected = planted()
    found = shrunk_moments(-expected, deviation=1e4, rows=rows, expected=expected)
    assert torch.equal(found, torch.zeros_like(expected))


def left_by_shrinking(parts, deviation):
    """The mean squared distance to the truth over 20 draws of the noise, as a share of that of the noisy moments."""
    rows, truth, expected = parts
    raw = shrunk = 0.0
    for seed in range(20):
        noisy = truth + deviation * symmetric_noise(seed, len(truth))
        found = shrunk_moments(noisy, deviation=deviation, rows=rows, expected=expected)
        raw += float((noisy - truth).square().sum())
        shrunk += float((found - truth).square().sum())
    return shrunk / raw


@pytest.mark.parametrize("homophily", [0.1, 0.8])
@pytest.mark.parametrize(("deviation", "share"), [(0.1, 1.01), (1.0, 0.95), (5.0, 0.5), (20.0, 0.1), (100.0, 0.02)])
def test_nearer_to_the_truth_than_the_noisy_moments(deviation, share, homophily):
    """As in use: many principal directions, few edges each."""
    nodes, edge_index = social_circles_parts(600, num_features=64, mean_degree=4.0, homophily=homophily, seed=1)
    rows = normalize(principal_directions(nodes.features, 200).rows, dim=1).double()
    one_way = rows[edge_index[0]].T @ rows[edge_index[1]]
    public = torch.from_numpy(feature_graph(rows, 20).matrix @ rows.numpy())
    assert left_by_shrinking((rows, one_way + one_way.T, rows.T @ public), deviation) <= share


@pytest.mark.parametrize(("deviation", "share"), [(0.1, 1.1), (1.0, 1.1), (5.0, 1.5), (20.0, 0.5), (100.0, 0.1)])
def test_not_much_further_where_the_model_is_wrong(deviation, share):
    """Few directions, all of one energy, whose moments lie on the diagonal: a price is paid, and a bounded one."""
    assert left_by_shrinking(planted(), deviation) <= share


@pytest.mark.parametrize("deviation", [0.5, 5.0, 50.0])
def test_shrunk_moments_are_symmetric(deviation):
    rows, truth, expected = planted()
    noisy = truth + deviation * symmetric_noise(1)
    found = shrunk_moments(noisy, deviation=deviation, rows=rows, expected=(expected + expected.T) / 2)
    assert torch.allclose(found, found.T, atol=1e-9)


@pytest.mark.parametrize("deviation", [0.5, 50.0])
def test_a_public_graph_without_edges_expects_nothing(deviation):
    rows, truth, expected = planted()
    nothing = torch.zeros_like(expected)
    found = shrunk_moments(truth, deviation=deviation, rows=rows, expected=nothing)
    assert bool(torch.isfinite(found).all())
    assert float(found.norm()) <= float(truth.norm())
    assert float((found * truth).sum()) >= 0


def test_rows_of_zeros_hold_no_energy():
    nothing = torch.zeros(3, 3, dtype=torch.float64)
    noisy = symmetric_noise(0, 3)
    assert torch.equal(shrunk_moments(noisy, deviation=1.0, rows=torch.zeros(5, 3), expected=nothing), nothing)


@pytest.mark.parametrize(("ridge", "power"), [(math.inf, 0.5), (100.0, 1.0), (0.0, 1.0)])
def test_rescaled_rows_have_length_one(ridge, power):
    rows, truth, _ = planted()
    rows[7] = 0
    found = rescaled(rows, truth, ridge=ridge, power=power)
    lengths = found.double().norm(dim=1)
    assert found.dtype == torch.float32
    assert torch.equal(found[7], torch.zeros(9))
    others = torch.arange(90) != 7
    assert torch.allclose(lengths[others], torch.ones(89, dtype=torch.float64), atol=1e-6)


def test_negative_eigenvalues_vanish():
    rows = planted()[0][:, :3]
    moments = torch.diag(torch.tensor([4.0, -9.0, 1.0], dtype=torch.float64))
    found = rescaled(rows, moments, ridge=math.inf, power=0.5)
    by_hand = rows * torch.tensor([2.0, 0.0, 1.0], dtype=torch.float64)
    assert same_up_to_axes(found, by_hand / by_hand.norm(dim=1, keepdim=True))
    assert int((found == 0).all(dim=0).sum()) == 1
    nothing = rescaled(rows, -moments.abs(), ridge=math.inf, power=0.5)
    assert torch.equal(nothing, torch.zeros(90, 3))


def test_an_infinite_ridge_means_plain_eigenvectors():
    rows, truth, _ = planted()
    values, vectors = np.linalg.eigh(truth.numpy())
    assert values.min() < 0 < values.max()
    by_hand = (rows @ torch.from_numpy(vectors)) * torch.from_numpy(values.clip(min=0))
    found = rescaled(rows, truth, ridge=math.inf, power=1.0)
    assert same_up_to_axes(found, by_hand / by_hand.norm(dim=1, keepdim=True))


@pytest.mark.parametrize("ridge", [1.0, 100.0])
def test_a_finite_ridge_is_a_generalised_eigenproblem(ridge):
    rows, truth, _ = planted()
    energy = (rows.T @ rows).numpy() + ridge * np.eye(9)
    values, vectors = scipy.linalg.eigh(truth.numpy(), energy)
    by_hand = (rows @ torch.from_numpy(vectors)) * torch.from_numpy(values.clip(min=0))
    found = rescaled(rows, truth, ridge=ridge, power=1.0)
    assert same_up_to_axes(found, by_hand / by_hand.norm(dim=1, keepdim=True))


def test_rows_of_zeros_stay_zero():
    rows = torch.zeros(4, 3)
    found = rescaled(rows, torch.eye(3, dtype=torch.float64), ridge=100.0, power=1.0)
    assert torch.equal(found, torch.zeros(4, 3))


def test_inputs_are_left_as_they_are():
    rows, truth, expected = planted()
    copies = [given.clone() for given in (rows, truth, expected)]
    best = shrunk_moments(truth, deviation=3.0, rows=rows, expected=expected)
    rescaled(rows, best, ridge=100.0, power=1.0)
    for given, copy in zip((rows, truth, expected), copies, strict=True):
        assert torch.equal(given, copy)
