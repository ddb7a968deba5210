"""Propagation against dense matrices, and its rules."""

import math

import networkx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.edges.kernels import multiply_plain

from gcon.edges.edge_list import public_edges
from gcon.edges.fixed_point import Walk, column_units, real_numbers, whole_numbers
from gcon.edges.kernels.multiply import walk_step
from gcon.edges.schemes import Schemes, as_steps, propagate
from gcon.errors import InputError


def dense_transition(edges, clip=0.5):
    adjacency = torch.zeros(edges.num_nodes, edges.num_nodes, dtype=torch.float64)
    adjacency[tuple(edges.edge_index())] = 1.0
    degrees = adjacency.sum(dim=1)
    matrix = adjacency * torch.clamp(1 / (degrees + 1), max=clip)[:, None]
    return matrix + torch.diag(1 - matrix.sum(dim=1))


def dense_propagation(edges, restart, steps, clip=0.5):
    transition, identity = dense_transition(edges, clip), torch.eye(edges.num_nodes, dtype=torch.float64)
    if math.isinf(steps):
        return restart * torch.linalg.inv(identity - (1 - restart) * transition)
    result = identity
    for _ in range(int(steps)):
        result = (1 - restart) * transition @ result + restart * identity
    return result


def close(first, second, tolerance=1e-12):
    torch.testing.assert_close(first, second, rtol=0, atol=tolerance)


@pytest.mark.parametrize("restart", [0.0, 0.2, 0.5, 0.95, 1.0])
@pytest.mark.parametrize("steps", [0, 1, 2, 7, 40])
def test_finite_steps_against_matrix_powers(edges, features, restart, steps):
    found = propagate(edges, features, Schemes(restart=restart, steps=(steps,)))
    close(found, dense_propagation(edges, restart, steps) @ features)


@pytest.mark.parametrize("restart", [0.05, 0.3, 0.8, 1.0])
def test_the_limit_against_the_inverse(edges, features, restart):
    schemes = Schemes(restart=restart, steps=(math.inf,))
    found, exact = propagate(edges, features, schemes), dense_propagation(edges, restart, math.inf) @ features
    # What the truncation may change, summed over all rows; the influence bound pays for twice of it.
    gap = float(torch.linalg.vector_norm(found - exact, dim=1).sum())
    diameter = float(torch.cdist(features, features).max())
    assert gap <= edges.num_nodes * (1 - restart) ** schemes.limit_iterations(edges.num_nodes) * diameter + 1e-12
    close(found, exact, 1e-10)


def test_the_limit_is_exactly_its_finite_number_of_steps(edges, features):
    schemes = Schemes(restart=0.4, steps=(math.inf,))
    count = schemes.limit_iterations(edges.num_nodes)
    assert torch.equal(propagate(edges, features, schemes), propagate(edges, features, Schemes(0.4, (count,))))


@pytest.mark.parametrize("clip", [0.5, 0.3, 0.05])
def test_clipping(edges, features, clip):
    found = propagate(edges, features, Schemes(restart=0.2, steps=(3,), clip=clip))
    close(found, dense_propagation(edges, 0.2, 3, clip) @ features)
    transition = propagate(edges, torch.eye(edges.num_nodes), Schemes(restart=0.0, steps=(1,), clip=clip))
    assert float((transition - transition.diag().diag()).max()) <= clip + 1e-14
    close(transition.sum(dim=1), torch.ones(edges.num_nodes, dtype=torch.float64))
    assert float(transition.diag().min()) > 0


def test_a_clip_that_bites_changes_the_result():
    edges = public_edges(torch.tensor([[0, 1], [1, 2]]), 3)
    values = torch.tensor([[1.0], [0.0], [0.0]])
    results = [propagate(edges, values, Schemes(restart=0.0, steps=(1,), clip=clip)) for clip in (0.5, 0.25)]
    close(results[0], torch.tensor([[1 / 2], [1 / 3], [0.0]], dtype=torch.float64))
    close(results[1], torch.tensor([[3 / 4], [1 / 4], [0.0]], dtype=torch.float64))


