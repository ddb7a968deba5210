"""Statistics with Gaussian noise, one after another: one budget, split by shares (docs/proofs/gaussian-release.md).

The budget (epsilon, delta) is one Gaussian distance mu. A release is a statistic with a share of mu^2; its noise has the
standard deviation sensitivity / (mu sqrt(share)). Which statistic comes next, on which rows, and with which share, may be
chosen from everything released so far. All shares together are at most 1; then everything that is released is, for one edge,
at least as private as one Gaussian release of distance mu.

The noise is real Gaussian noise, rounded exactly to a public lattice together with the statistic, before anybody sees it
(docs/proofs/exact-noise.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, final

import torch
from torch import Tensor

from gcon.edges.source import Edges
from gcon.errors import PlanMismatchError, check_number
from gcon.mechanisms.gaussian_curve import gaussian_delta, gaussian_multiplier
from gcon.mechanisms.samplers.rounded import EXACT_GAUSSIAN, SPACING, rounded_noise
from gcon.mechanisms.statistic import Statistic
from gcon.privacy.budget import Budget, checked_budget
from gcon.privacy.plan import PROOF_PAGES, Mechanism, proven
from gcon.privacy.randomness import Randomness

_SLACK = 1e-12  # shares may add to this much more than 1; the noise is larger by more than that
_LEAST_NOISE, _MOST_NOISE = 1e-150, 1e150
_MOST_ROUNDING = 0.1  # of the sensitivity may be paid for float64 sums that are not exact
_ROOT_HALF = math.sqrt(0.5) * (1 + 1e-15)
_MOST_SHRINK = 1e-4  # of the distance: at tiny budgets float64 knows the privacy curve to fewer digits


@dataclass(frozen=True, eq=False, kw_only=True)
class NoisyStatistic:
    """What was released. You can check the noise yourself: sigma = sensitivity / (mu sqrt(share)).

    Attributes:
        name: the statistic's name.
        value: the noisy matrix, float64.
        standard_deviation: sigma of the noise (0: none); off the diagonal of a symmetric statistic it is sigma / sqrt(2).
        symmetric: whether value and noise are symmetric.
        sensitivity: what one edge can change in the computed value, in Frobenius norm.
        share: of the squared distance.
    """

    name: str
    value: Tensor
    standard_deviation: float
    symmetric: bool
    sensitivity: float
    share: float


class HasDistance(Protocol):
    """A plan that pays for Gaussian releases."""

    @property
    def distance(self) -> float | None:
        """mu, of all of them together; None without a promise."""


@final
@proven("gaussian-release")
@dataclass(frozen=True, kw_only=True)
class GaussianPlan:
    """A budget and the Gaussian distance that it allows.

    Attributes:
        budget: what all releases together cost.
        distance: mu; None without a promise (infinite epsilon).
        name: the name in the ledger.
    """

    budget: Budget
    distance: float | None
    name: str

    def __post_init__(self) -> None:
        epsilon, distance = self.budget.epsilon, self.distance
        if distance is None:
            covered = math.isinf(epsilon)
        else:
            finite = math.isfinite(epsilon) and 0 < distance < math.inf
            covered = finite and gaussian_delta(epsilon, distance) <= self.budget.delta
        if not covered:
            raise PlanMismatchError("This distance is too large for what the plan says that the release costs.")

    @property
    def gaussian_distance(self) -> float | None:
        """The distance of the one Gaussian release that all of it amounts to."""
        return self.distance

    def noisy(self, statistic: Statistic, *, share: float) -> NoisyRelease:
        """The release of a statistic with a share of this budget."""
        return NoisyRelease(plan=self, statistic=statistic, share=share)

    def public_record(self, released: Sequence[Mechanism[Any]]) -> Mapping[str, object]:
        """The budget, its distance, and every release so far."""
        return {
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "distance": self.distance,
            **({} if self.distance is None else {"noise": EXACT_GAUSSIAN}),
            "releases": [mechanism.record for mechanism in released],
        }

    def check(self, mechanisms: Sequence[Mechanism[Any]]) -> None:
        """All are releases of this plan, and their shares add to at most 1."""
        self.__post_init__()  # once more: nothing was changed since
        shares = []
        for mechanism in mechanisms:
            if (
                type(mechanism) is not NoisyRelease
                or type(mechanism.plan) is not GaussianPlan
                or mechanism.plan != self
            ):
                raise PlanMismatchError("This plan pays for releases that it made itself (GaussianPlan.noisy).")
            shares.append(mechanism.share)
        if not math.fsum(shares) <= 1 + _SLACK:
            raise PlanMismatchError("The shares of all releases of a plan must add to at most 1.")


def gaussian_plan(epsilon: float, delta: float, *, method: str) -> GaussianPlan:
    """The largest distance that (epsilon, delta) allows, mu = 1/g(epsilon, delta), rounded to the private side.

    Args:
        epsilon: of all releases together; infinite: no noise and no promise.
        delta: below 0.5.
        method: whose releases these are, for the ledger.

    Example:
        >>> round(1 / gaussian_plan(1.0, 1e-5, method="example").distance, 6)
        3.730632
    """
    budget, name = checked_budget(epsilon, delta), f"gaussian release ({method})"
    if math.isinf(budget.epsilon):
        return GaussianPlan(budget=Budget(math.inf, 0.0), distance=None, name=name)
    return GaussianPlan(budget=budget, distance=largest_distance(budget.epsilon, budget.delta), name=name)


def largest_distance(epsilon: float, delta: float) -> float:
    """The same for a finite budget that was checked, or for a part of one; the plan checks it."""
    largest, shrink = 1 / gaussian_multiplier(epsilon, delta), _SLACK
    while gaussian_delta(epsilon, (1 - shrink) * largest) > delta and shrink < _MOST_SHRINK:
        shrink *= 2
    return (1 - shrink) * largest


@final
@proven("gaussian-release")
@dataclass(frozen=True, eq=False, kw_only=True)
class NoisyRelease:
    """One statistic with Gaussian noise.

    Attributes:
        plan: what pays.
        statistic: registered with a proven sensitivity.
        share: of the plan's squared distance, in (0, 1]; 0 only for what cannot depend on edges.
        reads_edges: whether an edge can change anything in it.
        standard_deviation: sigma = sensitivity / (mu sqrt(share)), rounded up; 0 where no edge is read and without a promise.
        spacing: of the lattice: that of the smallest standard deviation of an entry's noise; 0 without noise.
        record: the statistic's settings, its bound, and the noise.
    """

    plan: HasDistance
    statistic: Statistic
    share: float
    reads_edges: bool = field(init=False)
    standard_deviation: float = field(init=False)
    spacing: float = field(init=False)
    record: Mapping[str, object] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """The statistic is proven, the share is one, and float64 can hold the noise that follows from them."""
        statistic, distance, deviation, spacing = self.statistic, self.plan.distance, 0.0, 0.0
        PROOF_PAGES[type(statistic)]  # or it is refused
        reads_edges = statistic.sensitivity != 0
        least = 1e-12 if reads_edges else 0.0
        check_number(
            "share",
            self.share,
            allowed=lambda number: least <= number <= 1,
            rule="must be a part of the whole budget, at most 1 and above 0",
            fix="All shares of a plan add to at most 1.",
        )
        if distance is not None and reads_edges:
            deviation = statistic.sensitivity / (distance * math.sqrt(self.share)) * (1 + 2 * _SLACK)
            if not _LEAST_NOISE <= deviation <= _MOST_NOISE:
                raise PlanMismatchError("A finite epsilon must lead to noise that float64 can hold; scale the rows.")
            if not 2 * statistic.rounding <= _MOST_ROUNDING * statistic.sensitivity:
                raise PlanMismatchError(
                    f"Rounding of walks must be at most {_MOST_ROUNDING:g} of what one edge can change: centre the rows "
                    "(nearly constant ones drown in rounding), or take a statistic with exact sums."
                )
            spacing = SPACING * math.ulp(deviation * _ROOT_HALF if statistic.symmetric else deviation)
        object.__setattr__(self, "reads_edges", reads_edges)
        object.__setattr__(self, "standard_deviation", deviation)
        object.__setattr__(self, "spacing", spacing)
        record = {
            **statistic.settings,
            "statistic": statistic.name,
            "share": float(self.share),
            "sensitivity": statistic.sensitivity,
            "rounding": statistic.rounding,
            "standard_deviation": deviation,
            "spacing": spacing,
        }
        object.__setattr__(self, "record", record)

    check = __post_init__  # the account asks again before it releases: the noise follows from what is held by then

    def apply(self, edges: Edges, randomness: Randomness) -> NoisyStatistic:
        """The lattice point nearest to the statistic plus real noise. Called by the account alone.

        Symmetric values get independent noise on and above the diagonal: standard deviation sigma on it and sigma / sqrt(2)
        (rounded up) above, mirrored below. Entries that read no edge stay as they are.

        Privacy:
            With all releases of the plan it is (epsilon, delta)-DP for one undirected edge, if the sensitivity holds: the
            statistic's own page proves it.
        """
        statistic, spacing, deviation = self.statistic, self.spacing, self.standard_deviation
        exact = statistic.precisely(edges)
        value, rest = exact.value, exact.rest
        if deviation == 0:
            noisy = value
        elif statistic.symmetric:
            rows, columns = torch.triu_indices(*value.shape)
            scales = torch.full(rows.shape, deviation * _ROOT_HALF, dtype=torch.float64)
            scales[rows == columns] = deviation
            noisy = torch.empty_like(value)
            noisy[rows, columns] = rounded_noise(
                randomness, value[rows, columns], scale=scales, spacing=spacing, rest=rest[rows, columns]
            )
            noisy[columns, rows] = noisy[rows, columns]
        else:
            noisy = rounded_noise(randomness, value, scale=deviation, spacing=spacing, rest=rest)
            if statistic.edge_free is not None:
                noisy = torch.where(statistic.edge_free, value, noisy)
        return NoisyStatistic(
            name=statistic.name,
            value=noisy,
            standard_deviation=deviation,
            symmetric=statistic.symmetric,
            sensitivity=statistic.sensitivity,
            share=float(self.share),
        )
