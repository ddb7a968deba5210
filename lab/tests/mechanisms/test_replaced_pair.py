"""The accountant of noisy gradients: known answers, bounds from both sides by another composition, and monotony."""

import itertools
import math

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
from scipy.special import ndtr

from gcon.errors import InputError
from gcon.mechanisms.gaussian_curve import gaussian_delta, gaussian_epsilon, gaussian_multiplier
from gcon_lab.mechanisms import replaced_pair
from gcon_lab.mechanisms.replaced_pair import (
    noise_for,
    replaced_pair_delta,
    replaced_pair_epsilon,
)


def weights_of(sampling):
    return np.array([(1 - sampling) ** 2, 2 * sampling * (1 - sampling), sampling**2])


def loss_of(points, sampling, noise):
    """ln(P/Q) in units of sigma, written out by hand."""
    weights, shifts = weights_of(sampling), np.arange(3) / noise
    p, q = (
        sum(w * np.exp(-sign * k * points - k * k / 2) for w, k in zip(weights, shifts, strict=True))
        for sign in (1, -1)
    )
    return np.log(p / q)


def independent_epsilons(sampling, noise, steps, delta, spacing=1e-4, cells=200_000):
    """A plain composition, once with all losses rounded down and once up: a lower and an upper bound on epsilon."""
    edges = np.linspace(-2 / noise - 9, 2 / noise + 9, cells + 1)
    cumulative = sum(w * ndtr(edges + k / noise) for k, w in enumerate(weights_of(sampling)))
    masses, losses = np.diff(cumulative), loss_of(edges, sampling, noise)
    found = []
    for places in (np.floor(losses[1:] / spacing), np.ceil(losses[:-1] / spacing)):
        places = places.astype(int)
        least, size = places.min(), 2 ** (int(np.ptp(places)) * 8).bit_length()
        composed = np.fft.irfft(np.fft.rfft(np.bincount(places - least, masses, minlength=size)) ** steps, size)
        mean = steps * float(masses @ (places - least))
        # The composed law is narrow against the window: unroll it around its mean.
        start = round(mean) - size // 2
        index = np.arange(start, start + size)
        totals, mass = (index + steps * least) * spacing, np.maximum(composed[index % size], 0)

        def excess(epsilon, totals=totals, mass=mass):
            over = totals > epsilon
            return float(mass[over] @ -np.expm1(epsilon - totals[over])) - delta

        found.append(scipy.optimize.brentq(excess, 0, 30, xtol=1e-7))
    return found


KNOWN = [(0.1, 10.0, 100, 1e-5, 1.554), (0.3, 20.0, 100, 1e-5, 2.444), (0.05, 8.0, 200, 1e-4, 1.144)]


@pytest.mark.parametrize(("sampling", "noise", "steps", "delta", "known"), [*KNOWN, (1.0, 40.0, 100, 1e-5, 4.377)])
def test_known_answers(sampling, noise, steps, delta, known):
    assert known - 5e-4 <= replaced_pair_epsilon(sampling, noise, steps, delta) <= known + 0.01


@pytest.mark.parametrize(
    ("sampling", "noise", "steps", "delta"), [*(case[:4] for case in KNOWN), (0.7, 60.0, 50, 1e-6)]
)
def test_between_two_independent_compositions(sampling, noise, steps, delta):
    low, high = independent_epsilons(sampling, noise, steps, delta)
    assert high - low < 0.025
    assert low <= replaced_pair_epsilon(sampling, noise, steps, delta) <= high


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "table"), [(0.5, 25.0), (1.0, 13.3), (2.0, 7.19), (4.0, 3.93)])
def test_needed_noise(epsilon, table):
    """The table was computed with epsilon rounded up by 0.01 in all, so it lies a little above."""
    delta = 1 / 16316
    noise = noise_for(0.1, 100, epsilon, delta)
    assert 0.98 * table <= noise <= table
    assert replaced_pair_epsilon(0.1, noise, 100, delta) <= epsilon
    assert replaced_pair_epsilon(0.1, noise * 0.999, 100, delta) > epsilon
    assert independent_epsilons(0.1, noise, 100, delta)[0] <= epsilon
    assert noise_for(0.1, 100, epsilon, delta) == noise


