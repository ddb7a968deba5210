"""Plans of noisy gradients: they cover what they say that they cost, or are refused."""

import dataclasses
import math

import pytest

from gcon.errors import InputError, PlanMismatchError
from gcon.privacy.budget import Budget
from gcon_lab.mechanisms.noisy_gradients import gradient_plan


@pytest.mark.parametrize("sampling", [1.0, 0.2])
def test_a_plan_covers_its_budget_or_is_refused(sampling):
    plan = gradient_plan(1.0, 1e-5, sampling=sampling, steps=20, clip=0.3)
    assert dataclasses.replace(plan, standard_deviation=2 * plan.standard_deviation).budget == plan.budget
    wrong = [{"standard_deviation": scale} for scale in (0.0, -1.0, math.nan, math.inf, 1e-3)]
    wrong += [{"standard_deviation": 0.999 * plan.standard_deviation}, {"steps": 21}, {"clip": 0.31}]
    wrong += [{"budget": Budget(0.99, 1e-5)}, {"budget": Budget(1.0, 0.99e-5)}]
    for changes in [*wrong, {"sampling": 0.21}] if sampling < 1 else wrong:
        with pytest.raises(PlanMismatchError):
            dataclasses.replace(plan, **changes)


def test_large_budgets_can_be_planned():
    for sampling in (1.0, 0.5):
        assert gradient_plan(2000.0, 0.1, sampling=sampling, steps=1, clip=1.0).standard_deviation > 0


def test_numbers_that_no_plan_has_are_refused():
    wrong = ((0.0, 1, 1.0), (1.5, 1, 1.0), (0.5, 0, 1.0), (0.5, 10.5, 1.0), (0.5, 1, 0.0), (0.5, 1, 1e-9))
    for sampling, steps, clip in (*wrong, (0.5, 1, math.inf), (0.5, True, 1.0), (math.nan, 1, 1.0)):
        with pytest.raises(InputError):
            gradient_plan(1.0, 1e-5, sampling=sampling, steps=steps, clip=clip)
        with pytest.raises(InputError):
            gradient_plan(math.inf, 1e-5, sampling=sampling, steps=steps, clip=clip)
    for epsilon in (0.0, -1.0, -math.inf, math.nan):
        with pytest.raises(InputError):
            gradient_plan(epsilon, 1e-5, sampling=0.5, steps=1, clip=1.0)
