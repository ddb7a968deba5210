"""No edge moves a statistic by more than its sensitivity: every small graph, searched larger ones, and where it is attained."""

import math

import networkx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gcon.edges.edge_list import public_edges
from gcon.edges.schemes import Schemes
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon_lab.mechanisms.bilinear_sums import BilinearSums
from gcon_lab.mechanisms.class_sums import ClassSums
from gcon_lab.mechanisms.walk_moments import WalkMoments

INF = math.inf
searched = settings(max_examples=120, deadline=None, derandomize=True)


def edges_of(pairs, size):
    return public_edges(torch.tensor(list(pairs), dtype=torch.int64).reshape(-1, 2).T, size)


def moved(statistic, pairs, dropped, size):
    full, less = edges_of(pairs, size), edges_of([pair for pair in pairs if pair != dropped], size)
    return float(torch.linalg.matrix_norm(statistic.of(full) - statistic.of(less)))


def rows_of(kind, size, width, random):
    rows = torch.randn(size, width, generator=random, dtype=torch.float64)
    unit = rows / rows.norm(dim=1, keepdim=True)
    return {
        "any": rows,
        "unit": unit,
        "non-negative": unit.abs(),
        "signs": rows.sign(),
        "one-hot": torch.eye(width, dtype=torch.float64)[rows.argmax(dim=1)],
        "parallel": unit[:1] * torch.rand(size, 1, generator=random, dtype=torch.float64),
        "far": rows + 50,
    }[kind]


KINDS = ("any", "unit", "non-negative", "signs", "one-hot", "parallel", "far")
MOMENTS = [(0.0, (1, 3)), (0.2, (1, 2, INF)), (0.5, (0, 2)), (0.8, (INF,)), (0.37, (4,))]


def schemes_of(random, clip=0.5):
    restart, steps = MOMENTS[int(torch.randint(len(MOMENTS), (), generator=random))]
    return Schemes(restart=restart, steps=steps, clip=clip)


def targets_of(kind, size, random):
    if kind == "weights":
        return 3 * torch.rand(size, 1, generator=random, dtype=torch.float64) * rows_of("one-hot", size, 3, random)
    if kind == "half labelled":
        return rows_of("one-hot", size, 3, random) * (torch.rand(size, 1, generator=random) < 0.5)
    return rows_of(kind, size, 3, random)


TARGETS = ("one-hot", "weights", "half labelled", "non-negative", "any")


def make(name, size, random):
    """A statistic of this name on random rows."""
    kind = KINDS[int(torch.randint(len(KINDS), (), generator=random))]
    rows = rows_of(kind, size, 3, random)
    if name == "edge moments":
        return EdgeMoments(rows)
    if name == "walk moments":
        return WalkMoments(rows, schemes_of(random, clip=0.25 if kind == "any" else 0.5))
    kind = TARGETS[int(torch.randint(len(TARGETS), (), generator=random))]
    targets = targets_of(kind, size, random)
    if name == "class sums":
        return ClassSums(rows, targets, schemes_of(random))
    return BilinearSums(rows, targets, float(1 + torch.randint(8, (), generator=random)))


NAMES = ("edge moments", "walk moments", "class sums", "bilinear sums")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("size", "edges"), [(5, 170), pytest.param(6, 1170, marks=pytest.mark.slow)])
def test_every_edge_of_every_small_graph(name, size, edges):
    """A graph of fewer nodes is one of these with isolated ones. Rows are drawn anew for every edge."""
    random, seen = torch.Generator().manual_seed(1), 0
    for graph in networkx.graph_atlas_g():
        pairs = list(graph.edges)
        if graph.number_of_nodes() != size:
            continue
        for dropped in pairs:
            statistic = make(name, size, random)
            assert statistic.name == name
            assert moved(statistic, pairs, dropped, size) <= statistic.sensitivity
            seen += 1
    assert seen == edges


@st.composite
def neighbours(draw):
    """A random graph, often bushy or dense, and one of its edges: often between its busiest nodes."""
    size = draw(st.integers(2, 25))
    reach = draw(st.integers(1, size))
    pairs = {(draw(st.integers(max(0, child - reach), child - 1)), child) for child in range(1, size)}
    node = st.integers(0, size - 1)
    pairs |= {(min(u, v), max(u, v)) for u, v in draw(st.lists(st.tuples(node, node), max_size=3 * size)) if u != v}
    ordered = sorted(pairs)
    degrees = [sum(node in pair for pair in ordered) for node in range(size)]
    busiest = max(ordered, key=lambda pair: degrees[pair[0]] + degrees[pair[1]])
    return size, ordered, draw(st.sampled_from([busiest, draw(st.sampled_from(ordered))]))


