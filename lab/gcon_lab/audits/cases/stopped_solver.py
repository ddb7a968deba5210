"""A solver that stops after one gradient step: what its certificate says, and what happens without a certificate.

Theorem 1 is about the minimiser. One step from a public point far away releases an affine image of (sum of gradients there +
noise); nothing bounds how far one edge moves that sum (proofs, 1.5.1: a star with leaves, the edge from its hub to a node).
"""

from __future__ import annotations

import torch
from torch import Tensor

from gcon.edges.edge_list import EdgeList
from gcon.edges.schemes import Schemes, propagate
from gcon.errors import NoCertificateError
from gcon.mechanisms.certificate_terms import certified_gradient_norm
from gcon.mechanisms.convex_training import ConvexPlan
from gcon.mechanisms.influence import paper_influence
from gcon.mechanisms.losses import SoftMargin
from gcon.mechanisms.objective_plan import NoisePlan, make_plan
from gcon.mechanisms.samplers.objective_noise import EnclosedNoise, objective_noise
from gcon.privacy.budget import Budget
from gcon.privacy.randomness import Randomness
from gcon_lab.audits.cases.case import UNCERTIFIED, Broken, Scores
from gcon_lab.audits.pairs import star_and_node

_LEAVES, _START, _CLASSES = 1000, 1e4, 2
_SCHEMES = Schemes(restart=0.2, steps=(2,))


def certified_or_not(plan: ConvexPlan, rows: Tensor, targets: Tensor, noise: EnclosedNoise) -> Tensor:
    """One gradient step from zero, under the certificate that every mechanism asks for: it raises."""
    start = torch.zeros_like(noise.matrix)
    slopes = plan.loss.slope(rows @ start.T, targets)
    gradient = slopes.T @ rows / len(rows) + plan.total_ridge * start + noise.matrix / len(rows)
    weights = start - gradient / (2 * plan.total_ridge)
    norm = certified_gradient_norm(
        weights, aggregates=rows, targets=targets, loss=plan.loss, ridge=plan.total_ridge, noise=noise
    )
    if not norm <= plan.tolerance:
        raise NoCertificateError("a gradient norm above the tolerance")
    return weights


def one_step_from_afar(claimed: Budget) -> Broken:
    """One step of the paper's objective from (t, 0), released as if it were the minimiser."""
    pair = star_and_node(_LEAVES)
    plan = make_plan(
        claimed,
        loss=SoftMargin(_CLASSES),
        num_features=2,
        num_labelled=_LEAVES + 2,
        edge_influence=paper_influence(_SCHEMES.restart, 2),
        ridge=1.0,
    )
    sums = {place: _gradient_sum(edges, plan) for place, edges in enumerate((pair.joined, pair.apart))}

    def run(edges: EdgeList, count: int, randomness: Randomness) -> Tensor:
        gradients = _gradient_sum(edges, plan)
        noise = objective_noise(
            randomness, noise_rate=plan.noise_rate, num_features=2, num_classes=count * _CLASSES
        ).matrix.reshape(count, _CLASSES, 2)
        return _start() - (gradients + noise) / (_LEAVES + 2) - plan.total_ridge * _start()

    def score(weights: Tensor) -> Scores:
        """The log-likelihood ratio: from the weights everybody can compute (sum of gradients + noise)."""
        seen = (_start() - plan.total_ridge * _start() - weights) * (_LEAVES + 2)
        lengths = [torch.linalg.vector_norm(seen - sums[place], dim=2).sum(dim=1) for place in (0, 1)]
        ratios: Scores = (plan.noise_rate * (lengths[1] - lengths[0])).numpy()
        return ratios

    return Broken(kind=UNCERTIFIED, run=run, score=score, pair=pair, runs=4_000)


def _start() -> Tensor:
    return torch.tensor([[_START, 0.0]] * _CLASSES, dtype=torch.float64)


def _gradient_sum(edges: EdgeList, plan: NoisePlan) -> Tensor:
    features = torch.tensor([0.0, 1.0], dtype=torch.float64).repeat(_LEAVES + 2, 1)
    features[1] = torch.tensor([1.0, 0.0])
    rows = propagate(edges, features, _SCHEMES)
    slopes = plan.loss.slope(rows @ _start().T, torch.zeros(_LEAVES + 2, _CLASSES, dtype=torch.float64))
    return slopes.T @ rows
