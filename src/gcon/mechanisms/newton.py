"""A damped Newton method for many small strongly convex problems at once.

Every column (a class of a problem) has its own weights, step and curvature. The first curvature is the shared upper
bound of all Hessians, which costs one small matrix; a column whose gradient does not shrink well under it gets its true
Hessian, and again whenever that has grown stale. Progress is measured by the gradient norm: for a strongly convex
function the Newton direction lowers it for every small enough step, so halving the step always ends.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gcon.mechanisms.perturbed_objective import PerturbedObjectives

MOST_ITERATIONS = 200
# A step that shrinks the gradient below this share keeps its curvature. A Hessian costs about a quarter of the width in
# gradients, so wide problems rather take a few more steps with an old one.
_KEEP_NARROW, _KEEP_WIDE, _WIDE = 0.1, 0.5, 32
_ACCEPT = 0.9  # a step with an old curvature must shrink the gradient to this share
_SMALLEST_STEP = 2.0**-30


def minimise(objectives: PerturbedObjectives, tolerances: Tensor) -> Tensor:
    """Weights (problems x classes x features) whose gradients are well below the tolerances, if the iterations suffice.

    The number of gradient evaluations is at most `MOST_ITERATIONS`, a public constant. Whether the result is good
    enough is not decided here: the certificate is computed by other code (`certificate.py`).

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
