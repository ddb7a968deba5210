"""Theorem 1, line by line: reference values of every branch, the identity behind the bad event, and the edge cases."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from scipy.special import gammaincc

from gcon.edges.schemes import Schemes
from gcon.mechanisms.influence import FeatureExtent, edge_influence
from gcon.mechanisms.losses import PseudoHuber, SoftMargin
from gcon.mechanisms.theorem import (
    ObjectiveShape,
    extra_ridge,
    jacobian_epsilon,
    noise_radius_quantile,
    noise_rate,
    ridge_after_floor,
    ridge_floor,
    theorem_one,
    weight_norm_bound,
)

SOFT = None  # the soft-margin loss; a number is a pseudo-Huber weight
INFINITY = math.inf

# loss, epsilon, 1/delta, omega, c, d, n_1, restart, steps, ridge, margin ->
# edge influence, noise radius quantile, ridge after the floor, weight norm bound, Jacobian epsilon, extra ridge, noise rate
ROWS = {
    1: (SOFT, 1, 16316, 0.9, 7, 16, 2995, 0.8, (2,), 0.2, 0.001,
        0.48, 39.25769121, 0.2, 0.7558446415, 0.0004589489237, 0.0, 1.751425748),
    2: (SOFT, 1, 16316, 0.9, 7, 16, 140, 0.8, (2,), 0.2, 0.001,
        0.48, 39.25769121, 0.2, 1.798211392, 0.01153711385, 0.0, 1.420643395),
    3: (SOFT, 0.5, 16316, 0.9, 7, 16, 140, 0.2, (INFINITY,), 0.01, 0.001,
        8.0, 39.25769121, 1.247275911, 5127.960788, 20.61097654, 563.2535892, 4.384289149e-5),
    4: (SOFT, 4, 16316, 0.9, 7, 64, 2995, 0.4, (10,), 1, 0.001,
        2.981860147, 104.3201946, 1.0, 0.1729553117, 0.0005143756902, 0.0, 1.285680707),
    5: (SOFT, 2, 88648, 0.9, 3, 16, 19717, 0.4, (5,), 0.01, 0.001,
        2.76672, 40.58309441, 0.01, 36.53973512, 0.05632060807, 0.0, 0.06931679996),
    6: (SOFT, 0.5, 88648, 0.9, 3, 16, 60, 0.6, (1,), 2, 0.001,
        0.8, 40.58309441, 2.0, 0.903736266, 0.003912920925, 0.0, 0.5058256115),
    7: (SOFT, 3, 9104, 0.9, 6, 8, 3327, 0.6, (2,), 0.2, 0.001,
        1.12, 25.30597191, 0.2, 0.8524713741, 0.0009796602578, 0.0, 2.207284928),
    8: (SOFT, 1, 100000, 0.9, 5, 48, 4560, 0.8, (0, 1, 2), 0.2, 0.001,
        0.2933333333, 86.93213709, 0.2, 1.039138187, 0.000192979522, 0.0, 2.705568213),
    9: (0.1, 1, 16316, 0.9, 7, 16, 2995, 0.8, (2,), 0.2, 0.001,
        0.48, 39.25769121, 0.2, 0.07763771702, 0.002136850136, 0.0, 11.70292884),
    10: (0.1, 0.5, 16316, 0.9, 7, 16, 140, 0.2, (INFINITY,), 0.01, 0.001,
         8.0, 39.25769121, 4.986103646, 512.7960788, 41.67343784, 5029.441395, 0.0001096713395),
    11: (0.2, 1, 16316, 0.9, 7, 16, 140, 0.4, (5,), 0.2, 0.001,
         2.76672, 39.25769121, 0.8630241224, 200.9762531, 18.23542963, 170.0494048, 0.001616964871),
    12: (0.5, 4, 9104, 0.9, 6, 64, 120, 0.6, (10,), 1, 0.001,
         1.333193523, 102.4958082, 1.0, 0.3532155919, 0.02895784021, 0.0, 3.491021468),
    13: (0.2, 2, 88648, 0.9, 3, 16, 19717, 0.2, (10,), 0.01, 0.001,
         7.141006541, 40.58309441, 0.01, 37.23397343, 5.53074157, 0.2830988517, 0.0067335974),
    14: (SOFT, 1, 100000, 0.5, 2, 1, 10, 0.5, (1,), 1, 0.001,
         1.0, 12.20607265, 1.0, 7.547451741, 0.1190130653, 0.0, 0.3051710298),
    15: (0.1, 0.5, 16316, 0.9, 7, 16, 140, 0.8, (1,), 2, 0.001,
         0.4, 39.25769121, 2.0, 0.02239688624, 0.003131828908, 0.0, 10.14870938),
    16: (SOFT, 4, 100000, 0.9, 5, 32, 7600, 0.8, (0, 5), 0.01, 0.1,
         0.24992, 65.11217925, 0.1001486918, 2.005947674, 0.0002275564267, 0.0, 10.65890813),
}  # fmt: skip


def shape_of(row: int) -> tuple[ObjectiveShape, float, float]:
    """The public numbers of a reference row, with the edge influence computed by the paper's bound; ridge; margin."""
    weight, epsilon, inverse_delta, omega, c, d, labelled, restart, steps, ridge, margin = ROWS[row][:11]
    influence = edge_influence(
        Schemes(restart=restart, steps=steps), FeatureExtent(2.0, 1.0), num_nodes=labelled, bound="paper"
    )
    return (
        ObjectiveShape(
            epsilon=epsilon,
            delta=1 / inverse_delta,
            noise_share=omega,
            num_features=d,
            num_labelled=labelled,
            edge_influence=influence.value,
            loss=SoftMargin(c) if weight is SOFT else PseudoHuber(c, weight),
        ),
        ridge,
        margin,
    )


