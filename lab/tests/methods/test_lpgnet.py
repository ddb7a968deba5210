"""LPGNet: counts without noise by hand, own edges, what is charged, noise per layer and run."""

import itertools
import math

import pytest
import torch
from lab.tests.methods.circles import EDGE_INDEX, NODES, adjacency, graph

from gcon.learn.encoder import scaled_rows
from gcon.privacy.randomness import SeededRandomness
from gcon_lab.methods.lpgnet import LPGNet
from gcon_lab.methods.networks import Perceptron, Training, fit_on_rows, logits_of, seeded

SMALL = {"epochs": 8, "hidden": 8}


def perceptron(rows, place, seed=0):
    with seeded(seed + place):
        network = Perceptron(rows.shape[1], 8, 3, layers=2, share=0.5, bias=False, drop_input=False)
        fit_on_rows(network, rows, NODES, Training(epochs=8, falling=True), weight_decay=5e-4)
    return logits_of(network, rows)


def counts_by_hand(scores):
    """Counts from the dense matrix, clipped, rows of zeros repaired with the seed's class."""
    return adjacency(EDGE_INDEX) @ torch.eye(3, dtype=torch.float64)[scores.argmax(dim=1)]


def repaired_by_hand(counts, place):
    drawn = torch.randint(3, (120,), generator=torch.Generator().manual_seed(place))
    rows = counts.clamp(min=0).float()
    for node in range(120):
        if not rows[node].any():
            rows[node, drawn[node]] = 1
    return rows


@pytest.mark.parametrize("stacked", [1, 2])
@pytest.mark.parametrize("access", ["cached", "own-edges"])
def test_infinite_epsilon_is_the_method_without_noise(stacked, access):
    columns = [perceptron(scaled_rows(NODES.features, by="sum"), 0)]
    for place in range(1, stacked + 1):
        columns.append(repaired_by_hand(counts_by_hand(columns[-1]), place))
        columns.append(perceptron(torch.cat(columns, dim=1), place))
    assert torch.cat(columns[:-1], dim=1).shape[1] == 2 * 3 * stacked
    fitted = LPGNet(epsilon=math.inf, stacked=stacked, **SMALL).fit(graph())
    found = fitted.predictions(graph(), access=access)
    assert torch.allclose(found.probabilities, torch.softmax(columns[-1], dim=1), atol=1e-6)
    assert math.isinf(fitted.receipts[0].budget.epsilon)
    assert not fitted.receipts[0].keeps_promise


@pytest.mark.parametrize("stacked", [1, 2])
def test_cached_scores_follow_from_what_was_released(released, stacked):
    """With noise too: the whole rest is computed from the released counts and public features."""
    method = LPGNet(epsilon=2.0, stacked=stacked, **SMALL)
    fitted = method.fit(graph(), randomness=SeededRandomness(2))  # no chance that rounding tips the choice of an epoch
    noisy = [line.value for line in released]
    assert len(noisy) == stacked
    columns = [perceptron(scaled_rows(NODES.features, by="sum"), 0)]
    for place in range(1, stacked + 1):
        columns.append(repaired_by_hand(noisy[place - 1], place))
        columns.append(perceptron(torch.cat(columns, dim=1), place))
    found = fitted.predictions(graph()).probabilities
    assert torch.allclose(found, torch.softmax(columns[-1], dim=1), atol=1e-6)


def test_noise_differs_between_runs_and_layers(released):
    """The same seed of the weights: the noise has nothing to do with it."""
    for _ in range(2):
        LPGNet(epsilon=1.0, stacked=2, seed=5, **SMALL).fit(graph())
    one, two, three, four = (line.value for line in released)
    # The counts are whole numbers, so the fractions are noise alone: of 360 pairs of independent lattice points that
    # agree in their fractions 0.4 are expected (the spacing is 2^-10), 18 never.
    fractions = [part - part.round() for part in (one, two, three, four)]
    for first, second in itertools.combinations(fractions, 2):
        assert int((first == second).sum()) < 18


def test_one_stacked_layer_is_clean_at_inference(released):
    """The noisy row of the asking node is not used: two runs that differ in that row alone would answer alike."""
    fitted = LPGNet(epsilon=1.0, **SMALL).fit(graph())
    first = fitted.predictions(graph(), access="own-edges").probabilities
    assert torch.equal(first, fitted.predictions(graph(), access="own-edges").probabilities)
    released[0].value.add_(100.0)  # changing what was kept changes nothing
    assert torch.equal(first, fitted.predictions(graph(), access="own-edges").probabilities)
