"""The public graph of features: weights, principal directions, nearest nodes, smoothing, and how often labels agree."""

import numpy as np
import pytest
import scipy.sparse
import torch
from torch.nn.functional import normalize

from gcon.learn.feature_graph import FeatureGraph, feature_graph, principal_directions


@pytest.mark.parametrize("chunk", [1, 7, 64, 1000])
def test_nearest_rows_against_brute_force(chunk):
    rows = torch.from_numpy(np.random.default_rng(0).standard_normal((64, 9)))
    cosine = rows @ rows.T / (rows.norm(dim=1)[:, None] * rows.norm(dim=1))
    cosine.fill_diagonal_(-2)
    nearest = feature_graph(rows, 5, chunk=chunk)
    expected = cosine.argsort(dim=1, descending=True)[:, :5]
    assert torch.equal(nearest.places, expected)
    assert torch.allclose(nearest.cosines.double(), cosine.gather(1, expected).clamp_min(0), atol=1e-6)
    assert not bool((nearest.places == torch.arange(64)[:, None]).any())


def test_nearest_rows_of_few_or_equal_nodes():
    nearest = feature_graph(torch.ones(4, 2), 10)
    assert nearest.places.shape == (4, 3)
    for node in range(4):
        assert set(nearest.places[node].tolist()) == set(range(4)) - {node}


def test_the_graph_by_hand():
    """The first leans on the second by a cosine of 1/2, the second and third on each other by 4/5; the last has no like."""
    similar = torch.tensor([[0.5, 0.75**0.5, 0, 0], [1, 0, 0, 0], [0.8, 0, 0.6, 0], [-0.8, -0.6, 0, 0]])
    graph = feature_graph(similar, 1)
    assert graph.places[:3, 0].tolist() == [1, 2, 1]
    assert torch.allclose(graph.cosines[:, 0], torch.tensor([0.5, 0.8, 0.8, 0.0]))
    both = np.array([[0, 0.25, 0, 0], [0.25, 0, 1.28, 0], [0, 1.28, 0, 0], [0, 0, 0, 0]])
    degrees = np.array([0.25, 1.53, 1.28, 1])
    expected = both / np.sqrt(degrees[:, None] * degrees)
    assert np.allclose(graph.matrix.toarray(), expected, atol=1e-6)
    rows = torch.arange(8.0).reshape(4, 2)
    once = 0.75 * expected @ rows.numpy() + 0.25 * rows.numpy()
    assert np.allclose(graph.smoothed(rows, [0.25], steps=1)[0].numpy(), once, atol=1e-5)
    assert torch.equal(graph.smoothed(rows, [1.0])[0], rows)
    restarts = (0.1, 1.0, 0.4)
    for restart, together in zip(restarts, graph.smoothed(rows, restarts), strict=True):
        by_hand = rows.double().numpy()
        for _ in range(10):
            by_hand = (1 - restart) * expected @ by_hand + restart * rows.numpy()
        assert np.allclose(together.numpy(), by_hand, atol=1e-4)


def test_weights_of_words_and_of_other_features():
    words = torch.zeros(20, 10)
    words[:, 0], words[0, 3], words[1, 4], words[1, 5] = 1, 1, 1, 1
    weighted = principal_directions(words, 1).weigh(words)
    assert torch.equal(weighted[:, 0], torch.zeros(20))  # a word that all nodes have says nothing
    assert torch.allclose(weighted[0], torch.eye(10)[3])
    assert torch.allclose(weighted[1, 4:6], torch.full((2,), 0.5**0.5))
    other = torch.from_numpy(np.random.default_rng(1).standard_normal((30, 4)))
    standard = torch.from_numpy((other.numpy() - other.numpy().mean(0)) / other.numpy().std(0))
    weighted = principal_directions(other, 1).weigh(other)
    assert torch.allclose(weighted.double(), standard / standard.norm(dim=1, keepdim=True), atol=1e-6)
    assert torch.equal(principal_directions(torch.ones(5, 2), 1).weigh(torch.ones(5, 2)), torch.zeros(5, 2))


def test_principal_rows_keep_products():
    rows = normalize(torch.from_numpy(np.random.default_rng(2).standard_normal((40, 6))).float(), dim=1)
    found = principal_directions(rows, 200, weighted=False)
    principal = found.rows
    assert torch.allclose(rows @ found.axes, principal, atol=1e-4)
    assert principal.shape == (40, 6)
    assert torch.allclose(principal @ principal.T, rows @ rows.T, atol=1e-4)
    lengths = principal_directions(rows, 3, weighted=False).rows.norm(dim=0)
    assert lengths.shape == (3,)
    assert bool((lengths[:-1] >= lengths[1:]).all())


def test_label_agreement():
    graph = feature_graph(torch.eye(2)[[0, 0, 1, 1]], 1)  # two pairs
    everybody, nobody = torch.ones(4, dtype=torch.bool), torch.zeros(4, dtype=torch.bool)
    assert graph.label_agreement(torch.tensor([0, 0, 1, 1]), everybody) == 1
    assert graph.label_agreement(torch.tensor([0, 1, 0, 1]), everybody) == -1
    assert graph.label_agreement(torch.tensor([0, 0, 0, 0]), everybody) == 0
    assert graph.label_agreement(torch.tensor([-1, -1, -1, -1]), nobody) == 0


def chain(factor=1.0):
    """Three nodes in a row, and one alone."""
    matrix = scipy.sparse.csr_matrix(
        np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]], dtype=np.float32)
    )
    return FeatureGraph(places=torch.zeros(4, 1), cosines=torch.zeros(4, 1), matrix=factor * matrix)


def test_labels_spread_to_nodes_nearby():
    seeds = torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    found = chain(0.5).answers_around(seeds, restart=0.1, steps=10)
    assert found.dtype == torch.float64
    assert torch.allclose(found.sum(dim=1), torch.ones(4, dtype=torch.float64))
    assert found[0, 0] > 0.5 > found[2, 0]
    assert found[1].tolist() == pytest.approx([0.5, 0.5])
    assert found[3].tolist() == pytest.approx([0.5, 0.5])  # it hears nothing


def test_answers_around_leave_out_the_own_one():
    answers = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    found = chain().answers_around(answers)
    assert found[:3].argmax(dim=1).tolist() == [1, 0, 1]
    assert found[3].tolist() == pytest.approx([0.5, 0.5])
    own = answers.clone()
    own[0] = torch.tensor([0.0, 1.0])
    assert torch.allclose(chain().answers_around(own)[0], found[0], atol=0.01)
