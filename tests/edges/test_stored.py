"""Stored edges: blocks like those of edges in memory, within their buffer; damage of every kind is refused in fixed words."""

import json
import os
import pickle
import threading
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gcon.edges import store_format
from gcon.edges.edge_list import public_edges
from gcon.edges.store_format import ChunkChecksums, StoreHeader, new_checksum, render_header
from gcon.edges.stored import StoredEdges
from gcon.errors import InputError, PrivateComputationError
from gcon.files import edge_store
from gcon.files.edge_store import write_edge_store
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.gaussian_release import gaussian_plan
from gcon.privacy.account import spend
from gcon.privacy.boundary import Private
from gcon.privacy.ledger import MemoryLedger, Outcome
from gcon.privacy.randomness import SystemRandomness

CPU = torch.device("cpu")


def pairs_of(num_nodes, count, seed=0):
    return np.random.default_rng(seed).integers(0, num_nodes, (2, count))


def stored(target, pairs, num_nodes, buffer_bytes=64):
    write_edge_store([pairs], target, num_nodes=num_nodes)
    return StoredEdges(target, buffer_bytes)


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Fifty nodes, the last of them isolated, one a hub; chunks of 100 bytes."""
    monkeypatch.setattr(edge_store, "CHUNK_BYTES", 100)
    pairs = np.concatenate([pairs_of(48, 150), np.stack([np.full(40, 7), np.arange(40)])], axis=1)
    return stored(tmp_path / "edges.csr", pairs, 50), public_edges(torch.from_numpy(pairs), 50)


@settings(deadline=None, derandomize=True, max_examples=80)
@given(num_nodes=st.integers(1, 40), count=st.integers(0, 200), seed=st.integers(0, 99), buffer=st.integers(64, 2000))
def test_blocks_are_rows_of_the_graph(tmp_path_factory, num_nodes, count, seed, buffer):
    pairs = pairs_of(num_nodes, count, seed)
    store = stored(tmp_path_factory.mktemp("store") / "edges.csr", pairs, num_nodes, buffer)
    expected, next_node = public_edges(torch.from_numpy(pairs), num_nodes), 0
    for block in store.blocks(CPU):
        assert block.nodes.start == next_node
        assert block.num_nodes == num_nodes
        assert int(block.row_pointers[0]) == 0
        assert torch.equal(block.degrees, expected.degrees[block.nodes])
        assert block.columns.numel() * 4 <= buffer // 2 or block.nodes.stop == block.nodes.start + 1
        alone = store.block(block.nodes)
        assert torch.equal(alone.columns, block.columns)
        for place, node in enumerate(range(block.nodes.start, block.nodes.stop)):
            own = block.columns[int(block.row_pointers[place]) : int(block.row_pointers[place + 1])]
            assert torch.equal(own.long(), expected.neighbours(node))
            assert store.neighbour_array(node).tolist() == expected.neighbours(node).tolist()
        next_node = block.nodes.stop
    assert next_node == num_nodes
    assert torch.equal(store.degrees, expected.degrees)


def row_sums(block, values):
    rows = torch.repeat_interleave(torch.arange(len(block.degrees)), block.degrees)
    return torch.zeros(len(block.degrees), dtype=values.dtype).index_add_(0, rows, values[block.columns.long()])


def write_sums(block, values, _, *, out):
    out.copy_(row_sums(block, values))


def test_work_gives_what_it_gives_in_memory(small):
    store, edges = small
    values = torch.arange(50, dtype=torch.float64)
    wanted = torch.stack([values[edges.neighbours(node)].sum() for node in range(50)])
    for _ in range(2):  # the second pass does not compare checksums again
        assert torch.equal(torch.cat(list(store.map_blocks(row_sums, values))), wanted)
    *_, found = store.steps(values, torch.clone, write_sums, 1)
    assert torch.equal(found, wanted)
    assert store.run(lambda edges: edges) is store


def test_two_buffers_serve_all_blocks_but_hubs(small):
    store, _ = small
    places, hubs = set(), 0
    for block in store.blocks(CPU):
        if block.columns.numel() > 8:  # 64 bytes: two buffers of eight
            assert block.nodes.stop == block.nodes.start + 1
            hubs += 1
        elif block.columns.numel():
            places.add(block.columns.untyped_storage().data_ptr())
    assert hubs >= 1
    assert len(places) == 2


def test_the_next_block_leaves_the_current_one_alone(small):
    store, edges = small
    seen = []
    for block in store.blocks(CPU):
        before = block.columns.clone()
        for thread in threading.enumerate():  # give the read ahead all the time it needs
            if thread.name.startswith("read-ahead"):
                thread.join(0.02)
        assert torch.equal(block.columns, before)
        seen.append(before)
    assert torch.equal(torch.cat(seen), edges.columns)


def test_stopping_early_leaves_no_thread_and_no_open_file(small):
    store, _ = small
    handles = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
    blocks = store.blocks(CPU)
    next(blocks)
    blocks.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("read-ahead")]
    if handles is not None:
        assert len(os.listdir("/proc/self/fd")) == handles


def test_pickling_keeps_the_place_alone(small):
    store, edges = small
    text = pickle.dumps(store)
    assert len(text) < 400
    again = pickle.loads(text)
    assert (again.path, again.buffer_bytes) == (store.path, 64)
    assert torch.equal(again.load().columns, edges.columns)
    os.rename(store.path, store.path.with_name("elsewhere.csr"))
    with pytest.raises(InputError, match="no such folder"):
        pickle.loads(text)


def test_the_buffer_is_checked(small):
    for wrong in (63, True, 1e9, "64", None):
        with pytest.raises(InputError, match="at least 64"):
            StoredEdges(small[0].path, wrong)


def test_checksums_do_not_depend_on_the_pieces():
    text = bytes(range(256)) * 3
    wanted = tuple(_checksum(text[start : start + 100]) for start in range(0, len(text), 100))
    for size in (1, 7, 100, 333, 1000):
        checksums = ChunkChecksums(100)
        for start in range(0, len(text), size):
            checksums.update(memoryview(text[start : start + size]))
        assert checksums.all() == wanted


def _checksum(text):
    checksum = new_checksum()
    checksum.update(text)
    return checksum.hexdigest()


def changed_header(path, **fields):
    """A header that says something else, with a checksum that agrees."""
    found = json.loads((path / "header.json").read_text())
    fields = {name: fields.get(name, found[name]) for name in StoreHeader.__dataclass_fields__}
    (path / "header.json").write_text(render_header(StoreHeader(**fields)))


def spoil_byte(name, place):
    def spoil(path):
        text = bytearray((path / name).read_bytes())
        text[place] ^= 1
        (path / name).write_bytes(text)

    return spoil


def pointers(path, change):
    """Other row pointers, with a checksum that agrees."""
    values = np.fromfile(path / "row_pointers.bin", dtype="<i8")
    change(values)
    values.tofile(path / "row_pointers.bin")
    changed_header(path, row_pointers=store_format.file_checksum(path / "row_pointers.bin"))


def fall(values):
    values[10] = values[20] + 1


def start_late(values):
    values[0] = 1


def end_early(values):
    values[-1] -= 1


def plain(text):
    return lambda path: (path / "header.json").write_text(text)


def other_field(**fields):
    """A field of another kind, checksum included."""

    def spoil(path):
        found = json.loads((path / "header.json").read_text()) | fields
        del found["checksum"]
        found["checksum"] = store_format._checksum(found)
        (path / "header.json").write_text(json.dumps(found))

    return spoil


DAMAGED = {
    "no header": (lambda path: (path / "header.json").unlink(), "complete edge store"),
    "no columns": (lambda path: (path / "columns.bin").unlink(), "complete edge store"),
    "no pointers": (lambda path: (path / "row_pointers.bin").unlink(), "complete edge store"),
    "empty header": (plain(""), "must describe an edge store"),
    "header of something else": (plain('{"format": "secret-77"}'), "must describe an edge store"),
    "header is a list": (plain("[77]"), "must describe an edge store"),
    "deep header": (plain("[" * 100_000), "must describe an edge store"),
    "header not UTF-8": (lambda path: (path / "header.json").write_bytes(b"\xff\xfe{"), "must describe an edge store"),
    "byte of the header": (
        lambda path: plain((path / "header.json").read_text().replace("50", "51", 1))(path),
        "checksum",
    ),
    "another version": (other_field(version=2), "version of the format"),
    "further field": (other_field(secret=77), "do not fit together"),
    "negative count": (other_field(num_entries=-4), "do not fit together"),
    "real count": (other_field(num_nodes=50.0), "do not fit together"),
    "truth as a count": (other_field(chunk_bytes=True), "do not fit together"),
    "chunks of halves of columns": (other_field(chunk_bytes=99), "do not fit together"),
    "no chunk size": (other_field(chunk_bytes=0), "do not fit together"),
    "missing checksum of columns": (other_field(columns=[]), "do not fit together"),
    "columns is a number": (other_field(columns=3), "do not fit together"),
    "other counts": (other_field(cleaned={"secret": 77}), "do not fit together"),
    "more nodes": (other_field(num_nodes=51), "full size"),
    "short columns": (lambda path: os.truncate(path / "columns.bin", 8), "full size"),
    "long pointers": (lambda path: os.truncate(path / "row_pointers.bin", 10_000), "full size"),
    "byte of the pointers": (spoil_byte("row_pointers.bin", 100), "another checksum"),
    "falling pointers": (lambda path: pointers(path, fall), "rise from 0"),
    "pointers from 1": (lambda path: pointers(path, start_late), "rise from 0"),
    "pointers that end early": (lambda path: pointers(path, end_early), "rise from 0"),
    "a file": (lambda path: (os.rename(path, f"{path}.old"), path.write_text("x")), "no such folder"),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_opening_refuses_damage(small, kind):
    store, _ = small
    spoil, words = DAMAGED[kind]
    spoil(store.path)
    with pytest.raises(InputError) as refused:
        StoredEdges(store.path)
    assert "edges file 'edges.csr'" in str(refused.value)
    assert words in str(refused.value)
    assert "77" not in str(refused.value)
    assert refused.value.__cause__ is None


@pytest.mark.parametrize("place", [0, 100, -4])
def test_the_first_pass_refuses_other_columns(small, place):
    path = small[0].path
    spoil_byte("columns.bin", place)(path)
    for use in (lambda store: list(store.blocks(CPU)), StoredEdges.load, StoredEdges.verify):
        with pytest.raises(InputError, match=r"another checksum|rising"):
            use(StoredEdges(path, 64))


def test_columns_that_are_no_nodes_never_reach_a_kernel(small):
    path, size = small[0].path, (small[0].path / "columns.bin").stat().st_size
    for value in (50, -1, 2**31 - 1):
        columns = np.fromfile(path / "columns.bin", dtype="<i4")
        kept = columns[30]
        columns[30] = value
        columns.tofile(path / "columns.bin")
        store = StoredEdges(path, 64)
        node = int(torch.searchsorted(store.row_pointers, 30, right=True)) - 1
        seen = []
        with pytest.raises(InputError, match="must hold nodes"):
            list(store.map_blocks(lambda block, seen=seen: seen.append(block.columns.clone())))
        assert seen
        assert bool(((torch.cat(seen) >= 0) & (torch.cat(seen) < 50)).all())
        with pytest.raises(InputError, match="must hold nodes"):
            store.block(slice(node, node + 1))
        columns[30] = kept
        columns.tofile(path / "columns.bin")
    assert (path / "columns.bin").stat().st_size == size


def test_columns_that_shrink_or_vanish_after_opening(small, monkeypatch):
    store, _ = small
    os.truncate(store.path / "columns.bin", 40)
    with pytest.raises(InputError, match="stay as it is"):
        list(store.blocks(CPU))
    with monkeypatch.context() as patch:  # as if it happened after the file was opened
        patch.setattr("gcon.edges.stored._identity", lambda path: store._identity)
        with pytest.raises(InputError, match="become shorter"):
            list(store.blocks(CPU))
    (store.path / "columns.bin").unlink()
    with pytest.raises(InputError, match="must be readable"):
        store.block(slice(0, 5))


@pytest.mark.parametrize("name", ["columns.bin", "row_pointers.bin", "header.json"])
def test_files_that_are_exchanged_after_opening(small, name):
    """Other columns under these row pointers would be the neighbours of other nodes."""
    store, _ = small
    before = store.neighbour_array(3).tolist()
    path = store.path / name
    other = path.with_suffix(".new")
    other.write_bytes(path.read_bytes())
    assert store.neighbour_array(3).tolist() == before
    other.replace(path)
    with pytest.raises(InputError, match="another store in its place"):
        store.neighbour_array(3)


def forged(path, edges, columns):
    """A store whose checksums agree with other columns."""
    np.asarray(columns, dtype="<i4").tofile(path / "columns.bin")
    checksums = ChunkChecksums(100)
    checksums.update(memoryview((path / "columns.bin").read_bytes()))
    changed_header(path, columns=checksums.all())
    return StoredEdges(path)


def test_the_first_pass_finds_what_is_no_simple_undirected_graph(small):
    store, edges = small
    store.verify()
    good = edges.columns.numpy()
    first, last = int(edges.row_pointers[7]), int(edges.row_pointers[8])
    falling, repeated, loop, one_way = good.copy(), good.copy(), good.copy(), good.copy()
    falling[first : first + 2] = falling[first : first + 2][::-1]
    repeated[first + 1] = repeated[first]
    inside = first + int(np.searchsorted(good[first:last], 7))
    loop[inside] = 7
    one_way[last - 1] = 49  # node 49 knows of no edge to 7
    uses = (StoredEdges.verify, StoredEdges.load, lambda store: list(store.map_blocks(row_sums, torch.ones(50))))
    for columns, words in ((falling, "rising"), (repeated, "rising"), (loop, "without loops"), (one_way, "both ends")):
        for use in uses:
            with pytest.raises(InputError, match=words):
                use(forged(store.path, edges, columns))
    for use in uses:
        use(forged(store.path, edges, good))


def test_nothing_is_released_from_a_directed_graph(small):
    store, edges = small
    one_way = edges.columns.numpy().copy()
    one_way[int(edges.row_pointers[8]) - 1] = 49
    plan = gaussian_plan(1.0, 1e-5, method="a test")
    mechanism = plan.noisy(EdgeMoments(torch.ones(50, 1)), share=1.0)
    for columns, outcome in ((one_way, Outcome.WITHHELD), (edges.columns.numpy(), Outcome.RELEASED)):
        ledger = MemoryLedger("friendships")
        private = Private(forged(store.path, edges, columns), "edges")
        account = spend(private, plan, ledger=ledger, randomness=SystemRandomness(), purpose="a test")
        with (
            nullcontext() if outcome is Outcome.RELEASED else pytest.raises(PrivateComputationError) as refused,
            account,
        ):
            account.release(mechanism)
        assert ledger.entries()[-1].outcome is outcome
        assert refused is None or refused.value.__context__ is None


def test_on_another_device(small):
    store, edges = small
    blocks = list(store.blocks(torch.device("meta")))
    assert all(block.columns.device.type == "meta" for block in blocks)
    assert sum(block.columns.numel() for block in blocks) == edges.columns.numel()
