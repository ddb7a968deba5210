"""How far a step and a walk in whole numbers are from real numbers: against fractions, on graphs with every kind of degree."""

import math
from fractions import Fraction
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.edges.kernels.agreement import WALKS, expected_step, random_graph, star, state, step_of

from gcon.edges.edge_list import public_edges
from gcon.edges.fixed_point import (
    ENTRY_BITS,
    STATE_BITS,
    STEP_ERROR,
    Walk,
    column_units,
    real_numbers,
    whole_numbers,
)
from gcon.edges.kernels import multiply_numba
from gcon.edges.schemes import MOST_LIMIT_ITERATIONS, MOST_STEPS, Schemes, enumerate_steps, propagate
from gcon.errors import InputError

PROVEN = 2  # units a step: what docs/proofs/fixed-point-walks.md proves; STEP_ERROR is twice that


def exact_step(edges, current, origin, walk):
    """The same step in real numbers."""
    restart, rows = Fraction(walk.restart), []
    for node, degree in enumerate(edges.degrees.tolist()):
        weight = min(1 / (degree + Fraction(walk.self_weight)), Fraction(walk.clip))
        around = [sum(column) for column in zip(*(current[k] for k in edges.neighbours(node).tolist()), strict=True)]
        rows.append(
            [
                (1 - restart) * (weight * total + (1 - degree * weight) * own) + restart * back
                for total, own, back in zip(
                    around or [0] * len(current[node]), current[node], origin[node], strict=True
                )
            ]
        )
    return rows


def largest_error(found, exact):
    return max(
        abs(a - b) for one, other in zip(found.tolist(), exact, strict=True) for a, b in zip(one, other, strict=True)
    )


@settings(max_examples=150, deadline=None, derandomize=True)
@given(data=st.data())
def test_a_step_is_within_the_proven_error(data):
    num_nodes = data.draw(st.integers(1, 14))
    node = st.integers(0, num_nodes - 1)
    pairs = data.draw(st.lists(st.tuples(node, node), max_size=60))
    edges = public_edges(torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T, num_nodes)
    ends = st.sampled_from([2**50, -(2**50), 2**50 - 1, 1, 0])
    entry = st.one_of(ends, st.integers(-(2**50), 2**50))
    current, origin = (
        torch.tensor(data.draw(st.lists(entry, min_size=num_nodes, max_size=num_nodes)))[:, None] for _ in "ab"
    )
    walk = Walk(
        restart=data.draw(st.one_of(st.sampled_from([0.0, 1.0, 1e-20, 1 - 2.0**-53]), st.floats(0, 1))),
        clip=data.draw(st.one_of(st.just(0.5), st.floats(1e-12, 0.5))),
        self_weight=data.draw(st.one_of(st.just(1.0), st.floats(1, 1e6))),
    )
    found = expected_step(edges, current, origin, walk)
    assert largest_error(found, exact_step(edges, current.tolist(), origin.tolist(), walk)) <= PROVEN < STEP_ERROR


@pytest.mark.parametrize("walk", [*WALKS, Walk(clip=1e-5), Walk(self_weight=999_999.7)], ids=str)
@pytest.mark.parametrize("num_leaves", [3, 1000, pytest.param(9_000, marks=pytest.mark.slow)])
def test_nodes_with_very_many_neighbours(walk, num_leaves):
    """All entries at the end of the range and of one sign, so that the sum is as large as it can be; then of any sign."""
    edges = star(num_leaves)
    for current in (state(num_leaves + 1, 1, 0, bits=50, extreme=True), state(num_leaves + 1, 1, 1, bits=50)):
        found = step_of(multiply_numba, edges, current, current, walk)
        exact = exact_step(edges, current.tolist(), current.tolist(), walk)
        assert largest_error(found, exact) <= PROVEN


def test_the_error_is_real():
    """Rounding cannot be left out of the account: some steps are off by more than half a unit."""
    worst = 0
    for seed in range(40):
        edges, current = random_graph(30, 100, seed), state(30, 2, seed, bits=50)
        found = expected_step(edges, current, current, WALKS[1])
        worst = max(worst, largest_error(found, exact_step(edges, current.tolist(), current.tolist(), WALKS[1])))
    assert worst > 0.5


