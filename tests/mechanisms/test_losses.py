"""The losses: every derivative is the derivative of the one before, and every bound is attained but never passed."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gcon.errors import InputError
from gcon.mechanisms.losses import PseudoHuber, SoftMargin, loss_by_name

LOSSES = [SoftMargin(2), SoftMargin(7), PseudoHuber(2, 0.1), PseudoHuber(7, 0.5), PseudoHuber(3, 2.0)]
SCORES = torch.cat(
    [torch.linspace(-15, 15, 6001, dtype=torch.float64), torch.linspace(-60, 60, 121, dtype=torch.float64)]
)
TARGETS = (0.0, 0.25, 0.5, 1.0)
ORDERS = [("value", "slope"), ("slope", "curvature"), ("curvature", "curvature_slope")]
searched = settings(max_examples=100, deadline=None, derandomize=True)


def targets_like(scores: torch.Tensor, target: float) -> torch.Tensor:
    return torch.full_like(scores, target)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: f"{loss.name}-{loss.num_classes}")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("function", "derivative"), ORDERS)
def test_derivatives_against_differences(loss, target, function, derivative):
    scores = torch.linspace(-6, 6, 1001, dtype=torch.float64)
    goal, step = targets_like(scores, target), 1e-4
    outer = getattr(loss, function)
    # Fourth-order central difference.
    numeric = (
        8 * (outer(scores + step, goal) - outer(scores - step, goal))
        - (outer(scores + 2 * step, goal) - outer(scores - 2 * step, goal))
    ) / (12 * step)
    scale = getattr(loss, f"{derivative}_bound")
    # The step is small against the loss's own length scale, and the rounding error against the derivative's scale.
    np.testing.assert_allclose(getattr(loss, derivative)(scores, goal), numeric, atol=2e-7 * max(scale, 0.05))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("num_classes", [2, 7])
def test_soft_margin_against_automatic_differentiation(target, num_classes):
    loss, scores = SoftMargin(num_classes), SCORES.clone().requires_grad_()
    goal = targets_like(scores.detach(), target)
    # The paper's own formula, written with a stable logarithm of the logistic function.
    logistic = torch.nn.functional.logsigmoid
    value = -(goal * logistic(scores) + (1 - goal) * logistic(-scores)) / num_classes
    np.testing.assert_allclose(loss.value(scores.detach(), goal), value.detach(), atol=3e-9)
    (slope,) = torch.autograd.grad(value.sum(), scores, create_graph=True)
    np.testing.assert_allclose(loss.slope(scores.detach(), goal), slope.detach(), atol=1e-12)
    (curvature,) = torch.autograd.grad(slope.sum(), scores, create_graph=True)
    np.testing.assert_allclose(loss.curvature(scores.detach(), goal), curvature.detach(), atol=1e-12)
    # The third derivative is a polynomial in the logistic function.
    up = torch.sigmoid(scores.detach())
    np.testing.assert_allclose(
        loss.curvature_slope(scores.detach(), goal), up * (1 - up) * (1 - 2 * up) / num_classes, atol=1e-12
    )


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("weight", [0.1, 1.0])
def test_pseudo_huber_against_automatic_differentiation(target, weight):
    loss, scores = PseudoHuber(3, weight), SCORES.clone().requires_grad_()
    goal = targets_like(scores.detach(), target)
    current = weight**2 / 3 * (torch.sqrt(1 + (scores - goal) ** 2 / weight**2) - 1)
    np.testing.assert_allclose(loss.value(scores.detach(), goal), current.detach(), rtol=1e-10, atol=1e-14)
    for derivative in ("slope", "curvature", "curvature_slope"):
        (current,) = torch.autograd.grad(current.sum(), scores, create_graph=True)
        got = getattr(loss, derivative)(scores.detach(), goal)
        np.testing.assert_allclose(got, current.detach(), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: f"{loss.name}-{loss.num_classes}")
@pytest.mark.parametrize("target", TARGETS)
def test_bounds_are_never_passed(loss, target):
    goal = targets_like(SCORES, target)
    allowance = 1 + 1e-12
    assert float(loss.slope(SCORES, goal).abs().max()) <= loss.slope_bound * allowance
    assert float(loss.curvature(SCORES, goal).max()) <= loss.curvature_bound * allowance
    assert float(loss.curvature(SCORES, goal).min()) >= 0  # convex
    assert float(loss.curvature_slope(SCORES, goal).abs().max()) <= loss.curvature_slope_bound * allowance


@pytest.mark.parametrize("classes", [2, 7])
def test_soft_margin_attains_its_bounds(classes):
    loss = SoftMargin(classes)
    zero, one = torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    assert float(loss.slope(40 * one, zero)) == pytest.approx(1 / classes)
    assert float(loss.slope(-40 * one, one)) == pytest.approx(-1 / classes)
    assert float(loss.curvature(zero, zero)) == pytest.approx(loss.curvature_bound)
    # Where the logistic function is (1 -+ 1/sqrt 3)/2.
    steepest = math.log((1 - 1 / math.sqrt(3)) / (1 + 1 / math.sqrt(3)))
    assert float(loss.curvature_slope(steepest * one, zero)) == pytest.approx(loss.curvature_slope_bound)
    assert loss.curvature_slope_bound * classes == pytest.approx(0.0962250449)


@pytest.mark.parametrize("weight", [0.1, 0.2, 0.5, 3.0])
@pytest.mark.parametrize("target", TARGETS)
def test_pseudo_huber_attains_its_bounds(weight, target):
    loss, goal = PseudoHuber(4, weight), torch.tensor([target], dtype=torch.float64)
    assert float(loss.slope(goal + 1e6 * weight, goal)) == pytest.approx(weight / 4)
    assert float(loss.curvature(goal, goal)) == pytest.approx(1 / 4)
    assert float(loss.curvature_slope(goal - weight / 2, goal)) == pytest.approx(loss.curvature_slope_bound)
    assert loss.curvature_slope_bound * 4 * weight == pytest.approx(0.8586501034)


@searched
@given(target=st.floats(0, 1), score=st.floats(-50, 50), weight=st.floats(0.05, 5), classes=st.integers(2, 50))
def test_soft_targets_stay_within_the_bounds(target, score, weight, classes):
    scores, goals = torch.tensor([score], dtype=torch.float64), torch.tensor([target], dtype=torch.float64)
    for loss in (SoftMargin(classes), PseudoHuber(classes, weight)):
        assert abs(float(loss.slope(scores, goals))) <= loss.slope_bound * (1 + 1e-12)
        assert 0 <= float(loss.curvature(scores, goals)) <= loss.curvature_bound * (1 + 1e-12)
        assert abs(float(loss.curvature_slope(scores, goals))) <= loss.curvature_slope_bound * (1 + 1e-12)
        assert float(loss.value(scores, goals)) >= -1e-15


def test_a_target_outside_the_unit_interval_would_break_the_slope_bound():
    far = torch.full((1,), 40.0, dtype=torch.float64)
    assert float(SoftMargin(2).slope(far, torch.tensor([-0.5], dtype=torch.float64))) > SoftMargin(2).slope_bound


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: f"{loss.name}-{loss.num_classes}")
def test_inputs_are_left_alone(loss):
    scores, goals = torch.randn(5, loss.num_classes, dtype=torch.float64), torch.zeros(5, loss.num_classes)
    kept = scores.clone(), goals.clone()
    for function in ("value", "slope", "curvature", "curvature_slope"):
        assert getattr(loss, function)(scores, goals).shape == scores.shape
    loss.probabilities(scores)
    assert torch.equal(scores, kept[0])
    assert torch.equal(goals, kept[1])


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: f"{loss.name}-{loss.num_classes}")
def test_extreme_scores_stay_finite(loss):
    scores = torch.tensor([-1e6, -800.0, 0.0, 800.0, 1e6], dtype=torch.float64)
    for function in ("value", "slope", "curvature", "curvature_slope"):
        assert bool(torch.isfinite(getattr(loss, function)(scores, torch.ones(5, dtype=torch.float64))).all())


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: f"{loss.name}-{loss.num_classes}")
def test_probabilities_keep_the_order_of_the_scores(loss):
    scores = torch.linspace(-3, 3, loss.num_classes, dtype=torch.float64).flip(0).repeat(4, 1)
    shares = loss.probabilities(scores)
    np.testing.assert_allclose(shares.sum(dim=1), 1)
    assert torch.equal(shares.argsort(dim=1), scores.argsort(dim=1))
    assert float(shares.min()) > 0


def test_losses_by_name():
    assert loss_by_name("soft-margin", 7) == SoftMargin(7)
    assert loss_by_name("pseudo-huber:0.2", 3) == PseudoHuber(3, 0.2)
    for loss in (SoftMargin(4), PseudoHuber(4, 0.1), PseudoHuber(4, 2.0)):
        assert loss_by_name(loss.name, 4) == loss


@pytest.mark.parametrize(
    "name",
    ["", "hinge", "softmargin", "pseudo-huber", "pseudo-huber:", "pseudo-huber:0", "pseudo-huber:-1", "pseudo-huber:inf",
     "pseudo-huber:nan", "pseudo-huber:wide", "pseudo-huber:0.2:0.3", None, 3, SoftMargin(2)],
)  # fmt: skip
def test_other_losses_are_refused(name):
    with pytest.raises(InputError, match=r"^loss:"):
        loss_by_name(name, 3)


def test_the_weight_scales_the_slope_and_not_the_curvature():
    narrow, wide = PseudoHuber(3, 0.1), PseudoHuber(3, 0.4)
    assert wide.slope_bound == pytest.approx(4 * narrow.slope_bound)
    assert wide.curvature_bound == narrow.curvature_bound
    assert wide.curvature_slope_bound == pytest.approx(narrow.curvature_slope_bound / 4)
    # Close to the target it is half the square, far away it is linear with the weight as slope.
    gap = torch.tensor([1e-4, 1e4], dtype=torch.float64)
    values = narrow.value(gap, torch.zeros(2, dtype=torch.float64)) * 3
    assert float(values[0]) == pytest.approx(0.5e-8, rel=1e-4)
    assert float(values[1]) == pytest.approx(0.1 * 1e4, rel=1e-4)
