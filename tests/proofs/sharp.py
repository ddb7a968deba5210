"""Sharp bounds on what one edge can change, per pair of end degrees (docs/proofs/edge-influence.md).

For an edge whose ends have k1 and k2 neighbours (counted with the edge), every bound below is per unit of the
features' diameter:

- `psi` bounds the sum over all rows of the Euclidean row changes of the aggregates;
- `phi` bounds the Frobenius change of class sums, aggregates' * one-hot labels.

The worst case over all graphs is the maximum over degree pairs. The functions work on arrays of pairs at once. The constants
that the product uses are a table (`gcon.mechanisms.influence`), which tests compare with what is found here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
_LAMBDAS = (0.25, 0.35, 0.5, 0.7, 0.85, 1.0, 1.2, 1.4, 2.0, 3.0, 4.0)


def column_constant(degree: ArrayLike, restart: float) -> Array:
    """s(j): a node of degree j receives at most (j + 1) s(j) in total from personalised PageRank (Lemma A)."""
    degree = np.asarray(degree, dtype=float)
    return ((1 + restart) + (1 - restart) * degree) / ((1 + restart) + (3 - restart) * degree)


def pair_bounds(first: ArrayLike, second: ArrayLike, restart: float, steps: float) -> tuple[Array, Array]:
    """(psi, phi) per unit diameter for every pair of end degrees; `steps` is a positive integer or infinity."""
    k1, k2 = np.atleast_1d(np.asarray(first, float)), np.atleast_1d(np.asarray(second, float))
    if math.isinf(steps):
        return _pairs_in_the_limit(k1, k2, restart)
    ends = _ends_after_steps(k1, k2, restart, int(steps))
    psi = ends.share1 + ends.share2
    cross = _cross_term(k1, k2, restart, ends)
    return psi, np.minimum(psi, np.sqrt(ends.share1**2 + ends.share2**2 + 2 * cross))


def pair_psi(first: ArrayLike, second: ArrayLike, restart: float, steps: float) -> Array:
    """Psi alone, which costs a fraction of both."""
    k1, k2 = np.atleast_1d(np.asarray(first, float)), np.atleast_1d(np.asarray(second, float))
    if math.isinf(steps):
        return _pairs_in_the_limit(k1, k2, restart)[0]
    ends = _ends_after_steps(k1, k2, restart, int(steps))
    return ends.share1 + ends.share2


def searched_bounds(restart: float, steps: float, *, dense_degrees: int = 60) -> tuple[float, float]:
    """(psi, phi): the maximum over all pairs of small degrees and a geometric grid up to 1e7."""
    both = [pair_bounds(first, second, restart, steps) for first, second in _degree_pairs(dense_degrees)]
    return max(float(psi.max()) for psi, _ in both), max(float(phi.max()) for _, phi in both)


def searched_supremum(restart: float, steps: float, *, dense_degrees: int = 60) -> float:
    """Psi over the same grid, raised by 1e-6 wherever its large degrees come out on top: there the supremum is a limit.

    A search, not a proof: between the grid's degrees the bound can be larger (restart 0.32, two steps, degrees 1 and
    67). The product's table has its values only in cells that are proven otherwise.
    """
    inner, outer = 0.0, 0.0
    for first, second in _degree_pairs(dense_degrees):
        psi, dense = pair_psi(first, second, restart, steps), np.maximum(first, second) <= dense_degrees
        inner = max(inner, float(psi[dense].max(initial=0.0)))
        outer = max(outer, float(psi[~dense].max(initial=0.0)))
    return inner if inner >= outer * (1 + 1e-6) else outer * (1 + 1e-6)


def _degree_pairs(dense_degrees: int) -> Iterator[tuple[Array, Array]]:
    grid = np.unique(np.concatenate([np.arange(1, dense_degrees + 1), np.geomspace(dense_degrees, 1e7, 30).round()]))
    first, second = np.triu_indices(grid.size)
    for start in range(0, first.size, 512):
        yield grid[first[start : start + 512]], grid[second[start : start + 512]]


def _mass(coefficients: Array) -> Array:
    """Sum of the positive entries: a zero-sum combination of points is at most mass * diameter long (Lemma 0)."""
    mass: Array = np.clip(coefficients, 0, None).sum(axis=-1)
    return mass


def _pairs_in_the_limit(k1: Array, k2: Array, a: float) -> tuple[Array, Array]:
    # Both ends' values as combinations of the four points (x1, w1, x2, w2), by Cramer's rule on the 2 x 2 system.
    determinant = (k1 + a) * (k2 + a) - (1 - a) ** 2
    zero = np.zeros_like(k1)
    right1 = np.stack([(k1 + 1) * a, (1 - a) * (k1 - 1), zero, zero], axis=-1)
    right2 = np.stack([zero, zero, (k2 + 1) * a, (1 - a) * (k2 - 1)], axis=-1)
    z1 = ((k2 + a)[:, None] * right1 + (1 - a) * right2) / determinant[:, None]
    z2 = ((k1 + a)[:, None] * right2 + (1 - a) * right1) / determinant[:, None]
    w1, w2 = np.eye(4)[1], np.eye(4)[3]
    change1 = (z1 + (k1 - 1)[:, None] * w1) / k1[:, None] - z2
    change2 = (z2 + (k2 - 1)[:, None] * w2) / k2[:, None] - z1
    reach1, reach2 = (k * column_constant(k - 1, a) / (k + 1) * (1 - a) / a for k in (k1, k2))
    end1, end2 = reach1 * _mass(change1), reach2 * _mass(change2)
    same_class = _mass(reach1[:, None] * change1 + reach2[:, None] * change2)
    return end1 + end2, np.maximum(np.hypot(end1, end2), same_class)


@dataclass(frozen=True, eq=False)
class _Ends:
    """Both ends' shares of psi, and the coefficient vectors (and their masses) that they come from, step by step."""

    share1: Array
    share2: Array
    changes1: Array
    changes2: Array
    mass1: Array
    mass2: Array


