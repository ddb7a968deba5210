"""Sums that are exact whatever their order, and a proven bound on the rounding of walks, against rational numbers."""

import math
from fractions import Fraction

import networkx
import pytest
import torch

from gcon.edges.edge_list import public_edges
from gcon.edges.fixed_point import column_units, real_numbers, whole_numbers
from gcon.edges.kernels.multiply_torch import adjacency
from gcon.edges.schemes import Schemes, propagate
from gcon.edges.source import PART_NODES, LocalEdges, RowBlock, block_slices
from gcon.errors import InputError
from gcon.mechanisms import edge_moments
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.statistic import LEFT_BITS, MOST_NODES, NODE_BITS, left_numbers
from gcon_lab.mechanisms.bilinear_sums import BilinearSums
from gcon_lab.mechanisms.class_sums import ClassSums
from gcon_lab.mechanisms.neighbour_sums import exact_unit
from gcon_lab.mechanisms.plain_sums import neighbour_sums
from gcon_lab.mechanisms.samplers import shortened
from gcon_lab.mechanisms.walk_moments import WalkMoments

WIDE = torch.float64


def edges_of(graph):
    pairs = torch.tensor(list(graph.edges), dtype=torch.int64).reshape(-1, 2).T
    return public_edges(pairs, graph.number_of_nodes())


def rows_of(size, width, seed, spread=1.0):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(size, width, generator=generator, dtype=WIDE)
    return rows * torch.logspace(0, -spread, width, dtype=WIDE)


def left(rows):
    """What products have on their left: rows in fixed point, 22 bits per entry."""
    return real_numbers(*left_numbers(rows))


def fractions(matrix):
    return [[Fraction(number) for number in row] for row in matrix.tolist()]


def product(left, right):
    columns = list(zip(*right, strict=True))
    return [[sum(a * b for a, b in zip(row, column, strict=True)) for column in columns] for row in left]


def transposed(matrix):
    return [list(column) for column in zip(*matrix, strict=True)]


def distance(value, exact, rest=None):
    """The Frobenius distance of float64 numbers, and what is added to them, from rational ones."""
    rest = torch.zeros_like(value) if rest is None else rest
    squares = [
        (Fraction(number) + Fraction(more) - true) ** 2
        for row, more_row, true_row in zip(value.tolist(), rest.tolist(), exact, strict=True)
        for number, more, true in zip(row, more_row, true_row, strict=True)
    ]
    return math.sqrt(float(sum(squares)))


class Blocks(LocalEdges):
    """Edges that come in blocks of so many neighbours, as from a file."""

    def __init__(self, edges, most_entries):
        self.num_nodes, self.edges, self.most_entries = edges.num_nodes, edges, most_entries

    def blocks(self, device):
        pointers = self.edges.row_pointers
        for nodes in block_slices(pointers, self.most_entries):
            first, last = int(pointers[nodes.start]), int(pointers[nodes.stop])
            rows = pointers[nodes.start : nodes.stop + 1] - first
            yield RowBlock(nodes, rows, self.edges.columns[first:last], self.num_nodes).to(device)


# --- exact sums -------------------------------------------------------------------------------------------------------

GRAPHS = [networkx.gnp_random_graph(40, 0.3, seed=1), networkx.complete_graph(25), networkx.star_graph(30)]


@pytest.mark.parametrize("graph", GRAPHS, ids=["random", "complete", "star"])
@pytest.mark.parametrize("offset", [0.0, 7.0])
@pytest.mark.parametrize("spread", [0.5, 6.0])
def test_exact_to_the_last_bit(graph, offset, spread):
    size = graph.number_of_nodes()
    rows = offset + rows_of(size, 4, seed=2, spread=spread)
    adjacency = [[Fraction(int(graph.has_edge(i, j))) for j in range(size)] for i in range(size)]
    moments = EdgeMoments(rows)
    whole = fractions(left(rows))
    exact = product(product(transposed(whole), adjacency), whole)
    found = moments.precisely(edges_of(graph))
    assert found.value.tolist() == [[float(number) for number in row] for row in exact]  # one rounding
    assert distance(found.value, exact, found.rest) <= moments.rounding < 1e-20 * moments.sensitivity


