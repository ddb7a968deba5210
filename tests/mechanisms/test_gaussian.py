"""The exact Gaussian curve and its inverse."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from gcon.mechanisms import gaussian_curve as gaussian
from gcon.mechanisms.gaussian_curve import gaussian_delta, gaussian_epsilon, gaussian_multiplier

mpmath = pytest.importorskip("mpmath")  # comes with torch, by way of sympy

DELTAS = (1 / 16316, 1 / 88648, 1e-5, 1e-6)
MULTIPLIERS = {
    0.1: (25.90178563, 30.44151889, 30.74956613, 36.30469043),
    0.25: (11.44340683, 13.16815362, 13.28552524, 15.40981386),
    0.5: (6.146676555, 6.975306601, 7.031826676, 8.057618481),
    1: (3.306503490, 3.703488050, 3.730631635, 4.224678889),
    2: (1.791725004, 1.980848708, 1.993812446, 2.230476271),
    3: (1.260128812, 1.382212828, 1.390593457, 1.543861418),
    4: (0.9857279575, 1.075025821, 1.081161850, 1.193518587),
}
searched = settings(max_examples=200, deadline=None, derandomize=True)


def precise_delta(epsilon: float, distance: float) -> float:
    """The formula with sixty digits."""
    with mpmath.workdps(60):
        epsilon, distance = mpmath.mpf(epsilon), mpmath.mpf(distance)
        first = mpmath.ncdf(distance / 2 - epsilon / distance)
        return first - mpmath.exp(epsilon) * mpmath.ncdf(-distance / 2 - epsilon / distance)


@pytest.mark.parametrize("epsilon", MULTIPLIERS)
def test_reference_multipliers(epsilon):
    for delta, expected in zip(DELTAS, MULTIPLIERS[epsilon], strict=True):
        assert gaussian_multiplier(epsilon, delta) == pytest.approx(expected, rel=1e-9)


def test_more_epsilon_or_delta_needs_less_noise():
    epsilons, deltas = (0.01, 0.1, 0.5, 1, 4, 20, 60), (1e-12, 1e-9, 1e-6, 1e-3, 0.1)
    for delta in deltas:
        values = [gaussian_multiplier(epsilon, delta) for epsilon in epsilons]
        assert all(earlier > later for earlier, later in itertools.pairwise(values))
    for epsilon in epsilons:
        values = [gaussian_multiplier(epsilon, delta) for delta in deltas]
        assert all(earlier > later for earlier, later in itertools.pairwise(values))


@searched
@given(
    epsilon=st.floats(0.01, 60),
    log_delta=st.floats(math.log(1e-12), math.log(0.1)),
)
def test_the_multiplier_errs_on_the_private_side_and_only_just(epsilon, log_delta):
    delta = math.exp(log_delta)
    multiplier = gaussian_multiplier(epsilon, delta)
    exact = precise_delta(epsilon, 1 / multiplier)
    assert exact <= delta
    assert precise_delta(epsilon, 1 / (multiplier * (1 - 1e-6))) > delta
    # The curve itself is rounded up, by far less than matters.
    assert exact <= gaussian_delta(epsilon, 1 / multiplier) <= exact * (1 + 1e-6)


@searched
@given(epsilon=st.floats(0, 10), distance=st.floats(0.05, 20))
def test_the_curve_against_its_formula(epsilon, distance):
    plain = norm.cdf(distance / 2 - epsilon / distance) - math.exp(epsilon) * norm.cdf(
        -distance / 2 - epsilon / distance
    )
    assert gaussian_delta(epsilon, distance) == pytest.approx(plain, rel=1e-6, abs=1e-12)


@searched
@given(epsilon=st.floats(1e-5, 5), distance=st.floats(1e-3, 5))
def test_the_curve_falls_with_epsilon_and_rises_with_distance(epsilon, distance):
    here = gaussian_delta(epsilon, distance)
    assert gaussian_delta(epsilon * 1.01, distance) <= here
    assert gaussian_delta(epsilon, distance * 1.01) >= here
    assert 0 <= here <= 1


def test_no_distance_no_delta():
    assert gaussian_delta(1.0, 0.0) == 0.0


def test_far_tails_keep_their_digits():
    # delta_a of the certificate: distance 1e-4, epsilon 1e-3, far below what a difference of probabilities could show.
    value = gaussian_delta(1e-3, 1e-4)
    # int_0^inf (e^(mu x) - 1) phi(10 + x) dx ~ mu phi(10) / 100 for small mu
    leading = 1e-4 * norm.pdf(10) / 100
    assert value == pytest.approx(leading, rel=0.06)
    assert 0 < value < 1e-28
    assert precise_delta(1e-3, 1e-4) <= value <= precise_delta(1e-3, 1e-4) * (1 + 1e-5)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(
    distance=st.floats() | st.floats(0, 1e-290) | st.floats(1e150, 1e308),
    delta=st.floats(0, 1) | st.floats(1e-300, 1e-12),
)
@example(distance=math.inf, delta=1e-6)
@example(distance=math.nan, delta=1e-6)
@example(distance=1e160, delta=1e-6)
@example(distance=1e-310, delta=1e-14)
@example(distance=5e-324, delta=1e-20)
@example(distance=1.0, delta=0.0)
def test_epsilon_is_found_in_a_bounded_number_of_steps_for_every_input(distance, delta):
    """1024 doublings to infinity, 1074 halvings to the smallest float, and the bisection between two powers of two."""
    calls = 0

    def counted(epsilon, mu):
        nonlocal calls
        calls += 1
        assert calls <= 2200
        return gaussian_delta(epsilon, mu)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gaussian, "gaussian_delta", counted)
        epsilon = gaussian_epsilon(distance, delta)
    assert epsilon >= 0
    if distance > 0 and delta > 0:
        assert math.isinf(epsilon) or gaussian_delta(epsilon, distance) <= delta
    elif not distance <= 0:
        assert math.isinf(epsilon)


def test_epsilon_of_extreme_distances():
    assert gaussian_epsilon(math.inf, 1e-6) == gaussian_epsilon(1e160, 1e-6) == math.inf
    assert 0 < gaussian_epsilon(1e-310, 1e-14) < 1e-300
    assert gaussian_epsilon(1e100, 1e-6) == pytest.approx(5e199)
    assert gaussian_epsilon(0.0, 0.0) == gaussian_epsilon(0.0, 1e-6) == 0.0


@pytest.mark.parametrize("distance", [1e2, 1e5, 1e9])
def test_large_distances_lose_no_privacy_to_rounding(distance):
    """The sum with epsilon cancels many digits there; what is left must not be below the exact delta."""
    for tail in (0.0, 2.0, 5.0):
        epsilon = distance**2 / 2 + tail * distance
        assert gaussian_delta(epsilon, distance) >= precise_delta(epsilon, distance) * (1 - 1e-5)
