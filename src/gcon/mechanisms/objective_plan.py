"""The noise plan of the perturbed objective: every number that the release depends on, from public numbers alone."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Generic, Self, TypeVar, final

from gcon.errors import InputError, PlanMismatchError, check_number
from gcon.mechanisms.certificate_terms import (
    DEFAULT_TOLERANCE,
    NO_TERMS,
    CertificateTerms,
    certificate_terms,
    exact_budget,
    reserve_is_covered,
    rounding_allowance,
)
from gcon.mechanisms.losses import ConvexLoss, check_registered
from gcon.mechanisms.samplers.objective_noise import likely_error
from gcon.mechanisms.theorem import ObjectiveShape, TheoremOne, TheoremValues, influence_of, theorem_one
from gcon.privacy.budget import EDGES_FIELD, Budget, protected_change

_NOT_COVERED = "This plan's noise does not cover what the plan says that the weights cost."


Values = TypeVar("Values", bound=TheoremValues)


@dataclass(frozen=True)
class LikelyNoise:
    """What one column of the noise hardly ever exceeds: its length, and how far real noise is from what float64 holds of it."""

    length: float
    error: float


@dataclass(frozen=True, kw_only=True)
class ObjectivePlan(ABC, Generic[Values]):
    """How one release by objective perturbation is made private. A plan that its own numbers contradict is refused.

    Attributes:
        budget: the promise of the release.
        exact: what the theorem was evaluated with, after the certificate's reserve.
        theorem: the values of the theorem.
        terms: the certificate's reserve.
        tolerance: the largest gradient norm that is accepted as solved.
        loss: the registered loss.
        num_features, num_labelled: the shape that the plan was made for.
        noise_share: omega, the least share of epsilon that goes to the noise.
        protect_edges: how many edges may change together within the budget; the theorem's edge influence is theirs.
    """

    budget: Budget
    exact: Budget
    theorem: Values
    terms: CertificateTerms
    tolerance: float
    loss: ConvexLoss
    num_features: int
    num_labelled: int
    noise_share: float
    protect_edges: int = 1

    @classmethod
    def made(
        cls,
        budget: Budget,
        *,
        loss: ConvexLoss,
        num_features: int,
        num_labelled: int,
        edge_influence: float,
        ridge: float,
        noise_share: float = 0.9,
        margin: float | None = None,
        protect_edges: int = 1,
    ) -> Self:
        """Calibrate the noise for one release.

        Args:
            budget: what is promised.
            loss: a registered loss.
            num_features: d, columns of the aggregates.
            num_labelled: n_1, rows in the loss.
            edge_influence: Psi, the bound that the aggregates carry, for one edge.
            ridge: Lambda > 0; the theorem's floor may raise it.
            noise_share: omega in (0, 1).
            margin: xi, what is added to the floor; None for the floor itself.
            protect_edges: how many edges, 1 to 10, may change together within the budget.

        Privacy:
            Reads public numbers only.
        """
        check_ridge(ridge=ridge, noise_share=noise_share, margin=margin)
        check_influence(edge_influence)
        check_sizes(num_features=num_features, num_labelled=num_labelled)
        protected_change(protect_edges)
        needs_noise = edge_influence > 0 and math.isfinite(budget.epsilon)
        terms = certificate_terms(budget) if needs_noise else NO_TERMS
        exact = exact_budget(budget, terms)
        # Python's own numbers: half precision from elsewhere would calibrate the noise in half precision.
        shape = ObjectiveShape(
            epsilon=exact.epsilon,
            delta=exact.delta,
            noise_share=float(noise_share),
            num_features=num_features,
            num_labelled=num_labelled,
            edge_influence=influence_of(int(protect_edges), float(edge_influence)),
            loss=loss,
        )
        theorem = cls._evaluated(shape, ridge=float(ridge), margin=None if margin is None else float(margin))
        return cls(
            budget=budget,
            exact=exact,
            theorem=theorem,
            terms=terms,
            tolerance=objective_tolerance(theorem, shape, cls._likely_noise(theorem, num_features)),
            loss=loss,
            num_features=num_features,
            num_labelled=num_labelled,
            noise_share=shape.noise_share,
            protect_edges=int(protect_edges),
        )

    def __post_init__(self) -> None:
        try:
            check_ridge(ridge=self.theorem.ridge, noise_share=self.noise_share, margin=None)
            check_influence(self.theorem.edge_influence)
            check_sizes(num_features=self.num_features, num_labelled=self.num_labelled)
            check_registered(self.loss)
            protected_change(self.protect_edges)
            check_tolerance(self.tolerance)
            covered = self._covers_its_reserve() and self._covers_its_theorem() and self._resolves_its_tolerance()
        except InputError as error:
            raise PlanMismatchError(f"{_NOT_COVERED} {error}") from error
        if not covered:
            raise PlanMismatchError(_NOT_COVERED)

    @abstractmethod
    def _covers_its_theorem(self) -> bool:
        """Whether the noise that is really added is enough, by the theorem, for `exact`."""

    @staticmethod
    @abstractmethod
    def _evaluated(shape: ObjectiveShape, *, ridge: float, margin: float | None) -> Values:
        """The theorem."""

    @staticmethod
    @abstractmethod
    def _likely_noise(theorem: Values, num_features: int) -> LikelyNoise:
        """What one column of the noise hardly ever exceeds."""

    def _covers_its_reserve(self) -> bool:
        if not self.needs_noise:
            return (self.exact, self.terms) == (self.budget, NO_TERMS)
        return reserve_is_covered(self.budget, self.exact, self.terms)

    def _resolves_its_tolerance(self) -> bool:
        """Whether float64 resolves the tolerance: where it does not, a failure to solve could depend on edges."""
        likely = self._likely_noise(self.theorem, self.num_features)
        least = objective_tolerance(self.theorem, self._shape, likely)
        return not self.needs_noise or self.tolerance >= least

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
    def final_noise(self) -> float:
        """The standard deviation of the final noise on every weight; 0 where nothing needs noise."""
        return self.terms.final_noise(self.tolerance, self.total_ridge)

    @abstractmethod
    def public_record(self) -> dict[str, object]:
        """Every number, for ledger and receipt."""

    def _common_record(self) -> dict[str, object]:
        return {
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
        } | ({} if self.protect_edges == 1 else {EDGES_FIELD: self.protect_edges})


@final
@dataclass(frozen=True, kw_only=True)
class NoisePlan(ObjectivePlan[TheoremOne]):
    """The plan of the paper's mechanism, by Theorem 1."""

    def _covers_its_theorem(self) -> bool:
        """Exactly the values that Theorem 1 gives: less noise costs more, more noise breaks the bound on the weights."""
        return self.theorem == theorem_one(self._shape, ridge=self.theorem.ridge, margin=0.0)

    @staticmethod
    def _evaluated(shape: ObjectiveShape, *, ridge: float, margin: float | None) -> TheoremOne:
        return theorem_one(shape, ridge=ridge, margin=margin)

    @staticmethod
    def _likely_noise(theorem: TheoremOne, num_features: int) -> LikelyNoise:
        if math.isinf(theorem.noise_rate):
            return LikelyNoise(0.0, 0.0)
        return LikelyNoise(
            theorem.noise_radius_quantile / theorem.noise_rate, likely_error(theorem.noise_rate, num_features)
        )

    @property
    def noise_rate(self) -> float:
        """beta, lowered by a rounding allowance: the noise errs on the private side."""
        return self.theorem.noise_rate * (1 - 1e-12)

    @property
    def adds_noise(self) -> bool:
        """Whether the release is perturbed at all."""
        return math.isfinite(self.theorem.noise_rate)

    def public_record(self) -> dict[str, object]:
        """Every number, for ledger, receipt and statement. None stands for 'no noise'."""
        values: dict[str, object] = asdict(self.theorem)
        values["noise_rate"] = self.noise_rate if self.adds_noise else None
        return values | self._common_record()


