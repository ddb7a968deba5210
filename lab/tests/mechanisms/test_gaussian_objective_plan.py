"""Theorem C, line by line: the reference table, its three conditions, the edge cases and the plan around it."""

import dataclasses
import json
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from gcon.errors import InputError, PlanMismatchError
from gcon.mechanisms.certificate_terms import DEFAULT_TOLERANCE, NO_TERMS, spent_budget
from gcon.mechanisms.losses import PseudoHuber, SoftMargin
from gcon.mechanisms.objective_plan import make_plan
from gcon.mechanisms.theorem import ObjectiveShape
from gcon.privacy.budget import Budget
from gcon_lab.mechanisms.gaussian_objective_plan import (
    make_gaussian_objective_plan,
    noise_height,
    noise_radius_quantile,
    scale_over_shift,
    theorem_c,
)

searched = settings(max_examples=150, deadline=None, derandomize=True)

# epsilon, delta, omega, c, d, n_1, Psi, ridge -> c_theta, Jacobian epsilon, sigma
ROWS = {
    1: (1, 1 / 16316, 0.9, 7, 16, 2995, 0.4, 1, 0.1459336531, 6.865339763e-05, 1.033303322),
    2: (1, 1 / 16316, 0.9, 7, 16, 140, 0.4, 0.2, 1.120735767, 0.008683132676, 1.287220621),
    3: (0.5, 1e-5, 0.9, 3, 16, 19717, 0.8, 0.2, 1.685497865, 0.0001343381206, 8.172739821),
    4: (4, 1e-5, 0.9, 6, 64, 120, 0.2, 1, 0.1834841911, 0.000862758655, 0.1503083459),
}


def shape_of(epsilon, delta, share, classes, features, labelled, influence, *, loss=None):
    return ObjectiveShape(
        epsilon=epsilon,
        delta=delta,
        noise_share=share,
        num_features=features,
        num_labelled=labelled,
        edge_influence=influence,
        loss=loss or SoftMargin(classes),
    )


def plan_for(budget=Budget(1.0, 1e-5), **changes):  # noqa: B008  (budgets are frozen)
    options = {"loss": SoftMargin(7), "num_features": 16, "num_labelled": 140, "edge_influence": 0.4, "ridge": 0.2}
    return make_gaussian_objective_plan(budget, **(options | changes))


def conditions(shape, values):
    """What the theorem asks for, written out again: (chance of a long column times c, Jacobian, shift's cost)."""
    loss, scale = shape.loss, values.scale
    c1, c2, c3 = loss.slope_bound, loss.curvature_bound, loss.curvature_slope_bound
    classes, width, rows, influence = loss.num_classes, shape.num_features, shape.num_labelled, shape.edge_influence
    ridge, bound = values.ridge + values.extra_ridge, values.weight_norm_bound
    tail = classes * scipy.stats.chi2(width).sf((rows * (ridge * bound - c1) / scale) ** 2)
    jacobian = classes * width * math.log1p((2 * c2 + c3 * bound) * influence / (width * rows * ridge))
    shift = math.sqrt(classes) * (c1 + c2 * bound) * influence
    height = math.sqrt(2 * classes / math.pi) + math.sqrt(2 * math.log(1 / (0.99 * shape.delta)))
    return tail, jacobian, shift * height / scale + (shift / scale) ** 2 / 2


@pytest.mark.parametrize("row", ROWS)
def test_reference_values(row):
    *numbers, ridge, weight_bound, jacobian, scale = ROWS[row]
    values = theorem_c(shape_of(*numbers), ridge=ridge)
    assert values.ridge == ridge
    assert values.extra_ridge == 0
    assert values.weight_norm_bound == pytest.approx(weight_bound, rel=1e-9)
    assert values.jacobian_epsilon == pytest.approx(jacobian, rel=1e-9)
    assert values.scale == pytest.approx(scale, rel=1e-9)


