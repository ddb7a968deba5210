"""Plans whose fields contradict each other are refused, whichever field was forged."""

import dataclasses
import math
import timeit

import numpy as np
import pytest
from scipy.special import gammaincc

from gcon.errors import InputError, PlanMismatchError
from gcon.mechanisms.certificate_terms import NO_TERMS, CertificateTerms, reserve_is_covered, spent_budget
from gcon.mechanisms.gaussian_curve import gaussian_delta
from gcon.mechanisms.losses import PseudoHuber, SoftMargin
from gcon.mechanisms.objective_plan import make_plan
from gcon.privacy.budget import Budget
from gcon_lab.mechanisms.gaussian_objective_plan import LENGTH_SHARE, make_gaussian_objective_plan
from gcon_lab.mechanisms.output_noise_plan import make_output_plan

OBJECTIVE = {"theorem 1": make_plan, "theorem C": make_gaussian_objective_plan}
UNUSABLE = (0.0, -1.0, math.nan, math.inf)
FREE = [(math.inf, 0.4), (1.0, 0.0), (math.inf, 0.0)]


def plan_by(make, budget=Budget(1.0, 1e-5), **changes):  # noqa: B008  (budgets are frozen)
    options = {"loss": SoftMargin(7), "num_features": 16, "num_labelled": 140, "edge_influence": 0.4, "ridge": 0.2}
    return make(budget, **(options | changes))


@pytest.fixture(params=OBJECTIVE)
def objective(request):
    return plan_by(OBJECTIVE[request.param])


def refuse(plan, **changes):
    with pytest.raises(PlanMismatchError):
        dataclasses.replace(plan, **changes)


def refuse_values(plan, **changes):
    refuse(plan, theorem=dataclasses.replace(plan.theorem, **changes))


def refuse_terms(plan, **changes):
    refuse(plan, terms=dataclasses.replace(plan.terms, **changes))


# --- output perturbation -------------------------------------------------------------------------------------------


def test_a_negative_norm_does_not_shrink_the_sensitivity():
    plan = plan_by(make_output_plan, start_norm=5.6)
    for start_norm in (-5.6, -0.1, math.nan, math.inf):
        for scale in (plan.scale, plan.scale / 15, 1e9):
            refuse(plan, start_norm=start_norm, scale=scale)


@pytest.mark.parametrize(
    "change",
    [
        *[{"ridge": bad} for bad in UNUSABLE],
        *[{"edge_influence": bad} for bad in (-0.4, -1e9, math.nan, math.inf)],
        *[{"num_labelled": bad} for bad in (0, -140, 1e12, math.nan, True)],
        *[{"num_features": bad} for bad in (0, -16, 16.0)],
        *[{"longest_row": bad} for bad in (-1.0, 1.5, math.nan)],
        *[{"tolerance": bad} for bad in UNUSABLE],
    ],
)
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_output_plans_refuse_numbers_that_no_plan_has(change, scale):
    refuse(plan_by(make_output_plan), scale=scale, **change)


def test_a_sensitivity_that_is_lost_in_rounding_is_refused():
    refuse(plan_by(make_output_plan), ridge=1e308, edge_influence=1e-300, tolerance=1e-300, scale=1.0)


def test_the_lattice_is_exact_for_every_plan_that_exists():
    plan = plan_by(make_output_plan)
    far = {"start_norm": 2.0**41, "edge_influence": 1e-14, "num_labelled": 10**6}
    with pytest.raises(InputError, match="epsilon"):
        dataclasses.replace(plan, scale=1.0, budget=Budget(100.0, 1e-5), **far)


@pytest.mark.parametrize(("epsilon", "influence"), FREE)
def test_a_plan_without_noise_refuses_them_as_well(epsilon, influence):
    plan = plan_by(make_output_plan, Budget(epsilon, 1e-5), edge_influence=influence)
    for change in ({"ridge": -1.0}, {"tolerance": 0.0}, {"edge_influence": -0.4}, {"num_labelled": 0}):
        refuse(plan, **change)


