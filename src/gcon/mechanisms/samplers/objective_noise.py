"""The noise of perturbed objectives: what float64 holds of real noise, and how far the real noise is from it at most.

Every normal number is a real one, rounded exactly to a fine public lattice (`rounded.py`). So the real noise lies within a known
distance of the matrix that is computed with, and the certificate of the minimiser counts that distance: the minimiser that is
released belongs to the real noise (docs/proofs/approximate-minimiser.md, 6). No float64 number stands for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gcon.mechanisms.samplers.rounded import rounded_noise
from gcon.privacy.randomness import Randomness

EXACT_OBJECTIVE = "real noise in the objective and on the weights, rounded exactly to multiples of the public spacing"
NORMAL_SPACING = (
    2.0**-36
)  # finer, and every tenth number would need more than 52 bits; coarser, and the solver's tolerance grows
_HALF = NORMAL_SPACING / 2
_UNIT = 2.0**-53
_ABOVE_LENGTH = 8.0  # a normal vector of d entries is longer than sqrt(d) + 8 with probability below e^-32


@dataclass(frozen=True, eq=False)
class EnclosedNoise:
    """The linear term of one objective, c x d.

    Attributes:
        matrix: what is computed with.
        error: the real noise is nowhere farther from it, in Frobenius norm.
    """

    matrix: Tensor
    error: float


def objective_noise(randomness: Randomness, *, noise_rate: float, num_features: int, num_classes: int) -> EnclosedNoise:
    """B, one row per class, each with a density proportional to exp(-noise_rate |b|).

    b = |m| g / noise_rate, with standard normal m of d + 1 entries and g of d: given m, b is normal with a variance that follows
    the Gamma((d + 1)/2) law, and the mixture has this density (docs/proofs/objective-perturbation.md, 5).

    Args:
        randomness: where the noise comes from.
        noise_rate: beta; infinity gives exactly zero (nothing depends on edges, or no promise was asked for).
        num_features: d.
        num_classes: c, the number of independent rows.

    Privacy:
        The rate must come from a noise plan. Rows are independent; no byte of randomness is used twice.
    """
    if noise_rate == math.inf:
        return EnclosedNoise(torch.zeros(num_classes, num_features, dtype=torch.float64), 0.0)
    normals = _near_normals(randomness, num_classes, 2 * num_features + 1)
    stretch, direction = normals[:, : num_features + 1], normals[:, num_features + 1 :]
    lengths = torch.linalg.vector_norm(stretch, dim=1, keepdim=True)
    matrix = lengths * direction / noise_rate
    # | |m'| g' - |m| g | <= |m'| |g' - g| + |m' - m| |g|, and every entry of m' and g' is within half a spacing.
    errors = _rounding(num_features, lengths.squeeze(1), torch.linalg.vector_norm(direction, dim=1))
    return EnclosedNoise(matrix, _with_arithmetic(float(torch.linalg.vector_norm(errors)) / noise_rate, matrix))


def gaussian_objective_noise(
    randomness: Randomness, *, scale: float, num_features: int, num_classes: int
) -> EnclosedNoise:
    """B with independent normal entries of this standard deviation; 0 gives exactly zero."""
    if scale == 0:
        return EnclosedNoise(torch.zeros(num_classes, num_features, dtype=torch.float64), 0.0)
    matrix = scale * _near_normals(randomness, num_classes, num_features)
    return EnclosedNoise(matrix, _with_arithmetic(scale * _HALF * math.sqrt(matrix.numel()), matrix))


def likely_error(noise_rate: float, num_features: int) -> float:
    """How far one row of `objective_noise` is from the real noise at most, but for a probability below 1e-13."""
    length = math.sqrt(num_features + 1) + _ABOVE_LENGTH
    return (
        float(_rounding(num_features, length, length)) / noise_rate + _arithmetic(num_features) * length**2 / noise_rate
    )


def likely_gaussian_error(scale: float, num_features: int) -> float:
    """The same for `gaussian_objective_noise`."""
    length = math.sqrt(num_features) + _ABOVE_LENGTH
    return scale * (_HALF * math.sqrt(num_features) + _arithmetic(num_features) * length)


def _near_normals(randomness: Randomness, *shape: int) -> Tensor:
    return rounded_noise(randomness, torch.zeros(shape, dtype=torch.float64), scale=1.0, spacing=NORMAL_SPACING)


def _rounding(num_features: int, stretch: Tensor | float, direction: Tensor | float) -> Tensor | float:
    """At rate 1, for rounded vectors of these lengths."""
    shorter, longer = _HALF * math.sqrt(num_features), _HALF * math.sqrt(num_features + 1)
    return stretch * shorter + longer * (direction + shorter)


def _with_arithmetic(error: float, matrix: Tensor) -> float:
    """The bound with the float64 rounding of the matrix, and of the bound itself."""
    return (error + _arithmetic(matrix.shape[1]) * float(torch.linalg.vector_norm(matrix))) * (1 + 1e-9)


def _arithmetic(num_features: int) -> float:
    """The relative rounding of a length, two products and a quotient: (d + 4) / 2^53, and as much again."""
    return (2 * num_features + 8) * _UNIT
