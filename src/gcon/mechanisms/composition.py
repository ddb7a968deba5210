"""Totals tighter than the sum, for releases whose mechanism allows it (docs/proofs/composition.md).

A release of pure epsilon is at least as private as one Gaussian with distance mu = 2 Phi^-1(e^eps / (1 + e^eps)).
Gaussians compose exactly: the distances add in squares. So many small pure releases cost about the square root of what
their sum says. Gaussian releases enter with their own distance. Releases of which only (epsilon, delta) is known (the
perturbed objective) add to that as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from gcon.mechanisms.gaussian_curve import LARGE_EPSILON, gaussian_epsilon, pure_as_gaussian
from gcon.privacy.budget import Budget, compose
from gcon.privacy.ledger import LedgerEntry, Outcome

NAME = "gaussian"
CONDITION = "budgets fixed in advance"


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
    if cost.delta == 0 and cost.epsilon <= LARGE_EPSILON:  # beyond, its Gaussian costs four times as much as itself
        known.append(pure_as_gaussian(cost.epsilon))
    return min((distance for distance in known if math.isfinite(distance)), default=None)
