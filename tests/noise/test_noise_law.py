"""Samplers are accepted at the right scale and rejected at two thirds and at three halves of it.

Kolmogorov-Smirnov at level 1e-6 with fresh system randomness: a true sampler fails one run in a million a test.
"""

import math

import numpy as np
import pytest
import scipy.stats
import torch

from gcon.mechanisms.losses import SoftMargin
from gcon.mechanisms.objective_plan import make_plan
from gcon.mechanisms.samplers.objective_noise import objective_noise
from gcon.privacy.budget import Budget
from gcon.privacy.randomness import SystemRandomness
from gcon_lab.mechanisms.samplers import open_uniforms, standard_normals

LEVEL = 1e-6
DRAWS = 4000


def accepted(sample, law):
    return scipy.stats.kstest(np.asarray(sample), law.cdf).pvalue > LEVEL


def radii(rate, width, draws=DRAWS):
    noise = objective_noise(SystemRandomness(), noise_rate=rate, num_features=width, num_classes=draws).matrix
    return torch.linalg.vector_norm(noise, dim=1).numpy()


@pytest.mark.parametrize("width", [1, 2, 16, 64])
def test_radius_follows_the_erlang_law_of_the_plan(width):
    sample = radii(1.7, width)
    right = scipy.stats.gamma(width, scale=1 / 1.7)
    assert accepted(sample, right)
    for factor in (2 / 3, 3 / 2):
        assert not accepted(factor * sample, right)


@pytest.mark.parametrize("factor", [2 / 3, 3 / 2])
def test_a_wrong_rate_is_caught(factor):
    assert not accepted(radii(1.7 / factor, 16), scipy.stats.gamma(16, scale=1 / 1.7))


@pytest.mark.parametrize("width", [2, 3, 16])
def test_direction_is_uniform(width):
    noise = objective_noise(SystemRandomness(), noise_rate=1.0, num_features=width, num_classes=DRAWS).matrix
    direction = noise / torch.linalg.vector_norm(noise, dim=1, keepdim=True)
    # One coordinate of a uniform direction: its square is Beta(1/2, (d-1)/2), its sign is fair.
    for coordinate in (0, width - 1):
        squares = direction[:, coordinate].square().numpy()
        assert accepted(squares, scipy.stats.beta(0.5, (width - 1) / 2))
        positive = int((direction[:, coordinate] > 0).sum())
        assert scipy.stats.binomtest(positive, DRAWS).pvalue > LEVEL


def test_one_dimension_has_both_signs():
    noise = objective_noise(SystemRandomness(), noise_rate=1.0, num_features=1, num_classes=DRAWS).matrix
    assert scipy.stats.binomtest(int((noise > 0).sum()), DRAWS).pvalue > LEVEL
    assert accepted(noise[:, 0].numpy(), scipy.stats.laplace())


def test_classes_are_independent():
    noise = objective_noise(SystemRandomness(), noise_rate=1.0, num_features=8, num_classes=2 * DRAWS).matrix
    first, second = noise[:DRAWS], noise[DRAWS:]
    lengths = scipy.stats.spearmanr(first.norm(dim=1).numpy(), second.norm(dim=1).numpy())
    entries = scipy.stats.spearmanr(first[:, 0].numpy(), second[:, 0].numpy())
    assert lengths.pvalue > LEVEL
    assert entries.pvalue > LEVEL


def test_radius_and_direction_are_independent():
    noise = objective_noise(SystemRandomness(), noise_rate=1.0, num_features=3, num_classes=DRAWS).matrix
    length = noise.norm(dim=1)
    assert scipy.stats.spearmanr(length.numpy(), (noise[:, 0] / length).numpy()).pvalue > LEVEL


def test_building_blocks():
    assert accepted(open_uniforms(SystemRandomness(), DRAWS).numpy(), scipy.stats.uniform())
    normals = standard_normals(SystemRandomness(), DRAWS).numpy()
    assert accepted(normals, scipy.stats.norm())
    assert not accepted(normals * 2 / 3, scipy.stats.norm())
    assert not accepted(normals * 3 / 2, scipy.stats.norm())


def test_uniforms_never_touch_the_ends():
    class Extreme:
        source, keeps_promise = "fixed", False

        def __init__(self, byte):
            self.byte = byte

        def take(self, count):
            return self.byte * count

    for byte in (b"\x00", b"\xff"):
        values = open_uniforms(Extreme(byte), 3)
        assert bool((values > 0).all())
        assert bool((values < 1).all())
        assert bool(torch.isfinite(standard_normals(Extreme(byte), 3)).all())


def test_no_noise_only_at_an_infinite_rate():
    noise = objective_noise(SystemRandomness(), noise_rate=math.inf, num_features=4, num_classes=3)
    assert (float(noise.matrix.abs().max()), noise.error) == (0, 0)
    plan = make_plan(
        Budget(1000.0, 1e-5), loss=SoftMargin(3), num_features=4, num_labelled=50, edge_influence=1e-6, ridge=1.0
    )
    drawn = objective_noise(SystemRandomness(), noise_rate=plan.noise_rate, num_features=4, num_classes=3).matrix
    assert float(drawn.abs().min()) > 0


def test_two_draws_differ():
    first, second = (
        objective_noise(SystemRandomness(), noise_rate=1.0, num_features=4, num_classes=3).matrix for _ in range(2)
    )
    assert bool((first != second).all())
