"""Noisy sums over neighbours, in one or several rounds: what GAP, ProGAP and LPGNet release.

In every round there is one public row per node, computed from what the earlier rounds released; the sums of these rows over
every node's neighbours are released with noise. One undirected edge {u, v} changes two sums, each by one row:

- rows of Euclidean length at most 1: the matrix moves by at most sqrt(2); Gaussian noise. K rounds of standard deviation
  s are together exactly one Gaussian release of distance sqrt(2 K)/s (docs/proofs/neighbour-sums.md).
- rows of absolute sum at most 1: the matrix moves by at most 2 in absolute sum; Laplace noise of scale 2 K/epsilon.

Rows are shortened to fixed point, so that sums are exact, and the noise is real noise, rounded exactly to a public lattice:
what is released is a function of what the real-number mechanism would give (docs/proofs/exact-noise.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, final

import torch
from torch import Tensor

from gcon.edges.source import Edges
from gcon.errors import InputError, PlanMismatchError, check_number
from gcon.mechanisms.gaussian_curve import gaussian_delta, gaussian_epsilon, gaussian_multiplier
from gcon.mechanisms.samplers.rounded import EXACT_GAUSSIAN, SPACING, rounded_noise
from gcon.privacy.budget import Budget
from gcon.privacy.plan import Mechanism, proven
from gcon.privacy.randomness import Randomness
from gcon_lab.mechanisms.plain_sums import neighbour_sums
from gcon_lab.mechanisms.samplers import EXACT_LAPLACE, rounded_laplace, shortened

EdgeSensitivity = Literal["undirected", "directed"]
_ROUNDING = 1e-9  # rows may be this much longer than 1; the noise covers it


@final
@proven("neighbour-sums")
@dataclass(frozen=True, kw_only=True)
class SumsPlan:
    """The noise of all rounds.

    Attributes:
        budget: what all rounds together cost.
        rounds: how many there are.
        law: `gaussian` or `laplace`.
        scale: standard deviation, or the Laplace scale.
        distance: of the one Gaussian release that all rounds amount to; None for Laplace noise.
        convention: `undirected`, or `directed` for the published calibration.
        method: whose sums these are, for the ledger.
    """

    budget: Budget
    rounds: int
    law: Literal["gaussian", "laplace"]
    scale: float
    distance: float | None = None
    convention: EdgeSensitivity = "undirected"
    method: str = "unnamed"

    def __post_init__(self) -> None:
        _check_rounds(self.rounds)
        if self.law not in ("gaussian", "laplace"):
            raise PlanMismatchError("The noise of neighbour sums is gaussian or laplace.")
        if math.isinf(self.budget.epsilon):
            return
        if not 0 < self.scale < math.inf:
            raise PlanMismatchError("A finite epsilon must lead to noise.")
        if not self._covers_its_budget():
            raise PlanMismatchError("This scale is too small for what the plan says that the sums cost.")

    @property
    def name(self) -> str:
        return f"noisy neighbour sums ({self.method})"

    @property
    def gaussian_distance(self) -> float | None:
        """The distance of the one Gaussian release that all rounds amount to, for tighter totals."""
        return self.distance

    def sums_of(self, rows: Tensor) -> NoisySums:
        """The release of one round."""
        return NoisySums(plan=self, rows=rows)

    def public_record(self, released: Sequence[Mechanism[Any]]) -> Mapping[str, object]:
        """The same for every round, so all of it is known in advance."""
        return {
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "rounds": self.rounds,
            "law": self.law,
            "scale": self.scale,
            "spacing": SPACING * math.ulp(self.scale) if self.scale > 0 else 0.0,
            **({"noise": EXACT_GAUSSIAN if self.law == "gaussian" else EXACT_LAPLACE} if self.scale > 0 else {}),
            "sensitivity": "sqrt(2)" if self.law == "gaussian" else "2 in absolute sum",
            "edge_sensitivity": self.convention,
        }

    def check(self, mechanisms: Sequence[Mechanism[Any]]) -> None:
        """At most so many rounds, all of this plan."""
        self.__post_init__()  # once more: nothing was changed since
        if len(mechanisms) > self.rounds:
            raise PlanMismatchError(f"This plan pays for {self.rounds} round(s) of sums. Make one for more.")
        for mechanism in mechanisms:
            if type(mechanism) is not NoisySums or type(mechanism.plan) is not SumsPlan or mechanism.plan != self:
                raise PlanMismatchError("This plan pays for sums that it made itself (SumsPlan.sums_of).")
            mechanism.__post_init__()  # once more: no row was changed since

    def _covers_its_budget(self) -> bool:
        if self.law == "laplace":
            needed = 2 * self.rounds * (1 + _ROUNDING) / self.budget.epsilon if self.budget.epsilon > 0 else math.inf
            return self.distance is None and self.scale * (1 + 1e-12) >= needed
        true_distance = math.sqrt(2 * self.rounds) * (1 + _ROUNDING) / self.scale
        stated = self.distance is not None and self.distance * (1 + 1e-12) >= true_distance
        return stated and gaussian_delta(self.budget.epsilon, true_distance) <= self.budget.delta


def gaussian_sums_plan(
    epsilon: float, delta: float, rounds: int, *, convention: EdgeSensitivity = "undirected", method: str = "unnamed"
) -> SumsPlan:
    """Gaussian noise for `rounds` releases of sums of unit rows.

    The published code of GAP and ProGAP calibrates to one directed entry (sensitivity 1). Under our neighbour relation
    such a release costs more than the epsilon it was made for; `directed` adds that noise and charges what it costs.

    Example:
        >>> round(gaussian_sums_plan(1.0, 1 / 16316, 2).scale, 3)
        6.613
    """
    _check_rounds(rounds)
    _check_epsilon(epsilon)
    if convention not in ("undirected", "directed"):
        raise InputError(
            "edge_sensitivity",
            rule="must be 'undirected' or 'directed'",
            got=repr(convention),
            fix="Use 'undirected'; 'directed' is for comparison with published figures.",
        )
    if math.isinf(epsilon):
        return SumsPlan(
            budget=Budget(epsilon, 0.0), rounds=rounds, law="gaussian", scale=0.0, convention=convention, method=method
        )
    assumed = math.sqrt(2) if convention == "undirected" else 1.0
    scale = assumed * math.sqrt(rounds) * gaussian_multiplier(epsilon, delta) * (1 + 2 * _ROUNDING)
    distance = math.sqrt(2 * rounds) * (1 + _ROUNDING) / scale
    spent = epsilon if convention == "undirected" else max(epsilon, gaussian_epsilon(distance, delta))
    return SumsPlan(
        budget=Budget(spent, delta),
        rounds=rounds,
        law="gaussian",
        scale=scale,
        distance=distance,
        convention=convention,
        method=method,
    )


def laplace_sums_plan(epsilon: float, rounds: int, *, method: str = "unnamed") -> SumsPlan:
    """Laplace noise of scale 2 rounds / epsilon for sums of rows whose absolute values add to at most 1.

    Example:
        >>> laplace_sums_plan(4.0, 2).scale
        1.000000001
    """
    _check_rounds(rounds)
    _check_epsilon(epsilon)
    if math.isinf(epsilon):
        return SumsPlan(budget=Budget(epsilon, 0.0), rounds=rounds, law="laplace", scale=0.0, method=method)
    scale = 2 * rounds / epsilon * (1 + _ROUNDING)
    return SumsPlan(budget=Budget(epsilon, 0.0), rounds=rounds, law="laplace", scale=scale, method=method)


@final
@proven("neighbour-sums")
@dataclass(frozen=True, eq=False, kw_only=True)
class NoisySums:
    """One round.

    Attributes:
        plan: rounds and noise.
        rows: n x h public rows.
    """

    reads_edges = True

    plan: SumsPlan
    rows: Tensor

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", self.rows.detach().to(torch.float64).clone())
        self.check()

    def check(self) -> None:
        """No row is longer than 1: measured again before every release."""
        order = 2 if self.plan.law == "gaussian" else 1
        longest = float(torch.linalg.vector_norm(self.rows, ord=order, dim=1).max()) if len(self.rows) else 0.0
        if not longest <= 1 + _ROUNDING / 2:  # the other half covers the rounding of the length itself
            raise PlanMismatchError("Rows to be summed must have length at most 1; the noise is made for that.")

    @property
    def record(self) -> Mapping[str, object]:
        """The plan's numbers are those of every round."""
        return {"columns": int(self.rows.shape[1])}

    def apply(self, edges: Edges, randomness: Randomness) -> Tensor:
        """The noisy sums, on the lattice; without noise as they are."""
        if self.plan.scale == 0:
            return neighbour_sums(edges, self.rows)
        draw = rounded_noise if self.plan.law == "gaussian" else rounded_laplace
        sums = neighbour_sums(edges, shortened(self.rows, exact_unit(len(self.rows))))
        return draw(randomness, sums, scale=self.plan.scale, spacing=SPACING * math.ulp(self.plan.scale))


def exact_unit(num_nodes: int) -> float:
    """The unit of fixed-point rows of length at most 1 whose sums over any of n nodes float64 holds exactly.

    Example:
        >>> exact_unit(2**16) == 2.0**-35
        True
    """
    return math.ldexp(1.0, num_nodes.bit_length() - 52)  # sums are below 2 n, hence below 2^53 units


def _check_rounds(rounds: int) -> None:
    check_number(
        "rounds",
        rounds,
        allowed=lambda number: number >= 1,
        rule="must be a whole number from 1",
        fix="1 or 2 is usual.",
        whole=True,
    )


def _check_epsilon(epsilon: float) -> None:
    check_number(
        "epsilon",
        epsilon,
        allowed=lambda number: number > 0,
        rule="must be greater than 0 (infinity means no promise)",
        fix="Smaller is more private; 0.5 to 4 is usual.",
    )
