"""Google's dp-accounting as a cross-check: our pair, composed by their code, and their own mixture beside it."""

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.special import ndtr

from gcon.mechanisms.gaussian_curve import gaussian_epsilon
from gcon_lab.mechanisms.replaced_pair import replaced_pair_epsilon

KNOWN = [(0.1, 10.0, 100, 1e-5), (0.3, 20.0, 100, 1e-5), (0.05, 8.0, 200, 1e-4)]


def weights_of(sampling):
    return [(1 - sampling) ** 2, 2 * sampling * (1 - sampling), sampling**2]


def composed_by_them(sampling, noise, steps, delta, cells=1_000):
    """Both mixtures on a grid of cells (a function of the real outcome, so this is from below), composed by them."""
    # Six deviations: what lies outside weighs less than delta/1000, and its losses would need long tables.
    edges = np.linspace(-6, 6, cells + 1)
    masses = []
    for sign in (1, -1):
        cumulative = sum(w * ndtr(edges + sign * k / noise) for k, w in enumerate(weights_of(sampling)))
        masses.append(dict(enumerate(np.log(np.diff(cumulative)))))
    found = pld.from_two_probability_mass_functions(*masses, value_discretization_interval=5e-5)
    return found.self_compose(steps).get_epsilon_for_delta(delta)


@pytest.mark.parametrize("case", KNOWN)
def test_our_pair_composed_by_them(case):
    assert replaced_pair_epsilon(*case) == pytest.approx(composed_by_them(*case), rel=6e-3)


@pytest.mark.slow
@pytest.mark.parametrize("case", KNOWN)
def test_their_mixture_is_a_little_above_after_many_steps(case):
    """It compares one plain Gaussian with a mixture of twice the shifts: another pair, close to ours after many steps."""
    sampling, noise, steps, delta = case
    mixture = pld.from_mixture_gaussian_mechanism(
        standard_deviation=noise, sensitivities=[0.0, 2.0, 4.0], sampling_probs=weights_of(sampling)
    )
    theirs = mixture.self_compose(steps).get_epsilon_for_delta(delta)
    assert 1.0 <= theirs / replaced_pair_epsilon(*case) <= 1.06


@pytest.mark.parametrize("distance", [0.1, 1.0, 4.0])
def test_the_gaussian_curve(distance):
    theirs = pld.from_gaussian_mechanism(standard_deviation=1 / distance).get_epsilon_for_delta(1e-5)
    assert gaussian_epsilon(distance, 1e-5) == pytest.approx(theirs, rel=1e-3)