def _ends_after_steps(k1: Array, k2: Array, a: float, m: int) -> _Ends:
    points = np.eye(2 + 2 * m)
    z1, z2 = np.tile(points[0], (k1.size, 1)), np.tile(points[1], (k2.size, 1))
    changes1, changes2 = [], []
    for step in range(m):
        w1, w2 = points[2 + step], points[2 + m + step]
        around1, around2 = z1 + (k1 - 1)[:, None] * w1, z2 + (k2 - 1)[:, None] * w2
        changes1.append(around1 / k1[:, None] - z2)
        changes2.append(around2 / k2[:, None] - z1)
        z1, z2 = (
            a * points[0] + (1 - a) / (k1 + 1)[:, None] * (around1 + z2),
            a * points[1] + (1 - a) / (k2 + 1)[:, None] * (around2 + z1),
        )
    stacked1, stacked2 = np.stack(changes1, axis=1), np.stack(changes2, axis=1)
    mass1, mass2 = _mass(stacked1), _mass(stacked2)
    return _Ends(_end_bound(k1, a, mass1), _end_bound(k2, a, mass2), stacked1, stacked2, mass1, mass2)


def _column_caps(degree: Array, m: int) -> Array:
    """Column sums of the powers 0..m-1 of the transition without the edge, at an end of this degree."""
    caps = np.ones((degree.size, m))
    many = degree > 2
    if m > 1:
        caps[many, 1] = 1 / degree[many] + (degree[many] - 1) / 2
    caps[many, 2:] = degree[many, None] / 2
    return caps


def _end_bound(degree: Array, a: float, mass: Array) -> Array:
    """One end's share: a fractional knapsack of column sums, filled greedily by the mass that they carry."""
    m = mass.shape[1]
    caps = _column_caps(degree, m)
    room = np.where(degree <= 2, np.inf, degree * column_constant(degree - 1, a) / a - 1)
    value = (1 - a) * mass[:, m - 1]
    powers = np.arange(1, m)
    order = np.argsort(-mass[:, m - 1 - powers], axis=1, kind="stable")
    rows = np.arange(degree.size)
    for rank in range(m - 1):
        t = powers[order[:, rank]]
        discount = (1 - a) ** t
        # At restart 1 every later power has weight zero: nothing is taken.
        with np.errstate(divide="ignore", invalid="ignore"):
            take = np.clip(np.minimum(caps[rows, t], np.where(discount > 0, room / discount, 0.0)), 0, None)
        value = value + (1 - a) * discount * mass[rows, m - 1 - t] * take
        room = room - discount * take
    value = value / (degree + 1)
    leave = (1 - a) / 2
    left = 1 - (a * (1 - leave**m) / (1 - leave) + leave**m)
    return np.where(degree == 1, np.minimum(value, left), value)


def _cross_term(k1: Array, k2: Array, a: float, ends: _Ends) -> Array:
    m = ends.mass1.shape[1]
    best = ends.mass1[:, :, None] * ends.mass2[:, None, :]
    for scale in _LAMBDAS:
        joint = _mass(scale * ends.changes1[:, :, None, :] + ends.changes2[:, None, :, :] / scale)
        best = np.minimum(best, joint**2 / 4)
    discount = (1 - a) ** np.arange(1, m + 1)
    weight1 = discount * _column_caps(k1, m) / (k1 + 1)[:, None]
    weight2 = discount * _column_caps(k2, m) / (k2 + 1)[:, None]
    cross: Array = np.einsum("pi,pij,pj->p", weight1, best[:, ::-1, ::-1], weight2)
    return np.where((k1 == 1) & (k2 == 1), 0.0, cross)
