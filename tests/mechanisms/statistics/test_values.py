"""What the statistics compute, what they refuse, and what they hold in memory."""

import math

import networkx
import numpy as np
import pytest
import torch

from gcon.edges.edge_list import public_edges
from gcon.edges.fixed_point import real_numbers
from gcon.edges.kernels import multiply, multiply_numba
from gcon.edges.schemes import Schemes
from gcon.edges.source import PART_NODES, RowBlock, block_slices
from gcon.errors import InputError, PlanMismatchError
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.statistic import Statistic, left_numbers, longest_rows
from gcon.privacy.plan import PROOF_PAGES
from gcon_lab.mechanisms.bilinear_sums import BilinearSums
from gcon_lab.mechanisms.class_sums import ClassSums
from gcon_lab.mechanisms.walk_moments import WalkMoments

SIZE = 40
GRAPH = networkx.gnp_random_graph(SIZE, 0.1, seed=4)
DENSE = torch.from_numpy(networkx.to_numpy_array(GRAPH))
EDGES = public_edges(torch.tensor(list(GRAPH.edges)).T, SIZE)
RANDOM = torch.Generator().manual_seed(0)
ROWS = torch.randn(SIZE, 5, generator=RANDOM, dtype=torch.float64)
TARGETS = torch.eye(3, dtype=torch.float64)[torch.randint(3, (SIZE,), generator=RANDOM)]
EYE = torch.eye(SIZE, dtype=torch.float64)
SCHEMES = Schemes(restart=0.4, steps=(0, 2, math.inf))


def walk(steps, restart=0.4):
    transition = (DENSE + EYE) / (DENSE.sum(dim=1, keepdim=True) + 1)
    if math.isinf(steps):
        return restart * torch.linalg.inv(EYE - (1 - restart) * transition)
    power = EYE
    for _ in range(steps):
        power = (1 - restart) * transition @ power + restart * EYE
    return power


def test_values_are_those_of_dense_matrices():
    around = torch.cat([walk(steps) @ ROWS for steps in SCHEMES.steps], dim=1) / 3
    left = real_numbers(*left_numbers(ROWS))  # what products are made with: 22 bits per entry
    assert float((left - ROWS).abs().max()) < 1e-6
    loops = (DENSE + 2.5 * EYE) / (DENSE.sum(dim=1, keepdim=True) + 2.5)
    for statistic, expected in (
        (EdgeMoments(ROWS), left.T @ DENSE @ left),
        (WalkMoments(ROWS, SCHEMES), left.T @ around),
        (ClassSums(ROWS, TARGETS, SCHEMES), around.T @ TARGETS),
        (BilinearSums(ROWS, TARGETS, 2.5), left.T @ loops @ TARGETS),
    ):
        assert PROOF_PAGES[type(statistic)]
        value = statistic.of(EDGES)
        assert value.dtype == torch.float64
        torch.testing.assert_close(value, expected, rtol=0, atol=1e-9)
        assert torch.equal(value, value.T) if statistic.symmetric else not (value.shape[0] == value.shape[1] == 1)
        assert statistic.symmetric == (statistic.name == "edge moments")


def test_a_constant_column_counts_edges():
    with_constant = torch.cat([ROWS, torch.full((SIZE, 1), 0.5)], dim=1)
    assert float(EdgeMoments(with_constant).of(EDGES)[-1, -1]) == pytest.approx(0.25 * 2 * GRAPH.number_of_edges())


def test_schemes_without_steps_are_edge_free_and_cost_nothing():
    without = Schemes(restart=0.4, steps=(2, math.inf))
    for make in (lambda schemes: ClassSums(ROWS, TARGETS, schemes), lambda schemes: WalkMoments(ROWS, schemes)):
        three, two, none = make(SCHEMES), make(without), make(Schemes(restart=0.4, steps=(0,)))
        assert three.sensitivity == pytest.approx(two.sensitivity * 2 / 3)  # the factor 1/s alone
        assert two.edge_free is None
        assert none.sensitivity == 0
        free = three.edge_free.expand(three.of(EDGES).shape)
        empty = public_edges(torch.empty(2, 0, dtype=torch.int64), SIZE)
        assert torch.equal(three.of(EDGES)[free], three.of(empty)[free])
        assert int(free.sum()) * 3 == free.numel()
        assert make(Schemes(restart=1.0, steps=(2,))).sensitivity == 0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e80, 1e-70])
