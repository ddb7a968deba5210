"""The two public facts about features that the bounds rest on: never below the truth."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gcon.errors import InputError
from gcon.learn.unit_rows import unit_rows
from gcon.mechanisms import influence
from gcon.mechanisms.influence import feature_extent

# Squares must not vanish: tiny features have their own test.
values = st.floats(-1e3, 1e3).map(lambda value: value if abs(value) > 1e-100 else 0.0)
matrices = arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(1, 5)), elements=values)


def brute_force(features):
    rows = [[float(value) for value in row] for row in features.tolist()]
    diameter = max((math.dist(first, second) for first in rows for second in rows), default=0.0)
    return diameter, max(math.hypot(*row) for row in rows)


@settings(max_examples=150, deadline=None)
@given(matrix=matrices)
def test_exact_against_brute_force(matrix):
    extent = feature_extent(torch.from_numpy(matrix))
    diameter, longest = brute_force(matrix)
    assert extent.diameter >= diameter
    assert extent.diameter <= math.sqrt(diameter**2 + 2e-12 * longest**2) * (1 + 1e-8)
    assert extent.longest_row == pytest.approx(longest, rel=1e-12)


@settings(max_examples=150, deadline=None)
@given(matrix=matrices, positive=st.booleans())
def test_the_bound_for_many_rows_is_never_below_the_truth(matrix, positive):
    features = torch.from_numpy(np.abs(matrix) if positive else matrix)
    bound = feature_extent(features, exact_up_to=0)
    diameter, longest = brute_force(features)
    assert bound.diameter >= diameter
    assert bound.diameter <= 2 * longest * (1 + 1e-8)
    if positive:
        assert bound.diameter <= math.sqrt(2) * longest * (1 + 1e-8)
    assert bound.longest_row == feature_extent(features).longest_row


@pytest.mark.parametrize("pair", [(0, 1499), (10, 20), (1023, 1024), (1100, 1400), (3, 1030)])
def test_the_farthest_pair_is_found_wherever_it_is(pair):
    features = torch.randn(1500, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    features[pair[0]], features[pair[1]] = 40.0, -40.0
    assert feature_extent(features).diameter == pytest.approx(80 * math.sqrt(3), rel=1e-8)


def test_isolated_extremes():
    assert feature_extent(torch.zeros(4, 3)).longest_row == 0
    assert feature_extent(torch.zeros(4, 3)).diameter == 0
    assert feature_extent(torch.ones(1, 3)).diameter < 1e-6
    opposite = feature_extent(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]))
    assert opposite.diameter == pytest.approx(2.0, rel=1e-8)
    assert opposite.longest_row == 1.0


@pytest.mark.parametrize("exact_up_to", [0, 10])
@pytest.mark.parametrize("size", [1e-160, 1e-185])
def test_tiny_features_still_differ(exact_up_to, size):
    # A diameter of zero says that no edge matters: such a release would be free and without noise.
    extent = feature_extent(torch.tensor([[size, 0.0], [0.0, 0.0]], dtype=torch.float64), exact_up_to=exact_up_to)
    assert extent.diameter >= size
    assert extent.longest_row >= size


@pytest.mark.parametrize("exact_up_to", [0, 10])
@pytest.mark.parametrize("size", [1e160, 1e300])
def test_huge_features_are_not_measured_as_small(exact_up_to, size):
    extent = feature_extent(torch.tensor([[size, 0.0], [0.0, size]], dtype=torch.float64), exact_up_to=exact_up_to)
    assert not extent.diameter < size


def test_unit_rows_count_as_length_one():
    rows = unit_rows(torch.randn(300, 20, generator=torch.Generator().manual_seed(0)))
    assert feature_extent(rows).longest_row < 1  # room for the rounding of walks
    rows = rows / torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    assert feature_extent(rows).longest_row <= 1
    assert feature_extent(rows * (1 + 1e-11)).longest_row > 1


def test_narrow_features_are_measured_wide():
    features = torch.randn(50, 4, generator=torch.Generator().manual_seed(0))
    assert feature_extent(features) == feature_extent(features.double())


@pytest.mark.parametrize("exact_up_to", [0, 100])
def test_the_smallest_whole_numbers_are_no_zeros(exact_up_to):
    """In eight bits the opposite of -128 is -128."""
    extent = feature_extent(torch.tensor([[-128], [0]], dtype=torch.int8), exact_up_to=exact_up_to)
    assert extent.longest_row == 128
    assert extent.diameter >= 128


def test_the_features_are_left_alone():
    features = torch.randn(50, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    before = features.clone()
    feature_extent(features)
    feature_extent(features, exact_up_to=0)
    assert torch.equal(features, before)


@pytest.mark.parametrize("exact_up_to", [0, 10])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_features_that_are_not_numbers_have_no_extent(value, exact_up_to):
    with pytest.raises(InputError, match="finite"):
        feature_extent(torch.tensor([[1.0, value], [0.0, 1.0]]), exact_up_to=exact_up_to)


# --- the memory -------------------------------------------------------------------------------------------------------


def test_the_same_bytes_in_another_shape_are_others(monkeypatch):
    monkeypatch.setattr(influence, "_EXTENTS", {})
    numbers = torch.tensor([0.0, 3.0, 0.0, 4.0, 0.0, 0.0], dtype=torch.float64)
    for shape, diameter, longest in (((3, 2), 4.0, 4.0), ((2, 3), 5.0, 4.0), ((1, 6), 0.0, 5.0), ((6, 1), 4.0, 4.0)):
        extent = feature_extent(numbers.reshape(shape))
        assert extent.diameter == pytest.approx(diameter, abs=1e-6)
        assert extent.longest_row == pytest.approx(longest)


def test_another_thread_may_clear_the_memory_at_any_time(monkeypatch):
    class Forgetful(dict):
        def __setitem__(self, key, value):
            """Cleared as soon as it is written."""

        def __contains__(self, key):
            return False

    features = torch.tensor([[1.0], [-1.0]])
    monkeypatch.setattr(influence, "_EXTENTS", Forgetful())
    assert feature_extent(features).diameter == pytest.approx(2.0)
