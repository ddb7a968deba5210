"""Sums that are exact whatever their order, and a proven bound on the rounding of all others, against rational numbers."""

import math
from fractions import Fraction

import networkx
import pytest
import torch

from gcon.errors import InputError
from gcon.graphs.edges import public_edges
from gcon.mechanisms.neighbour_sums import exact_unit
from gcon.perturb.lattice import shortened
from gcon.propagate.schemes import Schemes
from gcon.propagate.sums import neighbour_sums
from gcon.statistics import edge_moments
from gcon.statistics.bilinear_sums import BilinearSums
from gcon.statistics.blocks import neighbour_sum_blocks
from gcon.statistics.class_sums import ClassSums
from gcon.statistics.edge_moments import EdgeMoments
from gcon.statistics.neighbour_rows import NeighbourRows
from gcon.statistics.rows import fixed_point
from gcon.statistics.walk_moments import WalkMoments

WIDE = torch.float64


def edges_of(graph):
    pairs = torch.tensor(list(graph.edges), dtype=torch.int64).reshape(-1, 2).T
    return public_edges(pairs, graph.number_of_nodes())


def rows_of(size, width, seed, spread=1.0):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(size, width, generator=generator, dtype=WIDE)
    return rows * torch.logspace(0, -spread, width, dtype=WIDE)


def fixed(rows, bits):
    whole, units = fixed_point(rows, bits)
    return whole * units


def fractions(matrix):
    return [[Fraction(number) for number in row] for row in matrix.tolist()]


def product(left, right):
    columns = list(zip(*right, strict=True))
    return [[sum(a * b for a, b in zip(row, column, strict=True)) for column in columns] for row in left]


def transposed(matrix):
    return [list(column) for column in zip(*matrix, strict=True)]


def distance(value, exact):
    """The Frobenius distance of float64 numbers from rational ones."""
    squares = [
        (Fraction(number) - true) ** 2
        for row, true_row in zip(value.tolist(), exact, strict=True)
        for number, true in zip(row, true_row, strict=True)
    ]
    return math.sqrt(float(sum(squares)))


# --- exact sums -------------------------------------------------------------------------------------------------------

GRAPHS = [networkx.gnp_random_graph(40, 0.3, seed=1), networkx.complete_graph(25), networkx.star_graph(30)]


@pytest.mark.parametrize("graph", GRAPHS, ids=["random", "complete", "star"])
@pytest.mark.parametrize("offset", [0.0, 7.0])
@pytest.mark.parametrize("spread", [0.5, 6.0])
def test_exact_to_the_last_bit(graph, offset, spread):
    size = graph.number_of_nodes()
    rows = offset + rows_of(size, 4, seed=2, spread=spread)
    adjacency = [[Fraction(int(graph.has_edge(i, j))) for j in range(size)] for i in range(size)]
    moments, sums = EdgeMoments(rows), NeighbourRows(rows)
    whole = fractions(fixed(rows, 31))
    exact = product(product(transposed(whole), adjacency), whole)
    assert moments.of(edges_of(graph)).tolist() == [[float(number) for number in row] for row in exact]  # one rounding
    assert distance(moments.of(edges_of(graph)), exact) <= moments.rounding < 1e-9 * moments.sensitivity
    assert distance(sums.of(edges_of(graph)), product(adjacency, fractions(fixed(rows, 52)))) == 0
    assert sums.rounding == 0


