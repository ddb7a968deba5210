"""Objective perturbation with Gaussian noise (Theorem C), one function per line, and its noise plan.

The objective is that of the paper; its noise B has independent normal entries instead of columns with an Erlang radius.
Nothing here can see a graph: every argument is a public number. Proof: docs/proofs/gaussian-objective.md.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import ClassVar

from scipy.special import gammaincc, gammainccinv

from gcon.errors import InputError
from gcon.mechanisms.objective_plan import LikelyNoise, ObjectivePlan
from gcon.mechanisms.samplers.objective_noise import likely_gaussian_error
from gcon.mechanisms.theorem import ObjectiveShape, TheoremValues, extra_ridge, jacobian_epsilon, ridge_after_floor

LENGTH_SHARE = 0.01  # delta_2 / delta: the share of delta that goes to the length of the weights
_ROUNDING = 1e-12  # what the scale is raised by; the quantile makes room for it


@dataclass(frozen=True, kw_only=True)
class TheoremC(TheoremValues):
    """The values of Theorem C. `scale` is 0 where no noise is needed."""

    noise_height: float
    shift: float
    scale: float


def noise_height(shape: ObjectiveShape) -> float:
    """H = sqrt(2c/pi) + sqrt(2 log(1/delta_1)): how far the noise points along the shift, in units of D sigma."""
    likely = shape.delta * (1 - LENGTH_SHARE)
    return math.sqrt(2 * shape.loss.num_classes / math.pi) + math.sqrt(-2 * math.log(likely))


def noise_radius_quantile(shape: ObjectiveShape) -> float:
    """q_2: the root of the upper delta_2/c quantile of the chi-square law, rounded up until its tail is covered.

    The last factor makes room for the rounding allowance on the scale.
    """
    half, tail = shape.num_features / 2, shape.delta * LENGTH_SHARE / shape.loss.num_classes
    quantile = float(gammainccinv(half, tail))
    while float(gammaincc(half, quantile)) > tail * (1 + 1e-13):
        quantile *= 1 + 2**-50
    return math.sqrt(2 * quantile) * (1 + 2 * _ROUNDING)


def scale_over_shift(height: float, epsilon: float) -> float:
    """Kappa = (h + sqrt(h^2 + 2 eps)) / (2 eps), the solution of h/kappa + 1/(2 kappa^2) = eps."""
    return (height + math.sqrt(height**2 + 2 * epsilon)) / (2 * epsilon)


def noise_push(shape: ObjectiveShape, height: float, quantile: float) -> float:
    """A = sqrt(c) Psi kappa q_2 / n_1, with kappa at the least epsilon that the noise can get; 0 without noise."""
    if not shape.needs_noise:
        return 0.0
    most = scale_over_shift(height, shape.noise_share * shape.epsilon)
    return math.sqrt(shape.loss.num_classes) * shape.edge_influence * most * quantile / shape.num_labelled


def weight_norm_bound(shape: ObjectiveShape, push: float, ridge: float) -> float:
    """c_theta = c_1 (1 + a) / (Lambda - c_2 a): no column is longer, but for a probability of delta_2."""
    room = ridge - shape.loss.curvature_bound * push
    if room <= 0:
        raise InputError(
            "margin",
            rule="must lift the ridge above the floor of Theorem C by more than rounding",
            got="a margin that is lost in rounding",
            fix="Leave margin out: the floor is then doubled.",
        )
    # The bad event is about Lambda c_theta - c_1, a small difference: the last factor keeps rounding out of it.
    return shape.loss.slope_bound * (1 + push) / room * (1 + _ROUNDING)


def noise_shift(shape: ObjectiveShape, weight_bound: float) -> float:
    """D = sqrt(c) (c_1 + c_2 c_theta) Psi: how far one edge moves the noise that belongs to given weights."""
    loss = shape.loss
    slope = loss.slope_bound + loss.curvature_bound * weight_bound
    return math.sqrt(loss.num_classes) * slope * shape.edge_influence


def theorem_c(shape: ObjectiveShape, *, ridge: float, margin: float | None = None) -> TheoremC:
    """All values of Theorem C.

    Args:
        shape: the public numbers.
        ridge: Lambda > 0 as asked for; the floor c_2 a may raise it.
        margin: what is added to the floor; None means the floor itself.
    """
    height, quantile = noise_height(shape), noise_radius_quantile(shape)
    push = noise_push(shape, height, quantile)
    ridge = ridge_after_floor(ridge, shape.loss.curvature_bound * push, margin)
    weight_bound = weight_norm_bound(shape, push, ridge)
    jacobian = jacobian_epsilon(shape, weight_bound, ridge)
    shift = noise_shift(shape, weight_bound)
    left = max(shape.epsilon - jacobian, shape.noise_share * shape.epsilon)
    return TheoremC(
        edge_influence=shape.edge_influence,
        noise_height=height,
        noise_radius_quantile=quantile,
        ridge=ridge,
        weight_norm_bound=weight_bound,
        jacobian_epsilon=jacobian,
        extra_ridge=extra_ridge(shape, weight_bound, jacobian, ridge),
        shift=shift,
        scale=shift * scale_over_shift(height, left) if shape.needs_noise else 0.0,
    )


@dataclass(frozen=True, kw_only=True)
class GaussianObjectivePlan(ObjectivePlan[TheoremC]):
    """The plan of objective perturbation with Gaussian noise, by Theorem C."""

    longest_row: ClassVar = 1.0  # of the aggregates, which Theorem C needs

    @property
    def edge_influence(self) -> float:
        return self.theorem.edge_influence

    def _covers_its_theorem(self) -> bool:
        """Conditions (i) to (iii) of Theorem C, evaluated again for the noise that is really added; for one edge."""
        if self.protect_edges != 1:
            return False
        if not self.needs_noise:
            return True
        shape, values, scale = self._shape, self.theorem, self.scale
        if not (
            0 < scale < math.inf and 0 <= values.extra_ridge < math.inf and 0 < values.weight_norm_bound < math.inf
        ):
            return False
        reach = self.num_labelled * (self.total_ridge * values.weight_norm_bound - self.loss.slope_bound) / scale
        distance = noise_shift(shape, values.weight_norm_bound) / scale
        spent = (
            jacobian_epsilon(shape, values.weight_norm_bound, self.total_ridge)
            + distance * noise_height(shape)
            + distance * distance / 2
        )
        tail = float(gammaincc(self.num_features / 2, reach * reach / 2)) if reach > 0 else 1.0
        allowed = shape.delta * LENGTH_SHARE / self.loss.num_classes
        return spent <= shape.epsilon * (1 + 1e-12) and tail <= allowed * (1 + 1e-9)

    @staticmethod
    def _evaluated(shape: ObjectiveShape, *, ridge: float, margin: float | None) -> TheoremC:
        return theorem_c(shape, ridge=ridge, margin=margin)

    @staticmethod
    def _likely_noise(theorem: TheoremC, num_features: int) -> LikelyNoise:
        length = theorem.noise_radius_quantile * theorem.scale
        return LikelyNoise(length, likely_gaussian_error(theorem.scale, num_features))

    @property
    def scale(self) -> float:
        """sigma, raised by a rounding allowance: the noise errs on the private side."""
        return self.theorem.scale * (1 + _ROUNDING)

    def public_record(self) -> dict[str, object]:
        return {**asdict(self.theorem), "scale": self.scale, **self._common_record()}


make_gaussian_objective_plan = GaussianObjectivePlan.made
"""The plan of a release by Gaussian noise in the objective."""