# --- both ways of objective perturbation ---------------------------------------------------------------------------


def test_the_final_noise_is_what_the_reserve_was_computed_for(objective):
    for ratio in (1e-9, 1e3, 0.99e4, 0.0, -1e4, math.nan, math.inf):
        refuse_terms(objective, noise_over_radius=ratio)
    assert dataclasses.replace(
        objective, terms=dataclasses.replace(objective.terms, noise_over_radius=2e4)
    ).final_noise == pytest.approx(2 * objective.final_noise)


def test_the_reserve_must_exist(objective):
    for epsilon in (0.0, -1e-3, 0.1, 2.0, 800.0, math.nan, math.inf):
        refuse_terms(objective, reserved_epsilon=epsilon)
    for log_delta in (-math.inf, -1e4, -1.0, 0.0, 5.0, math.nan, math.inf):
        refuse_terms(objective, log_reserved_delta=log_delta)
    refuse(objective, terms=NO_TERMS)


def test_only_the_whole_delta_is_exceeded(objective):
    """More delta for the exact mechanism, or for the reserve: every other condition still holds, or only gets easier."""
    ratio = objective.terms.noise_over_radius
    while gaussian_delta(objective.terms.reserved_epsilon, 1 / ratio, logarithm=True) < math.log(1e-4):
        ratio /= 1.5
    loose = dataclasses.replace(objective.terms, log_reserved_delta=math.log(1e-4))
    small = dataclasses.replace(loose, noise_over_radius=ratio * 1.5)
    for terms in (loose, small):
        assert spent_budget(objective.exact, terms).epsilon <= objective.budget.epsilon * (1 + 1e-12)
        assert spent_budget(objective.exact, terms).delta > objective.budget.delta
        refuse(objective, terms=terms)
    for factor in (1 + 1e-6, 2.0):
        refuse(objective, exact=Budget(objective.exact.epsilon, factor * objective.exact.delta))
    if objective.theorem.__class__.__name__ == "TheoremC":
        # Without a promise of delta at all, the same numbers are a plan: it was this condition that refused.
        kept = dataclasses.replace(objective, budget=Budget(1.0, 0.1))
        dataclasses.replace(kept, exact=Budget(objective.exact.epsilon, 2 * objective.exact.delta))
        dataclasses.replace(kept, terms=loose)


@pytest.mark.parametrize("field", ["tolerance", "noise_share", "num_features", "num_labelled"])
def test_numbers_that_no_plan_has(objective, field):
    for bad in (*UNUSABLE, *((5.0, 1.0) if field == "noise_share" else (1e-11,))):
        refuse(objective, **{field: bad})


@pytest.mark.parametrize("field", ["ridge", "edge_influence", "weight_norm_bound", "extra_ridge"])
def test_values_that_no_theorem_has(objective, field):
    for bad in (-0.4, -1e9, math.nan, math.inf):
        refuse_values(objective, **{field: bad})


def test_budgets_that_were_not_planned_for(objective):
    for exact in (Budget(0.0, 1e-5), Budget(math.inf, 1e-5), Budget(0.998, 0.0), Budget(0.998, 0.999), Budget(1, 1e-5)):
        refuse(objective, exact=exact)
    for budget in (Budget(0.99, 1e-5), Budget(1.0, 0.99e-5), Budget(0.0, 0.0)):
        refuse(objective, budget=budget)


@pytest.mark.parametrize(("epsilon", "influence"), FREE)
@pytest.mark.parametrize("make", OBJECTIVE.values(), ids=OBJECTIVE)
def test_plans_without_noise_exist_and_cannot_be_given_a_promise(make, epsilon, influence):
    plan = plan_by(make, Budget(epsilon, 1e-5), edge_influence=influence)
    assert plan.final_noise == 0
    refuse_values(plan, edge_influence=-0.4)
    if influence > 0:
        refuse(plan, budget=Budget(1.0, 1e-5))
        refuse(plan, budget=Budget(1.0, 1e-5), exact=Budget(1.0, 1e-5))
    elif math.isfinite(epsilon):
        refuse_values(plan, edge_influence=0.4)


