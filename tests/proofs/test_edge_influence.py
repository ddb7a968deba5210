"""How far one edge moves all rows together: brute force against every bound, and equality where there should be."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.proofs.sharp import pair_bounds, searched_bounds

from gcon.edges.edge_list import EdgeList, public_edges
from gcon.edges.schemes import Schemes, propagate
from gcon.errors import UnprovenBoundError
from gcon.mechanisms.aggregates import Aggregates
from gcon.mechanisms.influence import (
    FeatureExtent,
    edge_influence,
    feature_extent,
    paper_influence,
    sharp_influence,
    sharp_is_proven,
    simple_influence,
)

STEPS = (1, 2, 5, 10, math.inf)
# The largest change over all graphs of up to six nodes, all edges, all features in {-1, +1} (so the diameter is 2).
LARGEST = {
    0.2: (1.600, 1.635556, 2.243840, 2.511214, 2.545455),
    0.4: (1.2, 1.2, 1.241880, 1.277697, 1.278689),
    0.6: (0.8,) * 5,
    0.8: (0.4,) * 5,
}
DIAMETER = 2.0
ROUNDING = 1e-9
searched = settings(max_examples=150, deadline=None, derandomize=True)


def changes_of_small_graphs(small_graphs, features: torch.Tensor, schemes: Schemes) -> list[np.ndarray]:
    """For every scheme: the row changes of every case, as (case, node, column), with the 1/s scaling undone."""
    before, after = (
        propagate(edges, small_graphs.tiled(features, edges), schemes) * schemes.num_blocks
        for edges in (small_graphs.before, small_graphs.after)
    )
    width = features.shape[1]
    return [
        small_graphs.changes(old, new).numpy()
        for old, new in zip(before.split(width, dim=1), after.split(width, dim=1), strict=True)
    ]


@pytest.mark.parametrize("restart", LARGEST)
def test_all_graphs_up_to_six_nodes(small_graphs, sign_patterns, restart):
    schemes = Schemes(restart=restart, steps=STEPS)
    extent = FeatureExtent(diameter=DIAMETER, longest_row=1.0)
    for steps, changes, largest in zip(
        STEPS, changes_of_small_graphs(small_graphs, sign_patterns, schemes), LARGEST[restart], strict=True
    ):
        moved = np.abs(changes).sum(axis=1).max(axis=1)
        assert moved.max() == pytest.approx(largest, abs=1e-6)
        psi, phi = pair_bounds(small_graphs.first_degree, small_graphs.second_degree, restart, steps)
        assert (moved <= DIAMETER * psi + ROUNDING).all()
        for bound in ("paper", "simple", "sharp", "auto"):
            influence = edge_influence(Schemes(restart=restart, steps=(steps,)), extent, num_nodes=6, bound=bound)
            assert moved.max() <= influence.value + ROUNDING
        # The worst labels for one feature put all that rise into one class and all that fall into another.
        rising, falling = np.clip(changes, 0, None).sum(axis=1), np.clip(-changes, 0, None).sum(axis=1)
        class_sums = np.hypot(rising, falling).max(axis=1)
        assert (class_sums <= DIAMETER * phi + ROUNDING).all()
        assert class_sums.max() <= DIAMETER * searched_bounds(restart, steps)[1] + ROUNDING


@pytest.mark.parametrize("restart", [0.1, 0.3, 0.5, 0.7, 0.9])
@pytest.mark.parametrize("steps", [2, 3, 4, 7])
def test_other_restarts_and_steps_per_degree_pair(small_graphs, sign_patterns, restart, steps):
    changes = changes_of_small_graphs(small_graphs, sign_patterns, Schemes(restart=restart, steps=(steps,)))[0]
    psi, _ = pair_bounds(small_graphs.first_degree, small_graphs.second_degree, restart, steps)
    assert (np.abs(changes).sum(axis=1).max(axis=1) <= DIAMETER * psi + ROUNDING).all()


@pytest.mark.parametrize("clip", [0.5, 0.4, 0.25, 0.1])
@pytest.mark.parametrize("restart", [0.0, 0.2, 0.6])
def test_the_simple_bound_holds_with_clipping_and_without_restart(small_graphs, sign_patterns, restart, clip):
    schemes = Schemes(restart=restart, steps=(1, 2, 5, 10), clip=clip)
    for steps, changes in zip(
        schemes.steps, changes_of_small_graphs(small_graphs, sign_patterns, schemes), strict=True
    ):
        moved = np.abs(changes).sum(axis=1).max()
        assert moved <= DIAMETER * simple_influence(restart, steps, clip=clip) + ROUNDING
        if steps == 1:  # attained by the isolated pair
            assert moved == pytest.approx(DIAMETER * simple_influence(restart, 1, clip=clip))


def test_without_restart_the_bound_is_the_number_of_steps():
    assert simple_influence(0.0, 7) == 7
    assert paper_influence(0.0, 7) == 14
    assert simple_influence(0.0, 0) == paper_influence(0.3, 0) == 0


@pytest.mark.parametrize("restart", [0.0, 0.2, 0.5, 0.8, 1.0])
def test_an_isolated_pair_moves_by_exactly_one_minus_restart(restart):
    steps = (1, 2, 7, math.inf) if restart > 0 else (1, 2, 7)
    schemes = Schemes(restart=restart, steps=steps)
    features = torch.tensor([[1.0], [-1.0]])
    joined, apart = public_edges(torch.tensor([[0], [1]]), 2), public_edges(torch.empty(2, 0, dtype=torch.int64), 2)
    moved = (propagate(joined, features, schemes) - propagate(apart, features, schemes)).abs().sum(dim=0)
    np.testing.assert_allclose(moved * schemes.num_blocks, DIAMETER * (1 - restart), atol=1e-9)
    if restart >= 0.8:
        for count in steps:
            assert sharp_influence(restart, count) == pytest.approx(1 - restart)


@pytest.mark.parametrize("restart", [0.1, 0.2, 0.3])
def test_a_large_double_star_comes_close_to_the_sharp_bound_in_the_limit(restart):
    leaves = 3000
    first, second = torch.arange(2, 2 + leaves), torch.arange(2 + leaves, 2 + 2 * leaves)
    star = torch.stack(
        [torch.cat([first, second]), torch.cat([torch.zeros(leaves), torch.ones(leaves)]).to(torch.int64)]
    )
    num_nodes = 2 + 2 * leaves
    features = torch.ones(num_nodes, 1)
    features[[1, *second.tolist()]] = -1
    schemes = Schemes(restart=restart, steps=(math.inf,))
    apart = public_edges(star, num_nodes)
    joined = public_edges(torch.cat([star, torch.tensor([[0], [1]])], dim=1), num_nodes)
    moved = float((propagate(joined, features, schemes) - propagate(apart, features, schemes)).abs().sum())
    bound = DIAMETER * sharp_influence(restart, math.inf)
    assert 0.99 * bound <= moved <= bound


@st.composite
def neighbouring_graphs(draw: st.DrawFn) -> tuple[EdgeList, EdgeList, int, int]:
    """A random tree with a few more edges, and the same without one edge; also that edge's end degrees."""
    num_nodes = draw(st.integers(2, 40))
    reach = draw(st.integers(1, num_nodes))  # 1 gives a path; a large one gives bushy trees
    pairs = {(draw(st.integers(max(0, child - reach), child - 1)), child) for child in range(1, num_nodes)}
    node = st.integers(0, num_nodes - 1)
    extra = draw(st.lists(st.tuples(node, node), max_size=draw(st.sampled_from([0, num_nodes // 2, 3 * num_nodes]))))
    pairs |= {(min(u, v), max(u, v)) for u, v in extra if u != v}
    # The edge between the two busiest adjacent nodes, the two idlest, or any.
    ordered = sorted(pairs)
    degrees = np.bincount(np.array(ordered).ravel(), minlength=num_nodes)
    edge = draw(
        st.sampled_from(
            [
                max(ordered, key=lambda pair: degrees[pair[0]] + degrees[pair[1]]),
                min(ordered, key=lambda pair: degrees[pair[0]] + degrees[pair[1]]),
                draw(st.sampled_from(ordered)),
            ]
        )
    )
    rest = [pair for pair in ordered if pair != edge]
    graphs = [
        public_edges(torch.tensor(kept, dtype=torch.int64).reshape(-1, 2).T, num_nodes) for kept in (ordered, rest)
    ]
    return graphs[0], graphs[1], int(degrees[edge[0]]), int(degrees[edge[1]])


def searched_features(kind: str, num_nodes: int, seed: int) -> torch.Tensor:
    random = torch.Generator().manual_seed(seed)
    if kind == "signs":
        return torch.randint(0, 2, (num_nodes, 64), generator=random).to(torch.float64) * 2 - 1
    features = torch.randn(num_nodes, 3, generator=random, dtype=torch.float64)
    if kind == "unit rows":
        return features / torch.linalg.vector_norm(features, dim=1, keepdim=True)
    if kind == "unit non-negative rows":
        return features.abs() / torch.linalg.vector_norm(features, dim=1, keepdim=True)
    return 5 * features + 100  # far from the origin: only the diameter may matter


@pytest.mark.slow
@searched
@given(
    graphs=neighbouring_graphs(),
    restart=st.sampled_from([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8]),
    kind=st.sampled_from(["signs", "unit rows", "unit non-negative rows", "offset"]),
    seed=st.integers(0, 2**16),
)
def test_larger_graphs(graphs, restart, kind, seed):
    before, after, first, second = graphs
    schemes = Schemes(restart=restart, steps=(1, 2, 3, 5, 10, math.inf))
    features = searched_features(kind, before.num_nodes, seed)
    if kind == "signs":  # every column is a problem of its own
        diameter, width = 2.0, 1
        extent = FeatureExtent(diameter=2.0, longest_row=1.0)
    else:
        extent, width = feature_extent(features), features.shape[1]
        diameter = extent.diameter
    change = (propagate(after, features, schemes) - propagate(before, features, schemes)) * schemes.num_blocks
    for steps, block in zip(schemes.steps, change.split(features.shape[1], dim=1), strict=True):
        rows = torch.linalg.vector_norm(block.reshape(before.num_nodes, -1, width), dim=2)
        moved = float(rows.sum(dim=0).max())
        allowance = ROUNDING * max(1.0, extent.longest_row)
        psi, phi = (float(value[0]) for value in pair_bounds(first, second, restart, steps))
        assert moved <= diameter * psi + allowance
        one = Schemes(restart=restart, steps=(steps,))
        for bound in ("simple", "sharp", "auto") + (("paper",) if extent.longest_row <= 1 else ()):
            assert moved <= edge_influence(one, extent, num_nodes=before.num_nodes, bound=bound).value + allowance
        # Class sums, with random labels for three classes and for "no label".
        labels = torch.randint(0, 4, (before.num_nodes,), generator=torch.Generator().manual_seed(seed))
        one_hot = torch.nn.functional.one_hot(labels, 4)[:, :3].to(torch.float64)
        sums = torch.einsum("nc,npw->cpw", one_hot, block.reshape(before.num_nodes, -1, width))
        frobenius = float(sums.square().sum(dim=(0, 2)).sqrt().max())
        assert frobenius <= diameter * phi + allowance


@searched
@given(
    graphs=neighbouring_graphs(),
    clip=st.sampled_from([0.45, 0.3, 0.15]),
    restart=st.sampled_from([0.0, 0.2, 0.5]),
    seed=st.integers(0, 2**16),
)
def test_larger_clipped_graphs(graphs, clip, restart, seed):
    before, after, _, _ = graphs
    schemes = Schemes(restart=restart, steps=(1, 3, 8), clip=clip)
    features = searched_features("signs", before.num_nodes, seed)
    change = (propagate(after, features, schemes) - propagate(before, features, schemes)) * schemes.num_blocks
    for steps, block in zip(schemes.steps, change.split(features.shape[1], dim=1), strict=True):
        moved = float(block.abs().sum(dim=0).max())
        assert moved <= DIAMETER * simple_influence(restart, steps, clip=clip) + ROUNDING


@searched
@given(graphs=neighbouring_graphs(), restart=st.sampled_from([0.2, 0.5, 0.8]), seed=st.integers(0, 2**16))
def test_concatenated_schemes_move_by_at_most_the_mean(graphs, restart, seed):
    before, after, _, _ = graphs
    schemes = Schemes(restart=restart, steps=(0, 1, 2, math.inf))
    features = searched_features("unit rows", before.num_nodes, seed)
    extent = feature_extent(features)
    old, new = propagate(before, features, schemes), propagate(after, features, schemes)
    moved = float(torch.linalg.vector_norm(new - old, dim=1).sum())
    for bound in ("paper", "simple", "sharp", "auto"):
        influence = edge_influence(schemes, extent, num_nodes=before.num_nodes, bound=bound)
        parts = [
            edge_influence(
                Schemes(restart=restart, steps=(steps,)), extent, num_nodes=before.num_nodes, bound=bound
            ).value
            for steps in schemes.steps
        ]
        assert influence.value == pytest.approx(sum(parts) / 4)
        assert influence.bounds[0] == "no edge is read"
        assert moved <= influence.value + ROUNDING
    # Rows of the concatenation are at most 1/sqrt(s) long.
    assert float(torch.linalg.vector_norm(new, dim=1).max()) <= 1 / math.sqrt(4) + ROUNDING


@pytest.mark.slow
@searched
@given(graphs=neighbouring_graphs(), restart=st.sampled_from([0.05, 0.2, 0.5]), seed=st.integers(0, 2**16))
def test_stopping_the_limit_early_costs_at_most_the_truncation(graphs, restart, seed):
    before, _, _, _ = graphs
    num_nodes = before.num_nodes
    features = searched_features("offset", num_nodes, seed)
    schemes = Schemes(restart=restart, steps=(math.inf,))
    adjacency = torch.zeros(num_nodes, num_nodes, dtype=torch.float64)
    adjacency[tuple(before.edge_index())] = 1
    adjacency += torch.eye(num_nodes, dtype=torch.float64)
    transition = adjacency / adjacency.sum(dim=1, keepdim=True)
    identity = torch.eye(num_nodes, dtype=torch.float64)
    limit = restart * torch.linalg.solve(identity - (1 - restart) * transition, features)
    diameter = feature_extent(features).diameter
    for steps in (1, 4, 20):
        rows = torch.linalg.vector_norm(
            propagate(before, features, Schemes(restart=restart, steps=(steps,))) - limit, dim=1
        )
        assert float(rows.max()) <= (1 - restart) ** steps * diameter + 1e-9
    rows = torch.linalg.vector_norm(propagate(before, features, schemes) - limit, dim=1)
    assert 2 * float(rows.sum()) <= schemes.truncation(num_nodes) * diameter + 1e-9
    assert schemes.truncation(num_nodes) <= 2e-10


def test_the_truncation_is_needed_because_the_sharp_bound_is_not_monotone_in_the_steps():
    assert sharp_influence(0.2, 10) > sharp_influence(0.2, math.inf)
    extent = FeatureExtent(diameter=1.0, longest_row=1.0)
    schemes = Schemes(restart=0.2, steps=(math.inf,))
    influence = edge_influence(schemes, extent, num_nodes=1000, bound="sharp").value
    assert influence == sharp_influence(0.2, math.inf) + schemes.truncation(1000)
    for bound in (paper_influence, simple_influence):
        values = [bound(0.2, steps) for steps in (1, 2, 10, 100, 1000, math.inf)]
        assert values == sorted(values)


@pytest.mark.parametrize("steps", [1, 2, 5, math.inf])
def test_more_restart_means_less_influence(steps):
    for bound in (paper_influence, simple_influence):
        values = [bound(restart, steps) for restart in (0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0)]
        assert values == sorted(values, reverse=True)
        assert values[-1] == 0


def test_nothing_moves_where_no_edge_is_read():
    extent = FeatureExtent(diameter=1.0, longest_row=5.0)
    for schemes in (Schemes(restart=1.0, steps=(2, math.inf)), Schemes(restart=0.3, steps=(0,))):
        assert edge_influence(schemes, extent, num_nodes=10).value == 0.0
        assert not schemes.reads_edges


def test_the_paper_bound_needs_short_rows():
    with pytest.raises(UnprovenBoundError, match="length at most 1"):
        edge_influence(Schemes(restart=0.5, steps=(2,)), FeatureExtent(1.0, 1.5), num_nodes=10, bound="paper")
    # Rows of length 1.5 moved by 2 * 1.5 * (1 - restart): more than the paper's bound for unit rows.
    assert paper_influence(0.5, 1) < DIAMETER * 1.5 * 0.5


def test_aggregates_carry_the_bound_of_their_own_features():
    features = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    schemes = Schemes(restart=0.8, steps=(2,))
    aggregates = Aggregates(features, schemes)  # the bound is there before any edge is
    assert aggregates.edge_influence == pytest.approx(0.2 * math.sqrt(2), rel=1e-8)
    sides = [aggregates.of(public_edges(torch.tensor(pairs), 3)) for pairs in ([[0, 1], [1, 2]], [[0], [1]])]
    moved = torch.linalg.vector_norm(sides[0] - sides[1], dim=1).sum()
    assert 0 < float(moved) <= aggregates.edge_influence


@searched
@given(
    seed=st.integers(0, 2**16),
    num_rows=st.integers(1, 40),
    width=st.sampled_from([1, 3, 300]),
    spread=st.sampled_from([0.0, 1e-9, 1e-7, 1e-6, 1e-4, 1.0]),
    exact=st.booleans(),
)
def test_the_diameter_is_never_rounded_down(seed, num_rows, width, spread, exact):
    random = torch.Generator().manual_seed(seed)
    centre = torch.rand(width, generator=random, dtype=torch.float64)
    features = centre + spread * torch.randn(num_rows, width, generator=random, dtype=torch.float64)
    if spread == 1.0:
        features = features.abs()
    pairs = torch.linalg.vector_norm(features[:, None] - features[None], dim=2)
    extent = feature_extent(features, exact_up_to=10**6 if exact else 0)
    assert extent.diameter >= float(pairs.max())
    assert extent.diameter <= 2 * extent.longest_row * (1 + 1e-8)
    assert extent.longest_row >= float(torch.linalg.vector_norm(features, dim=1).max()) - 1e-12


def test_every_cell_used_here_is_proven():
    assert all(sharp_is_proven(Schemes(restart=restart, steps=STEPS), steps) for restart in LARGEST for steps in STEPS)
