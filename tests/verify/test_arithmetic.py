"""The verifier's arithmetic against known values, and its steps against plans over a wide range of public numbers."""

import math

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import gammaincc

from gcon.errors import InputError, PlanMismatchError
from gcon.mechanisms.convex_training import objective_record
from gcon.mechanisms.gaussian_release import gaussian_plan
from gcon.mechanisms.losses import loss_by_name
from gcon.mechanisms.objective_plan import make_plan
from gcon.privacy.budget import Budget
from gcon.verify.arithmetic import (
    digits,
    erlang_quantile,
    erlang_tail,
    gaussian_delta,
    is_lattice_of,
    lattice_of,
    on_lattice,
    shown,
)
from gcon.verify.losses import loss_bounds
from gcon.verify.moments_steps import _check_distance
from gcon.verify.reserve import check_reserve
from gcon.verify.steps import Steps, Verification
from gcon.verify.theorem import Public, check_theorem


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


@given(epsilon=powers(-4, 3), delta=powers(-12, -0.31))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_every_distance_holds_and_no_larger_one(epsilon, delta):
    try:
        distance, steps = gaussian_plan(epsilon, delta, method="test").distance, Steps()
    except PlanMismatchError:  # a few tiny budgets, where the float64 curve is not monotone in its last digits
        assume(False)
    _check_distance({"epsilon": epsilon, "delta": delta, "distance": distance}, steps)
    assert all(step.holds for step in steps.taken)
    larger = Steps()
    _check_distance({"epsilon": epsilon, "delta": delta, "distance": distance * 1.001}, larger)
    assert not larger.taken[0].holds


def test_no_step_is_no_verification():
    nothing = Verification(claim="", method="", epsilon=1.0, delta=0.0, steps=(), not_checked=())
    assert not nothing.holds
    steps = Steps()
    assert not steps.check("nearly", math.nan)
    assert not steps.check("one is not true", 1)
