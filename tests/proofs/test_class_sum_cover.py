"""The class-sum constants hold for *all* degrees: the cover of `test_sharp_cover.py`, for Theorem 3#.

Same boxes, same intervals. In a box, the bound of Theorem 3# is replaced by a number that dominates it for every pair of degrees:
both ends' shares and all column caps by their largest values, and the masses of combinations of both ends' vectors by
interval arithmetic. Only the pair (1, 1) is left out, where phi is exactly (1 - restart)/sqrt 2.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.proofs.sharp import column_constant, pair_bounds

from gcon_lab.mechanisms.class_sum_bounds import PROVEN_CLASS_SUM_CELLS, class_sum_constant

_SPEC = importlib.util.spec_from_file_location("sharp_cover", Path(__file__).with_name("test_sharp_cover.py"))
cover = importlib.util.module_from_spec(_SPEC)
sys.modules["sharp_cover"] = cover
_SPEC.loader.exec_module(cover)

ROUNDING, MOST_BOXES = cover.ROUNDING, cover.MOST_BOXES
SCALES = (0.25, 0.35, 0.5, 0.7, 0.85, 1.0, 1.2, 1.4, 2.0, 3.0, 4.0)  # any positive numbers give a valid bound


def largest_mass(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The largest positive mass of a vector between these that sums to zero: negative and positive mass are the same."""
    return np.minimum(np.clip(high, 0, None).sum(axis=-1), np.clip(-low, 0, None).sum(axis=-1))


def change_range(own, inverse, w, other) -> tuple[np.ndarray, np.ndarray]:
    """Where z/k + (1 - 1/k) w - z_other lies, for z, 1/k and z_other in the given ranges."""
    (own_low, own_high), (least, most), (other_low, other_high) = own, inverse, other
    return least * own_low + (1 - most) * w - other_high, most * own_high + (1 - least) * w - other_low


def changes_after_steps(first, second, a: float, m: int):
    """Theorem 3#, m steps: for both ends the ranges of U after 0, ..., m - 1 steps, as (box, step, point)."""
    points, boxes = np.eye(2 + 2 * m), first.low.size
    z1, z2 = (np.tile(points[0], (boxes, 1)),) * 2, (np.tile(points[1], (boxes, 1)),) * 2
    found: tuple[list, list] = ([], [])

    def stepped(x, w, share, own, other):
        least, most = share
        return (
            a * x + (1 - a) * (least * (own[0] + other[0]) + (1 - 2 * most) * w),
            a * x + (1 - a) * (most * (own[1] + other[1]) + (1 - 2 * least) * w),
        )

    for step in range(m):
        w1, w2 = points[2 + step], points[2 + m + step]
        found[0].append(change_range(z1, first.falling(0), w1, z2))
        found[1].append(change_range(z2, second.falling(0), w2, z1))
        z1, z2 = stepped(points[0], w1, first.falling(1), z1, z2), stepped(points[1], w2, second.falling(1), z2, z1)
    return [tuple(np.stack([change[side] for change in end], axis=1) for side in (0, 1)) for end in found]


def caps(end, m: int) -> np.ndarray:
    """The largest column caps of the powers 0, ..., m - 1, divided by k + 1."""
    low, high = end.low, end.high
    largest = np.empty((low.size, m))
    largest[:, 0] = 1 / (low + 1)
    if m > 1:
        inverse = 1 / high
        risen = (2 * inverse**2 + 1 - inverse) / (2 + 2 * inverse)
        largest[:, 1] = np.where(low == 1, 1 / 2, np.maximum(risen, 1 / 3))
    largest[:, 2:] = np.where(low == 1, 1 / 2, (1 - 1 / (high + 1)) / 2)[:, None]
    return largest


def box_after_steps(first, second, a: float, m: int) -> np.ndarray:
    mass1, mass2 = cover.masses_after_steps(first, second, a, m)
    end1, end2 = cover.end_after_steps(first, a, mass1), cover.end_after_steps(second, a, mass2)
    (low1, high1), (low2, high2) = changes_after_steps(first, second, a, m)
    best = mass1[:, :, None] * mass2[:, None, :]
    for scale in SCALES:
        low = scale * low1[:, :, None] + low2[:, None] / scale
        high = scale * high1[:, :, None] + high2[:, None] / scale
        best = np.minimum(best, largest_mass(low, high) ** 2 / 4)
    discount = (1 - a) ** np.arange(1, m + 1)
    cross = np.einsum("pi,pij,pj->p", discount * caps(first, m), best[:, ::-1, ::-1], discount * caps(second, m))
    return np.minimum(end1 + end2, np.sqrt(end1**2 + end2**2 + 2 * cross))


