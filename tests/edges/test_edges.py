"""Whatever comes in, one simple undirected graph comes out."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.opened import open_private

from gcon.edges.edge_list import EdgeHygiene, private_edges, public_edges
from gcon.errors import BoundaryError, InputError
from gcon.privacy.boundary import Private

pairs_on_eight_nodes = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=30)


def matrix(pairs):
    return torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T


def undirected(edges):
    return {frozenset(pair) for pair in edges.edge_index().T.tolist()}


def test_one_direction_becomes_both():
    edges = public_edges(matrix([(0, 1), (2, 1)]), 4)
    assert edges.row_pointers.tolist() == [0, 1, 3, 4, 4]
    assert edges.columns.tolist() == [1, 0, 2, 1]
    assert edges.degrees.tolist() == [1, 2, 1, 0]
    assert edges.neighbours(1).tolist() == [0, 2]
    assert edges.neighbours(3).tolist() == []
    assert edges.edge_index().tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]


def test_loops_and_duplicates_go():
    edges, hygiene = private_edges(matrix([(0, 1), (1, 0), (0, 1), (2, 2), (2, 2), (1, 2)]), 3)
    assert undirected(open_private(edges)) == {frozenset({0, 1}), frozenset({1, 2})}
    assert open_private(hygiene) == EdgeHygiene(given=6, self_loops=2, duplicates=2, kept=2)


@given(pairs=pairs_on_eight_nodes)
def test_against_plain_sets(pairs):
    edges = public_edges(matrix(pairs), 8)
    expected = {frozenset(pair) for pair in pairs if pair[0] != pair[1]}
    assert undirected(edges) == expected
    assert edges.columns.numel() == 2 * len(expected)
    for node in range(8):
        neighbours = edges.neighbours(node).tolist()
        assert neighbours == sorted({other for pair in expected if node in pair for other in pair - {node}})


@given(pairs=pairs_on_eight_nodes, data=st.data())
def test_order_direction_and_repeats_do_not_matter(pairs, data):
    shuffled = data.draw(st.permutations(pairs))
    flips = data.draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs)))
    changed = [pair[::-1] if flip else pair for pair, flip in zip(shuffled, flips, strict=True)]
    changed += data.draw(st.lists(st.sampled_from(pairs), max_size=5)) if pairs else []
    edges, other = public_edges(matrix(pairs), 8), public_edges(matrix(changed), 8)
    assert torch.equal(edges.row_pointers, other.row_pointers)
    assert torch.equal(edges.columns, other.columns)


@given(pairs=pairs_on_eight_nodes)
def test_counts_add_up(pairs):
    counts = open_private(private_edges(matrix(pairs), 8)[1])
    assert counts.given == len(pairs) == counts.self_loops + counts.duplicates + counts.kept
    assert min(counts.self_loops, counts.duplicates, counts.kept) >= 0


@settings(max_examples=20, deadline=None)
@given(pairs=pairs_on_eight_nodes)
def test_private_and_public_entries_agree(pairs):
    bare, wrapped = public_edges(matrix(pairs), 8), open_private(private_edges(matrix(pairs), 8)[0])
    assert torch.equal(bare.row_pointers, wrapped.row_pointers)
    assert torch.equal(bare.columns, wrapped.columns)
    assert bare.num_nodes == wrapped.num_nodes == 8


def test_cleaning_twice_changes_nothing():
    edges = public_edges(torch.randint(0, 50, (2, 400), generator=torch.Generator().manual_seed(0)), 50)
    again = public_edges(edges.edge_index(), 50)
    assert torch.equal(edges.columns, again.columns)
    assert torch.equal(edges.row_pointers, again.row_pointers)


@pytest.mark.parametrize("num_nodes", [0, 1, 5])
def test_no_edges(num_nodes):
    edges, hygiene = private_edges(torch.empty(2, 0, dtype=torch.int64), num_nodes)
    assert open_private(edges).row_pointers.tolist() == [0] * (num_nodes + 1)
    assert open_private(edges).columns.numel() == 0
    assert open_private(edges).edge_index().shape == (2, 0)
    assert open_private(hygiene) == EdgeHygiene(given=0, self_loops=0, duplicates=0, kept=0)


def test_only_loops():
    assert public_edges(matrix([(1, 1), (0, 0)]), 2).columns.numel() == 0


def test_columns_are_narrow_and_pointers_wide():
    edges = public_edges(matrix([(0, 1)]), 2)
    assert edges.columns.dtype == torch.int32
    assert edges.row_pointers.dtype == torch.int64
    assert edges.edge_index().dtype == torch.int64
    assert edges.neighbours(0).dtype == torch.int64


def test_large_node_numbers():
    edges = public_edges(matrix([(0, 3_000_000), (2_999_999, 3_000_000)]), 3_000_001)
    assert edges.neighbours(3_000_000).tolist() == [0, 2_999_999]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_any_integers_are_taken(dtype):
    assert undirected(public_edges(matrix([(0, 120), (120, 7)]).to(dtype), 121)) == {
        frozenset({0, 120}),
        frozenset({7, 120}),
    }


def test_the_input_is_left_alone():
    given_edges = matrix([(3, 1), (1, 1), (0, 2), (3, 1)])
    before = given_edges.clone()
    private_edges(given_edges, 4)
    assert torch.equal(given_edges, before)


def test_edges_and_counts_are_wrapped():
    edges, hygiene = private_edges(matrix([(0, 1), (1, 2), (2, 2)]), 3)
    for wrapped in (edges, hygiene):
        assert isinstance(wrapped, Private)
        assert not any(character.isdigit() for character in f"{wrapped}{wrapped!r}")
        with pytest.raises(BoundaryError):
            len(wrapped)
        with pytest.raises(AttributeError):
            _ = wrapped.kept


@pytest.mark.parametrize("enter", [public_edges, private_edges])
@pytest.mark.parametrize(
    ("edge_index", "rule"),
    [
        (torch.zeros(3, 4, dtype=torch.int64), "must have two rows"),
        (torch.zeros(4, dtype=torch.int64), "must have two rows"),
        (torch.zeros(2, 4, 1, dtype=torch.int64), "must have two rows"),
        (torch.zeros(2, 4), "must hold integer node numbers"),
        (torch.zeros(2, 4, dtype=torch.bool), "must hold integer node numbers"),
        (torch.zeros(2, 4, dtype=torch.complex64), "must hold integer node numbers"),
        (torch.tensor([[0, 977], [1, 1]]), "every end must be a node, numbered 0 to 4"),
        (torch.tensor([[0, 1], [5, 1]]), "every end must be a node, numbered 0 to 4"),
        (torch.tensor([[0, -977], [1, 1]]), "every end must be a node, numbered 0 to 4"),
    ],
)
def test_bad_edges(enter, edge_index, rule):
    with pytest.raises(InputError, match=f"^edges: {rule}") as raised:
        enter(edge_index, 5)
    assert "977" not in str(raised.value)
    assert "tensor" not in str(raised.value)
