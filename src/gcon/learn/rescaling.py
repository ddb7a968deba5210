"""What noisy edge moments F' A F are used for: directions in which neighbours agree are made longer, others shorter.

The noise is known, so the moments are shrunk by it, towards those of a public graph (nearest features) times the factor
that fits best. With much noise little more than the public graph remains; with little noise the moments are taken as they
are. Free: reads released and public numbers only.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import normalize

from gcon.learn.sizes import blocks, is_large

_ROUNDS = 6
_TINY = 1e-300  # instead of a division by 0
# How the directions are whitened before their eigenvalues are taken (the ridge; infinite: not at all), and the power of the
# eigenvalues that lengthens them.
FILTERS = ((math.inf, 0.5), (100.0, 1.0))


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
    energy = _energies(rows)
    scale = torch.outer(energy, energy)
    noise = deviation**2 / 2 * (1 + torch.eye(len(noisy), dtype=noisy.dtype))
    spread = 0.0
    for _ in range(_ROUNDS):  # weighted least squares for t, with weights from the last t
        weights = scale / (spread * scale + noise).square()
        fitted = (weights * (rest.square() - noise)).sum() / (weights * scale).sum().clamp_min(_TINY)
        spread = max(float(fitted), 0.0)
    kept = spread * scale / (spread * scale + noise)
    return factor * expected + kept * rest


def _energies(rows: Tensor) -> Tensor:
    """The sum of squares of every column, float64."""
    if not is_large(len(rows)):
        return rows.double().square().sum(dim=0)
    return torch.stack([rows[nodes].double().square().sum(dim=0) for nodes in blocks(len(rows))]).sum(dim=0)


def rescaled_rows(rows: Tensor, moments: Tensor, *, ridge: float, power: float) -> Tensor:
    """Unit rows along the directions of the moments, each as long as the power of its eigenvalue; negative ones vanish."""
    rows = rows.double()
    whitening, vectors, lengths = _rescaling(rows.T @ rows, moments, ridge=ridge, power=power)
    return normalize((rows @ whitening @ vectors) * lengths, dim=1).float()


def rescaling_matrix(products: Tensor, moments: Tensor, *, ridge: float, power: float) -> Tensor:
    """What `rescaled_rows` multiplies rows with before they become unit rows; products are F' F."""
    whitening, vectors, lengths = _rescaling(products, moments, ridge=ridge, power=power)
    return whitening @ vectors * lengths


def _rescaling(products: Tensor, moments: Tensor, *, ridge: float, power: float) -> tuple[Tensor, Tensor, Tensor]:
    if math.isinf(ridge):
        whitening = torch.eye(len(moments), dtype=moments.dtype)
    else:
        energies, axes = torch.linalg.eigh(products)
        whitening = axes / (energies.clamp_min(0) + ridge).sqrt()
    inner = whitening.T @ moments @ whitening
    values, vectors = torch.linalg.eigh((inner + inner.T) / 2)
    return whitening, vectors, values.clamp_min(0) ** power
