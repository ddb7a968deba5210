"""The numbers of the specification: multipliers, class sums, bilinear sums, edge moments.

Formulas agree to 1e-9. What a statistic itself says is larger by its rounding allowances, a few 1e-9, never smaller.
"""

import math

import pytest
import torch
from tests.proofs.sharp import searched_bounds

from gcon.edges.edge_list import public_edges
from gcon.edges.schemes import Schemes
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.gaussian_curve import gaussian_multiplier
from gcon.mechanisms.gaussian_release import gaussian_plan
from gcon.mechanisms.influence import FeatureExtent, sharp_influence
from gcon.privacy.randomness import SystemRandomness
from gcon_lab.mechanisms.bilinear_sums import BilinearSums, bilinear_bound
from gcon_lab.mechanisms.class_sum_bounds import PROVEN_CLASS_SUM_CELLS, class_sum_constant, class_sum_influence
from gcon_lab.mechanisms.class_sums import ClassSums

ROOT = math.sqrt(2)
NO_EDGES = torch.empty(2, 0, dtype=torch.int64)


def close(value):
    return pytest.approx(value, rel=1e-9)


def barely_above(value):
    """Allowances make a sensitivity larger by a few 1e-9, never smaller."""
    return pytest.approx(value * (1 + 4e-9), rel=5e-9)


def pair(distance):
    """Two one-column features at this distance, around the origin."""
    return torch.tensor([[distance / 2], [-distance / 2]], dtype=torch.float64)


def deviation(statistic, epsilon, delta, share=1.0):
    """The noise that a release of this statistic says it has."""
    mechanism = gaussian_plan(epsilon, delta, method="test").noisy(statistic, share=share)
    return mechanism.apply(public_edges(NO_EDGES, 2), SystemRandomness()).standard_deviation


MULTIPLIERS = {
    0.1: (25.90178563, 30.44151889, 30.74956613, 36.30469043),
    0.5: (6.146676555, 6.975306601, 7.031826676, 8.057618481),
    1.0: (3.306503490, 3.703488050, 3.730631635, 4.224678889),
    2.0: (1.791725004, 1.980848708, 1.993812446, 2.230476271),
    3.0: (1.260128812, 1.382212828, 1.390593457, 1.543861418),
    4.0: (0.9857279575, 1.075025821, 1.081161850, 1.193518587),
}


@pytest.mark.parametrize("epsilon", MULTIPLIERS)
def test_multipliers(epsilon):
    for delta, expected in zip((1 / 16316, 1 / 88648, 1e-5, 1e-6), MULTIPLIERS[epsilon], strict=True):
        assert gaussian_multiplier(epsilon, delta) == close(expected)


CLASS_SUMS = [  # restart, steps, phi as printed, diameter, epsilon, delta, g, sensitivity, sigma
    (0.8, math.inf, 0.2 / ROOT, 2, 1, 1 / 16316, 3.30650349, 0.2828427125, 0.935220416),
    (0.8, math.inf, 0.2 / ROOT, ROOT, 0.5, 1 / 16316, 6.146676555, 0.2, 1.229335311),
    (0.6, math.inf, 0.4 / ROOT, 2, 2, 1 / 88648, 1.980848708, 0.5656854249, 1.120537243),
    (0, 1, 1 / ROOT, 2, 1, 1e-5, 3.730631635, 1.414213562, 5.275909854),
    (0.2, math.inf, 1.616244, 2, 4, 1e-5, 1.08116185, 3.232488, 3.494842705),
    (0.4, math.inf, 0.527237, ROOT, 1, 1 / 9104, 3.162206049, 0.745625716, 2.35782215),
    (0.8, 2, 0.2 / ROOT, 1.5, 0.5, 1e-6, 8.057618481, 0.2121320344, 1.709279),
]


@pytest.mark.parametrize(
    ("restart", "steps", "phi", "diameter", "epsilon", "delta", "multiplier", "bound", "sigma"), CLASS_SUMS
)
def test_class_sums(restart, steps, phi, diameter, epsilon, delta, multiplier, bound, sigma):
    assert gaussian_multiplier(epsilon, delta) == close(multiplier)
    assert phi * diameter == close(bound)
    assert gaussian_multiplier(epsilon, delta) * phi * diameter == close(sigma)
    # The constant in use is the printed one, or it is larger in its last printed digit (0.6 and 0.2 in the limit).
    used = class_sum_constant(restart, steps)
    assert phi <= used * (1 + 1e-15) <= phi + 1.1e-6
    statistic = ClassSums(pair(diameter), torch.eye(2), Schemes(restart=restart, steps=(steps,)))
    assert statistic.sensitivity == barely_above(used * diameter)
    assert statistic.sensitivity >= used * diameter
    assert deviation(statistic, epsilon, delta) == barely_above(sigma * used / phi)