@pytest.mark.parametrize("row", ROWS)
def test_reference_values(row):
    shape, ridge, margin = shape_of(row)
    values = theorem_one(shape, ridge=ridge, margin=margin)
    influence, quantile, floored, weight_bound, jacobian, extra, rate = ROWS[row][11:]
    assert values.edge_influence == pytest.approx(influence, rel=1e-9)
    assert values.noise_radius_quantile == pytest.approx(quantile, rel=1e-9)
    assert values.ridge == pytest.approx(floored, rel=1e-9)
    assert values.weight_norm_bound == pytest.approx(weight_bound, rel=1e-9)
    assert values.jacobian_epsilon == pytest.approx(jacobian, rel=1e-9)
    assert values.extra_ridge == pytest.approx(extra, rel=1e-9)
    assert values.noise_rate == pytest.approx(rate, rel=1e-9)


def test_the_rows_reach_every_branch():
    floors = {row: shape_of(row)[1] < theorem_one(shape_of(row)[0], ridge=shape_of(row)[1], margin=shape_of(row)[2]).ridge
              for row in ROWS}  # fmt: skip
    assert [row for row, binds in floors.items() if binds] == [3, 10, 11, 16]
    assert [row for row in ROWS if ROWS[row][16] > 0] == [3, 10, 11, 13]


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("margin", [None, 0.001, 0.5])
def test_the_identity_behind_the_bad_event(row, margin):
    """beta n_1 (Lambda c_theta - c_1) = c_sf max(eps - eps_Lambda, omega eps) / (omega eps), so at least c_sf."""
    shape, ridge, _ = shape_of(row)
    values = theorem_one(shape, ridge=ridge, margin=margin)
    radius = shape.num_labelled * (values.ridge * values.weight_norm_bound - shape.loss.slope_bound)
    least = shape.noise_share * shape.epsilon
    share = max(shape.epsilon - values.jacobian_epsilon, least) / least
    assert values.noise_rate * radius == pytest.approx(values.noise_radius_quantile * share, rel=1e-9)
    assert share >= 1
    # Hence the chance that a column of the weights is longer than c_theta is at most delta / c.
    tail = float(gammaincc(shape.num_features, values.noise_rate * radius))
    assert tail <= shape.delta / shape.loss.num_classes * (1 + 1e-6)


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("margin", [None, 0.001])
def test_jacobian_and_shift_together_stay_within_epsilon(row, margin):
    shape, ridge, _ = shape_of(row)
    values = theorem_one(shape, ridge=ridge, margin=margin)
    loss = shape.loss
    curvature = (
        2 * loss.curvature_bound + loss.curvature_slope_bound * values.weight_norm_bound
    ) * shape.edge_influence
    total_ridge = values.ridge + values.extra_ridge
    jacobian = loss.num_classes * shape.num_features * math.log1p(
        curvature / (shape.num_features * shape.num_labelled * total_ridge)
    )  # fmt: skip
    shift = (loss.slope_bound + loss.curvature_bound * values.weight_norm_bound) * shape.edge_influence
    assert jacobian + loss.num_classes * shift * values.noise_rate <= shape.epsilon * (1 + 1e-12)
    if values.extra_ridge == 0:
        assert jacobian <= (1 - shape.noise_share) * shape.epsilon
    else:
        assert values.extra_ridge > 0


@pytest.mark.parametrize("row", ROWS)
def test_more_epsilon_or_more_delta_means_less_noise_at_a_fixed_margin(row):
    shape, ridge, margin = shape_of(row)
    by_epsilon = [
        theorem_one(replace(shape, epsilon=epsilon), ridge=ridge, margin=margin).noise_rate
        for epsilon in (0.01, 0.1, 0.3, 0.5, 1.0, 2.0, 4.0, 8.0, 30.0)
    ]
    assert by_epsilon == sorted(by_epsilon)
    by_delta = [
        theorem_one(replace(shape, delta=delta), ridge=ridge, margin=margin).noise_rate
        for delta in (1e-12, 1e-9, 1e-6, 1e-4, 1e-2, 0.1)
    ]
    assert by_delta == sorted(by_delta)


