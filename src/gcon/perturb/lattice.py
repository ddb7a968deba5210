"""Rounding of noisy numbers to a public lattice, so that their low bits say nothing about what lies under the noise.

A float64 number x + scale * noise has low bits that only some x can produce: the noise takes 2^52 values, and which sums
with them are floats depends on x. Rounded to a lattice that is much coarser than the gaps between these values, every
point is possible whatever x is (docs/proofs/neighbour-sums.md, section 7).
"""

from __future__ import annotations

import math

from torch import Tensor

_POINTS_PER_SCALE = 12  # 2^12 lattice points a scale, at least


def lattice_spacing(scale: float) -> float:
    """The largest power of two that is at most scale / 4096.

    Args:
        scale: of the noise, from 1e-200: public.

    Example:
        >>> lattice_spacing(4096.0), lattice_spacing(8191.9)
        (1.0, 1.0)
    """
    _, exponent = math.frexp(scale)  # 2^(exponent - 1) <= scale < 2^exponent
    return math.ldexp(1.0, exponent - 1 - _POINTS_PER_SCALE)


def to_lattice(noisy: Tensor, scale: float) -> Tensor:
    """Every number rounded to the nearest multiple of `lattice_spacing(scale)`.

    Exact for numbers below 2^40 scales: multiplying by a power of two does not round.

    Args:
        noisy: float64, with the noise already added.
        scale: of that noise.

    Privacy:
        A function of noisy numbers and a public one: free.
    """
    spacing = lattice_spacing(scale)
    rounded: Tensor = (noisy / spacing).round() * spacing + 0.0  # -0 becomes 0
    return rounded