# --- Theorem 1 ------------------------------------------------------------------------------------------------------


def test_a_plan_is_what_theorem_one_says():
    plan = plan_by(make_plan)
    values = plan.theorem
    for rate in (100 * values.noise_rate, 1.001 * values.noise_rate, 0.5 * values.noise_rate, *UNUSABLE):
        refuse_values(plan, noise_rate=rate)
    for field in ("ridge", "weight_norm_bound", "jacobian_epsilon", "noise_radius_quantile", "edge_influence"):
        for factor in (0.5, 0.999, 1.001, 2.0):
            refuse_values(plan, **{field: factor * getattr(values, field)})
    refuse_values(plan, extra_ridge=0.1)
    for change in ({"num_labelled": 139}, {"num_features": 17}, {"noise_share": 0.8}, {"loss": SoftMargin(6)}):
        refuse(plan, **change)


def test_the_extra_ridge_is_part_of_it():
    plan = plan_by(make_plan, edge_influence=8.0, noise_share=0.999)
    assert plan.theorem.extra_ridge > 0
    for extra in (0.0, 0.9 * plan.theorem.extra_ridge):
        refuse_values(plan, extra_ridge=extra)


def test_plans_of_many_shapes_exist():
    for epsilon in (0.01, 1.0, 60.0):
        for margin in (None, 1e-6, 0.05):
            for loss in (SoftMargin(2), PseudoHuber(7, 0.2)):
                for influence, rows in ((1e-6, 10**6), (8.0, 20)):
                    plan = plan_by(
                        make_plan,
                        Budget(epsilon, 1e-9),
                        loss=loss,
                        edge_influence=influence,
                        num_labelled=rows,
                        margin=margin,
                    )
                    assert dataclasses.replace(plan) == plan


def test_the_check_is_cheap():
    plan = plan_by(make_plan, num_features=512, num_labelled=20_000)
    assert min(timeit.repeat(plan.__post_init__, number=20, repeat=5)) / 20 < 1e-3


# --- Theorem C ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("influence", 10.0 ** np.arange(-9, -5))
@pytest.mark.parametrize("rows", [10**6, 10**7])
def test_the_bound_on_the_weights_needs_no_slack(influence, rows):
    """Lambda c_theta - c_1 is a small difference: where rounding came into it, the tail would pass what is allowed.

    With nearly all of epsilon for the noise nothing else leaves room: the scale is the one that c_theta was made for.
    """
    for ridge in (0.2, 0.3, 0.7, 1.0, 1.7):
        plan = plan_by(
            make_gaussian_objective_plan,
            edge_influence=influence,
            num_labelled=rows,
            ridge=ridge,
            noise_share=1 - 1e-10,
        )
        assert plan.theorem.extra_ridge == 0
        room = plan.total_ridge * plan.theorem.weight_norm_bound - plan.loss.slope_bound
        tail = float(gammaincc(plan.num_features / 2, (rows * room / plan.scale) ** 2 / 2))
        assert tail <= plan.exact.delta * LENGTH_SHARE / plan.loss.num_classes


def test_a_scale_too_small_for_its_square_is_refused():
    plan = plan_by(make_gaussian_objective_plan)
    for scale in (1e-300, 5e-324, 1e300, math.inf):
        refuse_values(plan, scale=scale)


# --- the reserve by itself ------------------------------------------------------------------------------------------


def test_the_reserve_on_the_curve_and_just_above_it():
    plan = plan_by(make_plan)
    assert reserve_is_covered(plan.budget, plan.exact, plan.terms)
    above = CertificateTerms(
        reserved_epsilon=plan.terms.reserved_epsilon,
        log_reserved_delta=math.nextafter(plan.terms.log_reserved_delta, -math.inf),
        noise_over_radius=plan.terms.noise_over_radius,
    )
    assert not reserve_is_covered(plan.budget, plan.exact, above)
