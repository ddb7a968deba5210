"""Edge stores: the same graph as in memory, in whatever memory."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.files.stores import assert_same, cut, random_pairs, write

from gcon.files import edge_store, external_sort
from gcon.files.external_sort import EdgeSorter


@st.composite
def graphs(draw):
    """Few nodes and many pairs: loops, repeats, both directions, hubs and isolated nodes all occur."""
    num_nodes = draw(st.integers(1, 30))
    end = st.integers(0, num_nodes - 1)
    pairs = draw(st.lists(st.tuples(end, end), max_size=120))
    hub = draw(st.booleans())
    pairs += [(0, other) for other in range(num_nodes)] if hub else []
    return num_nodes, np.array(pairs, dtype=draw(st.sampled_from([np.int32, np.int64]))).reshape(-1, 2).T


@settings(deadline=None, derandomize=True, max_examples=120)
@given(graph=graphs(), size=st.integers(1, 60), an_edge=st.integers(40, 4096), a_key=st.integers(40, 4096))
def test_the_same_graph_as_in_memory(tmp_path_factory, graph, size, an_edge, a_key):
    num_nodes, pairs = graph
    target = tmp_path_factory.mktemp("store") / "edges.csr"
    with pytest.MonkeyPatch.context() as patch:  # runs of 1 to 102 edges, merged 1 to 102 keys at a time
        patch.setattr(external_sort, "EDGE_BYTES", an_edge)
        patch.setattr(external_sort, "KEY_BYTES", a_key)
        patch.setattr(edge_store, "CHUNK_BYTES", 24)
        write(target, pairs, num_nodes, size=size)
        assert_same(target, pairs, num_nodes)
    assert os.listdir(target.parent) == ["edges.csr"]
    assert sorted(os.listdir(target)) == ["columns.bin", "header.json", "row_pointers.bin"]


@pytest.mark.parametrize("num_nodes", [1, 2, 1000])
def test_no_edges(tmp_path, num_nodes):
    nothing = np.empty((2, 0), dtype=np.int64)
    write(tmp_path / "a.csr", nothing, num_nodes)
    assert_same(tmp_path / "a.csr", nothing, num_nodes)
    loops = np.zeros((2, 500), dtype=np.int64)
    write(tmp_path / "b.csr", loops, num_nodes)
    assert_same(tmp_path / "b.csr", loops, num_nodes)


def test_a_hub_larger_than_the_memory(tmp_path):
    star = np.stack([np.zeros(5000, dtype=np.int64), np.arange(5000)])
    write(tmp_path / "edges.csr", star[:, ::-1], 5000)
    assert_same(tmp_path / "edges.csr", star, 5000)


def test_sorted_input_and_chunks_larger_than_a_run(tmp_path):
    pairs = np.sort(random_pairs(300, 3000), axis=1)
    write(tmp_path / "edges.csr", pairs, 300, size=3000)
    assert_same(tmp_path / "edges.csr", pairs, 300)


def test_nodes_beyond_31_bits(tmp_path, monkeypatch):
    """Numbers that need the 32nd bit keep their order; the row pointers of so many nodes are not written here."""
    ends = np.array([[2**32 - 1, 5, 2**31], [0, 2**32 - 1, 2**31 - 1]])
    sorter = EdgeSorter(tmp_path, num_nodes=2**32, memory_bytes=4096)
    sorter.add(ends)
    assert sorter.finish() == 6
    ((keys, left),) = sorter.merged()
    assert left == 0
    rows, columns = external_sort.rows_and_columns(keys)
    pairs = [tuple(pair) for pair in ends.T.tolist()]
    assert list(zip(rows.tolist(), columns.tolist(), strict=True)) == sorted(pairs + [(b, a) for a, b in pairs])
    assert edge_store.column_type(2**31) == np.dtype("<i8")
    assert edge_store.column_type(2**31 - 1) == np.dtype("<i4")


def test_the_merge_holds_no_more_than_it_may(tmp_path):
    sorter = EdgeSorter(tmp_path, num_nodes=500, memory_bytes=40_000)
    for part in cut(random_pairs(500, 20_000), 700):
        sorter.add(part)
    keys = sorter.finish()
    runs = sorted(tmp_path.iterdir())
    assert len(runs) == 20
    assert all(run.stat().st_size <= 8 * 2000 for run in runs)
    assert sum(run.stat().st_size for run in runs) == 8 * keys
    pieces = [piece for piece, _ in sorter.merged()]
    assert all(piece.size <= 1000 for piece in pieces)  # 40 bytes a key
    joined = np.concatenate(pieces)
    assert (joined[1:] > joined[:-1]).all()
