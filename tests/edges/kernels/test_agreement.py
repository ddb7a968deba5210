"""Every kernel gives the bits of the plain one: on all kinds of graphs and walks, and at the ends of the range."""

import runpy
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.edges.kernels import multiply_plain
from tests.edges.kernels.agreement import (
    GRAPHS,
    WALKS,
    WIDTHS,
    expected_step,
    expected_totals,
    random_graph,
    scaled_origin,
    state,
    step_of,
    totals_of,
)
from torch.utils._python_dispatch import TorchDispatchMode

from gcon.edges.edge_list import public_edges
from gcon.edges.fixed_point import MOST_NODES, Walk, whole_numbers
from gcon.edges.kernels import multiply, multiply_numba, multiply_torch
from gcon.edges.source import RowBlock
from gcon.errors import InputError

KERNELS = {"numba": multiply_numba, "torch": multiply_torch}
kernels = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


@pytest.mark.parametrize("missing", ["numba", "llvmlite"])
def test_where_the_fast_one_is_not_installed_torch_does_it(missing, monkeypatch):
    assert multiply.KERNELS["cpu"] == multiply_numba.__name__
    monkeypatch.setitem(sys.modules, missing, None)
    assert runpy.run_path(multiply.__file__)["KERNELS"]["cpu"] == multiply_torch.__name__


# The plain kernel adds number by number: on the star, with its very many neighbours, wide rows take their time.
graphs = pytest.mark.parametrize(
    ("graph", "width"),
    [
        pytest.param(graph, width, marks=[pytest.mark.slow] if graph == "star" and width > 1 else [])
        for graph in GRAPHS
        for width in WIDTHS
    ],
)


@graphs
def test_a_step_has_the_same_bits(graph, width):
    edges = GRAPHS[graph]()
    for walk in WALKS[1:3] if (graph, width) == ("star", 1) else WALKS:  # all of them on the wide star
        for current, origin in (
            (state(edges.num_nodes, width, 1), state(edges.num_nodes, width, 2)),
            (state(edges.num_nodes, width, 0, extreme=True), state(edges.num_nodes, width, 3)),
            (-state(edges.num_nodes, width, 0, bits=50, extreme=True), -state(edges.num_nodes, width, 0, extreme=True)),
        ):
            before = current.clone(), origin.clone()
            expected = expected_step(edges, current, origin, walk)
            for name, kernel in KERNELS.items():
                assert torch.equal(step_of(kernel, edges, current, origin, walk), expected), (name, walk)
            assert torch.equal(current, before[0])
            assert torch.equal(origin, before[1])


@graphs
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_step_back_to_features_has_the_same_bits(graph, width, dtype):
    """Where the walk restarts may be features as they are: they are rounded to whole numbers on the way."""
    edges = GRAPHS[graph]()
    current, walk = state(edges.num_nodes, width, 1), WALKS[1]
    origin, scale = scaled_origin(edges.num_nodes, width, 12, dtype)
    expected = expected_step(edges, current, origin, walk, scale)
    for name, kernel in KERNELS.items():
        assert torch.equal(step_of(kernel, edges, current, origin, walk, scale), expected), name
    whole = whole_numbers(origin, 1 / scale)
    assert torch.equal(expected_step(edges, current, whole, walk), expected)


@graphs
@pytest.mark.parametrize(("dtype", "bits"), [(torch.int32, 22), (torch.int64, 39)])
def test_totals_have_the_same_bits(graph, width, dtype, bits):
    edges = GRAPHS[graph]()
    for rows in (
        state(edges.num_nodes, width, 4, bits=bits).to(dtype),
        state(edges.num_nodes, width, 0, bits=bits, extreme=True).to(dtype),
        -state(edges.num_nodes, width, 0, bits=bits, extreme=True).to(dtype),
        state(edges.num_nodes, 2 * width, 5, bits=bits).to(dtype)[:, ::2],  # not contiguous
    ):
        expected = expected_totals(edges, rows)
        for name, kernel in KERNELS.items():
            assert torch.equal(totals_of(kernel, edges, rows), expected), name


