"""The certificate: the gradient, recomputed by plain code that shares only the loss's derivative with the solver.

Theorem 1 is about the exact minimiser. A weight matrix whose gradient norm is at most tau lies within tau / ridge of it
(strong convexity), which the plan has paid for. The norm that is compared with tau includes a bound on the rounding
errors of this very computation, and how far the real noise may be from the matrix that float64 holds of it: what is
certified is a gradient of the objective with the real noise.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gcon.mechanisms.losses import ConvexLoss
from gcon.mechanisms.samplers.objective_noise import EnclosedNoise

_ROW_BLOCK = 4096  # rows are summed in blocks of this size, then blocks
_UNIT = 2.0**-53


def certified_gradient_norm(
    weights: Tensor, *, aggregates: Tensor, targets: Tensor, loss: ConvexLoss, ridge: float, noise: EnclosedNoise
) -> float:
    """An upper bound on the Frobenius norm of the objective's gradient at `weights` (c x d).

    Privacy:
        The norm depends on private values. It is compared with the public tolerance and never shown.
    """
    num_rows, width = aggregates.shape
    total = torch.zeros_like(weights)
    for start in range(0, num_rows, _ROW_BLOCK):
        rows = aggregates[start : start + _ROW_BLOCK]
        total += loss.slope(rows @ weights.T, targets[start : start + _ROW_BLOCK]).T @ rows
    gradient = total / num_rows + ridge * weights + noise.matrix / num_rows
    rounding = rounding_allowance(
        num_rows=num_rows,
        num_features=width,
        loss=loss,
        weight_size=float(torch.linalg.vector_norm(weights)),
        ridge=ridge,
        noise_size=float(torch.linalg.vector_norm(noise.matrix)),
    )
    return float(torch.linalg.vector_norm(gradient)) + rounding + noise.error / num_rows


def rounding_allowance(
    *,
    num_rows: int,
    num_features: int,
    loss: ConvexLoss,
    weight_size: float,
    ridge: float,
    noise_size: float,
) -> float:
    """Bound on the rounding error of the certificate's gradient, in float64, for rows of length at most 1.

    Args:
        num_rows: n_1; summed in blocks of `_ROW_BLOCK`.
        num_features: d.
        loss: gives its slope and curvature bounds.
        weight_size: Frobenius norm of the weights.
        ridge: the total ridge.
        noise_size: Frobenius norm of the noise matrix.
    """
    terms = min(num_rows, _ROW_BLOCK) + math.ceil(num_rows / _ROW_BLOCK) + 32
    summed = terms * math.sqrt(loss.num_classes) * loss.slope_bound
    scores = (num_features + 8) * math.sqrt(num_features) * loss.curvature_bound * weight_size
    added = 8 * (ridge * weight_size + noise_size / num_rows)
    return _UNIT * (summed + scores + added)
