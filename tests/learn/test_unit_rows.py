"""Rows of length one, never longer; zero rows stay zero; the centre comes off first."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gcon.learn.unit_rows import unit_rows

# Rows whose squares vanish or overflow have their own test.
values = st.floats(-1e100, 1e100).map(lambda value: value if abs(value) > 1e-100 else 0.0)
matrices = arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 9)), elements=values)


def lengths(rows):
    return torch.linalg.vector_norm(rows, dim=1)


def test_rows_have_length_one():
    rows = unit_rows(torch.randn(50, 7, generator=torch.Generator().manual_seed(0)))
    assert rows.dtype == torch.float64
    torch.testing.assert_close(lengths(rows), torch.ones(50, dtype=torch.float64), rtol=0, atol=1e-10)


def test_directions_stay():
    given_rows = torch.tensor([[3.0, 4.0], [-6.0, 8.0]], dtype=torch.float64)
    expected = torch.tensor([[0.6, 0.8], [-0.6, 0.8]], dtype=torch.float64)
    torch.testing.assert_close(unit_rows(given_rows), expected, rtol=0, atol=1e-10)


def test_zero_rows_stay_zero():
    rows = unit_rows(torch.tensor([[0.0, 0.0], [1.0, 1.0], [0.0, -0.0]]))
    assert torch.equal(rows[[0, 2]], torch.zeros(2, 2, dtype=torch.float64))


def test_a_row_at_the_centre_becomes_zero():
    rows = unit_rows(torch.tensor([[2.0, 3.0], [2.0, 4.0]]), torch.tensor([2.0, 3.0], dtype=torch.float64))
    torch.testing.assert_close(rows, torch.tensor([[0.0, 0.0], [0.0, 1.0]], dtype=torch.float64), rtol=0, atol=1e-10)


def test_the_centre_comes_off_before_scaling():
    centre = torch.tensor([1.0, 0.0], dtype=torch.float64)
    rows = unit_rows(torch.tensor([[1.0, 1.0], [3.0, 0.0]]), centre)
    torch.testing.assert_close(rows, torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64), rtol=0, atol=1e-10)


def exactly_at_most_one(rows):
    """The sum of squares in whole numbers: no rounding of this check can hide a row that is too long."""
    for row in rows.tolist():
        ratios = [value.as_integer_ratio() for value in row]
        scale = max(denominator for _, denominator in ratios)
        if sum((numerator * (scale // denominator)) ** 2 for numerator, denominator in ratios) > scale**2:
            return False
    return True


@settings(max_examples=200, deadline=None)
@given(matrix=matrices)
def test_no_row_is_ever_longer_than_one(matrix):
    assert exactly_at_most_one(unit_rows(torch.from_numpy(matrix)))


def test_long_rows_are_not_longer_than_one():
    rows = unit_rows(torch.randn(20, 4000, generator=torch.Generator().manual_seed(1)))
    assert exactly_at_most_one(rows)


@pytest.mark.parametrize("size", [2.6e-162, 1e-155, 1e155, 1e200, 1e300])
def test_extreme_rows_are_not_longer_than_one(size):
    assert exactly_at_most_one(unit_rows(torch.full((1, 8), size, dtype=torch.float64)))


def test_the_input_is_left_alone():
    rows = torch.tensor([[3.0, 4.0]], dtype=torch.float64)
    unit_rows(rows, torch.ones(2, dtype=torch.float64))
    assert rows.tolist() == [[3.0, 4.0]]