@kernels
@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_any_graph_walk_and_state(kernel, data):
    num_nodes = data.draw(st.integers(1, 12))
    node = st.integers(0, num_nodes - 1)
    pairs = data.draw(st.lists(st.tuples(node, node), max_size=30))
    edges = public_edges(torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T, num_nodes)
    entries = st.integers(-(2**50), 2**50)
    current, origin = (torch.tensor(data.draw(st.lists(entries, min_size=num_nodes, max_size=num_nodes))) for _ in "ab")
    walk = Walk(
        restart=data.draw(st.floats(0, 1)),
        clip=data.draw(st.floats(1e-6, 0.5)),
        self_weight=data.draw(st.floats(1, 1e6)),
    )
    expected = expected_step(edges, current[:, None], origin[:, None], walk)
    assert torch.equal(step_of(kernel, edges, current[:, None], origin[:, None], walk), expected)


@kernels
@pytest.mark.parametrize("most_nodes", [1, 7, 64])
def test_parts_of_a_block_have_the_same_bits(kernel, most_nodes):
    edges = GRAPHS["dense"]()
    current, origin, walk = state(40, 3, 6), state(40, 3, 7), WALKS[1]
    expected, totals = expected_step(edges, current, origin, walk), expected_totals(edges, current >> 10)
    (block,) = edges.blocks(torch.device("cpu"))
    for part in block.parts(most_nodes):
        out = torch.empty(part.nodes.stop - part.nodes.start, 3, dtype=torch.int64)
        kernel.walk_step(part, current, origin, walk=walk, out=out)
        assert torch.equal(out, expected[part.nodes])
        assert torch.equal(kernel.neighbour_totals(part, current >> 10), totals[part.nodes])


@pytest.mark.parametrize("graph", GRAPHS)
def test_one_byte_per_entry_gives_the_same_totals(graph):
    edges = GRAPHS[graph]()
    rows = torch.randint(-128, 128, (edges.num_nodes, 8), generator=torch.Generator().manual_seed(4))
    expected = expected_totals(edges, rows)
    for kernel in (multiply_numba, multiply_torch):
        assert torch.equal(totals_of(kernel, edges, rows.to(torch.int8)), expected)


class Converted(TorchDispatchMode):
    """How many numbers were made float64."""

    def __init__(self):
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        if function is torch.ops.aten._to_copy.default and found.dtype == torch.float64:
            self.numbers += found.numel()
        return found


