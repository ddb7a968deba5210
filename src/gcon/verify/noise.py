"""A look at the noise itself, where the true values cancel, and only noise is left.

Statistics may be released twice. In a table of neighbour counts the edges between two codes are counted from both ends, and two
tables count every node's neighbours twice. And of moments of rows that all lie in one plane through 0, the product with that
plane's normal is 0 on every graph.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import gammainc, gammaincc
from torch import Tensor

from gcon.verify.arithmetic import shown
from gcon.verify.steps import Steps

FALSE_ALARM = 1e-9  # on either side: an honest release fails so rarely
_FAR = 60  # standard deviations, and one more: nothing lies beyond
_LEAST_CHANCE = 1e-12  # smaller ones are taken as this; far above the rounding of the sums behind them
_VANISHED = 42.0  # e^-this is nothing


def check_repeated(first: Tensor, second: Tensor, deviation: Any, other: Any, steps: Steps) -> None:
    """Squares of the difference of two releases of one symmetric matrix follow a chi-square law if there is noise in both.

    The difference has variance s^2 = sigma_1^2 + sigma_2^2 on the diagonal and half of it off the diagonal, where it is the
    same above and below: so the sum of all squared entries, divided by s^2, counts every independent one once.
    """
    width = first.shape[0]
    count = width * (width + 1) // 2
    squares = float(((first - second) / float((deviation**2 + other**2) ** 0.5)).square().sum(dtype=torch.float64))
    below, above = float(gammainc(count / 2, squares / 2)), float(gammaincc(count / 2, squares / 2))
    steps.check(
        f"The two releases of one statistic differ like noise of these deviations: {count} squares add to {shown(squares)} "
        f"(expected {count}; an honest release fails here with probability {2 * FALSE_ALARM:g})",
        below > FALSE_ALARM and above > FALSE_ALARM,
    )


def check_normal(moments: Tensor, normal: Tensor, deviation: Any, *, rounding: float, steps: Steps) -> None:
    """Where w'f = 0 for all rows f, w'(F'AF) = 0 on every graph: w'M of released moments M is noise alone.

    Symmetric noise N of deviation sigma on the diagonal and sigma/sqrt 2 off it has Cov(Nw) = (sigma^2/2) (|w|^2 I + ww'), so
    (2/sigma^2) (|Nw|^2/|w|^2 - (w'Nw)^2/(2 |w|^4)) follows the chi-square law of as many degrees as there are entries.

    Args:
        moments: released.
        normal: w.
        deviation: sigma.
        rounding: how long w'(F'AF) may be all the same, because rows are rounded to fixed point.
        steps: where the step goes.
    """
    moved, square = moments @ normal, float(normal @ normal)
    sigma = float(deviation)
    size = math.sqrt(max(2 / sigma**2 * float(moved @ moved / square - (normal @ moved) ** 2 / (2 * square**2)), 0.0))
    count, room = len(normal), rounding / (sigma * math.sqrt(square / 2))
    below = float(gammainc(count / 2, (size + room) ** 2 / 2))
    above = float(gammaincc(count / 2, max(size - room, 0.0) ** 2 / 2))
    steps.check(
        f"There is noise of this deviation in the moments of answers: {count} sums of them are 0 on every graph but for noise, "
        f"and their squares add to {shown(size**2)} (expected {count}; an honest release fails here with probability "
        f"{2 * FALSE_ALARM:g})",
        below > FALSE_ALARM and above > FALSE_ALARM,
    )


def farthest(rate: Any, numbers: int) -> int:
    """What none of so many numbers of two-sided geometric noise exceeds, but for a false alarm: 2 q^k/(1 + q) each."""
    return math.ceil((math.log(2 * numbers) - math.log(FALSE_ALARM)) / float(rate))


def check_differences(what: str, differences: NDArray[Any], numbers: NDArray[Any], rate: Any, steps: Steps) -> None:
    """Whole numbers that are sums of two-sided geometric noise alone: neither too near to 0 nor too far from it.

    The logarithms of the chances of lying so near add up (Fisher): chances of whole numbers are at least as large as uniform
    ones, so the sum of -log is at most that of so many exponential numbers. The same for lying so far.

    Args:
        what: for people.
        differences: k whole numbers.
        numbers: how many independent numbers of noise each is a sum of.
        rate: of the noise.
        steps: where the step goes.
    """
    near = far = 0.0
    places, repeats = np.unique(np.stack([np.abs(differences), numbers]), axis=1, return_counts=True)
    for number in np.unique(places[1]):
        here = places[1] == number
        chances = sum_chances(places[0, here], int(number), float(rate))
        near, far = (
            total - float((np.log(np.maximum(chance, _LEAST_CHANCE)) * repeats[here]).sum())
            for total, chance in zip((near, far), chances, strict=True)
        )
    count, size = len(differences), _mean_square(differences, numbers, rate)
    steps.check(
        f"{what} differ like noise of this rate: {count} differences, their squares {size:.3g} times what is expected on average "
        f"(an honest release fails here with probability {2 * FALSE_ALARM:g})",
        all(float(gammaincc(count, total)) > FALSE_ALARM for total in (near, far)),
    )


def sum_chances(places: NDArray[Any], number: int, rate: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """The chances that a sum of so many numbers of two-sided geometric noise lies at most, and at least, so far from 0.

    From its Fourier series, (1 + 4 q sin^2(t/2)/(1 - q)^2)^-number, at the places of a circle that is far longer than the noise.
    """
    spread = 4 * math.exp(-rate) / math.expm1(-rate) ** 2
    most = math.ceil(_FAR * (math.sqrt(number * spread / 2) + 1))
    length = 2 * most + 1
    least_sine = math.sqrt(min(1.0, math.expm1(_VANISHED / number) / spread))
    last = min(most, math.ceil(length * math.asin(least_sine) / math.pi))
    half = np.pi * np.arange(1, last + 1) / length
    series = np.exp(-number * np.log1p(spread * np.sin(half) ** 2)) / np.sin(half)

    def at_most(widths: NDArray[Any]) -> NDArray[Any]:
        odd = 2 * widths.astype(np.float64) + 1
        sums = np.array([series @ np.sin(width * half) for width in odd])
        chances: NDArray[Any] = np.clip((odd + 2 * sums) / length, 0.0, 1.0)
        return chances

    near = np.minimum(places, most)
    inside = np.where(near > 0, at_most(np.maximum(near - 1, 0)), 0.0)
    return at_most(near), 1 - inside


def _mean_square(differences: NDArray[Any], numbers: NDArray[Any], rate: Any) -> float:
    variance = 2 * math.exp(-float(rate)) / math.expm1(-float(rate)) ** 2
    return float((differences.astype(np.float64) ** 2 / (variance * numbers)).mean())