@pytest.mark.slow
def test_order_does_not_matter(monkeypatch):
    """Other numbers for the nodes, other blocks and parts: the same bits everywhere. Sums of float64 numbers would differ."""
    size, generator = 300, torch.Generator().manual_seed(3)
    graph, rows = networkx.gnp_random_graph(size, 0.1, seed=4), 3 + rows_of(300, 20, seed=5)
    answers, schemes = 0.1 + rows_of(300, 3, seed=6), Schemes(0.3, (1, 4, math.inf))
    pairs = torch.tensor(list(graph.edges)).T

    def statistics(rows, answers):
        yield EdgeMoments(rows)
        yield ClassSums(rows, answers, schemes)
        yield WalkMoments(rows, schemes)
        yield BilinearSums(rows, answers, 2.5)

    first = public_edges(pairs, size)
    expected = [statistic.precisely(first) for statistic in statistics(rows, answers)]
    aggregates = propagate(first, rows, schemes)
    assert torch.equal(expected[0].value, expected[0].value.T)
    assert torch.equal(expected[0].rest, expected[0].rest.T)
    bare = set()
    for most_entries, most_nodes in ((7, 3), (100, 1000), (10**6, 17)):
        monkeypatch.setitem(PART_NODES, "cpu", most_nodes)
        order = torch.randperm(size, generator=generator)
        moved, others = torch.empty_like(rows), torch.empty_like(answers)
        moved[order], others[order] = rows, answers
        same = public_edges(order[pairs][:, torch.randperm(pairs.shape[1], generator=generator)], size)
        edges = Blocks(same, most_entries)
        for statistic, before in zip(statistics(moved, others), expected, strict=True):
            found = statistic.precisely(edges)
            assert torch.equal(found.value, before.value), statistic.name
            assert torch.equal(found.rest, before.rest), statistic.name
        assert torch.equal(propagate(edges, moved, schemes)[order], aggregates)
        parts = [moved[block.nodes].T @ adjacency(block) @ moved for block in edges.blocks(torch.device("cpu"))]
        bare.add(float(sum(parts)[0, 0]))
    assert len(bare) > 1


def test_more_nodes_than_can_be_added_exactly_are_refused(monkeypatch):
    monkeypatch.setattr(edge_moments, "MOST_NODES", 10)
    EdgeMoments(torch.ones(10, 1))
    with pytest.raises(InputError, match="at most 10"):
        EdgeMoments(torch.ones(11, 1))


def test_the_worst_columns_still_have_exact_products():
    """As many nodes as are allowed, all entries as large as they come, on the complete graph."""
    assert MOST_NODES == 2**NODE_BITS
    assert MOST_NODES * 2**LEFT_BITS <= 2 ** (LEFT_BITS + MOST_NODES.bit_length()) <= 2**53


@pytest.mark.parametrize("size", [1e-40, 1.0, 1e40])
def test_one_node_may_have_nearly_all_of_a_column(size):
    """A star around a row that is far longer than all others: the largest whole numbers that can occur."""
    rows = size * torch.tensor([[1.0, -1.0], *[[1e-4, 1e-5]] * 30], dtype=WIDE)
    graph = networkx.star_graph(30)
    whole = fractions(left(rows))
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
    edges = edges_of(graph)
    exact, targets = (
        fractions(real_numbers(whole_numbers(rows, units), units))
        for rows in (features, answers)
        for units in [column_units(rows)]
    )
    weights, classes = fractions(left(features)), fractions(left(answers))
    around = walks(graph, exact, schemes)
    for statistic, value in (
        (ClassSums(features, answers, schemes), product(transposed(around), classes)),
        (WalkMoments(features, schemes), product(transposed(weights), around)),
        (BilinearSums(features, answers, 1.1), product(transposed(weights), means(graph, targets, Fraction(1.1)))),
    ):
        found = statistic.precisely(edges)
        error = distance(found.value, value, found.rest)
        assert 0 < error <= statistic.rounding
        assert statistic.rounding < 2e4 * error  # it is a bound for the worst case, not another world
        assert 2 * statistic.rounding < 1e-9 * statistic.sensitivity
        assert float(found.rest.abs().max()) > 0


def test_rounding_counts_on_both_sides_and_only_where_edges_count():
    features, answers = rows_of(9, 3, seed=11), rows_of(9, 2, seed=12)
    apart = BilinearSums(features, answers), BilinearSums(1e-9 * features + 1000, answers)
    assert all(statistic.sensitivity > 2 * statistic.rounding > 0 for statistic in apart)
    free = ClassSums(features, answers, Schemes(0.5, (0,)))
    assert free.sensitivity == 0