def test_known_sum_without_sampling():
    assert noise_for(1.0, 100, 1.0, 1 / 16316) == pytest.approx(132.26, abs=0.01)
    assert noise_for(1.0, 100, 1.0, 1 / 16316) == 40 * gaussian_multiplier(1.0, 1 / 16316)
    assert replaced_pair_delta(1.0, 40.0, 100, 1.0) == pytest.approx(gaussian_delta(1.0, 1.0), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-8, 1e-11])
def test_sampling_towards_one_meets_the_closed_form(delta):
    """Through the composition, far into the tail: never below, and close."""
    exact = gaussian_epsilon(1.0, delta)
    assert exact <= replaced_pair_epsilon(1 - 1e-12, 40.0, 100, delta) <= exact + 0.003
    assert noise_for(1 - 1e-12, 100, 2.0, delta) == pytest.approx(noise_for(1.0, 100, 2.0, delta), rel=0.002)


@pytest.mark.parametrize(("sampling", "noise", "epsilon"), [(0.2, 2.0, 0.5), (0.5, 1.0, 2.0), (0.05, 0.7, 1.0)])
def test_upper_bound_for_two_and_three_steps_by_brute_force(sampling, noise, epsilon):
    """All outcomes of two and of three steps side by side on a grid."""
    line = np.linspace(-2 / noise - 8, 2 / noise + 8, 700)
    densities = [
        sum(w * np.exp(-((line + sign * k / noise) ** 2) / 2) for k, w in enumerate(weights_of(sampling)))
        * (line[1] - line[0])
        / math.sqrt(2 * math.pi)
        for sign in (1, -1)
    ]
    p, q = (np.multiply.outer(one, one) for one in densities)
    two = float(np.clip(p - math.exp(epsilon) * q, 0, None).sum())
    assert two * 0.999 <= replaced_pair_delta(sampling, noise, 2, epsilon) <= two * 1.004
    thinned = [one.reshape(-1, 4).sum(axis=1) for one in densities]
    p, q = (np.multiply.outer(np.multiply.outer(one, one), one) for one in thinned)
    three = float(np.clip(p - math.exp(epsilon) * q, 0, None).sum())  # coarser outcomes: below the truth
    assert three <= replaced_pair_delta(sampling, noise, 3, epsilon) <= three * 1.02


def test_one_step_by_quadrature():
    def density(point, sign):
        return sum(
            w * math.exp(-((point + sign * k / 1.5) ** 2) / 2) / math.sqrt(2 * math.pi)
            for k, w in enumerate(weights_of(0.4))
        )

    for epsilon in (0.0, 0.5, 1.5):
        cut = scipy.optimize.brentq(lambda x, e=epsilon: loss_of(x, 0.4, 1.5) - e, -20, 20)
        exact = scipy.integrate.quad(
            lambda x, e=epsilon: density(x, 1) - math.exp(e) * density(x, -1), -15, cut, epsabs=1e-13
        )[0]
        assert exact <= replaced_pair_delta(0.4, 1.5, 1, epsilon) <= exact * 1.002


def test_monotone():
    def rising(values):
        return all(one < other for one, other in itertools.pairwise(values))

    assert rising([replaced_pair_epsilon(q, 10.0, 50, 1e-5) for q in (0.02, 0.2, 0.9, 1.0)])
    assert rising([replaced_pair_epsilon(0.1, 10.0, steps, 1e-5) for steps in (1, 50, 1000)])
    assert rising([replaced_pair_epsilon(0.1, noise, 50, 1e-5) for noise in (40.0, 4.0, 0.5)])
    assert rising([replaced_pair_epsilon(0.1, 10.0, 50, delta) for delta in (1e-2, 1e-6, 1e-9)])
    assert rising([-replaced_pair_delta(0.1, 10.0, 50, epsilon) for epsilon in (0.0, 0.3, 1.0, 3.0)])
    assert rising([noise_for(0.2, 50, epsilon, 1e-5) for epsilon in (4.0, 0.25)])


