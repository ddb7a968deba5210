"""The plan of output perturbation: the formula by hand, the promise re-derived, and what is refused."""

import dataclasses
import json
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from gcon.errors import InputError, PlanMismatchError
from gcon.mechanisms.certificate_terms import DEFAULT_TOLERANCE
from gcon.mechanisms.gaussian_curve import gaussian_delta, gaussian_epsilon
from gcon.mechanisms.losses import PseudoHuber, SoftMargin
from gcon.privacy.budget import Budget
from gcon_lab.mechanisms.output_noise_plan import (
    make_output_plan,
    output_sensitivity,
    slope_norm_bound,
    weight_norm_bound,
)

searched = settings(max_examples=150, deadline=None, derandomize=True)
MULTIPLIERS = {(1.0, 1 / 16316): 3.306503490, (0.5, 1e-5): 7.031826676, (4.0, 1e-6): 1.193518587}


def plan_for(budget=Budget(1.0, 1e-5), **changes):  # noqa: B008  (budgets are frozen)
    options = {"loss": SoftMargin(7), "num_features": 16, "num_labelled": 140, "edge_influence": 0.4, "ridge": 0.2}
    return make_output_plan(budget, **(options | changes))


@pytest.mark.parametrize(("epsilon", "delta"), MULTIPLIERS)
@pytest.mark.parametrize("weight", [None, 0.1, 2.0])
@pytest.mark.parametrize(
    ("ridge", "rows", "longest", "start"), [(0.2, 140, 1, 0), (2, 2995, 0.5, 3), (0.01, 60, 1, 0.7)]
)
def test_scale_is_the_formula(epsilon, delta, weight, ridge, rows, longest, start):
    """sigma = g [(gamma_1 + gamma_2 r (|W_0| + gamma_1 r / ridge)) Psi / n_1 + 2 tau] / ridge, constants by hand."""
    classes, influence = 7, 0.4
    loss = SoftMargin(classes) if weight is None else PseudoHuber(classes, weight)
    gamma1 = (1 if weight is None else weight) / math.sqrt(classes)
    gamma2 = (0.25 if weight is None else 1) / classes
    plan = plan_for(
        Budget(epsilon, delta), loss=loss, num_labelled=rows, ridge=ridge, longest_row=longest, start_norm=start
    )
    assert plan.tolerance == DEFAULT_TOLERANCE
    slope = gamma1 + gamma2 * longest * (start + gamma1 * longest / ridge)
    sensitivity = (slope * influence / rows + 2 * plan.tolerance) / ridge
    assert plan.sensitivity == pytest.approx(sensitivity, rel=1e-10)
    assert plan.scale == pytest.approx(MULTIPLIERS[epsilon, delta] * sensitivity, rel=1e-9)
    assert plan.budget == Budget(epsilon, delta)


def test_slopes_of_one_node_are_together_at_most_gamma_one_long():
    """The bound is approached: all classes far on the wrong side, or soft targets at the ends."""
    assert slope_norm_bound(SoftMargin(5)) == pytest.approx(1 / math.sqrt(5))
    assert slope_norm_bound(PseudoHuber(5, 0.2)) == pytest.approx(0.2 / math.sqrt(5))


@searched
@given(
    epsilon=st.floats(math.log(0.01), math.log(30)).map(math.exp),
    delta=st.floats(math.log(1e-12), math.log(0.1)).map(math.exp),
    influence=st.floats(1e-3, 10),
    ridge=st.floats(1e-3, 100),
    labelled=st.integers(2, 20_000),
    longest=st.floats(0, 1),
    start=st.floats(0, 50),
)
def test_noise_is_positive_and_the_promise_is_re_derived(epsilon, delta, influence, ridge, labelled, longest, start):
    plan = plan_for(
        Budget(epsilon, delta),
        edge_influence=influence,
        ridge=ridge,
        num_labelled=labelled,
        longest_row=longest,
        start_norm=start,
    )
    assert 0 < plan.scale < math.inf
    assert gaussian_delta(epsilon, plan.sensitivity / plan.scale) <= delta
    assert gaussian_epsilon(plan.distance, delta) == pytest.approx(epsilon, rel=1e-6)
    # The release is one normal law moved by the sensitivity: the curve once more, from scratch.
    mu, phi = plan.distance, scipy.stats.norm.cdf
    assert phi(mu / 2 - epsilon / mu) - math.exp(epsilon) * phi(-mu / 2 - epsilon / mu) <= delta * (1 + 1e-6)


