"""Values of more digits than float64 has: the rest counts, to its last bit."""

from fractions import Fraction
from unittest import mock

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gcon.mechanisms.samplers import rounded
from gcon.mechanisms.samplers.rounded import rounded_noise
from gcon.privacy.randomness import SystemRandomness

halves = st.floats(-0.5, 0.5)


@pytest.mark.parametrize("rest", [2.0**-60, 2.0**-80, 1e-25])
def test_a_rest_far_below_the_last_bit_decides(rest):
    """Half-way between lattice points, with noise far below the rest: without its last bits every other one would be wrong."""
    values = torch.full((64,), 0.5, dtype=torch.float64)
    rests = torch.tensor([rest, -rest] * 32, dtype=torch.float64)
    found = rounded_noise(SystemRandomness(), values, scale=rest * 1e-6, spacing=1.0, rest=rests)
    assert found.tolist() == [1.0, 0.0] * 32


@pytest.mark.parametrize(
    ("value", "rest"), [(2.0**60, 1000.25), (-(2.0**70), -37.4), (2.0**120, 2.0**66 + 2.0**20), (3.0, 0.25)]
)
def test_a_rest_of_many_lattice_points(value, rest):
    values, rests = torch.full((5,), value, dtype=torch.float64), torch.full((5,), rest, dtype=torch.float64)
    found = rounded_noise(SystemRandomness(), values, scale=1e-6, spacing=1.0, rest=rests)
    assert found.tolist() == [float(round(Fraction(value) + Fraction(rest)))] * 5


@settings(max_examples=300, deadline=None, derandomize=True)
@given(first=halves, second=halves)
def test_value_and_rest_are_decided_exactly(first, second):
    """Here nothing is sure in float64, so all is decided with more digits: from two numbers that add to the real one."""
    value, rest = (torch.tensor([each], dtype=torch.float64) for each in (first, second))
    with mock.patch.object(rounded, "_ADDING", 1.0), mock.patch.object(rounded, "_decide", return_value=[0]) as decide:
        rounded_noise(SystemRandomness(), value, scale=1.0, spacing=1.0, rest=rest)
    ((total, tail, _),) = decide.call_args.args[2]
    assert Fraction(total) + Fraction(tail) == Fraction(first) + Fraction(second)
    assert abs(tail) <= 2.0**-53