def test_order_does_not_matter(monkeypatch):
    """Other numbers for the nodes, other blocks, other threads: the same bits. Rows that are not fixed would differ."""
    size, generator = 300, torch.Generator().manual_seed(3)
    graph, rows = networkx.gnp_random_graph(size, 0.1, seed=4), 3 + rows_of(300, 20, seed=5)
    pairs = torch.tensor(list(graph.edges)).T
    moments = EdgeMoments(rows).of(public_edges(pairs, size))
    sums = NeighbourRows(rows).of(public_edges(pairs, size))
    assert torch.equal(moments, moments.T)
    bare = set()
    for block in (7, 100, 10**6):
        monkeypatch.setattr(
            edge_moments,
            "neighbour_sum_blocks",
            lambda edges, rows, block=block: neighbour_sum_blocks(edges, rows, most_entries=block),
        )
        order = torch.randperm(size, generator=generator)
        moved = torch.empty_like(rows)
        moved[order] = rows
        edges = public_edges(order[pairs][:, torch.randperm(pairs.shape[1], generator=generator)], size)
        assert torch.equal(EdgeMoments(moved).of(edges), moments)
        assert torch.equal(NeighbourRows(moved).of(edges)[order], sums)
        parts = [moved[nodes].T @ sums for nodes, sums in neighbour_sum_blocks(edges, moved, most_entries=block)]
        bare.add(float(sum(parts)[0, 0]))
    assert len(bare) > 1


def test_fixed_point_keeps_bits_in_proportion_to_the_number_of_nodes():
    for size in (2, 100, 10_000):
        rows = rows_of(size, 5, seed=size, spread=8.0)
        for bits in (26, 31, 52):
            whole, units = fixed_point(rows, bits)
            assert torch.equal(whole, whole.round())
            assert bool(((whole * units - rows).abs() <= units / 2).all())
            assert bool((units <= rows.abs().sum(dim=0) * 2.0 ** (1 - bits)).all())
            assert bool((whole.abs().sum(dim=0) <= 2.0**bits + size / 2).all())
    assert fixed_point(torch.zeros(3, 2, dtype=WIDE), 26)[0].tolist() == [[0.0, 0.0]] * 3
    assert fixed_point(torch.zeros(0, 2, dtype=WIDE), 26)[0].shape == (0, 2)
    tiny, units = fixed_point(torch.tensor([[1.0, 1e-300], [1.0, 1e-300]], dtype=WIDE), 26)
    assert (tiny * units).tolist() == [[1.0, 0.0]] * 2  # products with it would leave float64


def test_more_nodes_than_can_be_added_exactly_are_refused(monkeypatch):
    monkeypatch.setattr(edge_moments, "_MOST_NODES", 10)
    EdgeMoments(torch.ones(10, 1))
    with pytest.raises(InputError, match="at most 10"):
        EdgeMoments(torch.ones(11, 1))


