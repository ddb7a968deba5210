"""A lower bound on epsilon from scores of many runs on two neighbouring graphs (a black-box audit)."""

from __future__ import annotations

import math

import numpy as np
import scipy.stats
from numpy.typing import NDArray

Scores = NDArray[np.float64]


def epsilon_lower_bound(near: Scores, far: Scores, delta: float, *, false_alarm: float = 5e-7) -> float:
    """A lower bound on epsilon at this delta that is wrong with probability below `false_alarm` (Clopper-Pearson).

    If a release is (epsilon, delta)-DP, then P(near >= cut) <= e^epsilon P(far >= cut) + delta for every cut. The cut is
    chosen on the first half of the scores and measured on the second half.

    Args:
        near: scores of runs on the one graph, larger where a run looks like that graph.
        far: scores of as many runs on the other graph.
        delta: of the promise that is tested.
        false_alarm: the probability of a bound above the true epsilon, at most.
    """
    half = len(near) // 2

    def bound(cut: float, part: slice) -> float:
        hits, alarms = int((near[part] >= cut).sum()), int((far[part] >= cut).sum())
        low = scipy.stats.binomtest(hits, len(near[part])).proportion_ci(1 - false_alarm, "exact").low - delta
        high = scipy.stats.binomtest(alarms, len(far[part])).proportion_ci(1 - false_alarm, "exact").high
        return math.log(low / high) if low > 0 else 0.0

    cuts = np.quantile(np.concatenate([near[:half], far[:half]]), np.linspace(0.02, 0.98, 49))
    best = max((float(cut) for cut in cuts), key=lambda cut: bound(cut, slice(half)))
    return bound(best, slice(half, None))