@searched
@given(
    epsilon=st.floats(math.log(0.01), math.log(60)).map(math.exp),
    delta=st.floats(math.log(1e-12), math.log(0.1)).map(math.exp),
    share=st.floats(0.1, 0.99),
    classes=st.integers(1, 20),
    features=st.integers(1, 200),
    labelled=st.integers(2, 20_000),
    influence=st.floats(1e-3, 10),
    ridge=st.sampled_from([0.01, 0.2, 2.0]),
    weight=st.sampled_from([None, 0.1, 1.0]),
    margin=st.sampled_from([None, 0.01]),
)
def test_the_conditions_hold_everywhere(
    epsilon, delta, share, classes, features, labelled, influence, ridge, weight, margin
):
    loss = SoftMargin(classes) if weight is None else PseudoHuber(classes, weight)
    shape = shape_of(epsilon, delta, share, classes, features, labelled, influence, loss=loss)
    values = theorem_c(shape, ridge=ridge, margin=margin)
    tail, jacobian, shift = conditions(shape, values)
    assert tail <= 0.01 * delta * (1 + 1e-9)
    assert jacobian + shift <= epsilon * (1 + 1e-9)
    assert shift == pytest.approx(max(epsilon - values.jacobian_epsilon, share * epsilon), rel=1e-9)
    assert values.ridge >= ridge
    assert 0 < values.scale < math.inf
    # The plan re-derives all this for itself and does not refuse.
    plan = plan_for(
        Budget(epsilon, delta),
        loss=loss,
        num_features=features,
        num_labelled=labelled,
        edge_influence=influence,
        ridge=ridge,
        noise_share=share,
        margin=margin,
    )
    spent = spent_budget(plan.exact, plan.terms)
    assert spent.epsilon <= epsilon * (1 + 4e-16)
    assert spent.delta <= delta * (1 + 4e-16)
    assert plan.scale >= plan.theorem.scale
    assert plan.tolerance >= DEFAULT_TOLERANCE
    assert plan.final_noise > 0


def test_every_branch_is_reached():
    floored = theorem_c(shape_of(0.5, 1e-5, 0.9, 7, 16, 140, 8.0), ridge=0.01)
    assert floored.ridge > 0.01
    raised = theorem_c(shape_of(2, 1e-5, 0.9, 3, 16, 19717, 7.0, loss=PseudoHuber(3, 0.2)), ridge=0.01)
    assert raised.extra_ridge > 0
    assert raised.jacobian_epsilon > 0.1 * 2
    shift = raised.shift / raised.scale
    assert shift * raised.noise_height + shift**2 / 2 == pytest.approx(0.9 * 2, rel=1e-12)


@pytest.mark.parametrize("features", [1, 2, 16, 1000])
@pytest.mark.parametrize("delta", [0.3, 1e-5, 1e-12])
def test_the_quantile_covers_its_tail(features, delta):
    shape = shape_of(1, delta, 0.9, 7, features, 140, 0.4)
    quantile = noise_radius_quantile(shape)
    assert scipy.stats.chi(features).sf(quantile) <= 0.01 * delta / 7 * (1 + 1e-9)
    assert scipy.stats.chi(features).sf(quantile * (1 - 1e-6)) > 0.01 * delta / 7


def test_height_and_multiplier():
    shape = shape_of(1, 1e-5, 0.9, 7, 16, 140, 0.4)
    expected = math.sqrt(14 / math.pi) + math.sqrt(2 * math.log(1 / 0.99e-5))
    assert noise_height(shape) == pytest.approx(expected, rel=1e-12)
    kappa = scale_over_shift(3.0, 0.7)
    assert 3.0 / kappa + 1 / (2 * kappa**2) == pytest.approx(0.7, rel=1e-12)


def test_the_noise_does_not_depend_on_the_dimension_once_there_are_many_rows():
    scales = [theorem_c(shape_of(1, 1e-5, 0.9, 7, d, 10**7, 0.4), ridge=1.0).scale for d in (4, 64, 1024)]
    assert scales == pytest.approx([scales[0]] * 3, rel=1e-3)