def stepped(step, edges, features, origin, walk):
    """One step of a kernel on all nodes, back in real numbers."""
    units = column_units(features)
    current, back = whole_numbers(features, units), whole_numbers(origin, units)
    out = torch.empty_like(current)
    for block in edges.blocks(torch.device("cpu")):
        step(block, current, back, walk=walk, out=out[block.nodes])
    return real_numbers(out, units)


@pytest.mark.parametrize("clip", [0.5, 0.1])
def test_the_kernel_equals_the_plain_one(edges, features, clip):
    for restart in (0.0, 0.3, 1.0):
        walk, origin = Walk(restart=restart, clip=clip), features.flip(0)
        found, expected = (
            stepped(step, edges, features, origin, walk) for step in (walk_step, multiply_plain.walk_step)
        )
        assert torch.equal(found, expected)


@pytest.mark.parametrize("clip", [0.5, 0.1])
def test_the_plain_kernel_equals_the_matrix(edges, features, clip):
    origin = features.flip(0)
    found = stepped(multiply_plain.walk_step, edges, features, origin, Walk(restart=0.3, clip=clip))
    close(found, 0.7 * dense_transition(edges, clip) @ features + 0.3 * origin)


def test_some_rows_are_those_of_all_rows(edges, features):
    schemes, rows = Schemes(restart=0.3, steps=(1, 3)), torch.arange(edges.num_nodes) % 3 == 0
    assert torch.equal(propagate(edges, features, schemes, rows=rows), propagate(edges, features, schemes)[rows])


def test_several_schemes_stand_side_by_side_with_weight_one_over_s(edges, features):
    steps = (2, 0, math.inf, 2, 5)
    found = propagate(edges, features, Schemes(restart=0.3, steps=steps))
    assert found.shape == (edges.num_nodes, 25)
    blocks = [propagate(edges, features, Schemes(restart=0.3, steps=(count,))) for count in steps]
    close(found, torch.cat(blocks, dim=1) / 5)
    assert torch.equal(found[:, :5], found[:, 15:20])
    close(found[:, 5:10], features / 5)


@pytest.mark.parametrize("steps", [(0,), (3, math.inf), (0, 0)])
def test_restart_one_reads_no_edge(edges, features, steps):
    schemes = Schemes(restart=1.0, steps=steps)
    assert not schemes.reads_edges
    close(propagate(edges, features, schemes), features.repeat(1, len(steps)) / len(steps))


def test_which_schemes_read_edges():
    assert not Schemes(0.5, (0, 0)).reads_edges
    assert Schemes(0.5, (0, 1)).reads_edges
    assert Schemes(0.0, (1,)).reads_edges


def test_isolated_nodes_keep_their_features(features, edges):
    isolated = edges.degrees == 0
    found = propagate(edges, features, Schemes(restart=0.3, steps=(4,)))
    close(found[isolated], features[isolated])


