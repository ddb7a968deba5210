"""The public graph of features: weights, principal directions, nearest nodes, smoothing, and how often labels agree."""

import numpy as np
import pytest
import scipy.sparse
import torch

from gcon.learn.directions import principal_rows, weighting
from gcon.learn.feature_graph import (
    Nearest,
    answers_around,
    label_agreement,
    nearest_rows,
    neighbour_graph,
    smoothed_rows,
    spread_labels,
)


@pytest.mark.parametrize("chunk", [1, 7, 64, 1000])
def test_nearest_rows_against_brute_force(chunk):
    rows = torch.from_numpy(np.random.default_rng(0).standard_normal((64, 9)))
    cosine = rows @ rows.T / (rows.norm(dim=1)[:, None] * rows.norm(dim=1))
    cosine.fill_diagonal_(-2)
    nearest = nearest_rows(rows, 5, chunk=chunk)
    expected = cosine.argsort(dim=1, descending=True)[:, :5]
    assert torch.equal(nearest.places, expected)
    assert torch.allclose(nearest.cosines.double(), cosine.gather(1, expected).clamp_min(0), atol=1e-6)
    assert not bool((nearest.places == torch.arange(64)[:, None]).any())


def test_nearest_rows_of_few_or_equal_nodes():
    nearest = nearest_rows(torch.ones(4, 2), 10)
    assert nearest.places.shape == (4, 3)
    for node in range(4):
        assert set(nearest.places[node].tolist()) == set(range(4)) - {node}


def test_the_graph_by_hand():
    nearest = Nearest(places=torch.tensor([[1], [2], [1], [0]]), cosines=torch.tensor([[0.5], [1.0], [1.0], [0.0]]))
    both = np.array([[0, 0.25, 0, 0], [0.25, 0, 2, 0], [0, 2, 0, 0], [0, 0, 0, 0]])
    degrees = np.array([0.25, 2.25, 2, 1])
    graph = neighbour_graph(nearest)
    expected = both / np.sqrt(degrees[:, None] * degrees)
    assert np.allclose(graph.toarray(), expected, atol=1e-6)
    rows = torch.arange(8.0).reshape(4, 2)
    once = 0.75 * expected @ rows.numpy() + 0.25 * rows.numpy()
    assert np.allclose(smoothed_rows(graph, rows, [0.25], steps=1)[0].numpy(), once, atol=1e-5)
    assert torch.equal(smoothed_rows(graph, rows, [1.0])[0], rows)
    restarts = (0.1, 1.0, 0.4)
    for restart, together in zip(restarts, smoothed_rows(graph, rows, restarts), strict=True):
        by_hand = rows.double().numpy()
        for _ in range(10):
            by_hand = (1 - restart) * expected @ by_hand + restart * rows.numpy()
        assert np.allclose(together.numpy(), by_hand, atol=1e-4)


def test_weights_of_words_and_of_other_features():
    words = torch.zeros(20, 10)
    words[:, 0], words[0, 3], words[1, 4], words[1, 5] = 1, 1, 1, 1
    weighted = weighting(words)(words)
    assert torch.equal(weighted[:, 0], torch.zeros(20))  # a word that all nodes have says nothing
    assert torch.allclose(weighted[0], torch.eye(10)[3])
    assert torch.allclose(weighted[1, 4:6], torch.full((2,), 0.5**0.5))
    other = torch.from_numpy(np.random.default_rng(1).standard_normal((30, 4)))
    standard = torch.from_numpy((other.numpy() - other.numpy().mean(0)) / other.numpy().std(0))
    assert torch.allclose(weighting(other)(other).double(), standard / standard.norm(dim=1, keepdim=True), atol=1e-6)
    assert torch.equal(weighting(torch.ones(5, 2))(torch.ones(5, 2)), torch.zeros(5, 2))


def test_principal_rows_keep_products():
    rows = torch.from_numpy(np.random.default_rng(2).standard_normal((40, 6))).float()
    principal, directions = principal_rows(rows, torch.clone, 200)
    assert torch.allclose(rows @ directions, principal, atol=1e-4)
    assert principal.shape == (40, 6)
    assert torch.allclose(principal @ principal.T, rows @ rows.T, atol=1e-4)
    lengths = principal_rows(rows, torch.clone, 3)[0].norm(dim=0)
    assert lengths.shape == (3,)
    assert bool((lengths[:-1] >= lengths[1:]).all())


def test_label_agreement():
    nearest = Nearest(places=torch.tensor([[1], [0], [3], [2]]), cosines=torch.ones(4, 1))
    everybody, nobody = torch.ones(4, dtype=torch.bool), torch.zeros(4, dtype=torch.bool)
    assert label_agreement(nearest, torch.tensor([0, 0, 1, 1]), everybody) == 1
    assert label_agreement(nearest, torch.tensor([0, 1, 0, 1]), everybody) == -1
    assert label_agreement(nearest, torch.tensor([0, 0, 0, 0]), everybody) == 0
    assert label_agreement(nearest, torch.tensor([-1, -1, -1, -1]), nobody) == 0


def chain():
    """Three nodes in a row, and one alone."""
    return scipy.sparse.csr_matrix(np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]], dtype=np.float32))


def test_labels_spread_to_nodes_nearby():
    labels, known = torch.tensor([0, 0, 1, 0]), torch.tensor([True, False, True, False])
    found = spread_labels(chain() * 0.5, labels, known, 2)
    assert found.dtype == torch.float64
    assert torch.allclose(found.sum(dim=1), torch.ones(4, dtype=torch.float64))
    assert found[0, 0] > 0.5 > found[2, 0]
    assert found[1].tolist() == pytest.approx([0.5, 0.5])
    assert found[3].tolist() == pytest.approx([0.5, 0.5])  # it hears nothing
    # A class with more labels is not louder for that.
    again = spread_labels(chain() * 0.5, labels, torch.tensor([True, True, True, False]), 2)
    assert again[2, 1] > 0.5


def test_answers_around_leave_out_the_own_one():
    answers = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    found = answers_around(chain(), answers)
    assert found[:3].argmax(dim=1).tolist() == [1, 0, 1]
    assert found[3].tolist() == pytest.approx([0.5, 0.5])
    own = answers.clone()
    own[0] = torch.tensor([0.0, 1.0])
    assert torch.allclose(answers_around(chain(), own)[0], found[0], atol=0.01)
