"""The noise that is really inside released models, measured end to end.

At the minimiser the gradient vanishes, so the noise of a released model can be read off its weights: b_j = -(sum of the
slopes times rows + n_1 ridge w_j). Its length must follow the Erlang law of Theorem 1, written out here by hand, without
any function of the package: a factor lost anywhere between the budget and the weights shows.
Kolmogorov-Smirnov at level 1e-6 with fresh system randomness.
"""

import math

import numpy as np
import pytest
import scipy.special
import scipy.stats
import torch

import gcon
from gcon.edges.schemes import Schemes, propagate
from gcon.learn.perceptron import EncoderSettings, train_encoder
from gcon.learn.training_rows import training_rows
from gcon.privacy.opening import apply_private
from gcon.privacy.randomness import SystemRandomness

LEVEL = 1e-6
EPSILON, DELTA, SHARE, RIDGE, RESTART = 1.0, 1e-5, 0.9, 0.5, 0.8
CLASSES, WIDTH, NODES, FITS = 3, 8, 300, 40


def by_hand(rows, diameter):
    """(ridge, noise rate) of Theorem 1 for the soft margin, with the certificate's reserve taken off the budget."""
    epsilon, delta = EPSILON - 2e-3, DELTA * math.exp(-1e-3)
    influence = diameter * (1 - RESTART)  # sharp, for every number of steps at this restart
    slope, curvature, third = 1 / CLASSES, 1 / (4 * CLASSES), 1 / (6 * math.sqrt(3) * CLASSES)
    quantile = scipy.special.gammainccinv(WIDTH, delta / CLASSES)
    pull, push = rows * SHARE * epsilon, CLASSES * influence * quantile
    ridge = max(RIDGE, 2 * curvature * push / pull)
    bound = slope * (pull + push) / (pull * ridge - curvature * push)
    change = (2 * curvature + third * bound) * influence
    jacobian = CLASSES * WIDTH * math.log(1 + change / (WIDTH * rows * ridge))
    assert jacobian <= (1 - SHARE) * epsilon  # so there is no extra ridge
    return ridge, (epsilon - jacobian) / (CLASSES * (slope + curvature * bound) * influence)


@pytest.fixture(scope="module")
def radii():
    """Lengths of the noise in forty released models, and the rate that they should have."""
    graph = gcon.datasets.social_circles(
        NODES, num_classes=CLASSES, num_validation=30, num_test=30, per_class=5, seed=5
    )
    settings = gcon.Objective(
        epsilon=EPSILON,
        delta=DELTA,
        ridge=RIDGE,
        encoder=EncoderSettings(hidden=WIDTH, epochs=15),
        schemes=Schemes(restart=RESTART, steps=(2,)),
    )
    encoder = train_encoder(graph.nodes, settings.encoder)
    encoded = encoder.encode(graph.nodes.features)
    aggregates = apply_private(lambda edges: propagate(edges, encoded, settings.schemes), graph.edges)
    targets = training_rows(graph.nodes, encoder, "all").targets
    ridge, rate = by_hand(NODES, float(torch.cdist(encoded, encoded).max()))
    found = []
    for _ in range(FITS):
        model = settings.train(
            graph.nodes, graph.edges, ledger=gcon.MemoryLedger(), randomness=SystemRandomness(), encoder=encoder
        )
        slopes = (torch.sigmoid(aggregates @ model.weights) - targets) / CLASSES
        noise = -(aggregates.T @ slopes + NODES * ridge * model.weights)
        found += torch.linalg.vector_norm(noise, dim=0).tolist()
        assert model.receipt.plan["noise_rate"] == pytest.approx(rate, rel=1e-6)
        assert model.receipt.plan["ridge"] == pytest.approx(ridge, rel=1e-6)
    return np.array(found), rate


def accepted(sample, rate):
    return bool(scipy.stats.kstest(sample, scipy.stats.gamma(WIDTH, scale=1 / rate).cdf).pvalue > LEVEL)


def test_released_models_hold_the_noise_of_theorem_one(radii):
    sample, rate = radii
    assert len(sample) == FITS * CLASSES
    assert accepted(sample, rate)


@pytest.mark.parametrize("factor", [1 / 2, 2 / 3, 3 / 2, 2])
def test_another_scale_would_be_noticed(radii, factor):
    sample, rate = radii
    assert not accepted(factor * sample, rate)
