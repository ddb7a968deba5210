"""From random bytes to float64 numbers with 52 random bits: for noisy graphs, drawn batches and experiments.

Noise that is added to a number or to an objective comes from `rounded.py`, whole-number noise from `exact.py`; both are exact.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.special import ndtri
from torch import Tensor

from gcon.privacy.randomness import Randomness


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
