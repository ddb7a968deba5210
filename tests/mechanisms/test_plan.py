"""The noise plan: the whole release costs what was promised, never more, and hardly less."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcon.errors import InputError
from gcon.mechanisms.certificate_terms import (
    DEFAULT_TOLERANCE,
    NO_TERMS,
    certificate_terms,
    exact_budget,
    rounding_allowance,
    spent_budget,
)
from gcon.mechanisms.gaussian_curve import gaussian_delta
from gcon.mechanisms.losses import PseudoHuber, SoftMargin
from gcon.mechanisms.objective_plan import NoisePlan, make_plan
from gcon.mechanisms.samplers.objective_noise import likely_error
from gcon.mechanisms.theorem import ObjectiveShape, theorem_one
from gcon.privacy.budget import Budget

searched = settings(max_examples=200, deadline=None, derandomize=True)
# The last rounding of the arithmetic that re-derives the promise.
LAST_DIGIT = 1 + 4e-16

epsilons = st.floats(math.log(0.01), math.log(60)).map(math.exp)
deltas = st.floats(math.log(1e-12), math.log(0.1)).map(math.exp)


def plan_for(budget: Budget, **changes: object) -> NoisePlan:
    options: dict[str, object] = {
        "loss": SoftMargin(7),
        "num_features": 16,
        "num_labelled": 140,
        "edge_influence": 0.4,
        "ridge": 0.2,
    }
    return make_plan(budget, **(options | changes))  # type: ignore[arg-type]


@searched
@given(epsilon=epsilons, delta=deltas)
def test_the_release_costs_the_budget_and_not_more(epsilon, delta):
    plan = plan_for(Budget(epsilon, delta))
    spent = spent_budget(plan.exact, plan.terms)
    assert spent.epsilon <= epsilon * LAST_DIGIT
    assert spent.delta <= delta * LAST_DIGIT
    assert spent.epsilon >= epsilon * (1 - 1e-6)
    assert spent.delta >= delta * (1 - 1e-6)


@searched
@given(epsilon=epsilons, delta=deltas)
def test_the_reserve_is_on_the_gaussian_curve_and_small(epsilon, delta):
    terms = certificate_terms(Budget(epsilon, delta))
    assert terms.reserved_epsilon == min(1e-3, epsilon / 1000)
    assert terms.reserved_delta == gaussian_delta(terms.reserved_epsilon, 1 / terms.noise_over_radius)
    assert (1 + math.exp(epsilon)) * terms.reserved_delta <= delta * 1e-6 * (1 + 1e-9)
    exact = exact_budget(Budget(epsilon, delta), terms)
    assert 0.998 * epsilon <= exact.epsilon * (1 + 1e-12)
    assert 0.99 * delta <= exact.delta < delta


@searched
@given(
    epsilon=epsilons,
    delta=deltas,
    influence=st.floats(1e-3, 10),
    ridge=st.sampled_from([0.01, 0.2, 2.0]),
    labelled=st.sampled_from([20, 140, 20_000]),
)
def test_theorem_one_is_evaluated_at_what_the_reserve_leaves(epsilon, delta, influence, ridge, labelled):
    plan = plan_for(Budget(epsilon, delta), edge_influence=influence, ridge=ridge, num_labelled=labelled)
    shape = ObjectiveShape(
        epsilon=plan.exact.epsilon,
        delta=plan.exact.delta,
        noise_share=0.9,
        num_features=16,
        num_labelled=labelled,
        edge_influence=influence,
        loss=SoftMargin(7),
    )
    assert plan.theorem == theorem_one(shape, ridge=ridge)
    # Noise is strictly positive for every finite epsilon, and never less than the theorem asks for.
    assert plan.adds_noise
    assert 0 < plan.noise_rate <= plan.theorem.noise_rate
    assert 0 < plan.final_noise < math.inf
    assert plan.total_ridge >= ridge
    assert plan.public_record()["noise_rate"] == plan.noise_rate


def test_the_usual_reserve():
    terms = certificate_terms(Budget(1.0, 1e-5))
    assert terms.reserved_epsilon == 1e-3
    assert terms.noise_over_radius == 1e4
    assert 0 < terms.reserved_delta < 1e-28
    # Half the promise, ten times less reserve: the final noise grows in proportion.
    small = certificate_terms(Budget(0.1, 1e-5))
    assert small.reserved_epsilon == pytest.approx(1e-4)
    assert small.noise_over_radius == pytest.approx(1e5)


def test_a_huge_epsilon_or_a_minute_delta_gets_more_final_noise():
    usual = certificate_terms(Budget(1.0, 1e-5)).noise_over_radius
    assert certificate_terms(Budget(60.0, 1e-5)).noise_over_radius > usual
    assert certificate_terms(Budget(1.0, 1e-30)).noise_over_radius > usual
    assert certificate_terms(Budget(500.0, 1e-100)).noise_over_radius < 1e7


def test_the_tolerance_grows_with_the_noise():
    gentle = plan_for(Budget(1.0, 1e-5))
    assert gentle.tolerance == DEFAULT_TOLERANCE
    # A tiny margin makes enormous noise and weights, whose gradient float64 cannot resolve to 1e-10.
    harsh = plan_for(Budget(0.01, 1e-5), edge_influence=8.0, margin=1e-6)
    assert harsh.tolerance > DEFAULT_TOLERANCE
    weights = math.sqrt(7) * harsh.theorem.weight_norm_bound
    noise = math.sqrt(7) * harsh.theorem.noise_radius_quantile / harsh.theorem.noise_rate
    rounding = rounding_allowance(
        num_rows=140,
        num_features=16,
        loss=SoftMargin(7),
        weight_size=weights,
        ridge=harsh.total_ridge,
        noise_size=noise,
    )
    lattice = math.sqrt(7) * likely_error(harsh.theorem.noise_rate, 16) / 140
    assert harsh.tolerance == pytest.approx(4 * (rounding + lattice))
    # Still nothing next to the gradient of the noise itself, and the final noise nothing next to the weights.
    assert harsh.tolerance < 1e-12 * (noise / 140 + harsh.total_ridge * weights)
    assert harsh.final_noise < 1e-6 * weights
    # The final noise keeps its ratio to the certified distance, so the reserve is untouched.
    for plan in (gentle, harsh):
        assert plan.final_noise * plan.total_ridge / plan.tolerance == pytest.approx(plan.terms.noise_over_radius)


@pytest.mark.parametrize(("epsilon", "influence"), [(math.inf, 0.4), (1.0, 0.0), (math.inf, 0.0)])
def test_where_nothing_needs_noise_none_is_added(epsilon, influence):
    plan = plan_for(Budget(epsilon, 1e-5), edge_influence=influence)
    assert not plan.adds_noise
    assert plan.terms is NO_TERMS
    assert plan.exact == plan.budget
    assert plan.final_noise == 0
    assert plan.noise_rate == math.inf
    assert plan.total_ridge == 0.2
    record = plan.public_record()
    assert record["noise_rate"] is None
    assert record["final_noise"] == 0
    assert spent_budget(plan.exact, plan.terms) == plan.budget


def test_the_record_holds_every_number_and_can_be_written():
    plan = plan_for(Budget(1.0, 1e-5), loss=PseudoHuber(7, 0.2))
    record = plan.public_record()
    assert record["loss"] == "pseudo-huber:0.2"
    assert {"epsilon", "delta", "exact_epsilon", "exact_delta", "reserved_epsilon", "reserved_delta"} <= set(record)
    assert {"edge_influence", "ridge", "extra_ridge", "weight_norm_bound", "noise_rate", "final_noise"} <= set(record)
    assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_more_epsilon_never_means_more_noise_at_a_fixed_margin():
    rates = [plan_for(Budget(epsilon, 1e-5), margin=0.05).noise_rate for epsilon in (0.01, 0.1, 0.5, 1, 2, 4, 10, 60)]
    assert rates == sorted(rates)
    rates = [plan_for(Budget(1.0, delta), margin=0.05).noise_rate for delta in (1e-12, 1e-8, 1e-5, 1e-2, 0.1)]
    assert rates == sorted(rates)


@pytest.mark.parametrize(
    ("changes", "parameter"),
    [
        ({"ridge": 0.0}, "ridge"),
        ({"ridge": -1.0}, "ridge"),
        ({"ridge": math.inf}, "ridge"),
        ({"ridge": math.nan}, "ridge"),
        ({"noise_share": 0.0}, "noise_share"),
        ({"noise_share": 1.0}, "noise_share"),
        ({"noise_share": math.nan}, "noise_share"),
        ({"margin": 0.0}, "margin"),
        ({"margin": -0.1}, "margin"),
        ({"margin": math.inf}, "margin"),
        ({"edge_influence": -0.1}, "edge_influence"),
        ({"edge_influence": math.inf}, "edge_influence"),
        ({"edge_influence": math.nan}, "edge_influence"),
    ],
)
def test_bad_inputs_are_named(changes, parameter):
    with pytest.raises(InputError, match=rf"^{parameter}:"):
        plan_for(Budget(1.0, 1e-5), **changes)


def test_a_delta_that_leaves_no_room_is_refused():
    terms = certificate_terms(Budget(1.0, 1e-5))
    with pytest.raises(InputError, match="delta"):
        exact_budget(Budget(1.0, 1e-30), terms)