def test_under_the_default_margin_the_rate_alone_is_not_monotone():
    """The default doubles the floor, so a little more epsilon may buy less ridge instead of less noise."""
    shape, ridge, _ = shape_of(13)
    less, more = (
        theorem_one(replace(shape, epsilon=epsilon, noise_share=0.5), ridge=ridge) for epsilon in (5.695, 5.8205)
    )
    assert more.noise_rate < 0.995 * less.noise_rate
    assert more.ridge < less.ridge


@pytest.mark.parametrize("row", ROWS)
def test_more_influence_means_more_noise(row):
    shape, ridge, margin = shape_of(row)
    rates = [
        theorem_one(replace(shape, edge_influence=shape.edge_influence * factor), ridge=ridge, margin=margin).noise_rate
        for factor in (0.01, 0.5, 1, 1.001, 2, 10)
    ]
    assert rates == sorted(rates, reverse=True)


@pytest.mark.parametrize("row", [1, 3, 13])
@pytest.mark.parametrize("change", [{"edge_influence": 0.0}, {"epsilon": math.inf}])
def test_no_noise_where_none_is_needed(row, change):
    shape, ridge, margin = shape_of(row)
    shape = replace(shape, **change)
    assert not shape.needs_noise
    values = theorem_one(shape, ridge=ridge, margin=margin)
    assert values.ridge == ridge
    assert values.extra_ridge == 0
    assert values.noise_rate == math.inf
    assert values.weight_norm_bound == pytest.approx(shape.loss.slope_bound / ridge)


def test_the_noise_is_finite_and_positive_for_every_finite_epsilon():
    shape, ridge, _ = shape_of(1)
    for epsilon in (1e-4, 1.0, 1e6):
        for influence in (1e-6, 1.0, 1e3):
            values = theorem_one(replace(shape, epsilon=epsilon, edge_influence=influence), ridge=ridge)
            assert 0 < values.noise_rate < math.inf
            assert values.weight_norm_bound > 0


def test_the_default_margin_is_the_floor_itself():
    shape, _, _ = shape_of(3)
    quantile = noise_radius_quantile(shape)
    floor = ridge_floor(shape, quantile)
    assert ridge_after_floor(0.01, floor, None) == 2 * floor
    assert ridge_after_floor(0.01, floor, 0.25) == floor + 0.25
    assert ridge_after_floor(100.0, floor, None) == 100.0
    assert ridge_after_floor(0.01, 0.0, 5.0) == 0.01  # no floor, no margin


@pytest.mark.parametrize(
    ("margin", "ridge", "weight_bound", "extra", "rate"),
    [
        (1e-4, 1.246, 51280, 5639, 4.39e-6),
        (1e-3, 1.247, 5128, 563, 4.38e-5),
        (1e-2, 1.256, 513, 55.7, 4.35e-4),
        (0.1, 1.346, 51.3, 4.86, 4.07e-3),
        (None, 2.493, 4.11, 0, 0.0295),
    ],
)
def test_a_tiny_margin_destroys_the_model(margin, ridge, weight_bound, extra, rate):
    shape, asked, _ = shape_of(3)
    values = theorem_one(shape, ridge=asked, margin=margin)
    assert values.ridge == pytest.approx(ridge, abs=6e-4)
    assert values.weight_norm_bound == pytest.approx(weight_bound, rel=2e-3)
    assert values.extra_ridge == pytest.approx(extra, rel=2e-3)
    assert values.noise_rate == pytest.approx(rate, rel=3e-3)


@pytest.mark.parametrize("features", [1, 2, 16, 1000, 50_000])
@pytest.mark.parametrize("delta", [0.3, 1e-5, 1e-12, 1e-100])
def test_the_quantile_covers_its_tail(features, delta):
    shape = replace(shape_of(1)[0], num_features=features, delta=delta)
    quantile, tail = noise_radius_quantile(shape), delta / shape.loss.num_classes
    assert float(gammaincc(features, quantile)) <= tail * (1 + 1e-12)
    assert float(gammaincc(features, quantile * (1 - 1e-6))) > tail


def test_one_dimension_has_the_exponential_quantile():
    shape = replace(shape_of(14)[0], num_features=1)
    assert noise_radius_quantile(shape) == pytest.approx(-math.log(shape.delta / shape.loss.num_classes), rel=1e-11)


def test_the_lines_of_the_theorem_are_the_theorem():
    shape, ridge, margin = shape_of(13)
    quantile = noise_radius_quantile(shape)
    floored = ridge_after_floor(ridge, ridge_floor(shape, quantile), margin)
    weight_bound = weight_norm_bound(shape, quantile, floored)
    jacobian = jacobian_epsilon(shape, weight_bound, floored)
    values = theorem_one(shape, ridge=ridge, margin=margin)
    assert values.extra_ridge == extra_ridge(shape, weight_bound, jacobian, floored)
    assert values.noise_rate == noise_rate(shape, weight_bound, jacobian)
