"""What only competitors draw: real Laplace noise, rounded exactly, and float64 numbers with 52 random bits."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from scipy.special import ndtri
from torch import Tensor

from gcon.mechanisms.samplers.rounded import Law, rounded_noise
from gcon.privacy.randomness import Randomness

EXACT_LAPLACE = "real Laplace noise, rounded exactly to multiples of the public spacing"


def _laplace(library: Any, uniforms: Any, half: Any, allowance: Any) -> tuple[tuple[Any, ...], Any]:
    """The difference of two exponential numbers is a Laplace number."""
    first, second = uniforms
    one, other = library.log(first), library.log(second)
    return (other - one,), 2 * half / first + 2 * half / second - allowance * (one + other)


LAPLACE = Law(1, _laplace)
rounded_laplace = partial(rounded_noise, law=LAPLACE)
"""Post-processing of the real-number Laplace mechanism: pure epsilon, without an extra delta."""


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


def open_uniforms(randomness: Randomness, *shape: int) -> Tensor:
    """Uniform numbers strictly between 0 and 1, on the grid (k + 1/2) / 2^52, every point of which is a float64.

    Privacy:
        52 random bits a number: the law is that of a real number up to 2^-53, which the sharp edges page lists.
    """
    count = int(np.prod(shape, dtype=np.int64))
    words = np.frombuffer(randomness.take(8 * count), dtype="<u8") >> np.uint64(12)
    return torch.from_numpy((words.astype(np.float64) + 0.5) * 2.0**-52).reshape(shape)


def standard_normals(randomness: Randomness, *shape: int) -> Tensor:
    """Independent standard normal numbers, by inverting their distribution function."""
    return torch.from_numpy(ndtri(open_uniforms(randomness, *shape).numpy()))


def laplaces(randomness: Randomness, *shape: int) -> Tensor:
    """Independent Laplace numbers of scale 1: exponential ones with a random sign."""
    uniforms = open_uniforms(randomness, 2, *shape)
    return torch.where(uniforms[0] < 0.5, 1.0, -1.0) * -uniforms[1].log()
