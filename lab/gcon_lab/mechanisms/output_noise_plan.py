"""The noise plan of output perturbation: how far one edge moves the minimiser, and Gaussian noise for that.

F(W) = (1/n_1) sum_i loss(W'z_i; y_i) + (ridge/2) |W - W_0|^2 has one minimiser; one edge moves it by at most

    [(gamma_1 + gamma_2 r (|W_0| + gamma_1 r / ridge)) Psi / n_1] / ridge        (docs/proofs/output-perturbation.md)

and a solver with a certified gradient norm of at most tau is off by tau / ridge on either side. Nothing here can see a
graph.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gcon.errors import InputError, PlanMismatchError, check_number
from gcon.mechanisms.certificate_terms import DEFAULT_TOLERANCE, rounding_allowance
from gcon.mechanisms.gaussian_curve import gaussian_delta, gaussian_multiplier
from gcon.mechanisms.losses import ConvexLoss
from gcon.mechanisms.objective_plan import check_influence, check_sizes, check_tolerance
from gcon.privacy.budget import Budget

_ROUNDING = 1e-11  # of the few products and roots below, and of |W_0|; always on the private side
_TOO_SMALL = "This scale is too small for what the plan says that the weights cost."
_MOST_SCALES = 2.0**40  # the lattice is exact for weights of up to so many scales


def slope_norm_bound(loss: ConvexLoss) -> float:
    """gamma_1 = sqrt(c) c_1: the slopes of one node, one per class, are together at most this long.

    Each of the c slopes is at most c_1. Soft margin: 1/sqrt(c); pseudo-Huber of weight w: w/sqrt(c).
    """
    return math.sqrt(loss.num_classes) * loss.slope_bound


def weight_norm_bound(loss: ConvexLoss, *, ridge: float, longest_row: float, start_norm: float) -> float:
    """|W_0| + gamma_1 r / ridge: no minimiser is longer (Frobenius norm), whatever the graph."""
    return start_norm + slope_norm_bound(loss) * longest_row / ridge


def output_sensitivity(
    loss: ConvexLoss,
    *,
    edge_influence: float,
    num_labelled: int,
    ridge: float,
    longest_row: float = 1.0,
    start_norm: float = 0.0,
    tolerance: float = 0.0,
) -> float:
    """How far one edge can move a solution with a gradient norm of at most `tolerance`, in Frobenius norm.

    The slopes of a node change by at most gamma_2 = c_2 times the change of its scores, because no class reads the score
    of another. A tolerance of 0 is the exact minimiser.
    """
    weights = weight_norm_bound(loss, ridge=ridge, longest_row=longest_row, start_norm=start_norm)
    slope = slope_norm_bound(loss) + loss.curvature_bound * longest_row * weights
    return (slope * edge_influence / num_labelled + 2 * tolerance) / ridge * (1 + _ROUNDING)


@dataclass(frozen=True, kw_only=True)
class OutputPlan:
    """How one release by output perturbation is made private.

    Attributes:
        budget: the promise of the release.
        loss: the registered loss.
        num_features, num_labelled: the shape that the plan was made for.
        edge_influence: Psi, the bound that the aggregates carry.
        ridge: the modulus of strong convexity.
        longest_row: r, rows of the aggregates are at most this long; at most 1.
        start_norm: |W_0|, the Frobenius norm of the public point that the ridge pulls to.
        tolerance: tau, the largest gradient norm that is accepted as solved.
        scale: the standard deviation of the noise on every weight; 0 where nothing needs noise.
    """

    budget: Budget
    loss: ConvexLoss
    num_features: int
    num_labelled: int
    edge_influence: float
    ridge: float
    longest_row: float
    start_norm: float
    tolerance: float
    scale: float

    def __post_init__(self) -> None:
        try:
            _check_numbers(**self._numbers)
            check_sizes(num_features=self.num_features, num_labelled=self.num_labelled)
            check_tolerance(self.tolerance)
        except InputError as error:
            raise PlanMismatchError(f"{_TOO_SMALL} {error}") from error
        if not self.needs_noise:
            return
        if not self._covers_its_budget():
            raise PlanMismatchError(_TOO_SMALL)
        weights = weight_norm_bound(
            self.loss, ridge=self.ridge, longest_row=self.longest_row, start_norm=self.start_norm
        )
        if not weights <= _MOST_SCALES * self.scale:
            raise InputError(
                "epsilon",
                rule="must leave noise that float64 resolves beside the weights",
                got=self.budget.epsilon,
                fix="Choose a smaller epsilon; infinity for no promise.",
            )

    def _covers_its_budget(self) -> bool:
        finite = 0 < self.scale < math.inf and 0 < self.sensitivity < math.inf
        return finite and gaussian_delta(self.budget.epsilon, self.sensitivity / self.scale) <= self.budget.delta

    @property
    def needs_noise(self) -> bool:
        """False if nothing depends on edges (Psi = 0) or no promise is asked for (infinite epsilon)."""
        return self.edge_influence != 0 and not math.isinf(self.budget.epsilon)

    @property
    def total_ridge(self) -> float:
        return self.ridge

    @property
    def _numbers(self) -> dict[str, float]:
        """What the sensitivity depends on, besides the loss, the rows and the tolerance."""
        names = {"edge_influence": self.edge_influence, "ridge": self.ridge}
        return {**names, "longest_row": self.longest_row, "start_norm": self.start_norm}

    @property
    def sensitivity(self) -> float:
        """How far one edge can move what the solver returns: the minimiser, and its distance on both sides."""
        return output_sensitivity(self.loss, num_labelled=self.num_labelled, tolerance=self.tolerance, **self._numbers)

    @property
    def distance(self) -> float | None:
        """Sensitivity over scale: the release is one Gaussian of this distance. None without noise."""
        return self.sensitivity / self.scale * (1 + _ROUNDING) if self.needs_noise else None

    def public_record(self) -> dict[str, object]:
        return {
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "loss": self.loss.name,
            "num_classes": self.loss.num_classes,
            "num_features": self.num_features,
            "num_labelled": self.num_labelled,
            **self._numbers,
            "gradient_tolerance": self.tolerance,
            "sensitivity": self.sensitivity,
            "scale": self.scale,
        }


def make_output_plan(
    budget: Budget,
    *,
    loss: ConvexLoss,
    num_features: int,
    num_labelled: int,
    edge_influence: float,
    ridge: float,
    longest_row: float = 1.0,
    start_norm: float = 0.0,
) -> OutputPlan:
    """Calibrate the noise for one release: sigma = g(eps, delta) times the sensitivity.

    Args:
        budget: what is promised.
        loss: a registered loss.
        num_features: d, columns of the aggregates.
        num_labelled: n_1, rows in the loss.
        edge_influence: Psi, the bound that the aggregates carry.
        ridge: Lambda > 0. There is no floor.
        longest_row: r in [0, 1], the aggregates' own bound or more.
        start_norm: at least |W_0|.

    Example:
        >>> from gcon.mechanisms.losses import SoftMargin
        >>> plan = make_output_plan(
        ...     Budget(1.0, 1e-5), loss=SoftMargin(4), num_features=8, num_labelled=100, edge_influence=0.4, ridge=0.5
        ... )
        >>> round(plan.sensitivity, 6)
        0.0045

    Privacy:
        Reads public numbers only.
    """
    given = {"edge_influence": edge_influence, "ridge": ridge, "longest_row": longest_row, "start_norm": start_norm}
    _check_numbers(**given)
    check_sizes(num_features=num_features, num_labelled=num_labelled)
    # Python's own numbers: half precision from elsewhere would calibrate the noise in half precision.
    given = {name: float(number) for name, number in given.items()}
    edge_influence, ridge, longest_row, start_norm = given.values()
    weights = weight_norm_bound(loss, ridge=ridge, longest_row=longest_row, start_norm=start_norm)
    rounding = rounding_allowance(
        num_rows=num_labelled,
        num_features=num_features,
        loss=loss,
        weight_size=weights,
        ridge=ridge,
        noise_size=num_labelled * ridge * start_norm,
    )
    tolerance = max(DEFAULT_TOLERANCE, 4 * rounding)
    scale = 0.0
    if edge_influence > 0 and math.isfinite(budget.epsilon):
        sensitivity = output_sensitivity(loss, num_labelled=num_labelled, tolerance=tolerance, **given)
        scale = gaussian_multiplier(budget.epsilon, budget.delta) * sensitivity * (1 + _ROUNDING)
    return OutputPlan(
        budget=budget,
        loss=loss,
        num_features=num_features,
        num_labelled=num_labelled,
        tolerance=tolerance,
        scale=scale,
        **given,
    )


def _check_numbers(*, edge_influence: float, ridge: float, longest_row: float, start_norm: float) -> None:
    check_influence(edge_influence)
    check_number(
        "ridge",
        ridge,
        allowed=lambda number: 0 < number < math.inf,
        rule="must be a positive number",
        fix="The paper tries 0.01, 0.2, 1, 2.",
    )
    check_number(
        "longest_row",
        longest_row,
        allowed=lambda number: 0 <= number <= 1,
        rule="must lie between 0 and 1",
        fix="Scale the rows of the features to length 1.",
    )
    check_number(
        "start_norm",
        start_norm,
        allowed=lambda number: 0 <= number < math.inf,
        rule="must be a finite number of at least 0",
        fix="Use the Frobenius norm of the public start; 0 without one.",
    )
