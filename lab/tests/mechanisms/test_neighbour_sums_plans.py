"""Plans for noisy sums over neighbours: their noise, what they charge, and what is refused."""

import dataclasses
import itertools
import math

import pytest
import scipy.stats

from gcon.errors import InputError, PlanMismatchError
from gcon.mechanisms.gaussian_curve import gaussian_delta, gaussian_epsilon, gaussian_multiplier
from gcon.privacy.budget import Budget
from gcon_lab.mechanisms.neighbour_sums import SumsPlan, gaussian_sums_plan, laplace_sums_plan

DELTAS = {"cora-ml": 1 / 16316, "citeseer": 1 / 9104, "pubmed": 1 / 88648, "actor": 1 / 30019}
MULTIPLIERS = {  # 1/mu*, to four digits
    0.5: (6.1467, 5.8446, 6.9753, 6.4530),
    1.0: (3.3065, 3.1622, 3.7035, 3.4530),
    2.0: (1.7917, 1.7232, 1.9808, 1.8614),
    3.0: (1.2601, 1.2160, 1.3822, 1.3051),
    4.0: (0.9857, 0.9535, 1.0750, 1.0186),
}


@pytest.mark.parametrize("epsilon", MULTIPLIERS)
@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_standard_deviation_is_that_of_the_table(epsilon, rounds):
    for delta, expected in zip(DELTAS.values(), MULTIPLIERS[epsilon], strict=True):
        plan = gaussian_sums_plan(epsilon, delta, rounds)
        assert plan.scale / math.sqrt(2 * rounds) == pytest.approx(expected, abs=5.1e-5)
        assert plan.budget == Budget(epsilon, delta)
        # Re-deriving the cost from the noise: never above the target, and close to it.
        distance = math.sqrt(2 * rounds) / plan.scale
        assert gaussian_delta(epsilon, distance) <= delta
        assert gaussian_epsilon(plan.distance, delta) == pytest.approx(epsilon, rel=1e-6)
        assert gaussian_epsilon(plan.distance, delta) <= epsilon


def test_known_values():
    assert gaussian_sums_plan(1.0, DELTAS["cora-ml"], 2).scale == pytest.approx(6.613, abs=5e-4)
    for epsilon, rounds in itertools.product((0.5, 1.0, 4.0), (1, 2)):
        plan = laplace_sums_plan(epsilon, rounds)
        assert plan.scale == pytest.approx(2 * rounds / epsilon, rel=1e-8)
        assert plan.scale >= 2 * rounds / epsilon
        assert plan.budget == Budget(epsilon, 0.0)
        assert plan.distance is None


@pytest.mark.parametrize(("epsilon", "charged"), [(0.5, 0.7362), (1.0, 1.4778), (4.0, 6.0565)])
@pytest.mark.parametrize("rounds", [1, 3])
def test_directed_convention_charges_what_it_costs(epsilon, charged, rounds):
    """Noise for sensitivity 1 while an edge moves the sums by sqrt(2): the distance is sqrt(2) times the planned one."""
    delta = DELTAS["cora-ml"]
    plan = gaussian_sums_plan(epsilon, delta, rounds, convention="directed")
    right = gaussian_sums_plan(epsilon, delta, rounds)
    assert plan.scale == pytest.approx(right.scale / math.sqrt(2), rel=1e-12)
    true = gaussian_epsilon(math.sqrt(2) / gaussian_multiplier(epsilon, delta), delta)
    assert plan.budget.epsilon == pytest.approx(true, rel=1e-6)
    assert plan.budget.epsilon == pytest.approx(charged, abs=5e-5)
    distance, phi = math.sqrt(2 * rounds) / plan.scale, scipy.stats.norm.cdf  # the formula once more, from scratch
    tails = phi(distance / 2 - true / distance), math.exp(true) * phi(-distance / 2 - true / distance)
    assert tails[0] - tails[1] == pytest.approx(delta, rel=1e-5)
    assert plan.budget.epsilon > epsilon
    assert plan.budget.delta == delta


def test_a_plan_covers_its_budget_or_is_refused():
    gaussian, laplace = gaussian_sums_plan(1.0, 1e-5, 2), laplace_sums_plan(1.0, 2)
    for plan in (gaussian, laplace):
        for scale in (0.0, -1.0, math.nan, math.inf, 0.99 * plan.scale):
            with pytest.raises(PlanMismatchError):
                dataclasses.replace(plan, scale=scale)
        with pytest.raises(PlanMismatchError):
            dataclasses.replace(plan, rounds=3)
        assert dataclasses.replace(plan, scale=2 * plan.scale).budget == plan.budget
    for distance in (None, 0.0, 0.9 * gaussian.distance):
        with pytest.raises(PlanMismatchError):
            dataclasses.replace(gaussian, distance=distance)
    with pytest.raises(PlanMismatchError, match="finite epsilon"):
        SumsPlan(budget=Budget(1.0, 0.0), rounds=1, law="laplace", scale=0.0)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan])
def test_bad_numbers_are_refused(epsilon):
    with pytest.raises(InputError, match="epsilon"):
        gaussian_sums_plan(epsilon, 1e-5, 1)
    with pytest.raises(InputError, match="epsilon"):
        laplace_sums_plan(epsilon, 1)
    for rounds in (0, -1, 1.5, True):
        with pytest.raises(InputError, match="rounds"):
            gaussian_sums_plan(1.0, 1e-5, rounds)
        with pytest.raises(InputError, match="rounds"):
            laplace_sums_plan(1.0, rounds)
    for given in (1.0, math.inf):
        with pytest.raises(InputError, match="edge_sensitivity"):
            gaussian_sums_plan(given, 1e-5, 1, convention="none")
