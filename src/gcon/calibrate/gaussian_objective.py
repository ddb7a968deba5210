"""Objective perturbation with Gaussian noise (Theorem C), one function per line, and its noise plan.

The objective is that of the paper; its noise B has independent normal entries instead of columns with an Erlang radius.
Nothing here can see a graph: every argument is a public number. Proof: docs/proofs/gaussian-objective.md.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from scipy.special import gammaincc, gammainccinv

from gcon.calibrate.certificate_terms import (
    DEFAULT_TOLERANCE,
    NO_TERMS,
    CertificateTerms,
    certificate_terms,
    exact_budget,
    rounding_allowance,
    spent_budget,
)
from gcon.calibrate.output_noise import check_influence
from gcon.calibrate.plan import check_ridge
from gcon.calibrate.theorem import ObjectiveShape, extra_ridge, jacobian_epsilon, ridge_after_floor
from gcon.errors import InputError, PlanMismatchError
from gcon.losses.convex import ConvexLoss
from gcon.privacy.budget import Budget

LENGTH_SHARE = 0.01  # delta_2 / delta: the share of delta that goes to the length of the weights
_ROUNDING = 1e-12  # what the scale is raised by; the quantile makes room for it


@dataclass(frozen=True, kw_only=True)
class TheoremC:
    """The values of Theorem C. `scale` is 0 where no noise is needed."""

    edge_influence: float
    noise_height: float
    noise_radius_quantile: float
    ridge: float
    weight_norm_bound: float
    jacobian_epsilon: float
    extra_ridge: float
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
class GaussianObjectivePlan:
    """How one release is made private.

    Attributes:
        budget: the promise of the release.
        exact: what Theorem C was evaluated with, after the certificate's reserve.
        theorem: the values of Theorem C.
        terms: the certificate's reserve.
        tolerance: the largest gradient norm that is accepted as solved.
        loss: the registered loss.
        num_features, num_labelled: the shape that the plan was made for.
        noise_share: omega, the least share of epsilon that goes to the noise.
    """

    budget: Budget
    exact: Budget
    theorem: TheoremC
    terms: CertificateTerms
    tolerance: float
    loss: ConvexLoss
    num_features: int
    num_labelled: int
    noise_share: float

    def __post_init__(self) -> None:
        if self.needs_noise and not (self.theorem.scale > 0 and self._covers_its_budget()):
            raise PlanMismatchError("This plan's noise does not cover what the plan says that the weights cost.")

    def _covers_its_budget(self) -> bool:
        """Conditions (i) to (iii) of Theorem C and the reserve, evaluated again for the noise that is really added."""
        shape, values, scale = self._shape, self.theorem, self.scale
        radius = self.num_labelled * (self.total_ridge * values.weight_norm_bound - self.loss.slope_bound)
        shift = noise_shift(shape, values.weight_norm_bound)
        spent = (
            jacobian_epsilon(shape, values.weight_norm_bound, self.total_ridge)
            + shift * noise_height(shape) / scale
            + (shift / scale) ** 2 / 2
        )
        tail = float(gammaincc(self.num_features / 2, (radius / scale) ** 2 / 2)) if radius > 0 else 1.0
        allowed = shape.delta * LENGTH_SHARE / self.loss.num_classes
        whole = spent_budget(self.exact, self.terms)
        reserved = self.final_noise > 0 and whole.epsilon <= self.budget.epsilon * (1 + 1e-12)
        return (
            spent <= shape.epsilon * (1 + 1e-12)
            and tail <= allowed * (1 + 1e-9)
            and reserved
            and whole.delta <= self.budget.delta * (1 + 1e-12)
        )

    @property
    def _shape(self) -> ObjectiveShape:
        return ObjectiveShape(
            epsilon=self.exact.epsilon,
            delta=self.exact.delta,
            noise_share=self.noise_share,
            num_features=self.num_features,
            num_labelled=self.num_labelled,
            edge_influence=self.theorem.edge_influence,
            loss=self.loss,
        )

    @property
    def needs_noise(self) -> bool:
        """False if nothing depends on edges (Psi = 0) or no promise is asked for (infinite epsilon)."""
        return self.theorem.edge_influence != 0 and not math.isinf(self.budget.epsilon)

    @property
    def total_ridge(self) -> float:
        """Lambda + Lambda', the modulus of strong convexity."""
        return self.theorem.ridge + self.theorem.extra_ridge

    @property
    def scale(self) -> float:
        """sigma, raised by a rounding allowance: the noise errs on the private side."""
        return self.theorem.scale * (1 + _ROUNDING)

    @property
    def final_noise(self) -> float:
        """The standard deviation of the final noise on every weight; 0 where nothing needs noise."""
        return self.terms.final_noise(self.tolerance, self.total_ridge)

    def public_record(self) -> dict[str, object]:
        """Every number, for ledger and receipt."""
        return {
            **asdict(self.theorem),
            "scale": self.scale,
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "exact_epsilon": self.exact.epsilon,
            "exact_delta": self.exact.delta,
            "noise_share": self.noise_share,
            "loss": self.loss.name,
            "num_classes": self.loss.num_classes,
            "num_features": self.num_features,
            "num_labelled": self.num_labelled,
            "gradient_tolerance": self.tolerance,
            "reserved_epsilon": self.terms.reserved_epsilon,
            "reserved_delta": self.terms.reserved_delta,
            "final_noise": self.final_noise,
        }