def box_in_the_limit(first, second, a: float) -> np.ndarray:
    mass1, mass2 = cover.masses_in_the_limit(first, second, a)
    end1, end2 = cover.end_in_the_limit(first, a, mass1), cover.end_in_the_limit(second, a, mass2)
    x1, w1, x2, w2 = np.eye(4)
    p1, p2 = (tuple((1 - a) * side for side in end.falling(a)) for end in (first, second))

    def anchored(x, w, p):
        least = a * (1 + p[0]) * x + np.clip(1 - a - (1 + a) * p[1], 0, None) * w
        return least, a * (1 + p[1]) * x + (1 - a - (1 + a) * p[0]) * w

    a1, a2 = anchored(x1, w1, p1), anchored(x2, w2, p2)
    z1 = tuple((a1[side] + p1[side] * a2[side]) / (1 - p1[side] * p2[side]) for side in (0, 1))
    z2 = tuple((a2[side] + p2[side] * a1[side]) / (1 - p1[side] * p2[side]) for side in (0, 1))

    def scaled(end, change):
        # k/(k + 1) rises and s(k - 1) falls with k
        least = (1 - a) / a * (1 - 1 / (end.low + 1)) * column_constant(np.minimum(end.high, 1e300) - 1, a)
        most = (1 - a) / a * (1 - 1 / (end.high + 1)) * column_constant(end.low - 1, a)
        (low, high), least, most = change, least[:, None], most[:, None]
        return np.minimum(least * low, most * low), np.maximum(least * high, most * high)

    one = scaled(first, change_range(z1, first.falling(0), w1, z2))
    other = scaled(second, change_range(z2, second.falling(0), w2, z1))
    same_class = largest_mass(one[0] + other[0], one[1] + other[1])
    return np.maximum(np.hypot(end1, end2), np.minimum(end1 + end2, same_class))


def box_bounds(boxes: np.ndarray, restart: float, steps: float) -> np.ndarray:
    """For rows (low, high, low, high): a number that dominates phi for every pair of degrees in the box."""
    parts = []
    for start in range(0, len(boxes), 2_000):
        part = boxes[start : start + 2_000]
        ends = cover.Degrees(part[:, 0], part[:, 1]), cover.Degrees(part[:, 2], part[:, 3])
        parts.append(
            box_in_the_limit(*ends, restart) if math.isinf(steps) else box_after_steps(*ends, restart, int(steps))
        )
    return np.concatenate(parts)


def is_proven(constant: float, restart: float, steps: float) -> bool:
    """Whether a cover shows that `constant` dominates phi for every pair of degrees. No proof found means False."""
    if constant < (1 - restart) / math.sqrt(2) * (1 - ROUNDING):  # the isolated pair
        return False
    boxes, spent = cover.first_boxes(), 0
    while boxes.size:
        spent += len(boxes)
        left = boxes[box_bounds(boxes, restart, steps) > constant * (1 + ROUNDING)]
        single = (left[:, 0] == left[:, 1]) & (left[:, 2] == left[:, 3])
        if single.any() or spent > MOST_BOXES:
            return False
        boxes = cover.halves(left) if left.size else left
    return True


@pytest.mark.parametrize(("restart", "steps"), PROVEN_CLASS_SUM_CELLS)
def test_every_cell_of_the_table_is_proven_for_all_degrees(restart, steps):
    assert is_proven(class_sum_constant(restart, steps), restart, steps)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("restart", "steps"), [(0.1, 2), (0.2, 3), (0.4, 5), (0.5, math.inf), (0.2, math.inf), (0.6, 3)]
)
def test_a_smaller_constant_is_not_proven(restart, steps):
    assert not is_proven(0.998 * PROVEN_CLASS_SUM_CELLS[restart, steps], restart, steps)


@pytest.mark.parametrize("restart", [1e-9, 0.1, 0.5, 0.9])
def test_one_step(restart):
    """The closed form, which the page proves by hand; without restart the constant is the limit of these."""
    assert is_proven(class_sum_constant(restart, 1), restart, 1)
    assert not is_proven(0.999 * class_sum_constant(restart, 1), restart, 1)


@pytest.mark.parametrize("steps", [2, 3, 5, 10, math.inf])
def test_a_box_of_one_pair_is_the_theorem_itself(steps):
    ends = np.array([[1, 2], [1, 7], [2, 2], [2, 3], [3, 3], [4, 9], [30, 1000], [5, 1e9]], dtype=float)
    for restart in (0.05, 0.2, 0.5, 0.9):
        _, expected = pair_bounds(ends[:, 0], ends[:, 1], restart, steps)
        np.testing.assert_allclose(box_bounds(ends[:, [0, 0, 1, 1]], restart, steps), expected, rtol=1e-10)


@pytest.mark.parametrize("steps", [2, 3, 6, math.inf])
def test_a_box_dominates_every_pair_in_it(steps):
    random = np.random.default_rng(8)
    low = np.floor(np.exp(random.uniform(0, 8, (200, 2))))
    high = np.floor(low * np.exp(random.uniform(0, 2, (200, 2))))
    boxes = np.stack([low[:, 0], high[:, 0], low[:, 1], high[:, 1]], axis=1)
    boxes = boxes[((boxes[:, [0, 2]] > 1) | (boxes[:, [1, 3]] == 1)).all(axis=1)]  # 1 is always a range by itself
    for restart in (0.1, 0.35, 0.7):
        bounds = box_bounds(boxes, restart, steps)
        for _ in range(4):
            inside = np.floor(random.uniform(boxes[:, [0, 2]], boxes[:, [1, 3]] + 1))
            _, phi = pair_bounds(inside[:, 0], inside[:, 1], restart, steps)
            assert (phi <= bounds * (1 + ROUNDING)).all()
