"""Which sensitivities the statistics of the method `moments` can have, whatever the features are.

| statistic                     | its rows                                                    | lengths of the longest         |
|-------------------------------|-------------------------------------------------------------|--------------------------------|
| 0, edge moments of directions | of length 1 (or 0)                                          | 1                              |
| 1, edge moments of answers    | c probabilities that sum to 1, and a constant column of 0.3 | sqrt(1/c + 0.09) to sqrt(1.09) |
| 2, the same as 0              | of length 1 (or 0)                                          | 1                              |

One edge moves edge moments by 2 r_1 r_2, with r_1 and r_2 the lengths of the two longest rows (docs/proofs/edge-moments.md).
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from gcon.verify.arithmetic import digits

_SINGLE = 1e-6  # rows were scaled to length 1 in single precision
_ANSWERS = 1e-4  # probabilities sum to 1 up to this
_COUNT = digits.mpf("0.3")  # the column of the answers that counts edges


def sensitivity_range(place: int, value: Tensor, *, classes: int) -> tuple[Any, Any]:
    """The smallest and the largest sensitivity, with room for fixed point and single precision."""
    # Fixed point with 22 bits per entry (at most 1, which needs a unit of 2^-21) moves it by at most 2^-22.
    fixed = digits.sqrt(value.shape[1]) * digits.mpf(2) ** -22
    if place == 1:
        slack = _ANSWERS + 4 * fixed
        shortest, longest = digits.mpf(1) / classes + _COUNT**2, 1 + _COUNT**2
        return 2 * shortest * (1 - slack), 2 * longest * (1 + slack)
    slack = _SINGLE + fixed
    return 2 * max(0, 1 - slack) ** 2, 2 * (1 + slack) ** 2
