"""Training by noisy clipped gradients (DP-SGD) on propagated rows: what the DP-SGD competitor releases.

Row i of the private matrix is z_i, row i of D^-1 (A + I) X: it reads the edges of node i alone, so one edge {u, v}
changes the rows of u and v and no other. The model is softmax(z_i W); its gradient at one node is the outer product of
z_i and the residual softmax(z_i W) - y_i. A step takes every labelled node with probability q, clips each gradient to
length tau, and moves W along

    (sum of the clipped gradients + sigma * standard normal matrix) / (q n_0).

Clipped gradients are products of fixed-point rows, so that their sum is exact, and the noise of every step is real noise,
rounded exactly to a public lattice together with the sum (docs/proofs/exact-noise.md).
All steps together are (epsilon, delta)-DP for the noise of `gcon_lab.mechanisms.replaced_pair` (docs/proofs/dp-sgd.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, final

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from gcon.errors import InputError, PlanMismatchError, check_number
from gcon.mechanisms.gaussian_curve import gaussian_delta
from gcon.mechanisms.samplers.rounded import EXACT_GAUSSIAN, SPACING, rounded_noise
from gcon.privacy.budget import Budget
from gcon.privacy.plan import proven
from gcon.privacy.randomness import Randomness
from gcon_lab.mechanisms.replaced_pair import LEAST_NOISE, check_batches, noise_for, replaced_pair_delta
from gcon_lab.mechanisms.samplers import open_uniforms, shortened

Optimiser = Literal["sgd", "adam"]
_ROUNDING = 1e-9  # a clipped gradient may be this much longer than tau; the noise covers it
_ACCOUNTANT_SLACK = 1e-6  # the accountant's delta may move by this much (relative) between nearly equal noises


@dataclass(frozen=True, kw_only=True)
class GradientPlan:
    """The noise of all steps.

    Attributes:
        budget: what all steps together cost.
        sampling: q in (0, 1], with which each labelled node enters a step, independently.
        steps: how many there are; fixed beforehand.
        clip: tau, the largest length of one node's gradient.
        standard_deviation: sigma of the noise on the clipped sum.
    """

    budget: Budget
    sampling: float
    steps: int
    clip: float
    standard_deviation: float

    def __post_init__(self) -> None:
        check_steps(sampling=self.sampling, steps=self.steps, clip=self.clip)
        if math.isinf(self.budget.epsilon):
            return
        if not 0 < self.standard_deviation < math.inf:
            raise PlanMismatchError("A finite epsilon must lead to noise.")
        if not self._covers_its_budget():
            raise PlanMismatchError("This noise is too small for what the plan says that the steps cost.")

    def _covers_its_budget(self) -> bool:
        epsilon, delta = self.budget.epsilon, self.budget.delta
        multiplier = self.standard_deviation / (self.clip * (1 + _ROUNDING))
        if self.sampling == 1:
            return gaussian_delta(epsilon, 4 * math.sqrt(self.steps) / multiplier) <= delta
        if multiplier < LEAST_NOISE:
            return False
        return replaced_pair_delta(self.sampling, multiplier, self.steps, epsilon) <= delta * (1 + _ACCOUNTANT_SLACK)


def gradient_plan(epsilon: float, delta: float, *, sampling: float, steps: int, clip: float) -> GradientPlan:
    """The noise that makes `steps` noisy gradient steps (epsilon, delta)-DP.

    Args:
        epsilon: positive; infinity leaves the noise out and promises nothing.
        delta: in (0, 1).
        sampling: q in (0, 1].
        steps: from 1.
        clip: tau, from 1e-6 to 1e6.

    Example:
        >>> round(gradient_plan(1.0, 1 / 16316, sampling=1.0, steps=100, clip=1.0).standard_deviation, 1)
        132.3
    """
    check_steps(sampling=sampling, steps=steps, clip=clip)
    if epsilon == math.inf:
        return GradientPlan(
            budget=Budget(epsilon, 0.0), sampling=sampling, steps=steps, clip=clip, standard_deviation=0.0
        )
    multiplier = noise_for(float(sampling), int(steps), float(epsilon), float(delta))
    return GradientPlan(
        budget=Budget(epsilon, delta),
        sampling=sampling,
        steps=steps,
        clip=clip,
        standard_deviation=clip * multiplier * (1 + 2 * _ROUNDING),
    )


@final
@proven("dp-sgd")
@dataclass(frozen=True, eq=False, kw_only=True)
class NoisyGradients:
    """Train a linear softmax classifier on private rows and release its weights.

    Attributes:
        plan: steps, sampling, clipping and noise.
        rows: opened edges -> one row per labelled node, of which one edge changes at most two. How far these rows move does not
            matter: gradients are clipped. Rows of a symmetric normalisation do not qualify, since there an edge also changes
            the rows of all neighbours of its ends.
        labels: the public classes of the rows, n_0 numbers.
        num_classes: c.
        learning_rate: of the optimiser, at most 1e6.
        optimiser: `sgd`, or `adam` on the noisy gradients.
    """

    name, reads_edges = "noisy gradients", True

    plan: GradientPlan
    rows: Callable[[Any], Tensor]
    labels: Tensor
    num_classes: int
    learning_rate: float = 1.0
    optimiser: Optimiser = "sgd"

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", self.labels.clone())
        self.check()

    def check(self) -> None:
        """There are labels, and an optimiser."""
        check_number(
            "learning_rate",
            self.learning_rate,
            allowed=lambda rate: 0 < rate <= 1e6,
            rule="must be positive and at most 1e6",
            fix="Usual are 0.01 to 1.",
        )
        if self.optimiser not in ("sgd", "adam"):
            rule = "must be 'sgd' or 'adam'"
            raise InputError("optimiser", rule=rule, got=repr(self.optimiser), fix="Use 'adam'.")
        if len(self.labels) == 0:
            raise InputError("train_mask", rule="needs at least one labelled node", got="none", fix="Label some nodes.")

    @property
    def budget(self) -> Budget:
        return self.plan.budget

    @property
    def gaussian_distance(self) -> float | None:
        """Without sampling, the distance of the one Gaussian release that all steps amount to, for tighter totals."""
        plan = self.plan
        if plan.sampling < 1 or plan.standard_deviation == 0:
            return None
        return 4 * plan.clip * math.sqrt(plan.steps) / plan.standard_deviation * (1 + _ROUNDING)

    @property
    def record(self) -> Mapping[str, object]:
        plan = self.plan
        return {
            "epsilon": plan.budget.epsilon,
            "delta": plan.budget.delta,
            "sampling": plan.sampling,
            "steps": plan.steps,
            "clip": plan.clip,
            "standard_deviation": plan.standard_deviation,
            "spacing": SPACING * math.ulp(plan.standard_deviation) if plan.standard_deviation > 0 else 0.0,
            **({"noise": EXACT_GAUSSIAN} if plan.standard_deviation > 0 else {}),
            "sensitivity": "two replaced gradients of length at most clip",
            "learning_rate": self.learning_rate,
            "optimiser": self.optimiser,
        }

    def apply(self, edges: Any, randomness: Randomness) -> Tensor:
        """The weights after all steps, d x c in float64. They start from zero."""
        rows, plan = self.rows(edges).to(torch.float64), self.plan
        if len(rows) != len(self.labels):
            raise PlanMismatchError("One row per label is needed.")
        targets = one_hot(self.labels.long(), self.num_classes).to(torch.float64)
        weights = torch.zeros(rows.shape[1], self.num_classes, dtype=torch.float64)
        move = _adam if self.optimiser == "adam" else _sgd
        state: list[Tensor] = []
        directions = fixed_directions(rows)
        for step in range(1, plan.steps + 1):
            # Nothing depends on how many were drawn: an empty batch takes a step of pure noise.
            drawn = open_uniforms(randomness, len(rows)) < plan.sampling
            gradients = clipped_residuals(rows, targets, weights, clip=plan.clip)
            total = directions[drawn].T @ gradients[drawn]
            if plan.standard_deviation > 0:
                spacing = SPACING * math.ulp(plan.standard_deviation)
                total = rounded_noise(randomness, total, scale=plan.standard_deviation, spacing=spacing)
            # From here on nothing but the noisy sum is read.
            gradient = total / (plan.sampling * len(rows))
            weights = weights - self.learning_rate * move(gradient, state, step)
        return weights


def fixed_directions(rows: Tensor) -> Tensor:
    """Every row divided by its length, in fixed point; 0 for rows of zeros and rows that are not finite.

    Args:
        rows: Z, n_0 x d.
    """
    directions = rows / torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    usable = torch.isfinite(directions).all(dim=1, keepdim=True)
    return shortened(directions.masked_fill(~usable, 0.0), _unit(len(rows)))


def clipped_residuals(rows: Tensor, targets: Tensor, weights: Tensor, *, clip: float) -> Tensor:
    """One fixed-point row per node: its residual times the length of z_i, clipped to length `clip`.

    The gradient of node i is the outer product of z_i and its residual r_i, of length |z_i| |r_i|. So the clipped gradient
    is the outer product of the node's direction and this row, and sums of such products are whole multiples of one unit:
    float64 adds them exactly, in any order. A node whose gradient is not finite (the scores overflow, or the row is not
    finite) has a row of zeros, which is no longer than `clip` either.

    Args:
        rows: Z, n_0 x d: all of them, so that no row depends on which others were drawn.
        targets: n_0 x c, one-hot.
        weights: d x c, finite or not.
        clip: tau > 0.
    """
    residuals = torch.softmax(rows @ weights, dim=1) - targets
    sizes = torch.linalg.vector_norm(rows, dim=1)
    lengths = sizes * torch.linalg.vector_norm(residuals, dim=1)
    factors = sizes * (clip / lengths.clamp(min=clip))  # the size itself for every gradient that is short enough
    finite = torch.isfinite(lengths).unsqueeze(1)  # of a row and a residual that are finite
    scaled = (factors.unsqueeze(1) * residuals).masked_fill(~finite, 0.0)
    return shortened(scaled, math.ldexp(_unit(len(rows)), math.frexp(clip)[1]))


def _unit(num_rows: int) -> float:
    """2^-b with 2b + 2 + log2(n_0) <= 52: sums of n_0 products of such numbers of size 1 stay below 2^52 squared units."""
    return math.ldexp(1.0, -((50 - num_rows.bit_length()) // 2))


def check_steps(*, sampling: float, steps: int, clip: float) -> None:
    """Raise `InputError` unless these public numbers can be planned for."""
    check_batches(sampling, steps)
    check_number(
        "clip",
        clip,
        allowed=lambda number: 1e-6 <= number <= 1e6,
        rule="must lie between 1e-6 and 1e6",
        fix="Usual are 0.1 to 1.",
    )


def _sgd(gradient: Tensor, _: list[Tensor], __: int) -> Tensor:
    return gradient


def _adam(gradient: Tensor, state: list[Tensor], step: int) -> Tensor:
    """Adam's direction from noisy gradients alone; `state` holds the two running means."""
    if not state:
        state += [torch.zeros_like(gradient), torch.zeros_like(gradient)]
    state[0] = 0.9 * state[0] + 0.1 * gradient
    state[1] = 0.999 * state[1] + 0.001 * gradient**2
    mean, square = state[0] / (1 - 0.9**step), state[1] / (1 - 0.999**step)
    return mean / (square.sqrt() + 1e-8)
