"""How likely released weights are under objective perturbation, exactly (for white-box audits and attacks).

For weights W there is one noise B that leads to them: minus n_1 times the gradient without noise. So the density of W is that of
B, e^-energy (`RadialNoise` in the paper's mechanism, `GaussianNoise` in Theorem C), times the determinant of the map from
weights to noise, which is n_1 times the Hessian. On two neighbouring graphs the difference of the logarithms is the privacy loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, final

import torch
from torch import Tensor

from gcon.mechanisms.losses import ConvexLoss
from gcon.mechanisms.perturbed_objective import PerturbedObjectives
from gcon.mechanisms.samplers.objective_noise import gaussian_objective_noise, objective_noise
from gcon.privacy.randomness import Randomness


class NoiseLaw(Protocol):
    """The law of one column of the noise, as the mechanism really uses it (an audit may pass a broken one)."""

    def draw(self, randomness: Randomness, *, columns: int, width: int) -> Tensor:
        """Independent columns of noise, one per row."""

    def energy(self, noise: Tensor) -> Tensor:
        """Minus the logarithm of the density of every row, up to a constant."""


@final
@dataclass(frozen=True)
class RadialNoise:
    """Theorem 1: density proportional to exp(-rate |b|)."""

    rate: float

    def draw(self, randomness: Randomness, *, columns: int, width: int) -> Tensor:
        return objective_noise(randomness, noise_rate=self.rate, num_features=width, num_classes=columns).matrix

    def energy(self, noise: Tensor) -> Tensor:
        """Rate times length."""
        lengths: Tensor = torch.linalg.vector_norm(noise, dim=1)
        return self.rate * lengths


@final
@dataclass(frozen=True)
class GaussianNoise:
    """Theorem C: independent normal entries."""

    scale: float

    def draw(self, randomness: Randomness, *, columns: int, width: int) -> Tensor:
        return gaussian_objective_noise(randomness, scale=self.scale, num_features=width, num_classes=columns).matrix

    def energy(self, noise: Tensor) -> Tensor:
        """|b|^2 / (2 scale^2)."""
        return (noise / self.scale).square().sum(dim=1) / 2


def without_noise(
    rows: Tensor, targets: Tensor, loss: ConvexLoss, ridge: float, *, problems: int = 1
) -> PerturbedObjectives:
    """The objective with no noise in it, so many times over."""
    return PerturbedObjectives(
        aggregates=rows,
        targets=targets,
        losses=[loss] * problems,
        ridges=torch.full((problems,), ridge, dtype=torch.float64),
        noises=torch.zeros(problems, targets.shape[1], rows.shape[1], dtype=torch.float64),
    )


def log_density(objective: PerturbedObjectives, weights: Tensor, noise: NoiseLaw) -> Tensor:
    """Of weights, one column of one problem in every row, up to a constant.

    Args:
        objective: without noise, over the rows of one graph.
        weights: problems * classes x features.
        noise: the law of the noise.
    """
    drawn = -objective.gradient(weights) * objective.num_rows
    stretch: Tensor = torch.linalg.slogdet(objective.hessian(weights, torch.arange(len(weights)))).logabsdet
    return stretch - noise.energy(drawn)
