"""Inference: an answer reads its own node's edges alone, and what fails as soon as it is seen by somebody else."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gcon.edges.edge_list import public_edges
from gcon.edges.schemes import Schemes
from gcon.learn.encoder import Encoder
from gcon.methods.objective import ObjectiveModel
from gcon.methods.own_edges import own_edge_predictions
from gcon.privacy.budget import Budget
from gcon.privacy.receipt import Receipt

searched = settings(max_examples=100, deadline=None, derandomize=True)


def model_with(weights: torch.Tensor, *, steps: tuple[float, ...] = (2,), restart: float = 0.25) -> ObjectiveModel:
    """A released model with these weights, whose encoder leaves features alone."""
    width, classes = weights.shape[0] // len(steps), weights.shape[1]
    return ObjectiveModel(
        weights=weights,
        encoder=Encoder(
            hidden_weight=None,
            hidden_bias=None,
            head_weight=torch.zeros(width, classes),
            head_bias=torch.zeros(classes),
            unit_input=False,
            centre=None,
        ),
        schemes=Schemes(restart=0.5, steps=steps),
        inference_restart=restart,
        loss="soft-margin",
        class_names=tuple(range(classes)),
        training_nodes="",
        receipt=Receipt(
            time="",
            data_set="",
            protected_change="",
            mechanism="",
            purpose="",
            budget=Budget(1.0, 1e-5),
            keeps_promise=True,
            randomness="",
            plan={},
            total=Budget(1.0, 1e-5),
        ),
    )


@searched
@given(seed=st.integers(0, 2**16), num_nodes=st.integers(3, 20), density=st.sampled_from([0.1, 0.3, 0.8]))
def test_an_edge_changes_the_answers_of_its_two_ends_only(seed, num_nodes, density):
    random = np.random.default_rng(seed)
    pairs = [pair for pair in itertools.combinations(range(num_nodes), 2) if random.random() < density]
    features = torch.from_numpy(random.standard_normal((num_nodes, 3)))
    model = model_with(torch.from_numpy(random.standard_normal((9, 4))), steps=(0, 2, float("inf")))
    u, v = random.choice(num_nodes, 2, replace=False)
    edge = (min(u, v), max(u, v))
    answers = []
    for kept in ([pair for pair in pairs if pair != edge], sorted({*pairs, edge})):
        edges = public_edges(torch.tensor(kept, dtype=torch.int64).reshape(-1, 2).T, num_nodes)
        answers.append(own_edge_predictions(model, features, edges).probabilities)
    others = np.setdiff1d(np.arange(num_nodes), [u, v])
    # Equal to the last bit: the others' answers are one fixed function of the released model.
    assert torch.equal(answers[0][others], answers[1][others])
    assert not torch.equal(answers[0][[u, v]], answers[1][[u, v]])


def test_an_answer_seen_by_others_tells_whether_the_edge_is_there():
    """Two nodes with opposite features: each one's label flips with the edge, for the same released model."""
    model = model_with(torch.tensor([[1.0, -1.0]], dtype=torch.float64), restart=0.0)
    features = torch.tensor([[1.0], [-2.0]], dtype=torch.float64)
    labels = []
    for pairs in (torch.empty(2, 0, dtype=torch.int64), torch.tensor([[0], [1]])):
        labels.append(own_edge_predictions(model, features, public_edges(pairs, 2)).classes.tolist())
    assert labels == [[0, 1], [1, 1]]


def test_a_symmetric_normalisation_lets_answers_depend_on_other_peoples_edges():
    """Path w - u, then the edge {u, v}: w's answer must not move. Under D^-1/2 (A + I) D^-1/2 it does."""
    w, u, v = 0, 1, 2
    features = np.array([0.0, 1.0, 0.0])

    def one_hop(pairs: list[tuple[int, int]], *, symmetric: bool) -> np.ndarray:
        adjacency = np.eye(3)
        for one, other in pairs:
            adjacency[one, other] = adjacency[other, one] = 1
        degrees = adjacency.sum(axis=1)
        if symmetric:
            return adjacency / np.sqrt(np.outer(degrees, degrees)) @ features
        return adjacency / degrees[:, None] @ features

    without, with_edge = [(w, u)], [(w, u), (u, v)]
    assert one_hop(without, symmetric=False)[w] == one_hop(with_edge, symmetric=False)[w] == 0.5
    assert one_hop(without, symmetric=True)[w] == pytest.approx(0.5)
    assert one_hop(with_edge, symmetric=True)[w] == pytest.approx(1 / np.sqrt(6))  # 0.408: u's new edge shows
