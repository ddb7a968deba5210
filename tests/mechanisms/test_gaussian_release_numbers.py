"""Numbers of Gaussian releases: plans at tiny and huge budgets, scales that are never rounded down, bytes that are drawn."""

import math
import re
from fractions import Fraction

import mpmath
import networkx
import numpy as np
import pytest
import torch
from tests.mechanisms.counting import Counting

from gcon.edges.edge_list import public_edges
from gcon.errors import InputError
from gcon.mechanisms import gaussian_release
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.gaussian_curve import gaussian_delta, gaussian_multiplier
from gcon.mechanisms.gaussian_release import gaussian_plan
from gcon.privacy.account import spend
from gcon.privacy.boundary import Private
from gcon.privacy.budget import Budget
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SystemRandomness
from gcon_lab.mechanisms.bilinear_sums import BilinearSums

SIZE, WIDTH = 12, 4
EDGES = public_edges(torch.tensor(list(networkx.gnp_random_graph(SIZE, 0.4, seed=2).edges)).T, SIZE)
ROWS = torch.randn(SIZE, WIDTH, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
MOMENTS, SUMS = EdgeMoments(ROWS), BilinearSums(ROWS, torch.eye(SIZE))


# --- plans ------------------------------------------------------------------------------------------------------------


def exact_delta(epsilon, distance):
    with mpmath.workdps(60):
        epsilon, distance = mpmath.mpf(epsilon), mpmath.mpf(distance)
        below = mpmath.ncdf(-distance / 2 - epsilon / distance)
        return mpmath.ncdf(distance / 2 - epsilon / distance) - mpmath.exp(epsilon) * below


@pytest.mark.parametrize("delta", [1e-5, 1e-6, 1e-12])
def test_no_valid_budget_is_refused_for_the_noise_of_float64(delta):
    refused_once = 0
    for epsilon in [0.00012238249369681925, *np.geomspace(1e-4, 10, 400).tolist()]:
        plan = gaussian_plan(epsilon, delta, method="test")
        assert plan.budget == Budget(epsilon, delta)
        assert gaussian_delta(epsilon, plan.distance) <= delta
        largest = 1 / gaussian_multiplier(epsilon, delta)
        assert (1 - 1e-9) * largest <= plan.distance < largest
        if plan.distance < (1 - 1.5e-12) * largest:
            refused_once += 1
            assert exact_delta(epsilon, plan.distance) <= delta
    assert refused_once > 10  # the test would be idle without them


@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.49])
def test_tiny_epsilons_have_a_plan(delta):
    for epsilon in np.geomspace(1e-12, 1e-4, 40).tolist():
        plan = gaussian_plan(epsilon, delta, method="test")
        assert exact_delta(epsilon, plan.distance) <= delta
        assert plan.distance >= (1 - 2e-4) / gaussian_multiplier(epsilon, delta)


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, math.inf])
def test_delta_from_one_half_on_is_refused_in_words(epsilon):
    gaussian_plan(epsilon, math.nextafter(0.5, 0), method="test")
    for delta in (0.5, 0.9, 0.999999):
        with pytest.raises(InputError, match=rf"delta: must be .* below 0\.5.*got {re.escape(repr(delta))}.*1e-5"):
            gaussian_plan(epsilon, delta, method="test")


# --- scales -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def scales(monkeypatch):
    """The scales that noise is drawn with."""
    seen = []

    def drawing(randomness, values, *, scale, spacing, rest):
        seen.append(torch.as_tensor(scale, dtype=torch.float64).expand(values.shape).tolist())
        return values

    monkeypatch.setattr(gaussian_release, "rounded_noise", drawing)
    return seen


def with_deviation(statistic, sigma):
    release = gaussian_plan(1.0, 1e-5, method="test").noisy(statistic, share=1.0)
    object.__setattr__(release, "standard_deviation", sigma)
    return release


def test_scales_off_the_diagonal_are_never_below_sigma_over_root_two(scales):
    generator = np.random.default_rng(3)
    diagonal = [row == column for row in range(WIDTH) for column in range(row, WIDTH)]
    for sigma in (10.0 ** generator.uniform(-20, 20, 200)).tolist():
        scales.clear()
        with_deviation(MOMENTS, sigma).apply(EDGES, SystemRandomness())
        (found,) = scales
        assert len(found) == len(diagonal)
        for scale, on in zip(found, diagonal, strict=True):
            square, needed = Fraction(scale) ** 2, Fraction(sigma) ** 2 / (1 if on else 2)
            assert needed <= square <= needed * (1 + Fraction(1, 10**14))
        scales.clear()
        with_deviation(SUMS, sigma).apply(EDGES, SystemRandomness())
        assert scales == [[[sigma] * SIZE] * WIDTH]


def test_together_the_releases_are_within_the_distance_in_fractions(scales):
    for shares in ((1.0,), (0.1,) * 10, (1 / 3, 1 / 3, 1 / 3), (0.7, 0.3)):
        plan = gaussian_plan(0.7, 1e-6, method="test")
        releases = [plan.noisy((SUMS, MOMENTS)[place % 2], share=share) for place, share in enumerate(shares)]
        plan.check(releases)
        out = [release.apply(EDGES, SystemRandomness()) for release in releases]
        moved = sum((Fraction(one.sensitivity) / Fraction(one.standard_deviation)) ** 2 for one in out)
        assert moved <= Fraction(plan.distance) ** 2


# --- bytes ------------------------------------------------------------------------------------------------------------


def test_all_noise_comes_from_the_source_that_was_given():
    """Of another source nobody would know whether it can be predicted: the ledger speaks of this one."""
    plan, source = gaussian_plan(1.0, 1e-5, method="test"), Counting()
    private = Private(EDGES, "edges")
    with spend(private, plan, ledger=MemoryLedger("circle"), randomness=source, purpose="test") as account:
        for statistic, share in ((MOMENTS, 0.2), (SUMS, 0.3), (MOMENTS, 0.5)):
            account.release(plan.noisy(statistic, share=share))
    symmetric, plain = 16 * (WIDTH * (WIDTH + 1) // 2 // 2), 16 * (SIZE * WIDTH // 2)
    assert [taken for taken in source.taken if taken != 8] == [symmetric, plain, symmetric]  # 8: a word more, rarely
