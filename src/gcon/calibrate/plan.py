"""The noise plan of the perturbed objective: every number that the release depends on, from public numbers alone."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from gcon.calibrate.certificate_terms import (
    DEFAULT_TOLERANCE,
    NO_TERMS,
    CertificateTerms,
    certificate_terms,
    exact_budget,
    rounding_allowance,
)
from gcon.calibrate.theorem import ObjectiveShape, TheoremOne, theorem_one
from gcon.errors import InputError, check_number
from gcon.losses.convex import ConvexLoss
from gcon.privacy.budget import Budget


@dataclass(frozen=True, kw_only=True)
class NoisePlan:
    """How one release is made private.

    Attributes:
        budget: the promise of the release.
        exact: what Theorem 1 was evaluated with, after the certificate's reserve.
        theorem: the values of Theorem 1.
        terms: the certificate's reserve.
        tolerance: the largest gradient norm that is accepted as solved.
        loss: the registered loss.
        num_features, num_labelled: the shape that the plan was made for.
    """

    budget: Budget
    exact: Budget
    theorem: TheoremOne
    terms: CertificateTerms
    tolerance: float
    loss: ConvexLoss
    num_features: int
    num_labelled: int
    noise_share: float

    @property
    def total_ridge(self) -> float:
        """Lambda + Lambda', the modulus of strong convexity."""
        return self.theorem.ridge + self.theorem.extra_ridge

    @property
    def noise_rate(self) -> float:
        """beta, lowered by a rounding allowance: the noise errs on the private side."""
        return self.theorem.noise_rate * (1 - 1e-12)

    @property
    def final_noise(self) -> float:
        """The standard deviation of the final noise on every weight; 0 where nothing needs noise."""
        return self.terms.final_noise(self.tolerance, self.total_ridge)

    @property
    def adds_noise(self) -> bool:
        """Whether the release is perturbed at all."""
        return math.isfinite(self.theorem.noise_rate)

    def public_record(self) -> dict[str, object]:
        """Every number, for ledger, receipt and statement. None stands for 'no noise'."""
        values: dict[str, object] = asdict(self.theorem)
        values["noise_rate"] = self.noise_rate if self.adds_noise else None
        return values | {
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


def make_plan(
    budget: Budget,
    *,
    loss: ConvexLoss,
    num_features: int,
    num_labelled: int,
    edge_influence: float,
    ridge: float,
    noise_share: float = 0.9,
    margin: float | None = None,
) -> NoisePlan:
    """Calibrate the noise for one release.

    Args:
        budget: what is promised.
        loss: a registered loss.
        num_features: d, columns of the aggregates.
        num_labelled: n_1, rows in the loss.
        edge_influence: Psi, the bound that the aggregates carry.
        ridge: Lambda > 0.
        noise_share: omega in (0, 1).
        margin: xi; None for the recommended rule.

    Privacy:
        Reads public numbers only.
    """
    check_ridge(ridge=ridge, noise_share=noise_share, margin=margin)
    _check_influence(edge_influence)
    # Python's own numbers: half precision from elsewhere would calibrate the noise in half precision.
    ridge, noise_share, edge_influence = float(ridge), float(noise_share), float(edge_influence)
    margin = None if margin is None else float(margin)
    needs_noise = edge_influence > 0 and math.isfinite(budget.epsilon)
    terms = certificate_terms(budget) if needs_noise else NO_TERMS
    exact = exact_budget(budget, terms)
    shape = ObjectiveShape(
        epsilon=exact.epsilon,
        delta=exact.delta,
        noise_share=noise_share,
        num_features=num_features,
        num_labelled=num_labelled,
        edge_influence=edge_influence,
        loss=loss,
    )
    theorem = theorem_one(shape, ridge=ridge, margin=margin)
    return NoisePlan(
        budget=budget,
        exact=exact,
        theorem=theorem,
        terms=terms,
        tolerance=_tolerance(theorem, shape),
        loss=loss,
        num_features=num_features,
        num_labelled=num_labelled,
        noise_share=noise_share,
    )


def _tolerance(theorem: TheoremOne, shape: ObjectiveShape) -> float:
    """1e-10, unless float64 cannot resolve it: then four times the rounding of a gradient with noise of that size."""
    classes = math.sqrt(shape.loss.num_classes)
    rounding = rounding_allowance(
        num_rows=shape.num_labelled,
        num_features=shape.num_features,
        loss=shape.loss,
        weight_size=classes * theorem.weight_norm_bound,
        ridge=theorem.ridge + theorem.extra_ridge,
        noise_size=classes * theorem.noise_radius_quantile / theorem.noise_rate,
    )
    return max(DEFAULT_TOLERANCE, 4 * rounding)


def check_ridge(*, ridge: float, noise_share: float, margin: float | None) -> None:
    """The rules of the three numbers that a user chooses for the objective."""

    def positive(number: float) -> bool:
        return 0 < number < math.inf

    rule = "must be a positive number"
    check_number("ridge", ridge, allowed=positive, rule=rule, fix="The paper tries 0.01, 0.2, 1, 2.")
    if margin is not None:
        check_number("margin", margin, allowed=positive, rule=f"{rule} or None", fix="Use None.")
    check_number(
        "noise_share",
        noise_share,
        allowed=lambda number: 0 < number < 1,
        rule="must lie strictly between 0 and 1",
        fix="Use 0.9.",
    )


def _check_influence(edge_influence: float) -> None:
    if not 0 <= edge_influence < math.inf:
        raise InputError(
            "edge_influence",
            rule="must be a finite bound of at least 0",
            got=edge_influence,
            fix="A restart above 0 or a finite number of steps gives one.",
        )
