"""Theorem 1 of docs/proofs/dp-sgd.md: no four vectors of length at most tau are easier to tell apart than the pair.

The hockey-stick divergence of every choice is integrated on a grid, here, without any function of the package. All
draws are from fixed seeds: nothing here fails by chance.
"""

import itertools
import math

import numpy as np
import pytest
import scipy.optimize
from scipy.special import ndtr

from gcon_lab.mechanisms.replaced_pair import replaced_pair_delta

SETTINGS = list(itertools.product((0.05, 0.3, 0.7, 1.0), (0.5, 1.0, 3.0)))  # sampling, sigma / tau
ALPHAS = (0.2, 0.7, 1.0, math.exp(0.3), math.e, math.exp(2.5))


def grid(dimension, sigma, spacing):
    """Points (m, dimension) that cover all mass but a few 1e-12, and the volume of a cell."""
    width = spacing * sigma
    line = np.arange(-(2 + 7 * sigma), 2 + 7 * sigma + width, width)
    return np.stack(np.meshgrid(*[line] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension), width**dimension


def mixture(vectors, sampling, sigma, points):
    """Density of sum over S of p_S N(sum of vectors in S, sigma^2 I)."""
    first, second = vectors
    parts = (
        ((1 - sampling) ** 2, 0 * first),
        (sampling * (1 - sampling), first),
        (sampling * (1 - sampling), second),
        (sampling**2, first + second),
    )
    scale = (sigma * math.sqrt(2 * math.pi)) ** -points.shape[1]
    distances = ((weight, ((points - mean) ** 2).sum(axis=1)) for weight, mean in parts if weight > 0)
    return sum(scale * weight * np.exp(-distance / (2 * sigma**2)) for weight, distance in distances)


def divergences(before, after, sampling, sigma, points, cell):
    """H_alpha for all alphas, in both directions."""
    p, q = (mixture(vectors, sampling, sigma, points) for vectors in (before, after))
    both = ((p, q), (q, p))
    return np.array([cell * np.clip(one - alpha * other, 0, None).sum() for alpha in ALPHAS for one, other in both])


def exact_pair(sampling, sigma):
    """H_alpha of the pair for all alphas (twice each): the loss is monotone, so the best event is a half-line."""
    weights = ((1 - sampling) ** 2, 2 * sampling * (1 - sampling), sampling**2)

    def density(point, sign):
        return sum(w * math.exp(-((point - sign * k) ** 2) / (2 * sigma**2)) for k, w in enumerate(weights))

    def found(alpha):
        span = 2 + 30 * sigma
        cut = scipy.optimize.brentq(
            lambda x: math.log(density(x, 1)) - math.log(density(x, -1)) - math.log(alpha), -span, span, xtol=1e-13
        )
        above = [sum(w * ndtr((sign * k - cut) / sigma) for k, w in enumerate(weights)) for sign in (1, -1)]
        return float(above[0] - alpha * above[1])

    return np.repeat([found(alpha) for alpha in ALPHAS], 2)


def draw(rng, dimension):
    """Four vectors in the unit ball: anywhere, on the sphere, near the worst choice, or with an end that is not trained on."""
    vectors = rng.standard_normal((4, dimension))
    kind = rng.integers(5)
    if kind == 1:
        vectors *= rng.random((4, 1)) / np.linalg.norm(vectors, axis=1, keepdims=True)
    elif kind == 2:
        axis = np.eye(dimension)[0]
        vectors = np.stack([axis, axis, -axis, -axis]) + 0.1 * rng.random() * vectors
    elif kind == 3:
        vectors[[1, 3]] = 0
    elif kind == 4:
        vectors[2:] = -vectors[:2]
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1 if kind in (1, 2) else 1e-300)
    return vectors[:2], vectors[2:]


@pytest.mark.parametrize(("dimension", "spacing", "draws", "tolerance"), [(1, 0.002, 120, 1e-6), (2, 0.08, 8, 2e-4)])
def test_no_choice_of_vectors_comes_above_the_pair(dimension, spacing, draws, tolerance):
    rng = np.random.default_rng(dimension)
    closest = math.inf
    for sampling, sigma in SETTINGS:
        points, cell = grid(dimension, sigma, spacing)
        bound = exact_pair(sampling, sigma)
        for _ in range(draws):
            found = divergences(*draw(rng, dimension), sampling, sigma, points, cell)
            assert (found <= bound + tolerance).all()
            closest = min(closest, float((bound - found).max()))
    assert closest < 0.05  # the draws do come near


def test_no_choice_in_three_dimensions_comes_above_the_pair():
    rng = np.random.default_rng(3)
    for sampling, sigma in ((0.3, 1.0), (0.7, 0.7)):
        points, cell = grid(3, sigma, 0.3)
        bound = exact_pair(sampling, sigma)
        for _ in range(8):
            assert (divergences(*draw(rng, 3), sampling, sigma, points, cell) <= bound + 2e-3).all()


def test_an_optimiser_finds_nothing_above_the_pair():
    """Climb from random starts, in one and in two dimensions, for one alpha at a time."""
    rng = np.random.default_rng(4)
    for dimension, spacing, tolerance in ((1, 0.01, 1e-5), (2, 0.25, 2e-3)):
        for sampling, sigma, place in ((0.3, 1.0, 8), (0.7, 0.6, 0), (0.5, 2.0, 4)):
            points, cell = grid(dimension, sigma, spacing)

            def climb(flat, *, shape=(4, dimension), sampling=sampling, sigma=sigma, place=place, where=(points, cell)):
                vectors = flat.reshape(shape)
                vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1)
                return -divergences(vectors[:2], vectors[2:], sampling, sigma, *where)[place]

            start = rng.standard_normal(4 * dimension)
            best = scipy.optimize.minimize(climb, start, method="Nelder-Mead", options={"maxfev": 120}).fun
            assert -best <= exact_pair(sampling, sigma)[place] + tolerance


@pytest.mark.parametrize(("dimension", "spacing", "tolerance"), [(1, 0.002, 1e-6), (2, 0.05, 2e-4)])
def test_opposite_vectors_attain_it(dimension, spacing, tolerance):
    axis = np.eye(dimension)[0]
    for sampling, sigma in SETTINGS:
        points, cell = grid(dimension, sigma, spacing)
        before, after = np.stack([axis, axis]), np.stack([-axis, -axis])
        found = divergences(before, after, sampling, sigma, points, cell)
        assert found == pytest.approx(exact_pair(sampling, sigma), abs=tolerance)


def test_the_accountant_starts_from_this_pair():
    """One step: the accountant's delta is the pair's own, up to its rounding up."""
    for sampling, sigma in SETTINGS:
        exact = exact_pair(sampling, sigma)[::2]
        for alpha, delta in zip(ALPHAS, exact, strict=True):
            if alpha >= 1:
                found = replaced_pair_delta(sampling, sigma, 1, math.log(alpha))
                assert delta - 1e-13 <= found <= delta * 1.003 + 1e-12


def test_half_the_reach_would_be_broken():
    """The test has teeth: a pair with means k tau / 2 is exceeded."""
    axis = np.ones((1, 1))
    points, cell = grid(1, 1.0, 0.002)
    found = divergences(np.stack([axis[0]] * 2), np.stack([-axis[0]] * 2), 0.5, 1.0, points, cell)
    assert (found > exact_pair(0.5, 2.0) + 1e-3).any()
