"""Rows of length one: what the proofs call ||x_i|| <= 1."""

from __future__ import annotations

import torch
from torch import Tensor

# Dividing by the norm can leave a row one rounding error too long; the bounds want at most 1.
_SHRINK = 1 - 2.0**-50


def unit_rows(features: Tensor, centre: Tensor | None = None) -> Tensor:
    """Subtract a public centre, then scale every row to length 1 (never above); zero rows stay zero. float64.

    Centring must come first: after it rows are not of unit length any more.

    Args:
        features: n x d.
        centre: a public point, usually the mean row of all nodes.
    """
    features = features.to(torch.float64)
    if centre is not None:
        features = features - centre
    norms = torch.linalg.vector_norm(features, dim=1, keepdim=True)
    scaled: Tensor = features / norms.masked_fill(norms == 0, 1.0) * _SHRINK
    return scaled
