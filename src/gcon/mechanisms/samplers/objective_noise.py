"""The noise of the perturbed objective (the paper's sampling algorithm)."""

from __future__ import annotations

import torch
from torch import Tensor

from gcon.mechanisms.samplers.uniform import erlang, standard_normals
from gcon.privacy.randomness import Randomness


def objective_noise(randomness: Randomness, *, noise_rate: float, num_features: int, num_classes: int) -> Tensor:
    """B, one row per class: a uniform direction times an Erlang(num_features) radius at this rate.

    The density of each row is proportional to exp(-noise_rate |b|).

    Args:
        randomness: where the noise comes from.
        noise_rate: beta; infinity gives exactly zero (nothing depends on edges, or no promise was asked for).
        num_features: d.
        num_classes: c, the number of independent rows.

    Privacy:
        The rate must come from a noise plan. Rows are independent; no byte of randomness is used twice.
    """
    if noise_rate == float("inf"):
        return torch.zeros(num_classes, num_features, dtype=torch.float64)
    direction = standard_normals(randomness, num_classes, num_features)
    direction /= torch.linalg.vector_norm(direction, dim=1, keepdim=True)
    radius = erlang(randomness, num_features, num_classes) / noise_rate
    return direction * radius[:, None]