BILINEAR = [  # self weight, rounds, spread, diameter of P, epsilon, delta, g, sensitivity, sigma
    (1, 1, 2, ROOT, 1, 1e-5, 3.730631635, 1.414213562, 5.275909854),
    (4, 2, 2, ROOT, 0.5, 1 / 16316, 6.146676555, 0.5656854249, 4.917341244),
    (2, 4, 1.5, ROOT, 4, 1 / 88648, 1.075025821, 0.7071067812, 1.520316096),
    (8, 2, 1.2, 0.9, 2, 1e-6, 2.230476271, 0.12, 0.3785243752),
]


@pytest.mark.parametrize(
    ("weight", "rounds", "spread", "width", "epsilon", "delta", "multiplier", "bound", "sigma"), BILINEAR
)
def test_bilinear_sums(weight, rounds, spread, width, epsilon, delta, multiplier, bound, sigma):
    extents = FeatureExtent(spread, 0.0), FeatureExtent(width, width)
    assert gaussian_multiplier(epsilon, delta) == close(multiplier)
    assert bilinear_bound(*extents, weight) == close(bound)
    assert math.sqrt(rounds) * gaussian_multiplier(epsilon, delta) * bilinear_bound(*extents, weight) == close(sigma)
    statistic = BilinearSums(pair(spread), torch.eye(2, dtype=torch.float64) * width / ROOT, weight)
    # The features have 22 bits: what is measured are the rounded ones.
    assert statistic.sensitivity == pytest.approx(bound, rel=2**-21)
    assert deviation(statistic, epsilon, delta, share=1 / rounds) == pytest.approx(sigma, rel=2**-21)


def test_bilinear_sums_of_classes():
    for weight in (1.0, 2.0, 8.0):
        assert BilinearSums(torch.eye(5), torch.eye(5), weight).sensitivity == barely_above(2 / (1 + weight))


EDGE_MOMENTS = [  # length, epsilon, delta, g, off the diagonal, on the diagonal
    (1, 1, 1 / 16316, 3.30650349, 4.676102080, 6.61300698),
    (1, 0.5, 1e-5, 7.031826676, 9.944504653, 14.06365335),
    (0.5, 2, 1e-6, 2.230476271, 0.7885924482, 1.115238136),
]


@pytest.mark.parametrize(("length", "epsilon", "delta", "multiplier", "off", "diagonal"), EDGE_MOMENTS)
def test_edge_moments(length, epsilon, delta, multiplier, off, diagonal):
    assert gaussian_multiplier(epsilon, delta) == close(multiplier)
    assert gaussian_multiplier(epsilon, delta) * 2 * length**2 == close(diagonal)
    assert diagonal / ROOT == close(off)
    assert deviation(EdgeMoments(torch.full((2, 1), float(length))), epsilon, delta) == barely_above(diagonal)


@pytest.mark.parametrize("cell", PROVEN_CLASS_SUM_CELLS)
def test_the_table_of_phi_is_what_the_algorithm_finds(cell):
    assert PROVEN_CLASS_SUM_CELLS[cell] <= sharp_influence(*cell)
    if cell[1] != 10:  # ten steps take a second each; the cover proves them
        assert searched_bounds(*cell, dense_degrees=30)[1] == pytest.approx(PROVEN_CLASS_SUM_CELLS[cell], abs=3e-6)


def test_where_phi_is_not_proven_the_edge_influence_takes_its_place():
    extent = FeatureExtent(2.0, 1.0)
    for restart, steps, clip, expected in (
        (0.85, 4, 0.5, 0.3),  # psi in closed form
        (0.3, 4, 0.5, 2 * sum(0.7**t for t in range(1, 5))),  # simple
        (0.8, 2, 0.25, 0.48 / 2),  # clipped
        (0.0, 3, 0.5, 6.0),
    ):
        (influence,) = class_sum_influence(Schemes(restart=restart, steps=(steps,), clip=clip), extent, num_nodes=9)
        assert influence.value == pytest.approx(expected)
        assert influence.bounds != ("phi",)
    several = class_sum_influence(Schemes(restart=0.8, steps=(0, 1, math.inf)), extent, num_nodes=9)
    assert [influence.value for influence in several] == pytest.approx([0.0, 0.4 / ROOT, 0.4 / ROOT])