def test_rows_without_sense_are_refused(bad):
    rows = torch.zeros(4, 2, dtype=torch.float64)
    rows[1, 1] = bad
    good, schemes = torch.ones(4, 2), Schemes(restart=0.5, steps=(2,))
    for make in (
        lambda: EdgeMoments(rows),
        lambda: WalkMoments(rows, schemes),
        lambda: ClassSums(rows, good, schemes),
        lambda: ClassSums(good, rows, schemes),
        lambda: BilinearSums(rows, good),
        lambda: BilinearSums(good, rows),
    ):
        with pytest.raises(InputError, match="finite"):
            make()


def test_shapes_and_weights_are_checked():
    for rows in (torch.ones(4), torch.ones(2, 2, 2), torch.ones(2, 2, dtype=torch.complex64)):
        with pytest.raises(InputError, match="matrix"):
            EdgeMoments(rows)
    for make in (BilinearSums, lambda one, other: ClassSums(one, other, SCHEMES)):
        with pytest.raises(InputError, match="rows of both"):
            make(torch.ones(4, 2), torch.ones(5, 2))
    for weight in (0.99, 0.0, -1.0, math.nan, math.inf, True):
        with pytest.raises(InputError, match="self_weight"):
            BilinearSums(torch.ones(4, 2), torch.ones(4, 2), weight)
    with pytest.raises(PlanMismatchError, match="every node"):
        EdgeMoments(torch.ones(SIZE + 1, 1)).of(EDGES)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_are_copied_so_that_the_sensitivity_stays_true(dtype):
    """A sensitivity is that of the rows as they were given, whatever their owner does before a gate opens."""
    schemes = Schemes(restart=0.4, steps=(0, 2))
    makers = (
        lambda rows, others: EdgeMoments(rows),
        BilinearSums,
        lambda rows, others: ClassSums(rows, others, schemes),
        lambda rows, others: WalkMoments(rows, schemes),
    )
    for make in makers:
        rows, others = (
            torch.randn(SIZE, 3, generator=torch.Generator().manual_seed(seed)).to(dtype) for seed in (0, 1)
        )
        expected, statistic = make(rows.clone(), others.clone()), make(rows, others)
        rows *= 1000
        others *= 1000
        assert statistic.sensitivity == expected.sensitivity
        assert torch.equal(statistic.of(EDGES), expected.of(EDGES))


def test_lengths_are_never_rounded_down():
    random = np.random.default_rng(0)
    for scale in (1e-40, 1.0, 1e40):
        rows = random.normal(size=(30, 7)) * scale
        exact = sorted((math.hypot(*row) for row in rows), reverse=True)
        for found, length in zip(longest_rows(torch.from_numpy(rows)), exact[:2], strict=True):
            assert length <= found <= length * (1 + 2e-9)
    assert (
        longest_rows(torch.zeros(3, 2))
        == longest_rows(torch.zeros(0, 2))
        == longest_rows(torch.zeros(3, 0))
        == (0.0, 0.0)
    )
    assert longest_rows(torch.ones(1, 1))[1] == 0


def test_nothing_can_change_on_one_node_or_with_one_row_that_is_not_zero():
    one = torch.ones(1, 2)
    schemes = Schemes(restart=0.5, steps=(2,))
    for statistic in (EdgeMoments(one), WalkMoments(one, schemes), ClassSums(one, one, schemes)):
        assert statistic.sensitivity == 0
    assert EdgeMoments(torch.tensor([[5.0], [0.0], [0.0]])).sensitivity == 0
    assert ClassSums(torch.ones(3, 2), torch.zeros(3, 2), schemes).sensitivity == 0


@pytest.mark.parametrize("places", [(0, 1), (2, 3), (3, 4), (0, 39), (37, 39)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int8])
def test_lengths_and_sums_in_pieces_are_those_of_all_rows(monkeypatch, places, dtype):
    """Wherever the two longest rows are: in one piece, or in two. A sensitivity without one of them would be too small."""
    rows = (10 * ROWS).to(dtype)
    rows[places[0]], rows[places[1]] = -128, 120
    whole = EdgeMoments(rows)
    monkeypatch.setattr("gcon.nodes.BATCH_ROWS", 3)
    pieces = EdgeMoments(rows)
    assert torch.equal(pieces.of(EDGES), whole.of(EDGES))
    assert (pieces.sensitivity, pieces.rounding) == pytest.approx((whole.sensitivity, whole.rounding), rel=1e-14)
    assert pieces.sensitivity >= 2 * 128 * 120 * rows.shape[1]


