"""The lattice that noisy numbers are rounded to: its spacing, exactness, and that rounding is to the nearest point."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gcon.mechanisms.samplers.lattice import lattice_spacing, to_lattice

SCALES = st.floats(1e-100, 1e100)


@given(SCALES)
def test_spacing_is_a_power_of_two_just_below_the_scale(scale):
    spacing = lattice_spacing(scale)
    assert math.frexp(spacing)[0] == 0.5
    assert scale / 8192 < spacing <= scale / 4096


@given(SCALES, st.floats(-(2.0**39), 2.0**39))
def test_nearest_point_exactly(scale, ratio):
    number, spacing = ratio * scale, lattice_spacing(scale)
    found = float(to_lattice(torch.tensor([number], dtype=torch.float64), scale))
    assert math.fmod(found, spacing) == 0
    assert abs(found - number) <= spacing / 2  # also exact: the two are close, or one of them is 0


def test_one_zero_and_ties_to_even():
    numbers = torch.tensor([-0.3, 0.3, -0.0, 0.5, 1.5, -2.5], dtype=torch.float64)
    found = to_lattice(numbers, 4096.0)
    assert found.tolist() == [0, 0, 0, 0, 2, -2]
    assert not bool(torch.signbit(found[:4]).any())
    assert numbers[0] == -0.3


@pytest.mark.parametrize("scale", [4096.0, 6.613, 2.0, 0.01])
def test_neighbouring_points_are_told_apart(scale):
    spacing = lattice_spacing(scale)
    points = torch.arange(-100_000, 100_000, dtype=torch.float64) * spacing
    assert torch.equal(to_lattice(points, scale), points)
    assert torch.equal(to_lattice(points + 0.49 * spacing, scale), points)
