"""The perturbed objective, for many problems over the same aggregates at once.

L(W) = (1/n_1) sum_i sum_j loss(z_i . w_j; y_ij) + (ridge/2) |W|^2 + (1/n_1) <B, W>

The sum over nodes is a *mean*, the sum over classes a sum (each loss carries 1/c). Classes do not interact, so a
problem with c classes is c independent problems; together with the batch they are all *columns* of one computation.

They are solved by a damped Newton method. Every column has its own weights, step and curvature. The first curvature is the shared
upper bound of all Hessians, which costs one small matrix; a column whose gradient does not shrink well under it gets its true
Hessian, and again whenever that has grown stale. Progress is measured by the gradient norm: for a strongly convex function the
Newton direction lowers it for every small enough step, so halving the step always ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from gcon.mechanisms.losses import ConvexLoss

# Scores of one block of rows stay in the processor's cache.
_BLOCK_ENTRIES = 2**17
_LARGEST_BLOCK = 4096
MOST_ITERATIONS = 200
# A step that shrinks the gradient below this share keeps its curvature. A Hessian costs about a quarter of the width in
# gradients, so wide problems rather take a few more steps with an old one.
_KEEP_NARROW, _KEEP_WIDE, _WIDE = 0.1, 0.5, 32
_ACCEPT = 0.9  # a step with an old curvature must shrink the gradient to this share
_SMALLEST_STEP = 2.0**-30


@dataclass(frozen=True, eq=False, kw_only=True)
class PerturbedObjectives:
    """A batch of objectives; weights have the shape problems x classes x features.

    Attributes:
        aggregates: n_1 x d, the rows that are in the loss.
        targets: n_1 x c, in [0, 1].
        losses: one registered loss a problem.
        ridges: one total ridge (Lambda + Lambda') a problem.
        noises: problems x c x d, the matrix B of every problem.

    Privacy:
        Holds opened private values; lives only inside a mechanism's `apply`.
    """

    aggregates: Tensor
    targets: Tensor
    losses: Sequence[ConvexLoss]
    ridges: Tensor
    noises: Tensor

    @property
    def shape(self) -> tuple[int, int, int]:
        """(problems, classes, features)."""
        return len(self.losses), self.targets.shape[1], self.aggregates.shape[1]

    @property
    def num_rows(self) -> int:
        """n_1, the number of rows in the loss."""
        return self.aggregates.shape[0]

    @cached_property
    def column_ridges(self) -> Tensor:
        """The ridge of every column."""
        return self.ridges.repeat_interleave(self.targets.shape[1])

    @cached_property
    def _column_noises(self) -> Tensor:
        return self.noises.reshape(-1, self.aggregates.shape[1]) / self.num_rows

    def gradient(self, weights: Tensor, columns: Tensor | None = None) -> Tensor:
        """Gradient of the chosen columns (all by default) at their weights, one row per column."""
        columns = self._all_columns if columns is None else columns
        total = torch.zeros_like(weights)
        for loss, members in self._by_loss(columns):
            chosen, classes = weights[members], columns[members] % self.targets.shape[1]
            for rows in self._blocks(len(members)):
                slopes = loss.slope(self.aggregates[rows] @ chosen.T, self.targets[rows][:, classes])
                total[members] += slopes.T @ self.aggregates[rows]
        total /= self.num_rows
        return total.addcmul_(self.column_ridges[columns, None], weights).add_(self._column_noises[columns])

    def hessian(self, weights: Tensor, columns: Tensor) -> Tensor:
        """Hessian of the chosen columns, d x d each.

        The products of feature pairs are shared by all columns, so one matrix product serves the whole batch.
        """
        width = self.aggregates.shape[1]
        upper = torch.triu_indices(width, width, device=weights.device)
        packed = weights.new_zeros(len(columns), upper.shape[1])
        for loss, members in self._by_loss(columns):
            chosen, classes = weights[members], columns[members] % self.targets.shape[1]
            for rows in self._blocks(max(len(members), upper.shape[1])):
                block = self.aggregates[rows]
                curvatures = loss.curvature(block @ chosen.T, self.targets[rows][:, classes])
                packed[members] += curvatures.T @ (block[:, upper[0]] * block[:, upper[1]])
        packed /= self.num_rows
        hessian = weights.new_zeros(len(columns), width, width)
        hessian[:, upper[0], upper[1]] = packed
        hessian[:, upper[1], upper[0]] = packed
        hessian.diagonal(dim1=1, dim2=2).add_(self.column_ridges[columns, None])
        return hessian

    def hessian_bound(self) -> Tensor:
        """A matrix above every Hessian of every column, wherever it is taken: c_2 Z'Z / n_1 + ridge I."""
        gram = self.aggregates.T @ self.aggregates / self.num_rows
        bounds = gram.new_tensor([loss.curvature_bound for loss in self.losses])
        matrices = bounds[:, None, None] * gram
        matrices.diagonal(dim1=1, dim2=2).add_(self.ridges[:, None])
        return matrices

    @cached_property
    def _all_columns(self) -> Tensor:
        return torch.arange(len(self.losses) * self.targets.shape[1], device=self.aggregates.device)

    def _by_loss(self, columns: Tensor) -> Iterator[tuple[ConvexLoss, Tensor]]:
        """Positions in `columns` of each distinct loss."""
        problems = (columns // self.targets.shape[1]).tolist()
        groups: dict[ConvexLoss, list[int]] = {}
        for position, problem in enumerate(problems):
            groups.setdefault(self.losses[problem], []).append(position)
        for loss, members in groups.items():
            yield loss, torch.tensor(members, device=columns.device)

    def _blocks(self, width: int) -> Iterator[slice]:
        size = max(1, min(_LARGEST_BLOCK, _BLOCK_ENTRIES // max(width, 1)))
        for start in range(0, self.num_rows, size):
            yield slice(start, start + size)


def minimise(objectives: PerturbedObjectives, tolerances: Tensor) -> Tensor:
    """Weights (problems x classes x features) whose gradients are well below the tolerances, if the iterations suffice.

    The number of gradient evaluations is at most `MOST_ITERATIONS`, a public constant. Whether the result is good
    enough is not decided here: the certificate is computed by other code (`certificate_terms.py`).

    Args:
        objectives: the batch.
        tolerances: one gradient tolerance a problem.

    Privacy:
        Works on opened private values; lives only inside a mechanism's `apply`. The number of iterations that was
        really used is private and is not returned.
    """
    problems, classes, width = objectives.shape
    # Half of the tolerance, shared by the classes: leaves room for the certificate's rounding allowance.
    goals = (tolerances / (2 * classes**0.5)).repeat_interleave(classes)
    weights = objectives.aggregates.new_zeros(problems * classes, width)
    gradient = objectives.gradient(weights)
    norms = torch.linalg.vector_norm(gradient, dim=1)
    inverse = _inverse(objectives.hessian_bound()).repeat_interleave(classes, dim=0)
    exact = torch.zeros_like(norms, dtype=torch.bool)  # whether the inverse is of the Hessian right here
    refresh = exact.clone()
    steps = torch.ones_like(norms)
    keep = _KEEP_WIDE if width >= _WIDE else _KEEP_NARROW
    for _ in range(MOST_ITERATIONS):
        active = (norms > goals) & (steps >= _SMALLEST_STEP)
        if not bool(active.any()):
            break
        columns = active.nonzero()[:, 0]
        stale = columns[refresh[columns]]
        if len(stale):
            inverse[stale] = _inverse(objectives.hessian(weights[stale], stale))
            exact[stale], refresh[stale] = True, False
        direction = torch.bmm(inverse[columns], gradient[columns, :, None])[:, :, 0]
        trial = weights[columns] - steps[columns, None] * direction
        trial_gradient = objectives.gradient(trial, columns)
        trial_norms = torch.linalg.vector_norm(trial_gradient, dim=1)
        shrink = trial_norms / norms[columns]
        good = torch.where(exact[columns], shrink <= 1 - 0.1 * steps[columns], shrink <= _ACCEPT)
        moved, failed = columns[good], columns[~good]
        weights[moved], gradient[moved], norms[moved] = trial[good], trial_gradient[good], trial_norms[good]
        refresh[moved] = shrink[good] > keep
        exact[moved] = False
        steps[moved] = 1.0
        # Not enough progress: first get the true Hessian; if it was the true one, take a shorter step along it.
        steps[failed] = torch.where(exact[failed], steps[failed] / 2, steps[failed])
        refresh[failed] = ~exact[failed]
    return weights.reshape(problems, classes, width)


def _inverse(matrices: Tensor) -> Tensor:
    return torch.cholesky_inverse(torch.linalg.cholesky(matrices))