@pytest.mark.parametrize(
    ("restart", "steps", "clip"), [(0.0, 12, 0.5), (0.1, 12, 0.5), (0.5, 40, 0.5), (0.9, 25, 0.5), (0.2, 10, 0.05)]
)
def test_a_walk_is_within_the_sum_of_its_steps(restart, steps, clip):
    edges = random_graph(25, 70, 3)
    features = torch.randn(25, 2, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    schemes = Schemes(restart=restart, steps=(steps,), clip=clip)
    units = column_units(features)
    origin = whole_numbers(features, units)
    exact, first = origin.tolist(), origin.tolist()
    for step, found in enumerate_steps(edges, features, units, schemes):
        if step:
            exact = exact_step(edges, exact, first, Walk(restart=restart, clip=clip))
        allowed = STEP_ERROR * min(step, 1 / restart if restart else math.inf)
        assert largest_error(found, exact) <= allowed
    assert step == steps
    assert schemes.roundings(25) == min(steps, 1 / restart if restart else math.inf)


def test_states_stay_in_range():
    """A thousand steps of the largest entries there are, upwards and downwards: means do not grow, rounding adds little."""
    edges = random_graph(40, 200, 5)
    for sign in (1.0, -1.0):
        features = sign * torch.full((40, 1), 1 - 2.0**-53, dtype=torch.float64)
        assert int(whole_numbers(features, column_units(features)).abs().max()) == 2**ENTRY_BITS
        for restart in (0.0, 0.3):
            for _, found in enumerate_steps(
                edges, features, column_units(features), Schemes(restart=restart, steps=(MOST_STEPS,))
            ):
                largest = int(found.abs().max())
            assert largest <= 2**ENTRY_BITS + STEP_ERROR * MOST_STEPS
    # The longest walks: all restarts for which infinitely many steps are allowed, up to 2^32 nodes.
    assert 2**ENTRY_BITS + STEP_ERROR * 3 * MOST_LIMIT_ITERATIONS < 2**STATE_BITS


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    numbers=st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=6),
    others=st.lists(st.floats(-1e-290, 1e-290), min_size=6, max_size=6),
)
def test_features_are_rounded_to_the_nearest_unit(numbers, others):
    features = torch.tensor([numbers, others[: len(numbers)]], dtype=torch.float64).T.contiguous()
    units = column_units(features)
    whole = whole_numbers(features, units)
    assert int(whole.abs().max()) <= 2**ENTRY_BITS
    back = real_numbers(whole, units)
    for one, other in zip(features.tolist(), back.tolist(), strict=True):
        for number, rounded, unit in zip(one, other, units.tolist(), strict=True):
            assert math.frexp(unit)[0] == 0.5  # a power of two
            assert abs(Fraction(number) - Fraction(rounded)) <= Fraction(unit) / 2


def test_units_of_columns_of_zeros_and_of_tiny_columns_are_tiny():
    units = column_units(torch.tensor([[1.0, 0.0, 1e-300], [0.5, 0.0, 0.0]], dtype=torch.float64))
    assert units[0] == 2.0**-48
    assert 0 < float(units[1]) == float(units[2]) <= 2.0**-240
    small = column_units(torch.tensor([[1e-30, 0.0]], dtype=torch.float64))
    assert float(small.norm()) < 1e-40  # a column of zeros costs nothing beside small ones


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.float16, torch.bfloat16, torch.float32])
def test_other_types_are_read_as_the_numbers_that_they_are(dtype):
    features = torch.tensor([[-128.0], [3.0]]).to(dtype)
    edges = public_edges(torch.tensor([[0], [1]]), 2)
    schemes = Schemes(restart=0.3, steps=(0, 2))
    assert torch.equal(propagate(edges, features, schemes), propagate(edges, features.double(), schemes))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_has_no_whole_number(bad):
    features = torch.tensor([[1.0, 2.0], [bad, 0.0]])
    with pytest.raises(InputError, match="finite"):
        propagate(public_edges(torch.tensor([[0], [1]]), 2), features, Schemes(restart=0.3, steps=(1,)))


def test_where_features_lie_in_memory_does_not_matter():
    edges = random_graph(20, 50, 6)
    features = torch.randn(7, 20, generator=torch.Generator().manual_seed(7), dtype=torch.float64).T
    run = partial(propagate, edges, schemes=Schemes(restart=0.3, steps=(3,)))
    assert not features.is_contiguous()
    assert torch.equal(run(features), run(features.contiguous()))
    assert run(features[:, :0]).shape == (20, 0)