def test_the_torch_kernel_converts_as_many_rows_as_there_are_neighbours():
    """Not all rows for every part: that would grow with the square of the graph."""
    edges, width = random_graph(3000, 4000, 5), 3
    (block,) = edges.blocks(torch.device("cpu"))
    parts, rows = list(block.parts(30)), state(3000, width, 1)
    with Converted() as sums:
        for part in parts:
            multiply_torch.neighbour_totals(part, rows >> 10)
    assert sums.numbers == len(edges.columns) * width
    with Converted() as steps:
        for part in parts:
            out = torch.empty(part.nodes.stop - part.nodes.start, width, dtype=torch.int64)
            multiply_torch.walk_step(part, rows, rows, walk=WALKS[1], out=out)
    assert steps.numbers <= 2 * (len(edges.columns) + 3000) * width


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_have_the_same_bits(threads, monkeypatch):
    monkeypatch.setattr(multiply_numba, "_SMALL", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    edges = GRAPHS["sparse"]()
    current, origin = state(200, 3, 8), state(200, 3, 9)
    expected = expected_step(edges, current, origin, WALKS[1])
    assert torch.equal(step_of(multiply_numba, edges, current, origin, WALKS[1]), expected)


@graphs
def test_stripes_have_the_same_bits(graph, width, monkeypatch):
    """Walks of gigabytes are read in stripes: here of a few nodes, some rows at a time."""
    edges = GRAPHS[graph]()
    for current in (state(edges.num_nodes, width, 1), state(edges.num_nodes, width, 0, extreme=True)):
        origin = state(edges.num_nodes, width, 2)
        expected = expected_step(edges, current, origin, WALKS[1])
        for stripe in ((1, 1), (7, 5), (64, 1000), (10**6, 16)):
            monkeypatch.setattr(multiply_numba, "stripes_of", lambda *_, stripe=stripe: stripe)
            assert torch.equal(step_of(multiply_numba, edges, current, origin, WALKS[1]), expected), stripe


def test_stripes_are_for_walks_that_lie_far_apart():
    far = torch.empty(25_000_000, 16, dtype=torch.int64, device="meta")
    assert multiply_numba.stripes_of(25_000_000, 10**9, far) == (2**20, 2**17)
    assert multiply_numba.stripes_of(100_000, 4_000_000, far) is None  # few rows at a time
    assert multiply_numba.stripes_of(25_000_000, 10**8, far) is None  # few neighbours: nothing to share
    assert multiply_numba.stripes_of(2_500_000, 10**8, far[:2_500_000]) is None  # not far apart


def test_pieces_with_very_many_neighbours_are_divided(monkeypatch):
    """Row pointers of 32 bits hold 2^31 neighbours: with a limit of 50 the same happens on a small graph."""
    monkeypatch.setattr(multiply_torch, "_ENTRIES", 50)
    edges = GRAPHS["dense"]()
    sizes = []
    adjacency = multiply_torch.adjacency
    monkeypatch.setattr(multiply_torch, "adjacency", lambda block: sizes.append(len(block.columns)) or adjacency(block))
    current = state(40, 2, 10)
    assert torch.equal(
        step_of(multiply_torch, edges, current, current, WALKS[1]), expected_step(edges, current, current, WALKS[1])
    )
    assert torch.equal(totals_of(multiply_torch, edges, current >> 10), expected_totals(edges, current >> 10))
    assert max(sizes) < max(50, int(edges.degrees.max()) + 1)
    assert sum(sizes) == 2 * len(edges.columns)


def test_both_parts_of_the_torch_kernel_hold_their_largest_sums():
    """Entries at the very end, as many neighbours as are allowed: both sums are whole numbers that float64 holds."""
    for entry in (2**50, -(2**50), 2**50 - 2**25, 2**25, -(2**25), 3 * 2**25):
        high = round(entry / multiply_torch._LOW)
        low = entry - high * int(multiply_torch._LOW)
        for part in (high, low):
            assert abs(part) * multiply_torch._MOST_NODES <= 2**53


def block_of(num_nodes):
    return RowBlock(slice(0, 1), torch.zeros(2, dtype=torch.int64), torch.zeros(0, dtype=torch.int32), num_nodes)


def test_more_nodes_than_can_be_added_exactly_are_refused():
    rows = torch.zeros(1, 1, dtype=torch.int64)
    with pytest.raises(InputError, match=r"^nodes"):
        multiply_torch.walk_step(block_of(2**28 + 1), rows, rows, walk=Walk(), out=rows.clone())
    with pytest.raises(InputError, match=r"^nodes"):
        multiply.walk_step(block_of(MOST_NODES + 1), rows, rows, walk=Walk(), out=rows.clone())


def test_rows_that_are_not_contiguous_are_refused():
    rows = torch.zeros(2, 1, dtype=torch.int64)
    apart = torch.zeros(2, 2, dtype=torch.int64)[:, :1]
    edges = public_edges(torch.tensor([[0], [1]]), 2)
    (block,) = edges.blocks(torch.device("cpu"))
    for current, origin, out in ((apart, rows, rows), (rows, apart, rows), (rows, rows, apart)):
        with pytest.raises(ValueError, match="contiguous"):
            multiply.walk_step(block, current, origin, walk=Walk(), out=out)


def test_a_kernel_that_errs_by_one_unit_is_caught():
    """The comparison itself: a sum that leaves one neighbour's last bit out changes some bits."""
    edges = GRAPHS["sparse"]()
    current = state(200, 1, 11)
    changed = current.clone()
    changed[int(edges.columns[0])] ^= 2**4
    walk = Walk()
    assert not torch.equal(
        step_of(multiply_plain, edges, changed, current, walk), expected_step(edges, current, current, walk)
    )
