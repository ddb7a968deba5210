"""Rows stay on the workers: who has which is public, only what neighbours need is exchanged, and the coordinator holds little."""

import math
import os
import shutil
import sys
import time

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gcon.edges.cluster.edges
import gcon.mechanisms.counts
from gcon.edges.cluster.coordinator import in_bytes
from gcon.edges.cluster.desk import Desk
from gcon.edges.cluster.edges import open_cluster
from gcon.edges.cluster.packing import pack, pack_with_randomness
from gcon.edges.cluster.placed import Matrix, Partition, PlacedRows, RowsElsewhere, keeper
from gcon.edges.cluster.tasks import needed_rows, prepare, store_at
from gcon.edges.schemes import Schemes
from gcon.edges.store_format import HEADER
from gcon.edges.stored import StoredEdges
from gcon.errors import InputError, PrivateComputationError
from gcon.files.edge_store import write_edge_store
from gcon.mechanisms.counts import NeighbourCounts
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.privacy.randomness import SystemRandomness
from gcon_lab.bench.live_tensors import LiveTensors
from gcon_lab.mechanisms.class_sums import ClassSums

pytestmark = pytest.mark.slow

NODES, COLUMNS = 20_000, 16
ROWS = torch.randn(NODES, COLUMNS, generator=torch.Generator().manual_seed(1))
TARGETS = torch.zeros(NODES, 2)
TARGETS[::1000, 0] = 1
WALK = Schemes(restart=0.3, steps=(2,))