@searched
@given(graph=neighbours(), name=st.sampled_from(NAMES), seed=st.integers(0, 2**20))
def test_searched_graphs(graph, name, seed):
    size, pairs, dropped = graph
    statistic = make(name, size, torch.Generator().manual_seed(seed))
    assert moved(statistic, pairs, dropped, size) <= statistic.sensitivity


@pytest.mark.slow
@pytest.mark.parametrize("weight", [1.0, 2.0, 5.0])
def test_bilinear_sums_by_climbing(weight):
    """Random steps that raise moved / sensitivity, from many starts: they approach 1 on a pair and never pass it."""
    random, best = torch.Generator().manual_seed(3), 0.0
    for pairs, size in (
        ([(0, 1)], 2),
        ([(0, 1), (1, 2)], 3),
        ([(0, 1), (0, 2), (1, 3)], 4),
        ([(0, 1), (0, 2), (1, 2)], 3),
    ):
        for _ in range(4):
            rows, answers = (torch.randn(size, 2, generator=random, dtype=torch.float64) for _ in range(2))
            ratio = 0.0
            for _ in range(120):
                tried = [
                    old + 0.3 * torch.randn(size, 2, generator=random, dtype=torch.float64) for old in (rows, answers)
                ]
                statistic = BilinearSums(*tried, weight)
                change = moved(statistic, pairs, pairs[0], size) / statistic.sensitivity
                if change > ratio:
                    ratio, (rows, answers) = change, tried
            assert ratio <= 1
            best = max(best, ratio)
    assert best > 0.95


ATTAINED = {
    "edge moments": lambda: EdgeMoments(torch.tensor([[0.6, 0.8], [0.6, 0.8]])),
    "edge moments of rows of two lengths": lambda: EdgeMoments(torch.tensor([[3.0, 4.0], [-0.3, -0.4]])),
    "class sums, one step": lambda: ClassSums(signs(), torch.eye(2), Schemes(restart=0.0, steps=(1,))),
    "class sums in the limit": lambda: ClassSums(signs(), torch.eye(2), Schemes(restart=0.8, steps=(INF,))),
    "class sums, two steps": lambda: ClassSums(signs(), 4 * torch.eye(2), Schemes(restart=0.7, steps=(2,))),
    "class sums of three schemes": lambda: ClassSums(signs(), torch.eye(2), Schemes(restart=0.8, steps=(0, 1, 5, INF))),
    "walk moments, one step": lambda: WalkMoments(signs(), Schemes(restart=0.3, steps=(1,))),
    "walk moments in the limit": lambda: WalkMoments(signs(), Schemes(restart=0.8, steps=(INF,))),
    "walk moments, one step, one-hot rows": lambda: WalkMoments(torch.eye(2), Schemes(restart=0.3, steps=(1,))),
    "bilinear sums": lambda: BilinearSums(signs(), torch.eye(2), 4.0),
    "bilinear sums of classes": lambda: BilinearSums(torch.eye(2), torch.eye(2), 2.0),
}


def signs():
    return torch.tensor([[1.0], [-1.0]], dtype=torch.float64)


@pytest.mark.parametrize("statistic", ATTAINED.values(), ids=ATTAINED)
def test_two_nodes_attain_it(statistic):
    statistic = statistic()
    assert moved(statistic, [(0, 1)], (0, 1), 2) == pytest.approx(statistic.sensitivity, rel=2e-8)


def test_centring_matters_for_bilinear_sums():
    """Far from the origin the diameter alone would not bound the change: the formula's second term does."""
    far = torch.tensor([[10.0], [10.1], [10.0]])
    statistic = BilinearSums(far, torch.tensor([[1.0], [1.0], [0.0]]), 1.0)
    change = moved(statistic, [(0, 1), (1, 2)], (1, 2), 3)
    assert 0.1 * 1 / 2 < change <= statistic.sensitivity


@pytest.mark.parametrize("restart", [0.1, 0.2, 0.3])
def test_two_joined_stars_come_close_in_the_limit(restart):
    """Far more than one step's bound: opposite features on both sides, a class a side."""
    leaves = 1000
    pairs = [(0, 1), *((side, 2 + 2 * leaf + side) for leaf in range(leaves) for side in (0, 1))]
    size = 2 + 2 * leaves
    sides = torch.arange(size) % 2
    features, schemes = (1.0 - 2 * sides)[:, None], Schemes(restart=restart, steps=(INF,))
    for statistic in (ClassSums(features, torch.eye(2)[sides], schemes), WalkMoments(features, schemes)):
        assert 0.97 * statistic.sensitivity < moved(statistic, pairs, (0, 1), size) <= statistic.sensitivity
