"""The paper's way to train one private model: Adam, 1,000 full-batch steps. The rival of solver.py and sweep.py."""

from __future__ import annotations

import torch
from torch import Tensor

from gcon.mechanisms.perturbed_objective import PerturbedObjectives


def adam(objectives: PerturbedObjectives, index: int) -> Tensor:
    """The weights of one problem of a batch, classes x features."""
    _, classes, features = objectives.shape
    weights = torch.zeros(classes, features, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([weights], lr=0.01, weight_decay=1e-5)
    for _ in range(1000):
        optimizer.zero_grad()
        scores = objectives.aggregates @ weights.T
        loss = (
            objectives.losses[index].value(scores, objectives.targets).sum() / objectives.num_rows
            + objectives.ridges[index] / 2 * weights.square().sum()
            + (objectives.noises[index] * weights).sum() / objectives.num_rows
        )
        loss.backward()
        optimizer.step()
    return weights.detach()
