"""The Triton kernel gives the bits of the plain one, rows that are shared between programs included. See `make test-triton`."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.edges.kernels.agreement import (
    WALKS,
    expected_step,
    expected_totals,
    random_graph,
    scaled_origin,
    star,
    state,
    step_of,
    totals_of,
)

from gcon.edges.edge_list import public_edges
from gcon.edges.fixed_point import Walk
from gcon.edges.kernels import multiply_triton

GRAPHS = {
    "no edge": lambda: random_graph(7, 0, 0),
    "one node": lambda: random_graph(1, 0, 0),
    "sparse": lambda: random_graph(16, 14, 1),
    "dense": lambda: random_graph(12, 300, 2),
    "star": lambda: star(35),
}


@pytest.fixture(params=["whole rows", "shared rows"])
def rows_are(request, monkeypatch):
    """Rows of more than 5 neighbours are summed by several programs, 3 neighbours each; or none is."""
    if request.param == "shared rows":
        monkeypatch.setattr(multiply_triton, "_LONG", 5)
        monkeypatch.setattr(multiply_triton, "_SHARE", 3)
    return request.param


@pytest.fixture(params=GRAPHS)
def edges(request):
    return GRAPHS[request.param]()


def test_the_interpreter_runs():
    from triton import knobs

    assert knobs.runtime.interpret


@pytest.mark.parametrize("walk", WALKS, ids=str)
def test_a_step_has_the_same_bits(edges, rows_are, walk):
    for width in (1, 3):
        current, origin = state(edges.num_nodes, width, 1), state(edges.num_nodes, width, 2)
        expected = expected_step(edges, current, origin, walk)
        assert torch.equal(step_of(multiply_triton, edges, current, origin, walk), expected)
    largest = -state(edges.num_nodes, 1, 0, bits=50, extreme=True)
    assert torch.equal(
        step_of(multiply_triton, edges, largest, largest, walk), expected_step(edges, largest, largest, walk)
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_step_back_to_features_has_the_same_bits(edges, rows_are, dtype):
    origin, scale = scaled_origin(edges.num_nodes, 3, 12, dtype)
    current = state(edges.num_nodes, 3, 1)
    expected = expected_step(edges, current, origin, WALKS[1], scale)
    assert torch.equal(step_of(multiply_triton, edges, current, origin, WALKS[1], scale), expected)


@pytest.mark.parametrize(("dtype", "bits"), [(torch.int32, 22), (torch.int64, 45)])
def test_totals_have_the_same_bits(edges, rows_are, dtype, bits):
    for rows in (
        state(edges.num_nodes, 3, 4, bits=bits).to(dtype),
        -state(edges.num_nodes, 1, 0, bits=bits, extreme=True).to(dtype),
    ):
        assert torch.equal(totals_of(multiply_triton, edges, rows), expected_totals(edges, rows))


def test_rows_are_really_shared():
    edges = star(70)
    (block,) = edges.blocks(torch.device("cpu"))
    rows, starts, stops, owners = block.shared_rows(5, 3)
    assert rows.tolist() == [3]
    assert (stops - starts).tolist() == [3] * 23 + [1]
    assert owners.tolist() == [0] * 24
    assert len(block.shared_rows(2**15, 2**13)[0]) == 0


@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_walk_and_state(data):
    edges = random_graph(8, 20, 5)
    entries = st.lists(st.integers(-(2**50), 2**50), min_size=8, max_size=8)
    current, origin = (torch.tensor(data.draw(entries))[:, None] for _ in "ab")
    walk = Walk(
        restart=data.draw(st.floats(0, 1)),
        clip=data.draw(st.floats(1e-6, 0.5)),
        self_weight=data.draw(st.floats(1, 1e6)),
    )
    expected = expected_step(edges, current, origin, walk)
    assert torch.equal(step_of(multiply_triton, edges, current, origin, walk), expected)


def test_low_parts_that_add_to_more_than_float64_holds_are_carried(monkeypatch):
    """Sums of 2^26 neighbours or more have low parts of more than 53 bits; here they are put there by hand."""
    launch = multiply_triton._long_rows_kernel

    class Filled:
        def __getitem__(self, grid):
            def run(pointers, long_rows, highs, lows, *others, **options):
                highs.fill_(-(2**26))
                lows.fill_(2**58 + 5)
                return launch[grid](pointers, long_rows, highs, lows, *others, **options)

            return run

    monkeypatch.setattr(multiply_triton, "_LONG", 5)
    monkeypatch.setattr(multiply_triton, "_SHARE", 3)
    monkeypatch.setattr(multiply_triton, "_long_rows_kernel", Filled())
    edges = public_edges(torch.stack([torch.zeros(9, dtype=torch.int64), torch.arange(1, 10)]), 10)
    found = totals_of(multiply_triton, edges, torch.ones(10, 1, dtype=torch.int64))
    assert float(found[0]) == 5  # -2^26 * 2^32 + 2^58 + 5
