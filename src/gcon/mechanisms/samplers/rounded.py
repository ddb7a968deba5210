"""Real noise, rounded exactly to a public lattice: the point nearest to x + scale Z, for a REAL normal number Z.

The float64 sum of x and noise has low bits that only some x can produce. Every point of a lattice is possible whatever x is. No
float64 number stands for Z. Random bits say in which small interval two uniform numbers lie, hence in which interval Z
lies; if all of it rounds to one lattice point, that is the answer. If not, more bits are drawn and the interval shrinks,
with as many digits as it takes. So the law of the answer is that of the rounded real number, and rounding is
post-processing of the real-number mechanism (docs/proofs/exact-noise.md).

The same formulas run in float64 (nearly always) and with more digits (about one number in a hundred million).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from mpmath.ctx_mp import MPContext
from torch import Tensor

from gcon.errors import PlanMismatchError
from gcon.privacy.randomness import Randomness

EXACT_GAUSSIAN = "real Gaussian noise, rounded exactly to multiples of the public spacing"

_BITS = 52  # of a uniform number at first: the middle of its interval is then a float64
_MORE_BITS = 64
_ALLOWANCE = 2.0**-44  # relative error of the float64 formulas; libm's own must stay below 2^-46
_ADDING = 2.0**-50  # rounding of x + scale Z next to a lattice point, and the tail of x, at most 2^-53
_BLOCK = 2**15
SPACING = 2.0**40  # of the lattice, in last places (math.ulp) of the scale: the largest power of two up to scale / 4096
_LARGEST = 1e300  # of numbers and of their quotients by the spacing: sums and products with noise stay in float64


@dataclass(frozen=True)
class Law:
    """How two uniform numbers become noise.

    Attributes:
        numbers: how many independent noise numbers the two give.
        enclose: (library, uniforms, half width of their intervals, relative error of the library's formulas) -> the noise
            at the middle of the intervals, and how far from it the noise of any two numbers of the intervals can be.
    """

    numbers: int
    enclose: Callable[[Any, Any, Any, Any], tuple[tuple[Any, ...], Any]]


def _gaussian(library: Any, uniforms: Any, half: Any, allowance: Any) -> tuple[tuple[Any, ...], Any]:
    """Box and Muller: sqrt(-2 log u) times the cosine and the sine of 2 pi v, two independent normal numbers."""
    first, second = uniforms
    radius, angle = library.sqrt(-2 * library.log(first)), 2 * library.pi * second
    # |R(u) - R(m)| <= 3 half / (m R(m)) for u within half of the middle m >= 3 half; R may be tiny there.
    error = 4 * half / (first * radius) + allowance * radius
    return (radius * library.cos(angle), radius * library.sin(angle)), error


GAUSSIAN = Law(2, _gaussian)


def rounded_noise(
    randomness: Randomness,
    values: Tensor,
    *,
    scale: float | Tensor,
    spacing: float,
    rest: Tensor | None = None,
    law: Law = GAUSSIAN,
) -> Tensor:
    """The multiples of `spacing` nearest to values + scale Z, with an independent real Z an entry: by default standard normal.

    Args:
        randomness: where the bits come from.
        values: float64, taken as the exact numbers that they are.
        scale: standard deviation, public; one number, or one per entry.
        spacing: of the lattice, public: a power of two; `SPACING * math.ulp(scale)` everywhere.
        rest: what float64 could not hold of the values; the exact number is the sum of both.
        law: of Z.

    Privacy:
        Post-processing of the real-number mechanism on `values + rest`: its curve holds without an extra delta.
    """
    scales = torch.as_tensor(scale, dtype=torch.float64).expand(values.shape).reshape(-1).numpy()
    numbers = values.to(torch.float64).reshape(-1).numpy()
    rests = torch.zeros_like(values) if rest is None else rest
    small = rests.to(torch.float64).reshape(-1).numpy()
    sizes = [float(np.abs(each).max(initial=0.0)) for each in (numbers, scales, small)]
    if (
        math.frexp(spacing)[0] != 0.5
        or not (scales > 0).all()
        or not all(size < _LARGEST and size / spacing < _LARGEST for size in sizes)
    ):
        raise PlanMismatchError(
            f"Exact noise needs a spacing that is a power of two, a positive scale, and finite values: below {_LARGEST:g}, "
            "and below so many spacings."
        )
    points = np.empty_like(numbers)
    for start in range(0, len(numbers), _BLOCK):
        block = slice(start, start + _BLOCK)
        # In units of the spacing: division by a power of two does not round, and neither do the two differences.
        value, more, ratios = (each[block] / spacing for each in (numbers, small, scales))
        whole, further = np.rint(value), np.rint(more)
        value, more = value - whole, more - further
        # The float64 sum of what is left, and what it lacks of the real one: together exact (Knuth's six operations).
        remainders = value + more
        added = remainders - value
        tails = (value - (remainders - added)) + (more - added)
        count = len(value)
        draws = -(-count // law.numbers)
        places = np.frombuffer(randomness.take(16 * draws), dtype="<u8").reshape(2, draws) >> np.uint64(64 - _BITS)
        uniforms = (places.astype(np.float64) + 0.5) * 2.0**-_BITS
        centres, errors = law.enclose(np, uniforms, 2.0 ** -(_BITS + 1), _ALLOWANCE)
        sums = remainders + ratios * np.concatenate(centres)[:count]
        nearest = np.rint(sums)
        reach = ratios * np.tile(errors, law.numbers)[:count] + _ADDING
        # An interval that begins at 0 has no logarithm: it is always divided.
        sure = (np.abs(sums - nearest) + reach < 0.5) & np.tile(places.all(axis=0), law.numbers)[:count]
        sure &= np.abs(further) + np.abs(nearest) < 2.0**53  # else their sum rounds: left to whole numbers of any size
        points[block] = whole + (further + nearest)
        for draw in np.unique(np.flatnonzero(~sure) % draws):
            members = range(int(draw), count, draws)  # all that these two uniform numbers are used for
            entries = [(float(remainders[each]), float(tails[each]), float(ratios[each])) for each in members]
            shifts = _decide(randomness, [int(place) for place in places[:, draw]], entries, law)
            for member, shift in zip(members, shifts, strict=True):
                points[start + member] = float(int(whole[member]) + int(further[member]) + shift)
    return torch.from_numpy(points * spacing + 0.0).reshape(values.shape)  # -0 becomes 0


def _decide(
    randomness: Randomness, places: list[int], entries: Sequence[tuple[float, float, float]], law: Law
) -> list[int]:
    """The whole numbers nearest to rest + tail + ratio Z for every entry, with more bits until all are certain.

    Args:
        randomness: where further bits come from.
        places: the first 52 bits of both uniform numbers.
        entries: (rest, tail, ratio) of each noise number that the two give.
        law: of the noise.
    """
    library, bits = MPContext(), _BITS
    while True:
        bits += _MORE_BITS
        places = [place << _MORE_BITS | int.from_bytes(randomness.take(_MORE_BITS // 8), "little") for place in places]
        if not all(places):
            continue
        library.prec = bits + _MORE_BITS
        uniforms = [library.ldexp(2 * place + 1, -bits - 1) for place in places]
        centres, error = law.enclose(library, uniforms, library.ldexp(1, -bits - 1), library.ldexp(1, 2 - bits))
        found = []
        for (rest, tail, ratio), centre in zip(entries, centres, strict=False):
            total = library.mpf(rest) + library.mpf(tail) + library.mpf(ratio) * centre
            reach = library.mpf(ratio) * error + library.ldexp(1, -bits)
            ends = {int(library.floor(end + 0.5)) for end in (total - reach, total + reach)}
            found += [ends.pop()] if len(ends) == 1 else []
        if len(found) == len(entries):
            return found
