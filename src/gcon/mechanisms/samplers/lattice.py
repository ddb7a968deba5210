"""The public lattice that noisy numbers are rounded to, and fixed-point numbers whose sums float64 holds exactly.

A float64 number x + scale * noise has low bits that only some x can produce: the noise takes 2^52 values, and which sums
with them are floats depends on x. So noise is drawn on the lattice (`rounded.py`): every point is then possible whatever x
is (docs/proofs/exact-noise.md).
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


def shortened(numbers: Tensor, unit: float) -> Tensor:
    """Every number rounded towards 0 to a multiple of the unit, a power of two: no row becomes longer.

    Sums of such numbers are exact, in any order, while they stay below 2^53 units.

    Example:
        >>> import torch
        >>> shortened(torch.tensor([0.8, -0.8]), 0.5)
        tensor([ 0.5000, -0.5000])
    """
    multiples: Tensor = (numbers / unit).trunc() * unit
    return multiples


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
