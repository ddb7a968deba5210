"""Entries of rows: that they rise, have no loops and stand in the rows of both ends is found in any division into pieces."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gcon.edges import first_pass
from gcon.edges.edge_list import public_edges
from gcon.edges.first_pass import SimpleGraphCheck, _mixed

SETTINGS = settings(deadline=None, derandomize=True, max_examples=25)


def graph(num_nodes, count, seed):
    pairs = np.random.default_rng(seed).integers(0, num_nodes, (2, count))
    edges = public_edges(torch.from_numpy(pairs), num_nodes)
    return edges.row_pointers.numpy(), edges.columns.numpy()


def in_pieces(pointers, columns, size):
    check = SimpleGraphCheck(pointers)
    for start in range(0, len(columns), size):
        check.update(start, columns[start : start + size])
    return check.simple, check.balance


def apart(pointers, columns, size):
    """Every piece by itself, as the workers of a cluster see them."""
    simple, balance = True, 0
    for start in range(0, len(columns), size):
        check = SimpleGraphCheck(pointers)
        if start:
            check.goes_on_after(start - 1, int(columns[start - 1]))
        check.update(start, columns[start : start + size])
        simple, balance = simple and check.simple, balance + check.balance
    return simple, balance % 2**64


def without(pointers, columns, place):
    """The same rows with one entry less."""
    return pointers - (np.arange(len(pointers)) > row_of(pointers, place)), np.delete(columns, place)


def row_of(pointers, place):
    return int(np.searchsorted(pointers, place, side="right")) - 1


@pytest.fixture(params=[1, 3, 2**15], ids=lambda size: f"{size} at once", scope="module", autouse=True)
def _pieces(request):
    kept, first_pass._AT_ONCE = first_pass._AT_ONCE, request.param
    yield
    first_pass._AT_ONCE = kept


@SETTINGS
@given(nodes=st.integers(1, 30), count=st.integers(0, 120), seed=st.integers(0, 99), size=st.integers(1, 40))
def test_a_simple_undirected_graph_passes(nodes, count, seed, size):
    pointers, columns = graph(nodes, count, seed)
    assert in_pieces(pointers, columns, size) == apart(pointers, columns, size) == (True, 0)
    assert in_pieces(pointers, columns.astype(np.int64), size) == (True, 0)


@SETTINGS
@given(seed=st.integers(0, 99), place=st.integers(0, 10**6), size=st.integers(1, 40))
def test_an_edge_in_one_row_only_is_found(seed, place, size):
    pointers, columns = graph(30, 100, seed)
    pointers, columns = without(pointers, columns, place % len(columns))
    for look in (in_pieces, apart):
        simple, balance = look(pointers, columns, size)
        assert simple
        assert balance != 0


@SETTINGS
@given(seed=st.integers(0, 99), place=st.integers(0, 10**6), size=st.integers(1, 40))
def test_repeats_loops_and_falling_rows_are_found(seed, place, size):
    pointers, columns = graph(30, 100, seed)
    inside = [entry for entry in range(1, len(columns)) if row_of(pointers, entry) == row_of(pointers, entry - 1)]
    entry = inside[place % len(inside)]
    repeated, falling, loop = columns.copy(), columns.copy(), columns.copy()
    repeated[entry] = columns[entry - 1]
    falling[[entry - 1, entry]] = columns[[entry, entry - 1]]
    loop[entry] = row_of(pointers, entry)
    for wrong in (repeated, falling, loop):
        for look in (in_pieces, apart):
            assert not look(pointers, wrong, size)[0]


def test_a_directed_star_and_a_circle_are_found():
    """In both every node could have the right number of neighbours: counting would not do."""
    star = np.array([0, 5, 5, 5, 5, 5, 5]), np.arange(1, 6)
    circle = np.arange(7), np.array([1, 2, 3, 4, 5, 0])
    for pointers, columns in (star, circle):
        simple, balance = in_pieces(pointers, columns, 2)
        assert simple
        assert balance != 0


def test_different_nodes_are_mixed_differently():
    nodes = np.concatenate([np.arange(100_000), 2**31 - 1 + np.arange(1000), 2**32 - 1 - np.arange(1000)])
    mixed = _mixed(nodes)
    assert len(np.unique(mixed)) == len(nodes)
    assert mixed.all()
    shares = [float((mixed >> np.uint64(bit) & np.uint64(1)).mean()) for bit in range(64)]
    assert all(abs(share - 0.5) < 0.02 for share in shares)  # the same in every run
