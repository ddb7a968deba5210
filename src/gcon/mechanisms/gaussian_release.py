"""Statistics with Gaussian noise, in one stage or several: one budget, split by shares (docs/proofs/gaussian-release.md).

The budget (epsilon, delta) is one Gaussian distance mu. A *portion* is a statistic with a share of mu^2; its noise has the
standard deviation sensitivity / (mu sqrt(share)). A *stage* gives the next portions from everything released so far: which
statistic, on which rows, and with which share. All shares together are at most 1; then everything that is released is,
for one edge, at least as private as one Gaussian release of distance mu.

The noise is real Gaussian noise, rounded exactly to a public lattice together with the statistic, before anybody sees it,
later stages included (docs/proofs/exact-noise.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from gcon.edges.source import Edges
from gcon.errors import InputError, PlanMismatchError, check_number
from gcon.mechanisms.exact_products import Precise
from gcon.mechanisms.gaussian_curve import gaussian_delta, gaussian_multiplier
from gcon.mechanisms.samplers.lattice import lattice_spacing
from gcon.mechanisms.samplers.rounded import EXACT_GAUSSIAN, rounded_gaussian
from gcon.mechanisms.statistic import BoundedEdges, Statistic
from gcon.privacy.budget import Budget, checked_budget
from gcon.privacy.proven import proof_page
from gcon.privacy.randomness import Randomness

_SLACK = 1e-12  # shares may add to this much more than 1; the noise is larger by more than that
_LEAST_NOISE, _MOST_NOISE = 1e-150, 1e150
_MOST_ROUNDING = 0.1  # of the sensitivity may be paid for float64 sums that are not exact
_ROOT_HALF = math.sqrt(0.5) * (1 + 1e-15)
_MOST_SHRINK = 1e-4  # of the distance: at tiny budgets float64 knows the privacy curve to fewer digits
_MOST_DELTA = 0.5


@final
@dataclass(frozen=True, eq=False)
class Portion:
    """A statistic and its share of the squared distance, in (0, 1]; 0 only for what cannot depend on edges."""

    statistic: Statistic
    share: float

    def __post_init__(self) -> None:
        proof_page(type(self.statistic))
        least = 0.0 if self.statistic.sensitivity == 0 else 1e-12
        check_number(
            "share",
            self.share,
            allowed=lambda number: least <= number <= 1,
            rule="must be a part of the whole budget, at most 1 and above 0",
            fix="All shares of a release add to at most 1.",
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class NoisyStatistic:
    """What was released of one portion. Whoever holds it can check the noise: sigma = sensitivity / (mu sqrt(share)).

    Attributes:
        name: the statistic's name.
        value: the noisy matrix, float64.
        standard_deviation: sigma of the noise (0: none); off the diagonal of a symmetric statistic it is sigma / sqrt(2).
        symmetric: whether value and noise are symmetric.
        sensitivity: what one edge can change in the computed value, in Frobenius norm.
        share: of the squared distance, as the stage chose it.
    """

    name: str
    value: Tensor
    standard_deviation: float
    symmetric: bool
    sensitivity: float
    share: float


Stage = Callable[[tuple[NoisyStatistic, ...]], Sequence[Portion]]


@dataclass(frozen=True, kw_only=True)
class ReleasePlan:
    """A budget and the Gaussian distance that it allows.

    Attributes:
        budget: what all stages together cost.
        distance: mu; None without a promise (infinite epsilon).
    """

    budget: Budget
    distance: float | None

    def __post_init__(self) -> None:
        if not self._covers_its_budget():
            raise PlanMismatchError("This distance is too large for what the plan says that the release costs.")

    def _covers_its_budget(self) -> bool:
        if math.isinf(self.budget.epsilon):
            return self.distance is None
        if self.distance is None or not 0 < self.distance < math.inf:
            return False
        return gaussian_delta(self.budget.epsilon, self.distance) <= self.budget.delta


def gaussian_release_plan(epsilon: float, delta: float) -> ReleasePlan:
    """The largest distance that (epsilon, delta) allows, mu = 1/g(epsilon, delta), rounded to the private side.

    Example:
        >>> round(1 / gaussian_release_plan(1.0, 1e-5).distance, 6)
        3.730632
    """
    budget = checked_budget(epsilon, delta)
    if budget.delta > _MOST_DELTA:
        raise InputError(
            "delta",
            rule=f"must be at most {_MOST_DELTA:g}: a promise that may fail more often than it holds is none",
            got=repr(delta),
            fix="Leave it out for min(1e-5, 1/(10 n)), or choose a small public constant, for instance 1e-5.",
        )
    if math.isinf(budget.epsilon):
        return ReleasePlan(budget=Budget(math.inf, 0.0), distance=None)
    largest, shrink = 1 / gaussian_multiplier(budget.epsilon, budget.delta), _SLACK
    while gaussian_delta(budget.epsilon, (1 - shrink) * largest) > budget.delta and shrink < _MOST_SHRINK:
        shrink *= 2
    return ReleasePlan(budget=budget, distance=(1 - shrink) * largest)


@final
class JointStage:
    """A stage whose portions are fixed in advance."""

    def __init__(self, portions: Sequence[Portion]) -> None:
        self.portions = tuple(portions)

    def __call__(self, released: tuple[NoisyStatistic, ...]) -> Sequence[Portion]:
        """The same portions whatever was released."""
        return self.portions


def release_jointly(portions: Sequence[Portion], *, epsilon: float, delta: float, method: str) -> GaussianRelease:
    """The mechanism that releases these portions at once.

    Example:
        >>> from gcon.mechanisms.edge_moments import EdgeMoments
        >>> release_jointly([Portion(EdgeMoments(torch.eye(3)), 1.0)], epsilon=1.0, delta=1e-5, method="example").name
        'gaussian release (example)'
    """
    stage = JointStage(portions)
    return GaussianRelease(plan=gaussian_release_plan(epsilon, delta), stages=(stage,), method=method)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class GaussianRelease:
    """Release statistics with Gaussian noise, stage by stage.

    Attributes:
        plan: budget and distance.
        stages: what was released so far -> the next portions. They must read nothing private. A share may be chosen
            from earlier releases too; the budget may not.
        method: whose release this is, for the ledger.

    Privacy:
        What is returned is (epsilon, delta)-DP for one undirected edge, if each sensitivity holds: the page of proofs
        covers every class in `gcon.privacy.proven`.
    """

    plan: ReleasePlan
    stages: tuple[Stage, ...]
    method: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "stages", tuple(self.stages))
        if not self.stages:
            raise InputError("stages", rule="must be at least one", got="none", fix="Use release_jointly for one.")
        # What is fixed in advance is checked in advance, before anything is charged.
        fixed = [portion for stage in self.stages for portion in _fixed(stage)]
        _check_portions(fixed)
        _check_shares([portion.share for portion in fixed])
        for portion in fixed:
            self._deviation(portion)

    @property
    def name(self) -> str:
        """The name in the ledger."""
        return f"gaussian release ({self.method})"

    @property
    def budget(self) -> Budget:
        """What all stages together cost."""
        return self.plan.budget

    @property
    def gaussian_distance(self) -> float | None:
        """The distance of the one Gaussian release that this amounts to, for tighter totals."""
        return self.plan.distance

    def public_record(self) -> Mapping[str, object]:
        """What is fixed in advance: the budget, the stages, and the portions of stages that do not wait for others."""
        return {
            "epsilon": self.plan.budget.epsilon,
            "delta": self.plan.budget.delta,
            "distance": self.plan.distance,
            **({} if self.plan.distance is None else {"noise": EXACT_GAUSSIAN}),
            "stages": [
                [self._record(portion) for portion in stage.portions]
                if isinstance(stage, JointStage)
                else "chosen from earlier releases"
                for stage in self.stages
            ],
        }

    def check(self, bounded: BoundedEdges) -> None:
        """Nothing to compare: sensitivities are those of one undirected pair, whatever the graph."""

    def apply(self, value: Edges, randomness: Randomness) -> tuple[NoisyStatistic, ...]:
        """All noisy statistics in the order of their portions. Called by the gate alone."""
        released: list[NoisyStatistic] = []
        shares: list[float] = []
        for stage in self.stages:
            portions = tuple(stage(tuple(released)))
            # Everything is checked before any statistic of the stage is computed.
            _check_portions(portions)
            shares += [portion.share for portion in portions]
            _check_shares(shares)
            deviations = [self._deviation(portion) for portion in portions]
            released += [
                _noisy(portion, deviation, value, randomness)
                for portion, deviation in zip(portions, deviations, strict=True)
            ]
        return tuple(released)

    def _deviation(self, portion: Portion) -> float:
        """Sigma = sensitivity / (mu sqrt(share)), rounded up; 0 where no edge is read and without a promise."""
        sensitivity, rounding = portion.statistic.sensitivity, portion.statistic.rounding
        if self.plan.distance is None or sensitivity == 0:
            return 0.0
        deviation = sensitivity / (self.plan.distance * math.sqrt(portion.share)) * (1 + 2 * _SLACK)
        if not _LEAST_NOISE <= deviation <= _MOST_NOISE:
            raise PlanMismatchError("A finite epsilon must lead to noise that float64 can hold; scale the rows.")
        if not 2 * rounding <= _MOST_ROUNDING * sensitivity:
            raise PlanMismatchError(
                f"Rounding of walks must be at most {_MOST_ROUNDING:g} of what one edge can change: centre the rows "
                "(nearly constant ones drown in rounding), or take a statistic with exact sums."
            )
        return deviation

    def _record(self, portion: Portion) -> Mapping[str, object]:
        deviation = self._deviation(portion)
        return {
            **portion.statistic.public_record(),
            "statistic": portion.statistic.name,
            "share": float(portion.share),
            "sensitivity": portion.statistic.sensitivity,
            "rounding": portion.statistic.rounding,
            "standard_deviation": deviation,
            "spacing": _spacing(deviation, portion.statistic) if deviation > 0 else 0.0,
        }


def _noisy(portion: Portion, deviation: float, edges: Edges, randomness: Randomness) -> NoisyStatistic:
    statistic = portion.statistic
    exact = statistic.precisely(edges)
    value = exact.value if deviation == 0 else add_noise(exact, deviation, statistic, randomness)
    return NoisyStatistic(
        name=statistic.name,
        value=value,
        standard_deviation=deviation,
        symmetric=statistic.symmetric,
        sensitivity=statistic.sensitivity,
        share=float(portion.share),
    )


def add_noise(exact: Precise, deviation: float, statistic: Statistic, randomness: Randomness) -> Tensor:
    """The lattice point nearest to value plus real noise of this deviation; entries that read no edge stay as they are.

    Symmetric values get independent noise on and above the diagonal: standard deviation sigma on it and sigma / sqrt(2)
    (rounded up) above, mirrored below.
    """
    value, rest, spacing = exact.value, exact.rest, _spacing(deviation, statistic)
    if statistic.symmetric:
        rows, columns = torch.triu_indices(*value.shape)
        scales = torch.full(rows.shape, deviation * _ROOT_HALF, dtype=torch.float64)
        scales[rows == columns] = deviation
        noisy = torch.empty_like(value)
        noisy[rows, columns] = rounded_gaussian(
            randomness, value[rows, columns], scale=scales, spacing=spacing, rest=rest[rows, columns]
        )
        noisy[columns, rows] = noisy[rows, columns]
        return noisy
    noisy = rounded_gaussian(randomness, value, scale=deviation, spacing=spacing, rest=rest)
    free = statistic.edge_free
    return noisy if free is None else torch.where(free, value, noisy)


def _spacing(deviation: float, statistic: Statistic) -> float:
    """Of the lattice: that of the smallest standard deviation of an entry's noise."""
    return lattice_spacing(deviation * _ROOT_HALF if statistic.symmetric else deviation)


def _fixed(stage: Stage) -> tuple[Portion, ...]:
    return stage.portions if isinstance(stage, JointStage) else ()


def _check_portions(portions: Sequence[Portion]) -> None:
    """Stages are anybody's code: what they return is a portion and nothing like one, and is checked again."""
    for portion in portions:
        if type(portion) is not Portion:
            raise PlanMismatchError("A stage must return portions (gcon.mechanisms.gaussian_release.Portion).")
        portion.__post_init__()


def _check_shares(shares: Sequence[float]) -> None:
    if not math.fsum(shares) <= 1 + _SLACK:
        raise PlanMismatchError("The shares of all portions of a release must add to at most 1.")
