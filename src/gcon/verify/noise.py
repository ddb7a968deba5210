"""A look at the noise itself, where one statistic was released twice: the true values cancel, and only noise is left."""

from __future__ import annotations

from typing import Any

import torch
from scipy.special import gammainc, gammaincc
from torch import Tensor

from gcon.verify.arithmetic import shown
from gcon.verify.steps import Steps

FALSE_ALARM = 1e-9  # on either side: an honest release fails so rarely


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
