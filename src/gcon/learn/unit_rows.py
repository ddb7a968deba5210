"""Rows of length one: what the proofs call ||x_i|| <= 1."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def unit_rows(features: Tensor, centre: Tensor | None = None) -> Tensor:
    """Subtract a public centre, then scale every row to just below length 1; zero rows stay zero. float64.

    Centring must come first: after it rows are not of unit length any more.

    Args:
        features: n x d.
        centre: a public point, usually the mean row of all nodes.
    """
    features = features.to(torch.float64)
    if centre is not None:
        features = features - centre
    # First by the largest entry, so that squares neither overflow nor vanish; then by the length, and a little more
    # than the rounding of a sum over the columns and of a thousand steps of a walk: the bounds want at most 1
    # (docs/proofs/fixed-point-walks.md, 3).
    largest = features.abs().amax(dim=1, keepdim=True)
    rows = features / largest.masked_fill(largest == 0, 1.0)
    lengths = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    shrink = 1 - (features.shape[1] + 8) * 2.0**-53 - math.sqrt(features.shape[1]) * 2.0**-36
    scaled: Tensor = rows / lengths.masked_fill(lengths == 0, 1.0) * shrink
    return scaled


def no_longer(rows: Tensor, dtype: torch.dtype) -> Tensor:
    """Rows in a narrower type, every number rounded towards zero: no number grows, and so no row becomes longer.

    Args:
        rows: float64.
        dtype: float64 gives them back as they are.

    Example:
        >>> no_longer(torch.tensor([[0.1]], dtype=torch.float64), torch.float32) <= 0.1
        tensor([[True]])
    """
    if dtype == rows.dtype:
        return rows
    nearest = rows.to(dtype)
    grown = nearest.to(rows.dtype).abs() > rows.abs()
    return torch.where(grown, torch.nextafter(nearest, torch.zeros_like(nearest)), nearest)