def revealed_batch_epsilon(sampling, noise_multiplier, steps, delta):
    """A coarse upper bound that needs no worst-case pair: it lets the attacker see who was sampled.

    Given the sample, k of the two ends are in it and the sum moves by at most 2 k tau: one Gaussian release of distance
    2 k tau / sigma. Its loss is composed like that of the pair. About three times the pair's epsilon at q = 0.1.
    """
    reach = replaced_pair._REACH
    edges = np.linspace(-reach, reach, replaced_pair._FINE + 1)
    masses = replaced_pair._masses(edges, np.zeros(1), np.ones(1))
    losses = [distance**2 / 2 - distance * edges[:-1] for distance in 2 * np.arange(3) / noise_multiplier]
    weighted = [weight * masses for weight in weights_of(sampling)]
    law = replaced_pair._law(np.concatenate(losses), np.concatenate(weighted), float(ndtr(-reach)))
    return replaced_pair._composed_epsilon(law, steps, delta)


def test_revealing_the_batch_costs_more():
    assert revealed_batch_epsilon(0.1, 10.0, 100, 1e-5) == pytest.approx(4.59, abs=0.01)
    for sampling, noise, steps in ((0.5, 20.0, 20), (0.05, 2.0, 10), (1.0, 40.0, 100)):
        assert revealed_batch_epsilon(sampling, noise, steps, 1e-5) >= replaced_pair_epsilon(
            sampling, noise, steps, 1e-5
        )
    assert revealed_batch_epsilon(1.0, 40.0, 100, 1e-5) == pytest.approx(gaussian_epsilon(1.0, 1e-5), abs=0.003)


def test_adding_and_removing_is_not_enough():
    """One Gaussian against the mixture (the usual formula) is below the pair at one step: 0.821 against 0.833."""
    points = np.linspace(-12, 16, 400_001)
    mixed = sum(
        w * np.exp(-((points - 2 * k) ** 2) / 2) / math.sqrt(2 * math.pi) for k, w in enumerate(weights_of(0.9))
    )
    plain = np.exp(-(points**2) / 2) / math.sqrt(2 * math.pi)
    usual = float(np.clip(mixed - math.e * plain, 0, None).sum() * (points[1] - points[0]))
    assert usual == pytest.approx(0.821, abs=5e-4)
    assert replaced_pair_delta(0.9, 1.0, 1, 1.0) == pytest.approx(0.833, abs=5e-4)


def test_what_lies_beyond_the_cells_is_counted():
    """No finite loss of one step reaches 50: what is left is the mass that was given an infinite loss."""
    beyond = replaced_pair_delta(0.1, 10.0, 1, 50.0)
    assert 0 < beyond < 1e-20
    assert replaced_pair_delta(0.1, 10.0, 100, 5000.0) == pytest.approx(100 * beyond)


@pytest.mark.parametrize(("sampling", "noise", "steps"), [(0.1, 10.0, 100), (0.5, 3.0, 3), (0.02, 0.7, 500)])
def test_epsilon_is_the_upper_end(sampling, noise, steps):
    for delta in (1e-3, 1e-5, 1e-8):
        epsilon = replaced_pair_epsilon(sampling, noise, steps, delta)
        assert replaced_pair_delta(sampling, noise, steps, epsilon) <= delta
        assert replaced_pair_delta(sampling, noise, steps, epsilon * (1 - 1e-5)) > delta


@pytest.mark.parametrize("delta", [1e-18, 1e-19, 1e-30, 1e-100])
def test_a_delta_that_no_noise_reaches_is_refused(delta):
    with pytest.raises(InputError, match="delta"):
        noise_for(0.5, 1000, 1.0, delta)
    with pytest.raises(InputError, match="delta"):
        replaced_pair_epsilon(0.5, 10.0, 1000, delta)


def test_a_search_without_end_is_refused(monkeypatch):
    """Whatever the reason that no noise is enough."""
    monkeypatch.setattr(replaced_pair, "_composed_delta", lambda *_: 1.0)
    with pytest.raises(InputError, match="delta"):
        noise_for.__wrapped__(0.5, 10, 1.0, 1e-5)


def test_refusals():
    for sampling, noise, steps in ((0.0, 1.0, 1), (1.1, 1.0, 1), (0.5, 0.0, 1), (0.5, math.inf, 1), (0.5, 1.0, 0)):
        with pytest.raises(InputError):
            replaced_pair_epsilon(sampling, noise, steps, 1e-5)
    with pytest.raises(InputError):
        replaced_pair_epsilon(0.5, 1.0, 1, 0.0)
    with pytest.raises(InputError):
        noise_for(0.5, 10, math.inf, 1e-5)
