"""White-box audit of Theorem C: the exact privacy loss on the worst small pair stays below epsilon; too little noise shows.

Theorem C is about five times looser than this pair needs: two slopes of opposite sign at weights near zero are half as
large as their bound, and the height h stands for every direction at once. A halved sigma is therefore caught by
comparison with the privacy curve of the planned one, which is known here by integration; to pass epsilon itself, the
break must be larger than the slack.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from lab.tests.audits.sampled_losses import measured_epsilon, planned_pair, privacy_losses, probabilistic_epsilon

from gcon.mechanisms.influence import sharp_influence
from gcon.mechanisms.losses import PseudoHuber, SoftMargin
from gcon.privacy.randomness import SystemRandomness
from gcon_lab.audits.privacy_loss import GaussianNoise
from gcon_lab.mechanisms.gaussian_objective_plan import theorem_c

pytestmark = pytest.mark.slow

DELTA, RESTART, SOFT = 1e-3, 0.8, SoftMargin(2)


def pair_for(epsilon, *, width=1, influence=1.0, loss=SOFT, broken=1.0):
    return planned_pair(
        theorem_c,
        lambda plan: GaussianNoise(plan.scale * broken),
        epsilon=epsilon,
        delta=DELTA,
        influence=influence * 2 * sharp_influence(RESTART, math.inf),
        loss=loss,
        width=width,
        restart=RESTART,
    )


def losses_of(pair, draws=40_000):
    return privacy_losses(pair, draws=draws, randomness=SystemRandomness())


def integrated_epsilon(pair):
    """The pair's own epsilon at DELTA, by integrating densities on a grid: one feature, two classes, soft margin.

    The density of a weight is that of the noise that leads to it, times how fast the noise moves with the weight.
    """

    def densities(aggregates, grid):
        columns = aggregates.numpy()[:, 0]
        for target in pair.targets.numpy().T:
            scores = 1 / (1 + np.exp(-np.outer(columns, grid)))
            noise = -(columns @ (scores - target[:, None])) / 2 - 2 * pair.ridge * grid
            speed = (columns**2) @ (scores * (1 - scores)) / 2 + 2 * pair.ridge
            yield np.exp(-((noise / pair.noise.scale) ** 2) / 2) / math.sqrt(2 * math.pi) / pair.noise.scale * speed

    reach = (1 + 7 * pair.noise.scale) / (2 * pair.ridge)
    grid = np.linspace(-reach, reach, 1501)
    cell = (grid[1] - grid[0]) ** 2
    first, second = (np.outer(*densities(side, grid)) for side in (pair.first, pair.second))
    assert first.sum() * cell == pytest.approx(1, abs=1e-6)
    low, high = 0.0, 50.0
    for _ in range(50):
        middle = (low + high) / 2
        above = np.clip(first - math.exp(middle) * second, 0, None).sum() * cell > DELTA
        low, high = (middle, high) if above else (low, middle)
    return high


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("width", [1, 2])
def test_loss_stays_below_epsilon_in_both_directions(epsilon, width):
    pair = pair_for(epsilon, width=width)
    for audited in (pair, replace(pair, first=pair.second, second=pair.first)):
        losses = losses_of(audited, draws=30_000)
        assert measured_epsilon(losses, DELTA) <= probabilistic_epsilon(losses, DELTA) <= epsilon


def test_pseudo_huber_stays_below():
    assert probabilistic_epsilon(losses_of(pair_for(1.0, loss=PseudoHuber(2, 0.5))), DELTA) <= 1.0


def test_losses_are_those_of_two_probability_laws():
    """E[e^-loss] = 1 for a ratio of densities: fails if the Jacobian or the noise change is wrong."""
    losses = losses_of(pair_for(4.0, width=2), draws=100_000)
    assert float(torch.exp(-losses).mean()) == pytest.approx(1.0, abs=0.012)
    assert float(losses.abs().max()) > 0.3


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_the_audit_finds_the_integrated_curve_and_catches_half_the_noise(epsilon):
    expected = integrated_epsilon(pair_for(epsilon))
    assert measured_epsilon(losses_of(pair_for(epsilon), draws=150_000), DELTA) == pytest.approx(expected, rel=0.15)
    assert expected < epsilon
    halved = pair_for(epsilon, broken=0.5)
    found = measured_epsilon(losses_of(halved, draws=150_000), DELTA)
    assert found == pytest.approx(integrated_epsilon(halved), rel=0.15)
    assert found > 1.4 * expected


def test_audit_catches_too_little_noise():
    assert measured_epsilon(losses_of(pair_for(1.0, broken=0.1)), DELTA) > 1.0


def test_audit_catches_an_influence_bound_for_the_wrong_option():
    """A plan made for one tenth of the influence (say, the bound of a larger restart) is caught."""
    assert measured_epsilon(losses_of(pair_for(1.0, influence=0.1)), DELTA) > 1.0
