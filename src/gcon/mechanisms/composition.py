"""Totals tighter than the sum, for releases whose mechanism allows it (docs/proofs/composition.md).

A release of pure epsilon is at least as private as one Gaussian with distance mu = 2 Phi^-1(e^eps / (1 + e^eps)).
Gaussians compose exactly: the distances add in squares. So many small pure releases cost about the square root of what
their sum says. Gaussian releases enter with their own distance. Releases of which only (epsilon, delta) is known (the
perturbed objective) add to that as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from scipy.special import expit, ndtri

from gcon.mechanisms.gaussian_curve import gaussian_epsilon
from gcon.privacy.budget import Budget, compose
from gcon.privacy.ledger import LedgerEntry, Outcome

NAME = "gaussian"
CONDITION = "budgets fixed in advance"
_SMALL, _LARGE = 0.01, 700.0  # between them the quantile is exact to far better than the factor 1 + 1e-12


def pure_as_gaussian(epsilon: float) -> float:
    """The distance of two unit Gaussians that are at least as easy to tell apart as any (epsilon, 0)-DP pair.

    mu = 2 Phi^-1(e^eps / (1 + e^eps)), never rounded down; for small and for large epsilon a bound above it, where the
    quantile would lose its digits (docs/proofs/composition.md).

    Example:
        >>> round(pure_as_gaussian(1.0), 6)
        1.232035
    """
    if epsilon <= 0:
        return 0.0
    if epsilon < _SMALL:
        # mu <= sqrt(pi/2) eps: the slopes in eps of Phi(sqrt(pi/8) eps) and of e^eps/(1 + e^eps) are e^(-pi eps^2/16)/4 and
        # 1/(4 cosh(eps/2)^2). Both start at 1/4 and log(cosh x)/x^2 falls, so the first is larger up to one point and
        # smaller after it; both functions go from 1/2 to 1, so the first function is never below the second.
        mu = math.sqrt(math.pi / 2) * epsilon
    elif epsilon <= _LARGE:
        # Phi^-1(1 - p) = -Phi^-1(p): accurate where e^eps / (1 + e^eps) would round to 1.
        mu = -2 * float(ndtri(expit(-epsilon)))
    else:
        # mu <= sqrt(8 eps): Phi(-x) <= e^(-x^2/2)/2, so Phi(-sqrt(2 eps)) <= e^-eps/2 <= 1/(1 + e^eps).
        mu = math.sqrt(8) * math.sqrt(epsilon)
    return math.nextafter(mu * (1 + 1e-12), math.inf)


def gaussian_total(entries: Iterable[LedgerEntry], *, extra_delta: float) -> Budget:
    """Everything charged so far, by Gaussian composition where the mechanism allows it, basic composition elsewhere.

    Holds if the budgets of the releases were fixed without looking at earlier releases; the mechanisms may depend on
    them. For few releases the basic total is the smaller one. A release is taken as it is (basic composition) where
    only its budget is known, or where it is pure with an epsilon that no Gaussian stands for sensibly.

    Args:
        entries: lines of a ledger.
        extra_delta: what the tighter rule may add to delta, in (0, 1).
    """
    rest: list[Budget] = []
    distances: list[float] = []
    for entry in entries:
        if entry.outcome is Outcome.WITHDRAWN:
            continue
        distance = _distance(entry)
        if distance is None:
            rest.append(entry.request.cost)
        else:
            distances.append(distance)
    total = math.hypot(*distances) * (1 + 1e-12)
    return compose([*rest, Budget(gaussian_epsilon(total, extra_delta), extra_delta)])


def _distance(entry: LedgerEntry) -> float | None:
    """The Gaussian distance of a release, or None if only its budget is known."""
    cost, given = entry.request.cost, entry.request.gaussian_distance
    if math.isinf(cost.epsilon):
        return None
    known = [] if given is None else [given]
    if cost.delta == 0 and cost.epsilon <= _LARGE:  # beyond, its Gaussian costs four times as much as itself
        known.append(pure_as_gaussian(cost.epsilon))
    return min((distance for distance in known if math.isfinite(distance)), default=None)
