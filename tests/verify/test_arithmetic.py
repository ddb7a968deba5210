"""The verifier's arithmetic against known values, and its steps against plans over a wide range of public numbers."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import gammaincc

from gcon.errors import InputError, PlanMismatchError
from gcon.mechanisms.convex_training import objective_record
from gcon.mechanisms.losses import loss_by_name
from gcon.mechanisms.mixed_release import mixed_plan
from gcon.mechanisms.objective_plan import make_plan
from gcon.privacy.budget import Budget
from gcon.verify.arithmetic import (
    digits,
    erlang_quantile,
    erlang_tail,
    gaussian_delta,
    is_lattice_of,
    lattice_of,
    mixed_delta,
    on_lattice,
    shown,
)
from gcon.verify.branch_steps import Branches, check_costs
from gcon.verify.noise import check_differences, farthest, sum_chances
from gcon.verify.steps import Steps, Verification
from gcon.verify.theorem import Public, check_reserve, check_theorem, loss_bounds


def powers(low, high):
    return st.floats(low, high).map(lambda exponent: 10**exponent)


@pytest.mark.parametrize(("epsilon", "multiplier"), [(1.0, 3.730632), (0.5, 7.031827)])
def test_the_gaussian_curve_at_known_points(epsilon, multiplier):
    assert float(gaussian_delta(digits.mpf(epsilon), 1 / digits.mpf(multiplier))) == pytest.approx(1e-5, rel=1e-5)


def test_the_erlang_tail_is_the_incomplete_gamma_function():
    for order, place in ((1, 0.5), (16, 41.2), (200, 150.0), (200, 320.0)):
        assert float(erlang_tail(order, digits.mpf(place))) == pytest.approx(float(gammaincc(order, place)), rel=1e-10)
    assert erlang_tail(5, digits.mpf(-1)) == 1
    assert float(erlang_tail(7, erlang_quantile(7, digits.mpf("1e-12")))) == pytest.approx(1e-12, rel=1e-9)


def test_the_lattice():
    assert [lattice_of(scale) for scale in (4097.0, 8191.0, 3 * 2.0**-40)] == [1.0, 1.0, 2.0**-51]
    assert lattice_of(4096.0) == 0.5  # the last digits decide
    assert is_lattice_of(1.0, digits.mpf(4096))
    assert not any(is_lattice_of(digits.mpf(spacing), digits.mpf(5000)) for spacing in (0.5, 2.0, 0.75, 0.0))
    assert on_lattice(torch.tensor([0.25, -3.0], dtype=torch.float64), 0.25)
    assert not on_lattice(torch.tensor([0.25, 0.125], dtype=torch.float64), 0.25)
    assert not on_lattice(torch.tensor([1e300], dtype=torch.float64), 1e-300)


def test_numbers_for_people():
    assert [shown(number) for number in (0, 1e-5, 1 / 3, digits.mpf(10) ** -400)] == [
        "0",
        "1e-05",
        "0.33333333",
        "1.0e-400",
    ]


@given(
    epsilon=powers(-3, 2),
    delta=powers(-12, -1.1),
    classes=st.integers(2, 40),
    width=st.integers(1, 60),
    rows=st.integers(1, 10**6),
    influence=powers(-3, 1.5),
    ridge=powers(-4, 2),
    noise_share=st.floats(0.001, 0.999999),
    huber=st.none() | powers(-2, 1),
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_every_plan_of_the_paper_holds(epsilon, delta, classes, width, rows, influence, ridge, noise_share, huber):
    name = "soft-margin" if huber is None else f"pseudo-huber:{huber!r}"
    try:
        plan = make_plan(
            Budget(epsilon, delta),
            loss=loss_by_name(name, classes),
            num_features=width,
            num_labelled=rows,
            edge_influence=influence,
            ridge=ridge,
            noise_share=noise_share,
        )
    except InputError:
        return
    record, steps = dict(objective_record([plan])), Steps()
    check_reserve(record, steps)
    public = Public(
        epsilon=digits.mpf(record["exact_epsilon"]),
        delta=digits.mpf(record["exact_delta"]),
        noise_share=digits.mpf(noise_share),
        width=width,
        rows=rows,
        influence=digits.mpf(influence),
        ridge=digits.mpf(record["ridge"]),
        loss=loss_bounds(record["loss"], classes),
    )
    check_theorem(public, record, steps)
    assert [step.words for step in steps.taken if not step.holds] == []
    assert is_lattice_of(digits.mpf(record["spacing"]), digits.mpf(record["final_noise"]))


@pytest.mark.parametrize(
    ("epsilon", "distance", "rate", "delta"),
    [
        ("1", "0.05", "0.4", 1.41479822976311e-7),
        ("2", "0.2", "0.75", 2.36424543597438e-4),
        ("0.7", "0.1", "0.2", 1.34083760252305e-5),
        ("0.5", "1e-40", "0.4", 0.0928977254222173),
    ],
)
def test_the_mixed_curve_at_known_points(epsilon, distance, rate, delta):
    found = mixed_delta(digits.mpf(epsilon), digits.mpf(distance), [digits.mpf(rate)] * 2)
    assert float(found) == pytest.approx(delta, rel=1e-13)


def test_the_mixed_curve_without_responses_is_the_gaussian_one():
    for epsilon, distance in ((1, 0.3), (8, 1.5), (0.001, 3e-4)):
        alone = mixed_delta(digits.mpf(epsilon), digits.mpf(distance), [])
        assert abs(alone / gaussian_delta(digits.mpf(epsilon), digits.mpf(distance)) - 1) < 1e-25


@pytest.mark.slow
@given(
    epsilon=powers(-3, 2), delta=powers(-12, -0.31), first_share=st.floats(0.01, 0.5), answer=st.sampled_from([0, 0.05])
)
@settings(max_examples=12, deadline=None, derandomize=True)
def test_every_mixed_plan_holds_and_no_larger_one(epsilon, delta, first_share, answer):
    try:
        plan = mixed_plan(epsilon, delta, first_share=first_share, answer_share=answer, method="test")
    except PlanMismatchError:  # a few tiny budgets, where the float64 curve is not monotone in its last digits
        assume(False)
    branches = Branches(
        distance=digits.mpf(plan.distance),
        first_share=digits.mpf(first_share),
        rates=tuple(digits.mpf(rate) for rate in plan.rates),
        answer_epsilon=digits.mpf(plan.answer_epsilon),
    )
    budget = digits.mpf(epsilon), digits.mpf(delta)
    assert fails(*budget, branches) == []
    one, two = branches.rates
    assert fails(*budget, replace(branches, distance=branches.distance * 1.001)) == [0, 2, 4]
    assert fails(*budget, replace(branches, rates=(one * 1.001, two * 0.999))) == [2, 5]
    assert fails(*budget, replace(branches, first_share=branches.first_share * 0.99)) == [3, 5]


def fails(epsilon, delta, branches):
    steps = Steps()
    check_costs(epsilon, delta, branches, steps)
    return [place for place, step in enumerate(steps.taken) if not step.holds]


def geometric(generator, rate, *shape):
    return generator.geometric(-math.expm1(-rate), shape) - generator.geometric(-math.expm1(-rate), shape)


def test_chances_of_one_number_and_of_two():
    """P(|k| <= d) = 1 - 2 q^(d+1)/(1 + q); of a sum of two by adding up."""
    decay, far = math.exp(-0.7), 200
    one = (1 - decay) / (1 + decay) * decay ** np.abs(np.arange(-far, far + 1))
    for number, law in ((1, one), (2, np.convolve(one, one, mode="same"))):
        near, beyond = sum_chances(np.arange(12), number, 0.7)
        for place in range(12):
            assert near[place] == pytest.approx(law[far - place : far + place + 1].sum(), abs=1e-12)
            assert beyond[place] == pytest.approx(1 - law[far - place + 1 : far + place].sum(), abs=1e-12)


@pytest.mark.parametrize("rate", [0.001, 0.3, 2.0, 9.0])
@pytest.mark.parametrize("number", [2, 14, 3000])
def test_honest_differences_hold(rate, number):
    generator = np.random.default_rng(5)
    for count in (1, 3, 200):
        noise = geometric(generator, rate, count, number).sum(axis=1)
        steps = Steps()
        check_differences("x", noise, np.full(count, number), rate, steps)
        assert steps.taken[0].holds


@pytest.mark.parametrize("change", [lambda noise: 0 * noise, lambda noise: 3 * noise, lambda noise: noise // 3])
def test_differences_without_noise_or_with_another_rate_fail(change):
    noise = geometric(np.random.default_rng(6), 0.4, 400, 14).sum(axis=1)
    steps = Steps()
    check_differences("x", change(noise), np.full(400, 14), 0.4, steps)
    assert not steps.taken[0].holds


def test_the_farthest_number():
    for rate, numbers in ((0.4, 1), (3.0, 300), (0.01, 10**6)):
        tail = 2 * numbers * math.exp(-rate * (farthest(rate, numbers) + 1)) / (1 + math.exp(-rate))
        assert tail <= 1e-9 <= tail * math.exp(2 * rate) * 2


def test_no_step_is_no_verification():
    nothing = Verification(claim="", method="", epsilon=1.0, delta=0.0, steps=(), not_checked=())
    assert not nothing.holds
    steps = Steps()
    assert not steps.check("nearly", math.nan)
    assert not steps.check("one is not true", 1)
