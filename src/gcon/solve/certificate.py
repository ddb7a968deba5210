"""The certificate: the gradient, recomputed by plain code that shares nothing with the solver.

Theorem 1 is about the exact minimiser. A weight matrix whose gradient norm is at most tau lies within tau / ridge of it
(strong convexity), which the plan has paid for. The norm that is compared with tau includes a bound on the rounding
errors of this very computation.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gcon.losses.convex import ConvexLoss

_ROWS = 4096
_UNIT = 2.0**-53


def certified_gradient_norm(
    weights: Tensor, *, aggregates: Tensor, targets: Tensor, loss: ConvexLoss, ridge: float, noise: Tensor
) -> float:
    """An upper bound on the Frobenius norm of the objective's gradient at `weights` (c x d).

    Privacy:
        The norm depends on private values. It is compared with the public tolerance and never shown.
    """
    num_rows, width = aggregates.shape
    total = torch.zeros_like(weights)
    for start in range(0, num_rows, _ROWS):
        rows = aggregates[start : start + _ROWS]
        total += loss.slope(rows @ weights.T, targets[start : start + _ROWS]).T @ rows
    gradient = total / num_rows + ridge * weights + noise / num_rows
    return float(torch.linalg.vector_norm(gradient)) + _rounding(num_rows, width, weights, loss, ridge, noise)


def _rounding(num_rows: int, width: int, weights: Tensor, loss: ConvexLoss, ridge: float, noise: Tensor) -> float:
    """Bound on the rounding error: blocks of rows, then blocks; rows of length at most 1."""
    terms = min(num_rows, _ROWS) + math.ceil(num_rows / _ROWS) + 32
    size = float(torch.linalg.vector_norm(weights))
    classes = loss.num_classes
    summed = terms * math.sqrt(classes) * loss.slope_bound
    scores = (width + 8) * loss.curvature_bound * math.sqrt(width) * size
    added = 8 * (ridge * size + float(torch.linalg.vector_norm(noise)) / num_rows)
    return _UNIT * (summed + scores + added)