def test_the_worst_columns_still_have_exact_products():
    """As many nodes as are allowed, each rounded up by half a unit, on the complete graph."""
    column = 2**edge_moments._BITS + edge_moments._MOST_NODES // 2
    assert column**2 < 2**63
    assert column * 2 ** (edge_moments._LOW_BITS - 1) <= 2**53
    assert column * (column // 2**edge_moments._LOW_BITS + 1) <= 2**53


@pytest.mark.parametrize("size", [1e-40, 1.0, 1e40])
def test_one_node_may_have_nearly_all_of_a_column(size):
    """A star around a row that is far longer than all others: the largest whole numbers that can occur."""
    rows = size * torch.tensor([[1.0, -1.0], *[[1e-4, 1e-5]] * 30], dtype=WIDE)
    graph = networkx.star_graph(30)
    whole = fractions(fixed(rows, 31))
    exact = [[Fraction(0)] * 2 for _ in range(2)]
    for u, v in graph.edges:
        for a in range(2):
            for b in range(2):
                exact[a][b] += whole[u][a] * whole[v][b] + whole[v][a] * whole[u][b]
    assert EdgeMoments(rows).of(edges_of(graph)).tolist() == [[float(number) for number in row] for row in exact]


@pytest.mark.parametrize("order", [1, 2])
def test_shortened_rows_are_never_longer_and_add_exactly(order):
    graph = networkx.gnp_random_graph(60, 0.5, seed=6)
    rows = rows_of(60, 7, seed=7)
    rows /= torch.linalg.vector_norm(rows, ord=order, dim=1, keepdim=True)
    short = shortened(rows, exact_unit(60))
    lengths = [torch.linalg.vector_norm(some, ord=order, dim=1) for some in (short, rows)]
    assert bool((lengths[0] <= lengths[1] * (1 + 1e-15)).all())
    assert bool((short.abs() <= rows.abs()).all())
    assert float((short - rows).abs().max()) <= exact_unit(60)
    adjacency = [[Fraction(int(graph.has_edge(i, j))) for j in range(60)] for i in range(60)]
    assert distance(neighbour_sums(edges_of(graph), short), product(adjacency, fractions(short))) == 0
    one_hot = torch.eye(7, dtype=WIDE)
    assert torch.equal(shortened(one_hot, exact_unit(7)), one_hot)


# --- rounding of the others -------------------------------------------------------------------------------------------


def walks(graph, features, schemes):
    """The rational value of (1/s) [R_m1 X, ...] for the steps that are really computed."""
    size = graph.number_of_nodes()
    restart, clip = Fraction(schemes.restart), Fraction(schemes.clip)
    transition = []
    for node in range(size):
        weight = min(Fraction(1, graph.degree(node) + 1), clip)
        row = [weight * int(graph.has_edge(node, other)) for other in range(size)]
        row[node] = 1 - weight * graph.degree(node)
        transition.append(row)
    blocks = []
    for count in schemes.steps:
        current = features
        for _ in range(schemes.limit_iterations(size) if math.isinf(count) else int(count)):
            moved = product(transition, current)
            current = [
                [(1 - restart) * a + restart * b for a, b in zip(one, other, strict=True)]
                for one, other in zip(moved, features, strict=True)
            ]
            # Enough bits to judge float64 by; whole fractions would grow without end.
            current = [[Fraction(round(number * 2**200), 2**200) for number in row] for row in current]
        blocks.append(current)
    return [[number / len(blocks) for block in blocks for number in block[node]] for node in range(size)]


def means(graph, answers, weight):
    rows = []
    for node in range(graph.number_of_nodes()):
        around = [[weight * number for number in answers[node]], *(answers[other] for other in graph.neighbors(node))]
        rows.append([sum(column) / (graph.degree(node) + weight) for column in zip(*around, strict=True)])
    return rows


@pytest.mark.parametrize("graph", [networkx.gnp_random_graph(14, 0.4, seed=8), networkx.complete_graph(12)])
@pytest.mark.parametrize("offset", [0.0, 100.0])
@pytest.mark.parametrize(
    "schemes", [Schemes(0.3, (1, 5)), Schemes(0.9, (math.inf,)), Schemes(0.0, (8,)), Schemes(0.4, (3,), 0.07)]
)
def test_rounding_is_bounded(graph, offset, schemes):
    size = graph.number_of_nodes()
    features, answers = offset + rows_of(size, 3, seed=9), 0.1 + rows_of(size, 2, seed=10)
    edges, exact, targets = edges_of(graph), fractions(features), fractions(answers)
    around = walks(graph, exact, schemes)
    for statistic, value in (
        (ClassSums(features, answers, schemes), product(transposed(around), targets)),
        (WalkMoments(features, schemes), product(transposed(exact), around)),
        (BilinearSums(features, answers, 1.1), product(transposed(exact), means(graph, targets, Fraction(1.1)))),
    ):
        error = distance(statistic.of(edges), value)
        assert 0 < error <= statistic.rounding
        assert statistic.rounding < 2e4 * error  # it is a bound for the worst case, not another world
        assert 2 * statistic.rounding < statistic.sensitivity


def test_rounding_counts_on_both_sides_and_only_where_edges_count():
    features, answers = rows_of(9, 3, seed=11), rows_of(9, 2, seed=12)
    apart = BilinearSums(features, answers), BilinearSums(1e-9 * features + 1000, answers)
    assert all(statistic.sensitivity > 2 * statistic.rounding > 0 for statistic in apart)
    free = ClassSums(features, answers, Schemes(0.5, (0,)))
    assert free.sensitivity == 0