@pytest.mark.parametrize(("width", "gain"), [(16, 1.6), (64, 3.3)])
def test_less_noise_than_theorem_one(width, gain):
    """Length of a column of the noise: sigma sqrt(d) here, d / rate there."""
    options = {"num_features": width, "num_labelled": 2995, "ridge": 1.0}
    gauss = plan_for(Budget(1.0, 1 / 16316), **options)
    erlang = make_plan(Budget(1.0, 1 / 16316), loss=SoftMargin(7), edge_influence=0.4, **options)
    assert (width / erlang.noise_rate) / (gauss.scale * math.sqrt(width)) == pytest.approx(gain, abs=0.1)


def test_monotone_at_a_fixed_margin():
    scales = [plan_for(Budget(epsilon, 1e-5), margin=0.05).scale for epsilon in (0.01, 0.1, 0.5, 1, 4, 30)]
    assert scales == sorted(scales, reverse=True)
    scales = [plan_for(Budget(1.0, delta), margin=0.05).scale for delta in (1e-12, 1e-8, 1e-5, 1e-2)]
    assert scales == sorted(scales, reverse=True)
    scales = [plan_for(edge_influence=influence, margin=0.05).scale for influence in (1e-3, 0.1, 0.4, 4.0)]
    assert scales == sorted(scales)


@pytest.mark.parametrize(("epsilon", "influence"), [(math.inf, 0.4), (1.0, 0.0), (math.inf, 0.0)])
def test_no_noise_where_none_is_needed(epsilon, influence):
    plan = plan_for(Budget(epsilon, 1e-5), edge_influence=influence)
    assert not plan.needs_noise
    assert plan.terms is NO_TERMS
    assert plan.scale == plan.final_noise == 0
    assert plan.total_ridge == 0.2


def test_a_plan_covers_its_budget_or_is_refused():
    plan = plan_for()
    theorem = plan.theorem
    for change in (
        *[{"scale": scale} for scale in (0.0, -1.0, math.nan, theorem.scale / 2, 0.999 * theorem.scale)],
        {"scale": 1.3 * theorem.scale},  # more noise than the bound on the weights was made for
        {"edge_influence": 0.41},
        {"edge_influence": math.nan},
        {"ridge": 0.19},
        {"weight_norm_bound": 0.9 * theorem.weight_norm_bound},
        {"weight_norm_bound": 1.1 * theorem.weight_norm_bound},
    ):
        with pytest.raises(PlanMismatchError, match="not cover"):
            dataclasses.replace(plan, theorem=dataclasses.replace(theorem, **change))
    for change in (
        {"num_labelled": 139},
        {"num_features": 40},
        {"terms": NO_TERMS},
        {"exact": Budget(0.9, 1e-5)},
        {"exact": Budget(1.0, 1e-5)},
    ):
        with pytest.raises(PlanMismatchError, match="not cover"):
            dataclasses.replace(plan, **change)


@pytest.mark.parametrize(
    ("changes", "parameter"),
    [
        *[({"ridge": bad}, "ridge") for bad in (0.0, -1.0, math.inf, math.nan)],
        *[({"noise_share": bad}, "noise_share") for bad in (0.0, 1.0, math.nan)],
        *[({"margin": bad}, "margin") for bad in (0.0, -1.0, math.inf)],
        *[({"edge_influence": bad}, "edge_influence") for bad in (-0.1, math.inf, math.nan)],
    ],
)
def test_bad_numbers_are_named(changes, parameter):
    with pytest.raises(InputError, match=rf"^{parameter}:"):
        plan_for(**changes)


def test_a_margin_lost_in_rounding_is_refused():
    with pytest.raises(InputError, match="margin"):
        plan_for(Budget(0.01, 1e-5), edge_influence=8.0, margin=1e-30)


def test_the_record_can_be_written_and_half_precision_is_not_used():
    record = plan_for(loss=PseudoHuber(7, 0.2)).public_record()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert {"scale", "shift", "noise_height", "final_noise", "jacobian_epsilon", "exact_epsilon"} <= set(record)
    assert plan_for(ridge=np.float16(0.5)).scale == plan_for(ridge=0.5).scale
