"""What released edge moments F' A F are used for: features rescaled by them join the ensemble.

Directions in which neighbours agree are made longer, others shorter. The noise is known, so the moments are shrunk by it, towards
those of a public graph (nearest features) times the factor that fits best. With much noise little more than the public graph
remains; with little noise the moments are taken as they are. Free: reads released and public numbers only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor
from torch.nn.functional import normalize

from gcon.learn.edge_free import PENALTIES, EdgeFree
from gcon.learn.ensemble import Ensemble
from gcon.learn.sample import blocks

_ROUNDS = 6
_TINY = 1e-300  # instead of a division by 0
# How the directions are whitened before their eigenvalues are taken (the ridge; infinite: not at all), and the power of the
# eigenvalues that lengthens them.
_FILTERS = ((math.inf, 0.5), (100.0, 1.0))
_TAUGHT_SHARE = 0.8  # of the unlabelled nodes; answers that have seen the graph may teach more than edge-free ones


def shrunk_moments(noisy: Tensor, *, deviation: float, rows: Tensor, expected: Tensor) -> Tensor:
    """The posterior mean of the moments.

    The model: moments = a * expected + deviations of variance t e_i e_j, with e the energies of the columns of `rows`;
    a and t are fitted to the noisy moments.

    Args:
        noisy: d x d, symmetric.
        deviation: sigma of its noise: so much on the diagonal, sigma / sqrt(2) off it.
        rows: F, public.
        expected: the moments of a public graph.
    """
    # A public graph without edges (no two rows are alike) expects nothing.
    factor = max(float((noisy * expected).sum() / expected.square().sum().clamp_min(_TINY)), 0.0)
    rest = noisy - factor * expected
    if deviation == 0:
        return noisy
    energy = torch.stack([rows[nodes].double().square().sum(dim=0) for nodes in blocks(len(rows))]).sum(dim=0)
    scale = torch.outer(energy, energy)
    noise = deviation**2 / 2 * (1 + torch.eye(len(noisy), dtype=noisy.dtype))
    spread = 0.0
    for _ in range(_ROUNDS):  # weighted least squares for t, with weights from the last t
        weights = scale / (spread * scale + noise).square()
        fitted = (weights * (rest.square() - noise)).sum() / (weights * scale).sum().clamp_min(_TINY)
        spread = max(float(fitted), 0.0)
    kept = spread * scale / (spread * scale + noise)
    return factor * expected + kept * rest


def rescaled_rows(some: Tensor, moments: Tensor, *, rows: Tensor, ridge: float, power: float) -> Tensor:
    """Some of the rows as unit rows along the directions of the moments.

    Each direction is as long as the power of its eigenvalue; negative ones vanish.

    Args:
        some: rows of some nodes.
        moments: d x d, symmetric up to rounding.
        rows: F, of all nodes.
        ridge: the directions are whitened by F' F plus so much; infinite: not at all.
        power: of the eigenvalues.
    """
    whitening = torch.eye(len(moments), dtype=moments.dtype)
    if math.isfinite(ridge):
        products = torch.zeros(rows.shape[1], rows.shape[1], dtype=torch.float64)
        for nodes in blocks(len(rows)):
            block = rows[nodes].numpy()
            products += torch.from_numpy(block.T @ block)  # numpy knows that it is symmetric: half the work
        energies, axes = torch.linalg.eigh(products)
        whitening = axes / (energies.clamp_min(0) + ridge).sqrt()
    inner = whitening.T @ moments @ whitening
    values, vectors = torch.linalg.eigh((inner + inner.T) / 2)
    turned = whitening @ vectors * values.clamp_min(0) ** power
    return normalize(some @ turned.to(some.dtype), dim=1).float()


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class AfterMoments:
    """What moments make of the edge-free model.

    Attributes:
        free: the edge-free model.
        answers: class probabilities of all nodes.
        twins: the same of the sampled nodes, without the labels of one part of the judges, for every part.
        ensemble: with members on rescaled features of the sampled nodes.
        rescaled: the first of these features.
    """

    free: EdgeFree
    answers: Tensor
    twins: tuple[Tensor, ...]
    ensemble: Ensemble
    rescaled: Tensor


def after_moments(free: EdgeFree, noisy: Sequence[tuple[Tensor, float]]) -> AfterMoments:
    """The ensemble with members on features rescaled by moments of its directions.

    Args:
        free: the edge-free model.
        noisy: released moments, each with the standard deviation of its noise. Independent releases of one statistic, weighted
            by their precisions, are one release at their joint budget.
    """
    sample, rows, value, deviation = free.sample, free.rows, noisy[0][0], 0.0
    if all(each > 0 for _, each in noisy):
        precisions = [each**-2 for _, each in noisy]
        total = sum(precisions)
        values = [each * precision for (each, _), precision in zip(noisy, precisions, strict=True)]
        value, deviation = torch.stack(values).sum(dim=0) / total, total**-0.5
    moments = shrunk_moments(value, deviation=deviation, rows=rows, expected=free.expected_moments)
    views = [
        rescaled_rows(rows[sample.places], moments, rows=rows, ridge=ridge, power=power) for ridge, power in _FILTERS
    ]
    ensemble = free.ensemble.taught(views, PENALTIES)
    ensemble = ensemble.taught(views, PENALTIES, ensemble.surest(_TAUGHT_SHARE))
    found, _, twins = ensemble.moved()
    answers = sample.everywhere(found, rows)
    return AfterMoments(free=free, answers=answers, twins=twins, ensemble=ensemble, rescaled=views[0])