@given(st.integers(1, 300), st.integers(1, 9))
def test_every_node_has_one_owner_and_one_place(nodes, parts):
    partition, numbers = Partition(nodes, parts), torch.arange(nodes)
    owners, places = partition.owners(numbers), partition.places(numbers)
    found = []
    for part in range(parts):
        for chunk in partition.chunks(part):
            assert (owners[chunk.nodes] == part).all()
            assert torch.equal(places[chunk.nodes], torch.arange(chunk.rows.start, chunk.rows.stop))
            found += range(chunk.nodes.start, chunk.nodes.stop)
        assert partition.count(part) == int((owners == part).sum())
    assert sorted(found) == list(range(nodes))


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Edges of 20,000 nodes: node 2 k and its successor, which always have the same owner, but for the first three hundred."""
    folder = tmp_path_factory.mktemp("pairs") / "edges.csr"
    even = np.arange(0, NODES, 2)
    near, far = np.stack([even, even + 1]), np.stack([np.arange(300), NODES - 1 - np.arange(300)])
    write_edge_store([np.concatenate([near, far], axis=1)], folder, num_nodes=NODES)
    return folder


def test_needs_are_the_neighbours_that_others_have(pairs):
    edges, partition = StoredEdges(pairs), Partition(NODES, 3)
    for part in range(3):
        expected = set()
        for chunk in partition.chunks(part):
            expected |= set(edges.block(chunk.nodes).columns.tolist())
        expected = {node for node in expected if int(partition.owners(torch.tensor(node))) != part}
        needs = needed_rows(edges, partition, part)
        assert set(torch.cat(needs).tolist()) == expected
        for owner, nodes in enumerate(needs):
            assert (partition.owners(nodes.long()) == owner).all()
            assert nodes.dtype == torch.int32


@pytest.mark.parametrize("nodes", [NODES - 1, NODES + 1])
def test_a_store_that_was_replaced_since_it_was_opened_is_refused(pairs, nodes):
    desk = Desk("run", 0, ("tls://127.0.0.1:9",), Partition(nodes, 1), pairs)
    with pytest.raises(InputError, match="as it was opened"):
        prepare(desk, store_at(pairs).identity)
    with pytest.raises(InputError, match="as it was opened"):
        prepare(Desk("run", 0, ("tls://127.0.0.1:9",), Partition(NODES, 1), pairs), "another")


def watched(statistic):
    """A computation, how much memory its tensors took at the coordinator, and the bytes that its workers received."""

    def compute(edges):
        with LiveTensors() as live:
            value = statistic.precisely(edges)
        return value, live.peak, edges._team.ask_all("moved")

    return compute


@pytest.mark.parametrize("kind", ["moments", "walk"])
def test_the_coordinator_holds_no_rows_and_workers_get_what_they_need(cluster, pairs, kind, nearness):
    statistic = EdgeMoments(ROWS) if kind == "moments" else ClassSums(ROWS, TARGETS, WALK)
    there = open_cluster(cluster.address, pairs, security=cluster.security)
    value, peak, moved = there.run(watched(statistic))
    expected = statistic.precisely(StoredEdges(pairs))
    assert torch.equal(value.value, expected.value)
    assert peak < 0.1 * ROWS.nbytes
    needs = [needed_rows(StoredEdges(pairs), Partition(NODES, 2), part) for part in range(2)]
    row_bytes, passes = (4, 1) if kind == "moments" else (8, 2)
    expected = [sum(map(len, each)) * COLUMNS * row_bytes * passes for each in needs]
    assert 0 < max(expected) < 0.1 * ROWS.nbytes
    # Mixed: the first asks one that lends; the second has what the client lends, but nobody lends it the first one's steps.
    mixed = [0, 1] if kind == "moments" else [0]
    read_in_place = {"near": [0, 1], "far": [], "mixed": mixed}[nearness]
    assert moved == [0 if part in read_in_place else count for part, count in enumerate(expected)]


@pytest.mark.usefixtures("nearness")
def test_counts_go_past_the_scheduler_in_as_many_bytes_for_every_graph(cluster, pairs, tmp_path, monkeypatch):
    """Codes reach the coordinator, and counts come back, without it; what workers send does not depend on how many there are."""
    counts = NeighbourCounts(codes=torch.arange(NODES) % 3, num_codes=3, rate=math.inf)

    def compute(edges):
        parts = edges.map_blocks(gcon.mechanisms.counts._counted, torch.ones(NODES, 1, dtype=torch.int32))
        return counts.apply(edges, SystemRandomness()).value, {part.dtype for part in parts}

    for name in ("gather", "scatter"):
        monkeypatch.setitem(cluster.dask.scheduler.handlers, name, None)  # an error where somebody asks
    star, ends = tmp_path / "star", np.arange(1, NODES)
    write_edge_store([np.stack([np.zeros_like(ends), ends])], star, num_nodes=NODES)
    for folder in (pairs, star):
        found, kinds = open_cluster(cluster.address, folder, security=cluster.security).run(compute)
        assert torch.equal(found, counts.apply(StoredEdges(folder), SystemRandomness()).value)
        assert kinds == {torch.int32}


def test_workers_keep_freed_memory_and_one_thread(client):
    names = {"MALLOC_TRIM_THRESHOLD_": 2**28, "MALLOC_MMAP_THRESHOLD_": 2**25, "OMP_NUM_THREADS": 1}
    for found in client.run(lambda: {name: int(os.environ[name]) for name in names}).values():
        assert found == names


def on_desks():
    """How many computations a worker has rows of, and how much memory it lends."""
    from gcon.edges.cluster import desk

    links = (os.path.join("/proc/self/fd", name) for name in os.listdir("/proc/self/fd"))
    return len(desk._desks) + sum("memfd:gcon" in os.readlink(link) for link in links if os.path.lexists(link))


@pytest.mark.parametrize("ends", ["well", "badly"])
def test_nothing_is_left_on_the_workers(cluster, client, pairs, ends):
    there = open_cluster(cluster.address, pairs, security=cluster.security)
    if ends == "well":
        there.run(EdgeMoments(ROWS).precisely)
    else:

        def fail(edges):
            next(edges.steps(ROWS, lambda rows: rows.long(), None, 0))
            raise ValueError

        with pytest.raises(PrivateComputationError):
            there.run(fail)
    until = time.monotonic() + 20
    while any(client.run(on_desks).values()) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(client.run(on_desks).values())


def test_a_store_is_checked_once_and_again_where_it_was_replaced(cluster, client, pairs, tmp_path):
    copy = tmp_path / "edges.csr"
    shutil.copytree(pairs, copy)

    def watch():
        from gcon.edges.cluster import tasks

        if not hasattr(tasks, "seen"):
            tasks.seen, real = [], tasks.chunk_balance
            tasks.chunk_balance = lambda *given: tasks.seen.append(1) or real(*given)
        tasks.seen.clear()

    def seen():
        from gcon.edges.cluster import tasks

        return len(tasks.seen)

    def run():
        edges = open_cluster(cluster.address, copy, security=cluster.security)
        edges.run(EdgeMoments(torch.ones(NODES, 1)).precisely)
        return list(client.run(seen).values())

    client.run(watch)
    assert [run(), run()] == [[1, 1], [1, 1]]
    shutil.rmtree(copy)
    shutil.copytree(pairs, copy)
    os.utime(copy / HEADER)
    assert run() == [2, 2]


def test_workers_out_of_reach_are_said_before_anything_is_charged(cluster, pairs, monkeypatch):
    monkeypatch.setattr(gcon.edges.cluster.edges, "_address_book", lambda client: ["tls://127.0.0.1:9"])
    monkeypatch.setattr(gcon.edges.cluster.edges, "REACH_SECONDS", 0.5)
    with pytest.raises(InputError, match="within reach"):
        open_cluster(cluster.address, pairs, security=cluster.security)


@pytest.mark.parametrize(("largest", "dtype"), [(127, torch.int8), (128, torch.int32)])
def test_small_whole_numbers_travel_in_one_byte(largest, dtype):
    matrix = torch.tensor([[-128, largest]], dtype=torch.int32)
    found = in_bytes(matrix)
    assert found.dtype == dtype
    assert torch.equal(found.to(torch.int32), matrix)
    assert in_bytes(matrix.double()).dtype == torch.float64
    assert in_bytes(matrix[:0]).dtype == torch.int32


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.float64])
def test_what_workers_hand_over_is_as_long_whatever_its_numbers_are(dtype):
    """Counts are private: how large they are must not be seen in the length of a message."""
    small, large = torch.zeros(5_000, 8, dtype=dtype), torch.full((5_000, 8), 2**20, dtype=dtype)
    lengths = {sum(buffer.nbytes for buffer in pack(each)._buffers) for each in (small, large)}
    assert lengths == {small.nbytes}
    assert torch.equal(pack(large).unpack(), large)


def test_rows_that_are_only_handed_on_are_not_in_the_package():
    statistic = EdgeMoments(ROWS)
    package, _, rows = pack_with_randomness(statistic.precisely)
    assert sys.getsizeof(package) < 10_000
    assert [each.data_ptr() for each in rows.values()] == [statistic._whole.data_ptr()]


class Here:
    """A keeper with the matrix itself."""

    def rows(self, matrix, nodes):
        return ROWS[nodes, matrix.columns].to(matrix.dtype)

    asked = 0

    def ends(self, matrix):
        self.asked += 1
        rows = self.rows(matrix, slice(None))
        return rows.amax(dim=0), rows.amin(dim=0)


def test_placed_rows_answer_like_the_matrix():
    token = keeper.set(Here())
    try:
        rebuild, given = RowsElsewhere("name", ROWS).__reduce__()
        placed = rebuild(*given)
    finally:
        keeper.reset(token)
    assert isinstance(placed, PlacedRows)
    assert placed.matrix == Matrix("name", slice(0, COLUMNS), torch.float32)
    assert (len(placed), placed.shape, placed.numel(), placed.dtype) == (NODES, ROWS.shape, ROWS.numel(), ROWS.dtype)
    narrow = placed[:, 2:7].contiguous()[:, 1:3].to("cpu").to(torch.float64)
    assert narrow.shape == (NODES, 2)
    assert torch.equal(narrow[5:9], ROWS[5:9, 3:5].double())
    assert torch.equal(narrow[torch.tensor([7, 1])], ROWS[[7, 1], 3:5].double())
    assert torch.equal(narrow.amax(dim=0), ROWS[:, 3:5].double().amax(dim=0))
    assert torch.equal(narrow.amin(dim=0), ROWS[:, 3:5].double().amin(dim=0))
    assert narrow._keeper.asked == 1  # workers look at all their rows for it