def test_without_a_node_nothing_can_change():
    for columns in (0, 3):
        moments = EdgeMoments(torch.empty(0, columns))
        assert (moments.sensitivity, moments.rounding) == (0, 0)


def test_signed_targets_have_a_bound_of_their_own():
    signed, schemes = ClassSums(ROWS, TARGETS - 0.5, SCHEMES), ClassSums(ROWS, TARGETS, SCHEMES)
    assert signed.settings["bounds"] == ["no edge is read", "influence, sharp", "influence, sharp"]
    assert schemes.settings["bounds"] == ["no edge is read", "class sums, phi", "class sums, phi"]


# --- memory -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most_entries", [1, 7, 100, 10**6])
@pytest.mark.parametrize("most_nodes", [3, 10**6])
def test_blocks_hold_so_many_neighbours_and_cover_all_nodes(most_entries, most_nodes):
    star = networkx.star_graph(60)
    for graph in (GRAPH, star, networkx.empty_graph(9), networkx.complete_graph(12), networkx.empty_graph(0)):
        size = graph.number_of_nodes()
        edges = public_edges(torch.tensor(list(graph.edges), dtype=torch.int64).reshape(-1, 2).T, size)
        parts = []
        for nodes in block_slices(edges.row_pointers, most_entries):
            held = int(edges.degrees[nodes].sum())
            assert held <= max(most_entries, int(edges.degrees.max()))  # a node has at most n neighbours
            first, pointers = int(edges.row_pointers[nodes.start]), edges.row_pointers[nodes.start : nodes.stop + 1]
            block = RowBlock(nodes, pointers - first, edges.columns[first : first + held], size)
            parts += block.parts(most_nodes)
        assert [node for part in parts for node in range(part.nodes.start, part.nodes.stop)] == list(range(size))
        assert all(1 <= part.nodes.stop - part.nodes.start <= most_nodes for part in parts)
        rows = torch.randint(-(2**40), 2**40, (size, 2))
        dense = torch.from_numpy(networkx.to_numpy_array(graph)) if size else torch.zeros(0, 0, dtype=torch.float64)
        sums = [multiply.kernel_for(rows).neighbour_totals(part, rows) for part in parts]
        assert torch.equal(torch.cat([torch.zeros(0, 2, dtype=torch.float64), *sums]), dense @ rows.double())


def test_moments_of_many_edges_are_made_of_small_pieces(monkeypatch):
    """Half a million neighbours, 40 columns: sums are made for a few nodes at a time, so neither |E| x d nor n x d exists."""
    size, limit = 1_000, 40
    edges = public_edges(torch.randint(size, (2, 300_000), generator=RANDOM), size)
    assert len(edges.columns) > 400_000
    heights, neighbour_totals = [], multiply_numba.neighbour_totals

    def watched(block, rows):
        sums = neighbour_totals(block, rows)
        heights.append(len(sums))
        return sums

    rows = torch.randn(size, 40, generator=RANDOM, dtype=torch.float64)
    whole = EdgeMoments(rows).of(edges)
    monkeypatch.setattr(multiply_numba, "neighbour_totals", watched)
    monkeypatch.setitem(PART_NODES, "cpu", limit)
    assert torch.equal(EdgeMoments(rows).of(edges), whole)
    assert max(heights) <= limit
    assert sum(heights) == size


def test_a_statistic_must_say_everything():
    with pytest.raises(TypeError, match="abstract"):
        Statistic()


def test_without_a_single_target_class_sums_are_zeros_that_cost_nothing():
    schemes = Schemes(restart=0.4, steps=(2, math.inf))
    sums = ClassSums(torch.randn(4, 3, generator=torch.Generator().manual_seed(0)), torch.zeros(4, 2), schemes)
    assert (sums.sensitivity, sums.rounding) == (0, 0)
    assert torch.equal(sums.of(public_edges(torch.tensor([[0], [1]]), 4)), torch.zeros(6, 2, dtype=torch.float64))
