"""The noise that comes out of a Gaussian release: its law at the right scale only, its symmetry, its independence.

Everything is drawn from the operating system; each test has a false-alarm probability below 1e-6.
"""

import math

import networkx
import numpy as np
import pytest
import scipy.stats
import torch

from gcon.edges.edge_list import public_edges
from gcon.edges.schemes import Schemes
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.gaussian_release import gaussian_plan
from gcon.privacy.randomness import SystemRandomness
from gcon_lab.mechanisms.bilinear_sums import BilinearSums
from gcon_lab.mechanisms.class_sums import ClassSums
from gcon_lab.mechanisms.walk_moments import WalkMoments

LEVEL = 1e-6
SIZE, WIDTH, DRAWS = 60, 60, 4
EDGES = public_edges(torch.tensor(list(networkx.gnp_random_graph(SIZE, 0.1, seed=1).edges)).T, SIZE)
ROWS = torch.randn(SIZE, WIDTH, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
SCHEMES = Schemes(restart=0.5, steps=(2,))
STATISTICS = {
    "walk moments": lambda: WalkMoments(ROWS, SCHEMES),
    "class sums": lambda: ClassSums(ROWS, torch.eye(SIZE), SCHEMES),
    "bilinear sums": lambda: BilinearSums(ROWS, ROWS, 3.0),
}


def noise_of(statistic, draws):
    """Noise in units of the sensitivity times g, so that the right standard deviation is 1."""
    release, randomness = gaussian_plan(1.0, 1e-5, method="test").noisy(statistic, share=1 / draws), SystemRandomness()
    out = [release.apply(EDGES, randomness) for _ in range(draws)]
    exact = statistic.of(EDGES)
    expected = 3.730631635 * statistic.sensitivity * math.sqrt(draws)
    return torch.stack([(noisy.value - exact) / expected for noisy in out]).numpy()


def check_scale(sample, deviation, level=LEVEL):
    """Accepted at this standard deviation, rejected at two thirds and at three halves of it."""
    assert scipy.stats.kstest(sample, scipy.stats.norm(scale=deviation).cdf).pvalue > level
    for factor in (2 / 3, 3 / 2):
        assert scipy.stats.kstest(sample, scipy.stats.norm(scale=factor * deviation).cdf).pvalue < LEVEL


@pytest.mark.parametrize("statistic", STATISTICS.values(), ids=STATISTICS)
def test_plain_noise(statistic):
    noise = noise_of(statistic(), DRAWS)
    check_scale(noise.ravel(), 1.0, LEVEL / 3)
    # Draws, rows and columns are independent.
    assert scipy.stats.spearmanr(noise[0].ravel(), noise[1].ravel()).pvalue > LEVEL / 3
    assert (
        scipy.stats.spearmanr(noise[0].ravel(), noise[0].T.ravel()).pvalue > LEVEL / 1e3
    )  # the diagonal counts double
    assert scipy.stats.spearmanr(noise[:, :-1].ravel(), noise[:, 1:].ravel()).pvalue > LEVEL / 3


@pytest.fixture(scope="module")
def symmetric():
    return noise_of(EdgeMoments(ROWS), 60)


def test_symmetric_noise_on_and_off_the_diagonal(symmetric):
    assert np.array_equal(symmetric, symmetric.transpose(0, 2, 1))
    above = np.triu_indices(WIDTH, 1)
    check_scale(symmetric[:, *above].ravel(), 1 / math.sqrt(2), LEVEL / 2)
    check_scale(np.diagonal(symmetric, axis1=1, axis2=2).ravel(), 1.0, LEVEL / 2)


def test_symmetric_noise_is_isotropic(symmetric):
    """Along every direction of length 1 in the space of symmetric matrices the standard deviation is 1."""
    random = np.random.default_rng(5)
    projections = []
    for noise in symmetric:
        turn = np.linalg.qr(random.normal(size=(WIDTH, WIDTH)))[0]
        turned = turn.T @ noise @ turn
        # v v' and (v w' + w v') / sqrt 2 for orthonormal v, w: orthogonal directions of length 1.
        projections += [*np.diagonal(turned), *(math.sqrt(2) * turned[np.triu_indices(WIDTH, 1)])]
    check_scale(np.array(projections), 1.0, LEVEL / 2)
    squares, freedom = (symmetric**2).sum(axis=(1, 2)), WIDTH * (WIDTH + 1) / 2
    assert scipy.stats.kstest(squares, scipy.stats.chi2(freedom).cdf).pvalue > LEVEL / 2
    for factor in (2 / 3, 3 / 2):
        assert (np.abs(squares / freedom - factor**2) > 0.2).all()  # a relative spread of 0.033 around 1


def test_releases_draw_independent_noise(symmetric):
    above = np.triu_indices(WIDTH)
    first, second = symmetric[0][above], symmetric[1][above]
    assert scipy.stats.spearmanr(first, second).pvalue > LEVEL
    assert np.mean(first == second) < 0.01