def make_gaussian_objective_plan(
    budget: Budget,
    *,
    loss: ConvexLoss,
    num_features: int,
    num_labelled: int,
    edge_influence: float,
    ridge: float,
    noise_share: float = 0.9,
    margin: float | None = None,
) -> GaussianObjectivePlan:
    """Calibrate the noise for one release.

    Args:
        budget: what is promised.
        loss: a registered loss.
        num_features: d, columns of the aggregates.
        num_labelled: n_1, rows in the loss.
        edge_influence: Psi, the bound that the aggregates carry.
        ridge: Lambda > 0.
        noise_share: omega in (0, 1).
        margin: what is added to the floor of the ridge; None for the floor itself.

    Privacy:
        Reads public numbers only.
    """
    check_ridge(ridge=ridge, noise_share=noise_share, margin=margin)
    check_influence(edge_influence)
    needs_noise = edge_influence > 0 and math.isfinite(budget.epsilon)
    terms = certificate_terms(budget) if needs_noise else NO_TERMS
    exact = exact_budget(budget, terms)
    shape = ObjectiveShape(
        epsilon=exact.epsilon,
        delta=exact.delta,
        noise_share=float(noise_share),
        num_features=num_features,
        num_labelled=num_labelled,
        edge_influence=float(edge_influence),
        loss=loss,
    )
    theorem = theorem_c(shape, ridge=float(ridge), margin=None if margin is None else float(margin))
    return GaussianObjectivePlan(
        budget=budget,
        exact=exact,
        theorem=theorem,
        terms=terms,
        tolerance=_tolerance(theorem, shape),
        loss=loss,
        num_features=num_features,
        num_labelled=num_labelled,
        noise_share=float(noise_share),
    )


def _tolerance(theorem: TheoremC, shape: ObjectiveShape) -> float:
    """1e-10, unless float64 cannot resolve it: then four times the rounding of a gradient with noise of that size."""
    classes = math.sqrt(shape.loss.num_classes)
    rounding = rounding_allowance(
        num_rows=shape.num_labelled,
        num_features=shape.num_features,
        loss=shape.loss,
        weight_size=classes * theorem.weight_norm_bound,
        ridge=theorem.ridge + theorem.extra_ridge,
        noise_size=classes * theorem.noise_radius_quantile * theorem.scale,
    )
    return max(DEFAULT_TOLERANCE, 4 * rounding)