def test_a_complete_graph_averages():
    edges = public_edges(torch.tensor(list(networkx.complete_graph(10).edges())).T, 10)
    features = torch.randn(10, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    mean = features.mean(dim=0, keepdim=True)
    close(propagate(edges, features, Schemes(restart=0.3, steps=(1,))), 0.7 * mean + 0.3 * features)
    close(propagate(edges, features, Schemes(restart=0.0, steps=(6,))), mean.expand(10, 3))


def test_rows_sum_to_one(edges):
    ones = torch.ones(edges.num_nodes, 1, dtype=torch.float64)
    for steps in (1, 30, math.inf):
        close(propagate(edges, ones, Schemes(restart=0.2, steps=(steps,), clip=0.4)), ones, 1e-10)


def test_results_are_float64_and_the_features_stay(edges, features):
    narrow = features.float()
    before = narrow.clone()
    found = propagate(edges, narrow, Schemes(restart=0.5, steps=(0, 2)))
    assert found.dtype == torch.float64
    assert torch.equal(narrow, before)
    close(found, propagate(edges, narrow.double(), Schemes(restart=0.5, steps=(0, 2))))


@settings(max_examples=25, deadline=None)
@given(
    pairs=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30),
    loops=st.lists(st.integers(0, 9), max_size=5),
    data=st.data(),
)
def test_order_direction_loops_and_repeats_do_not_matter(pairs, loops, data):
    changed = data.draw(st.permutations([pair[::-1] for pair in pairs] + pairs[:3] + [(node, node) for node in loops]))
    features = torch.randn(10, 2, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    first, second = (
        propagate(
            public_edges(torch.tensor(given, dtype=torch.int64).reshape(-1, 2).T, 10),
            features,
            Schemes(restart=0.3, steps=(1, 3)),
        )
        for given in (pairs, changed)
    )
    assert torch.equal(first, second)


def test_parts_of_a_graph_do_not_meet():
    edges = public_edges(torch.tensor([[0, 1, 3], [1, 2, 4]]), 5)
    features = torch.zeros(5, 1, dtype=torch.float64)
    features[0] = 1.0
    found = propagate(edges, features, Schemes(restart=0.1, steps=(20,)))
    assert torch.equal(found[3:], torch.zeros(2, 1, dtype=torch.float64))
    assert (found[:3] > 0).all()


@pytest.mark.parametrize(
    ("restart", "steps", "clip", "parameter"),
    [
        (-0.1, (1,), 0.5, "restart"),
        (1.1, (1,), 0.5, "restart"),
        (math.nan, (1,), 0.5, "restart"),
        (0.0, (math.inf,), 0.5, "restart"),
        (0.0, (1, math.inf), 0.5, "restart"),
        (1e-5, (math.inf,), 0.5, "restart"),
        (0.5, (), 0.5, "steps"),
        (0.5, (-1,), 0.5, "steps"),
        (0.5, (1.5,), 0.5, "steps"),
        (0.5, (1001,), 0.5, "steps"),
        (0.5, (math.nan,), 0.5, "steps"),
        (0.5, (-math.inf,), 0.5, "steps"),
        (0.5, (True,), 0.5, "steps"),
        (0.5, ("two",), 0.5, "steps"),
        (0.5, (None,), 0.5, "steps"),
        (0.5, (1,), 0.0, "clip"),
        (0.5, (1,), 0.51, "clip"),
        (0.5, (1,), math.nan, "clip"),
    ],
)
def test_bad_schemes(restart, steps, clip, parameter):
    with pytest.raises(InputError, match=rf"^{parameter}"):
        Schemes(restart=restart, steps=steps, clip=clip)


@pytest.mark.parametrize(
    ("given_steps", "steps"),
    [
        (2, (2,)),
        (2.0, (2,)),
        ("inf", (math.inf,)),
        (math.inf, (math.inf,)),
        ([0, "inf"], (0, math.inf)),
        ((1000,), (1000,)),
    ],
)
def test_how_steps_may_be_written(given_steps, steps):
    assert as_steps(given_steps) == steps
    assert Schemes(restart=0.5, steps=as_steps(given_steps)).steps == steps
    assert all(isinstance(count, int) or math.isinf(count) for count in as_steps(given_steps))


@pytest.mark.parametrize("restart", [0.01, 0.2, 0.9, 0.999])
@pytest.mark.parametrize("num_nodes", [1, 1000, 10**6])
def test_how_many_steps_stand_for_infinitely_many(restart, num_nodes):
    schemes = Schemes(restart=restart, steps=(math.inf,))
    count = schemes.limit_iterations(num_nodes)
    assert num_nodes * (1 - restart) ** count <= 1e-10 * (1 + 1e-9)
    assert num_nodes * (1 - restart) ** (count - 1) > 1e-10 * (1 - 1e-9)
    assert schemes.truncation(num_nodes) == pytest.approx(2 * num_nodes * (1 - restart) ** count)
    assert schemes.truncation(num_nodes) <= 2.0000001e-10


def test_schemes_are_frozen_and_comparable():
    assert Schemes(0.5, (1, 2)) == Schemes(0.5, (1.0, 2.0))
    assert hash(Schemes(0.5, (math.inf,))) == hash(Schemes(0.5, ("inf",)))
    with pytest.raises(AttributeError):
        Schemes(0.5, (1,)).restart = 0.1


def test_a_larger_graph():
    rng = np.random.default_rng(0)
    edges = public_edges(torch.from_numpy(rng.integers(0, 600, (2, 4000))), 600)
    features = torch.from_numpy(rng.standard_normal((600, 8)))
    close(propagate(edges, features, Schemes(0.2, (2,))), dense_propagation(edges, 0.2, 2) @ features)