make_plan = NoisePlan.made
"""The plan of a release by the paper's mechanism."""


def objective_tolerance(theorem: TheoremValues, shape: ObjectiveShape, noise: LikelyNoise) -> float:
    """1e-10, unless float64 cannot resolve it: then four times the rounding of a gradient with noise of that size.

    Args:
        theorem: the values of the theorem.
        shape: what it was evaluated with.
        noise: what one column of the noise hardly ever exceeds.
    """
    classes = math.sqrt(shape.loss.num_classes)
    rounding = rounding_allowance(
        num_rows=shape.num_labelled,
        num_features=shape.num_features,
        loss=shape.loss,
        weight_size=classes * theorem.weight_norm_bound,
        ridge=theorem.ridge + theorem.extra_ridge,
        noise_size=classes * noise.length,
    )
    return max(DEFAULT_TOLERANCE, 4 * (rounding + classes * noise.error / shape.num_labelled))


def check_ridge(*, ridge: float, noise_share: float, margin: float | None) -> None:
    """The rules of the three numbers that a user chooses for the objective."""
    rule = "must be a positive number"
    check_number("ridge", ridge, allowed=_positive, rule=rule, fix="The paper tries 0.01, 0.2, 1, 2.")
    if margin is not None:
        check_number("margin", margin, allowed=_positive, rule=f"{rule} or None", fix="Use None.")
    rule, fix = "must lie strictly between 0 and 1", "Use 0.9."
    check_number("noise_share", noise_share, allowed=lambda number: 0 < number < 1, rule=rule, fix=fix)


def check_influence(edge_influence: float) -> None:
    """Refuse what is not a bound on the edge influence."""
    rule, fix = "must be a finite bound of at least 0", "A restart above 0 or a finite number of steps gives one."
    check_number("edge_influence", edge_influence, allowed=lambda number: 0 <= number < math.inf, rule=rule, fix=fix)


def check_sizes(*, num_features: int, num_labelled: int) -> None:
    """Refuse sizes that no training rows have."""
    rule, fix = "must be a whole number of at least 1", "Use the shape of the rows in the loss."
    for name, size in (("num_features", num_features), ("num_labelled", num_labelled)):
        check_number(name, size, allowed=lambda number: number >= 1, rule=rule, fix=fix, whole=True)


def check_tolerance(tolerance: float) -> None:
    """Refuse a gradient norm that no solver reaches, or that every answer has."""
    rule, fix = "must be a positive number", "Let the plan choose it."
    check_number("tolerance", tolerance, allowed=_positive, rule=rule, fix=fix)


def _positive(number: float) -> bool:
    return 0 < number < math.inf
