"""Which argument bounds a walk, with which value, and which blocks go without noise."""

import math

import pytest
import torch

from gcon.edges.edge_list import public_edges
from gcon.edges.schemes import Schemes
from gcon.mechanisms.gaussian_release import gaussian_plan
from gcon.mechanisms.influence import FeatureExtent
from gcon.privacy.randomness import SystemRandomness
from gcon_lab.mechanisms.class_sum_bounds import class_sum_influence
from gcon_lab.mechanisms.class_sums import ClassSums
from gcon_lab.mechanisms.walk_moments import WalkMoments
from gcon_lab.mechanisms.walks import walk_bounds

SIZE, WIDTH = 8, 3
ROWS = torch.randn(SIZE, WIDTH, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
TARGETS = torch.eye(2, dtype=torch.float64)[torch.arange(SIZE) % 2]
EDGES = public_edges(torch.triu_indices(SIZE, SIZE, 1)[:, ::2], SIZE)
PAIR = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)


def slightly_above(value):
    return pytest.approx(value * (1 + 4e-9), rel=5e-9)


@pytest.mark.parametrize("size", [1.0, 1e-3, 1e-20])
@pytest.mark.parametrize("steps", [(0, 2), (2, 0, math.inf), (1, 2)])
def test_every_block_with_steps_gets_noise_however_small_its_bound(size, steps):
    schemes = Schemes(restart=0.5, steps=steps)
    free = [count == 0 for count in steps for _ in range(WIDTH)]
    walks, sums = WalkMoments(size * ROWS, schemes), ClassSums(size * ROWS, TARGETS, schemes)
    for statistic, across in ((walks, 0), (sums, 1)):
        said = statistic.edge_free
        if any(free):
            assert said.squeeze(across).tolist() == free
        else:
            assert said is None
        noisy = gaussian_plan(1.0, 1e-5, method="test").noisy(statistic, share=1.0).apply(EDGES, SystemRandomness())
        same = noisy.value == statistic.of(EDGES)
        assert same.all(dim=across).tolist() == free
        assert same.any(dim=across).tolist() == free  # off the lattice: a noisy entry equals none


def test_weights_count_by_their_sum_and_not_by_their_length():
    """Rows [0.5, 0.5] have sum 1 and length 0.71."""
    sums = ClassSums(PAIR, torch.full((2, 2), 0.5), Schemes(restart=0.8, steps=(2,)))
    assert sums.sensitivity == slightly_above(2 * 0.2 / math.sqrt(2))
    twice = ClassSums(PAIR, torch.full((2, 2), 1.0), Schemes(restart=0.8, steps=(2,)))
    assert twice.sensitivity == slightly_above(2 * 2 * 0.2 / math.sqrt(2))


def test_one_step_with_a_clip_has_the_simple_bound():
    """Theorem G, which would give 0.7 here, is proven for the transition that is not clipped."""
    signed = torch.tensor([[1.0, 0.0], [0.0, -1.0]], dtype=torch.float64)
    (bound,) = walk_bounds(signed, signed, Schemes(restart=0.3, steps=(1,), clip=0.45))
    assert bound.reason == "influence, simple"
    assert bound.value == slightly_above(math.sqrt(2) * 2 * 0.45 * 0.7)
    (bound,) = walk_bounds(signed, signed, Schemes(restart=0.3, steps=(1,)))
    assert bound.reason == "one step"
    assert bound.value == slightly_above(0.7)


def test_class_sums_with_a_clip_have_the_simple_bound():
    """Phi, which would give 0.28 here, is proven for the transition that is not clipped."""
    (found,) = class_sum_influence(Schemes(restart=0.8, steps=(2,), clip=0.45), FeatureExtent(2.0, 1.0), num_nodes=9)
    assert found.bounds == ("simple",)
    assert found.value == pytest.approx(2 * 2 * 0.45 * (0.2 + 0.04), rel=1e-12)


@pytest.mark.parametrize("num_nodes", [2, 1000, 10**6])
def test_phi_in_the_limit_includes_the_truncation(num_nodes):
    schemes = Schemes(restart=0.8, steps=(math.inf,))
    (found,) = class_sum_influence(schemes, FeatureExtent(2.0, 1.0), num_nodes=num_nodes)
    truncation = 2 * num_nodes * 0.2 ** schemes.limit_iterations(num_nodes)
    assert truncation > 1e-12
    assert found.bounds == ("phi",)
    assert found.value - 2 * 0.2 / math.sqrt(2) == pytest.approx(2 * truncation, rel=1e-3)
