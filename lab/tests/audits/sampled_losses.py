"""The exact privacy loss of objective perturbation on one pair of neighbouring graphs (a white-box audit), over many draws.

For a given noise B the minimiser W on the first graph is known exactly, and so is the one noise B' that leads to the
same W on the second graph. The densities of W under the two graphs therefore have the ratio

    loss = log |det J / det J'| + sum_j (energy(b_j') - energy(b_j)),

with J the Jacobian of the map from weights to noise and e^-energy the density of the noise. Over draws of B this is the privacy
loss random variable itself: the smallest epsilon that it allows for a given delta is what the mechanism spends on this pair.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gcon.edges.edge_list import public_edges
from gcon.edges.schemes import Schemes, propagate
from gcon.mechanisms.losses import ConvexLoss
from gcon.mechanisms.perturbed_objective import PerturbedObjectives, minimise
from gcon.mechanisms.theorem import ObjectiveShape
from gcon.privacy.randomness import Randomness
from gcon_lab.audits.privacy_loss import NoiseLaw


@dataclass(frozen=True, eq=False, kw_only=True)
class AuditedPair:
    """Aggregates of two neighbouring (made-up, public) graphs, and the objective that is perturbed.

    Attributes:
        first, second: n_1 x d aggregates with and without the edge.
        targets: n_1 x c.
        loss: the loss.
        ridge: the total ridge.
        noise: the law of the noise.
    """

    first: Tensor
    second: Tensor
    targets: Tensor
    loss: ConvexLoss
    ridge: float
    noise: NoiseLaw


def privacy_losses(pair: AuditedPair, *, draws: int, randomness: Randomness, batch: int = 20_000) -> Tensor:
    """The privacy loss of `draws` releases made on the first graph, against the second."""
    return torch.cat([_losses(pair, min(batch, draws - start), randomness) for start in range(0, draws, batch)])


def _losses(pair: AuditedPair, draws: int, randomness: Randomness) -> Tensor:
    classes, width = pair.targets.shape[1], pair.first.shape[1]
    flat = pair.noise.draw(randomness, columns=draws * classes, width=width)
    objectives = _objectives(pair, pair.first, flat.reshape(draws, classes, width))
    weights = minimise(objectives, torch.full((draws,), 1e-9, dtype=torch.float64)).reshape(-1, width)
    everything = torch.arange(draws * classes)
    # B' is what makes the second gradient vanish at the same weights.
    without_noise = _objectives(pair, pair.second, torch.zeros(draws, classes, width, dtype=torch.float64))
    other_noise = -without_noise.gradient(weights) * without_noise.num_rows
    jacobians = [
        torch.linalg.slogdet(objective.hessian(weights, everything)).logabsdet
        for objective in (objectives, without_noise)
    ]
    # d(noise)/d(weights) = -n_1 * Hessian: the densities of the weights carry its determinant.
    change = jacobians[0] - jacobians[1]
    energies = pair.noise.energy(other_noise) - pair.noise.energy(flat)
    losses: Tensor = (change + energies).reshape(draws, classes).sum(dim=1)
    return losses


def _objectives(pair: AuditedPair, aggregates: Tensor, noises: Tensor) -> PerturbedObjectives:
    count = noises.shape[0]
    return PerturbedObjectives(
        aggregates=aggregates,
        targets=pair.targets,
        losses=[pair.loss] * count,
        ridges=torch.full((count,), pair.ridge, dtype=torch.float64),
        noises=noises,
    )


def measured_epsilon(losses: Tensor, delta: float) -> float:
    """The smallest epsilon >= 0 with mean(max(0, 1 - e^(epsilon - loss))) <= delta: the loss's own privacy curve."""
    low, high = 0.0, max(float(losses.max()), 0.0)
    if _delta(losses, low) <= delta:
        return low
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _delta(losses, middle) > delta else (low, middle)
    return high


def probabilistic_epsilon(losses: Tensor, delta: float) -> float:
    """The epsilon that the loss exceeds with probability delta: the stricter reading in which Theorem 1 is proved."""
    return float(torch.quantile(losses, 1 - delta))


def _delta(losses: Tensor, epsilon: float) -> float:
    return float(torch.clamp(-torch.expm1(epsilon - losses), min=0).mean())


def planned_pair(theorem, noise, *, epsilon, delta, influence, loss, width=1, restart=0.8) -> AuditedPair:
    """The worst small pair with infinite steps, and the ridge and noise that a theorem plans for this budget."""
    shape = ObjectiveShape(
        epsilon=epsilon,
        delta=delta,
        noise_share=0.9,
        num_features=width,
        num_labelled=2,
        edge_influence=influence,
        loss=loss,
    )
    plan = theorem(shape, ridge=2.0)
    ridge = plan.ridge + plan.extra_ridge
    return isolated_pair(loss, restart=restart, steps=math.inf, width=width, ridge=ridge, noise=noise(plan))


def isolated_pair(
    loss: ConvexLoss, *, restart: float, steps: float, width: int, ridge: float, noise: NoiseLaw
) -> AuditedPair:
    """The worst small pair: two nodes with opposite features and different classes, with and without their edge."""
    features = torch.zeros(2, width, dtype=torch.float64)
    features[0, 0], features[1, 0] = 1.0, -1.0
    targets = torch.zeros(2, loss.num_classes, dtype=torch.float64)
    targets[0, 0] = targets[1, 1] = 1.0
    schemes = Schemes(restart=restart, steps=(steps,))
    joined = public_edges(torch.tensor([[0], [1]]), 2)
    apart = public_edges(torch.empty(2, 0, dtype=torch.int64), 2)
    return AuditedPair(
        first=propagate(joined, features, schemes),
        second=propagate(apart, features, schemes),
        targets=targets,
        loss=loss,
        ridge=ridge,
        noise=noise,
    )