def test_monotone():
    for name, values in {
        "edge_influence": (0.01, 0.4, 3.0),
        "longest_row": (0.0, 0.5, 1.0),
        "start_norm": (0.0, 1.0, 10.0),
    }.items():
        scales = [plan_for(**{name: value}).scale for value in values]
        assert scales == sorted(scales)
    for name, values in {"ridge": (0.01, 0.2, 2.0), "num_labelled": (10, 140, 5000)}.items():
        scales = [plan_for(**{name: value}).scale for value in values]
        assert scales == sorted(scales, reverse=True)
    scales = [plan_for(Budget(epsilon, 1e-5)).scale for epsilon in (0.01, 0.1, 1, 4, 30)]
    assert scales == sorted(scales, reverse=True)


def test_the_tolerance_grows_where_float64_cannot_resolve_it_and_is_paid():
    far = plan_for(start_norm=1e9)
    assert far.tolerance > DEFAULT_TOLERANCE
    exact = output_sensitivity(far.loss, edge_influence=0.4, num_labelled=140, ridge=0.2, start_norm=1e9)
    assert far.sensitivity - exact == pytest.approx(2 * far.tolerance / 0.2, rel=1e-3)
    assert weight_norm_bound(far.loss, ridge=0.2, longest_row=1.0, start_norm=1e9) > 1e9


@pytest.mark.parametrize(("epsilon", "influence"), [(math.inf, 0.4), (1.0, 0.0), (math.inf, 0.0)])
def test_no_noise_where_none_is_needed(epsilon, influence):
    plan = plan_for(Budget(epsilon, 1e-5), edge_influence=influence)
    assert not plan.needs_noise
    assert plan.scale == 0
    assert plan.distance is None


def test_a_plan_covers_its_budget_or_is_refused():
    plan = plan_for()
    for scale in (0.0, -1.0, math.nan, math.inf, plan.scale / 2, 0.999 * plan.scale):
        with pytest.raises(PlanMismatchError, match="too small"):
            dataclasses.replace(plan, scale=scale)
    for change in (
        {"edge_influence": 0.41},
        {"edge_influence": math.nan},
        {"num_labelled": 139},
        {"ridge": 0.19},
        {"start_norm": 0.1},
        {"tolerance": 1e-3},
        {"budget": Budget(0.99, 1e-5)},
    ):
        with pytest.raises(PlanMismatchError, match="too small"):
            dataclasses.replace(plan, **change)
    assert dataclasses.replace(plan, scale=2 * plan.scale).distance == pytest.approx(plan.distance / 2)


def test_the_record_can_be_written():
    record = plan_for(loss=PseudoHuber(7, 0.2)).public_record()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert {"scale", "sensitivity", "edge_influence", "ridge", "start_norm", "longest_row"} <= set(record)


@pytest.mark.parametrize(
    ("changes", "parameter"),
    [
        *[({"ridge": bad}, "ridge") for bad in (0.0, -1.0, math.inf, math.nan, "1")],
        *[({"edge_influence": bad}, "edge_influence") for bad in (-0.1, math.inf, math.nan)],
        *[({"longest_row": bad}, "longest_row") for bad in (1.0000001, -0.1, math.nan)],
        *[({"start_norm": bad}, "start_norm") for bad in (-1.0, math.inf, math.nan)],
    ],
)
def test_bad_numbers_are_named(changes, parameter):
    with pytest.raises(InputError, match=rf"^{parameter}:"):
        plan_for(**changes)


def test_noise_below_the_weights_last_digits_is_refused():
    with pytest.raises(InputError, match="epsilon"):
        plan_for(Budget(1e12, 1e-5), num_labelled=10**9, edge_influence=1e-9, start_norm=1e3)


def test_half_precision_does_not_reach_the_noise():
    assert plan_for(ridge=np.float16(0.5)).scale == plan_for(ridge=0.5).scale
