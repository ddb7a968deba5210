"""Edge stores: the same graph as in memory, in whatever memory; nothing half made, nothing lost by a kill."""

import json
import os
import signal
import stat
import subprocess
import sys
import textwrap
from collections import namedtuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gcon.errors import InputError
from gcon.graphs.edges import private_edges
from gcon.graphs.stored import StoredEdges
from gcon.interop import edge_store, external_sort, sort_progress
from gcon.interop.edge_store import work_folder, write_edge_store
from gcon.interop.node_ids import as_node_ids
from gcon.interop.store_files import ids_fingerprint, open_store, private_store, store_chunks, store_problems
from gcon.privacy.opening import open_private

Usage = namedtuple("Usage", "total used free")


class Killed(BaseException):
    """No exception that anybody catches."""


def random_pairs(num_nodes, count, seed=0):
    return np.random.default_rng(seed).integers(0, num_nodes, (2, count))


def cut(pairs, size):
    return [pairs[:, start : start + size] for start in range(0, pairs.shape[1], size)]


def write(target, pairs, num_nodes, *, size=50, memory_bytes=4096, **how):
    write_edge_store(lambda: cut(pairs, size), target, num_nodes=num_nodes, memory_bytes=memory_bytes, **how)


def assert_same(target, pairs, num_nodes):
    edges, hygiene = private_edges(torch.from_numpy(pairs), num_nodes)
    expected, store = open_private(edges), StoredEdges(target)
    found = store.load()
    assert found.columns.dtype == expected.columns.dtype
    assert torch.equal(found.row_pointers, expected.row_pointers)
    assert torch.equal(found.columns, expected.columns)
    assert store.hygiene == open_private(hygiene)
    store.verify()


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
        patch.setattr(external_sort, "BYTES_AN_EDGE", an_edge)
        patch.setattr(external_sort, "BYTES_A_KEY", a_key)
        patch.setattr(edge_store, "CHUNK_BYTES", 24)
        patch.setattr(edge_store, "CHECKPOINT_BYTES", 40)
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
    progress = sort_progress.SortProgress(identity={})
    list(external_sort.write_runs([ends], tmp_path, progress, num_nodes=2**32, memory_bytes=4096))
    (keys,) = external_sort.merged(tmp_path, progress, memory_bytes=4096)
    rows, columns = external_sort.rows_and_columns(keys)
    pairs = [tuple(pair) for pair in ends.T.tolist()]
    assert list(zip(rows.tolist(), columns.tolist(), strict=True)) == sorted(pairs + [(b, a) for a, b in pairs])
    assert edge_store.column_type(2**31) == np.dtype("<i8")
    assert edge_store.column_type(2**31 - 1) == np.dtype("<i4")


def test_the_merge_holds_no_more_than_it_may(tmp_path):
    pairs, progress = random_pairs(500, 20_000), sort_progress.SortProgress(identity={})
    list(external_sort.write_runs(cut(pairs, 700), tmp_path, progress, num_nodes=500, memory_bytes=40_000))
    assert len(progress.runs) == 20
    assert all(keys <= 2000 for keys in progress.runs)
    pieces = list(external_sort.merged(tmp_path, progress, memory_bytes=40_000))
    assert all(piece.size <= 1000 for piece in pieces)  # 40 bytes a key
    joined = np.concatenate(pieces)
    assert (joined[1:] > joined[:-1]).all()


PLACES = {
    "a write": (external_sort, "write_all"),
    "a sync": (os, "fsync"),
    "noting progress": (sort_progress.SortProgress, "save"),
    "a rename": (os, "rename"),
}


@pytest.mark.parametrize("place", PLACES)
def test_killed_anywhere_and_run_again(tmp_path, monkeypatch, place):
    """Killed at the first such call, run again and killed at the second, and so on, until one run comes through."""
    pairs, target = random_pairs(40, 600), tmp_path / "edges.csr"
    monkeypatch.setattr(external_sort, "BYTES_AN_EDGE", 30)  # five runs
    monkeypatch.setattr(external_sort, "BYTES_A_KEY", 30)
    monkeypatch.setattr(edge_store, "CHUNK_BYTES", 400)
    monkeypatch.setattr(edge_store, "CHECKPOINT_BYTES", 300)
    owner, name = PLACES[place]
    real, told, kills = getattr(owner, name), [], 0
    for fatal in range(1, 1000):
        calls = 0

        def dies(*arguments, fatal=fatal):
            nonlocal calls
            calls += 1
            if calls == fatal:
                if name == "write_all":
                    real(arguments[0], arguments[1][: len(arguments[1]) // 2])  # half of it gets through
                raise Killed
            return real(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(owner, name, dies)
            if name == "write_all":
                patch.setattr(edge_store, name, dies)
            try:
                write(target, pairs, 40, notice=told.append)
                break
            except Killed:
                kills += 1
                assert not target.exists()
                assert stat.S_IMODE(work_folder(target).stat().st_mode) == 0o700
    assert kills >= (1 if place == "a rename" else 6)
    assert_same(target, pairs, 40)
    assert os.listdir(tmp_path) == ["edges.csr"]
    assert any("going on from there" in words for words in told)


def test_finished_runs_are_not_sorted_again(tmp_path, monkeypatch):
    pairs, target = random_pairs(40, 600), tmp_path / "edges.csr"
    real, sorted_runs = external_sort._finish_run, []

    def finish(keys, folder, progress, **counts):
        if len(progress.runs) == 4 and len(sorted_runs) == 4:
            raise Killed
        sorted_runs.append(len(progress.runs))
        real(keys, folder, progress, **counts)

    monkeypatch.setattr(external_sort, "_finish_run", finish)
    with pytest.raises(Killed):
        write(target, pairs, 40)
    sorted_runs.append("killed")
    write(target, pairs, 40, memory_bytes=8192)  # another amount of memory is no other input
    assert sorted_runs == [0, 1, 2, 3, "killed", 4]
    assert_same(target, pairs, 40)


def interrupted(tmp_path, monkeypatch, pairs, identity):
    """A workplace that a kill in the merge left behind."""
    with monkeypatch.context() as patch:
        patch.setattr(edge_store, "_checkpoint", lambda *_: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            write(tmp_path / "edges.csr", pairs, 40, identity=identity)
    return work_folder(tmp_path / "edges.csr")


def test_another_input_starts_over(tmp_path, monkeypatch):
    interrupted(tmp_path, monkeypatch, random_pairs(40, 600), {"size": 1})
    told, pairs = [], random_pairs(40, 500, seed=1)
    write(tmp_path / "edges.csr", pairs, 40, identity={"size": 2}, notice=told.append)
    assert told == ["An unfinished conversion of another input or with other settings was found: starting over."]
    assert_same(tmp_path / "edges.csr", pairs, 40)


def spoil_progress(folder):
    (folder / "progress.json").write_text('{"identity": {')


def spoil_fields(folder):
    (folder / "progress.json").write_text('{"identity": {}, "unheard": 3}')


def spoil_run(folder):
    (folder / "run-000001.bin").write_bytes(b"short")


def spoil_missing(folder):
    (folder / "run-000002.bin").unlink()


@pytest.mark.parametrize("spoil", [spoil_progress, spoil_fields, spoil_run, spoil_missing])
def test_a_damaged_workplace_starts_over(tmp_path, monkeypatch, spoil):
    pairs, told = random_pairs(40, 600), []
    spoil(interrupted(tmp_path, monkeypatch, pairs, {}))
    write(tmp_path / "edges.csr", pairs, 40, notice=told.append)
    assert told == ["An unfinished conversion was found, but it is damaged: starting over."]
    assert_same(tmp_path / "edges.csr", pairs, 40)


def test_columns_that_were_lost_are_noticed(tmp_path, monkeypatch):
    pairs = random_pairs(40, 600)
    folder = interrupted(tmp_path, monkeypatch, pairs, {})
    noted = json.loads((folder / "progress.json").read_text())
    (folder / "progress.json").write_text(json.dumps(noted | {"entries": 10**6}))
    with pytest.raises(InputError, match="became shorter"):
        write(tmp_path / "edges.csr", pairs, 40)
    assert os.listdir(tmp_path) == []
    write(tmp_path / "edges.csr", pairs, 40)
    assert_same(tmp_path / "edges.csr", pairs, 40)


def test_input_that_became_shorter_is_noticed(tmp_path):
    pairs, target = random_pairs(40, 600), tmp_path / "edges.csr"

    def stops():
        yield pairs
        raise Killed

    with pytest.raises(Killed):
        write_edge_store(stops, target, num_nodes=40, memory_bytes=4096)
    with pytest.raises(InputError, match="must stay the same"):
        write(target, pairs[:, :100], 40)
    assert os.listdir(tmp_path) == []


def test_a_kill_that_nobody_can_catch(tmp_path):
    code = """
        import os, signal, sys
        import numpy as np
        from pathlib import Path
        from gcon.interop import edge_store
        pairs = np.random.default_rng(3).integers(0, 99, (2, 4000))
        def chunks():
            yield pairs[:, :2500]
            if sys.argv[2] == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            yield pairs[:, 2500:]
        edge_store.write_edge_store(chunks, Path(sys.argv[1]), num_nodes=99, memory_bytes=4096, notice=print)
    """
    run = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "edges.csr")]
    assert subprocess.run([*run, "kill"], check=False).returncode == -signal.SIGKILL
    assert os.listdir(tmp_path) == [".edges.csr.unfinished"]
    done = subprocess.run([*run, "live"], check=True, capture_output=True, text=True)
    assert "going on from there" in done.stdout
    assert_same(tmp_path / "edges.csr", np.random.default_rng(3).integers(0, 99, (2, 4000)), 99)
    assert os.listdir(tmp_path) == ["edges.csr"]


WRONG = {
    "not a node": np.array([[0, 40], [1, 2]]),
    "negative": np.array([[0, -1], [1, 2]]),
    "one row": np.array([[0, 1]]),
    "real numbers": np.array([[0.0, 1.0], [1.0, 2.0]]),
    "truth values": np.array([[True], [False]]),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_wrong_edges_leave_nothing(tmp_path, wrong):
    with pytest.raises(InputError) as refused:
        write_edge_store(
            lambda: [random_pairs(40, 300), wrong], tmp_path / "edges.csr", num_nodes=40, memory_bytes=4096
        )
    assert "two rows of node numbers, 0 to 39" in str(refused.value)
    assert os.listdir(tmp_path) == []


def test_permissions(tmp_path):
    umask = os.umask(0)
    try:
        write(tmp_path / "edges.csr", random_pairs(9, 20), 9)
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "edges.csr").stat().st_mode) == 0o700
    for name in os.listdir(tmp_path / "edges.csr"):
        assert stat.S_IMODE((tmp_path / "edges.csr" / name).stat().st_mode) == 0o600


def test_too_little_space_is_said_before_anything_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("gcon.interop.edge_store.shutil.disk_usage", lambda _: Usage(9, 9, 10_000))
    folder, progress = tmp_path, sort_progress.SortProgress(identity={})

    def unread():
        raise AssertionError

    with pytest.raises(InputError) as refused:
        edge_store.build_store(unread, folder, progress, num_nodes=40, expected=987_654)
    assert "about 24 bytes for every edge" in str(refused.value)
    assert "987" not in str(refused.value)
    assert os.listdir(tmp_path) == []


def test_space_that_runs_out_later_costs_nothing(tmp_path, monkeypatch):
    pairs, told = random_pairs(400, 5000), []
    for free in (20_000, 30_000):  # where nobody knows how many come: before the merge
        monkeypatch.setattr("gcon.interop.edge_store.shutil.disk_usage", lambda _, free=free: Usage(9, 9, free))
        with pytest.raises(OSError, match="No space left"):
            write(tmp_path / "edges.csr", pairs, 400)
        assert os.listdir(tmp_path) == [".edges.csr.unfinished"]
    monkeypatch.undo()
    write(tmp_path / "edges.csr", pairs, 400, notice=told.append)
    assert told == ["An unfinished conversion was found: going on from there."]
    assert_same(tmp_path / "edges.csr", pairs, 400)


def test_a_link_in_place_of_the_workplace_is_not_followed(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter").write_text("keep")
    (tmp_path / ".edges.csr.unfinished").symlink_to(tmp_path / "mine")
    with pytest.raises(InputError, match="Not a directory"):
        write(tmp_path / "edges.csr", random_pairs(9, 20), 9)
    assert (tmp_path / "mine" / "letter").read_text() == "keep"


def test_one_at_a_time(tmp_path):
    target = tmp_path / "edges.csr"

    def meanwhile():
        with pytest.raises(InputError, match="another one at work"):
            write(target, random_pairs(9, 20), 9)
        yield random_pairs(9, 20)

    write_edge_store(meanwhile, target, num_nodes=9)
    assert_same(target, random_pairs(9, 20), 9)


def test_refusals(tmp_path):
    write(tmp_path / "edges.csr", random_pairs(9, 20), 9)
    with pytest.raises(InputError, match="may not exist yet"):
        write(tmp_path / "edges.csr", random_pairs(9, 20), 9)
    with pytest.raises(InputError, match="at least 4096"):
        write(tmp_path / "b.csr", random_pairs(9, 20), 9, memory_bytes=4095)
    with pytest.raises(InputError, match="at most 2\\^32"):
        write(tmp_path / "b.csr", random_pairs(9, 20), 2**32 + 1)
    with pytest.raises(InputError, match="must be a folder to write to"):
        write(tmp_path / "nowhere" / "b.csr", random_pairs(9, 20), 9)
    assert os.listdir(tmp_path) == ["edges.csr"]


def test_progress_is_told(tmp_path):
    told = []
    write(tmp_path / "edges.csr", random_pairs(40, 600), 40, step=lambda *step: told.append(step))
    assert {stage for stage, _ in told} == {"sort edges", "merge edges"}
    shares = [share for stage, share in told if stage == "merge edges"]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


IDS = {
    "rows": list(range(6)),
    "another order": [1, 0, 2, 3, 4, 5],
    "other numbers": [0, 1, 2, 3, 4, 6],
    "strings": ["a0", "1", "2", "3", "4", "5"],
    "other cuts": ["a", "01", "2", "3", "4", "5"],
    "one less": list(range(5)),
}


def test_a_store_belongs_to_its_nodes(tmp_path):
    prints = {ids_fingerprint(as_node_ids(ids)) for ids in IDS.values()}
    assert len(prints) == len(IDS)
    pairs = random_pairs(6, 20)
    for name, ids in IDS.items():
        if name == "one less":
            continue
        target = tmp_path / f"{name}.csr"
        write(target, pairs, 6, ids=as_node_ids(ids))
        for other, others in IDS.items():
            if other == name:
                edges, hygiene = private_store(target, ids=as_node_ids(ids))
                assert torch.equal(open_private(edges).load().columns, StoredEdges(target).load().columns)
                assert open_private(hygiene).given == 20
                assert repr(edges) == "<private: stored edges of a simple undirected graph>"
                assert store_problems(target, ids=as_node_ids(ids)) == []
            else:
                with pytest.raises(InputError, match="made for the nodes of the nodes file"):
                    open_store(target, ids=as_node_ids(others))
                assert len(store_problems(target, ids=as_node_ids(others))) == 1


def test_chunks_of_a_store_are_its_edges(tmp_path):
    pairs = random_pairs(60, 500)
    write(tmp_path / "a.csr", pairs, 60)
    again = np.concatenate(list(store_chunks(tmp_path / "a.csr", ids=None)), axis=1)
    assert (again[0] < again[1]).all()
    write(tmp_path / "b.csr", again, 60)
    for name in ("columns.bin", "row_pointers.bin"):
        assert (tmp_path / "a.csr" / name).read_bytes() == (tmp_path / "b.csr" / name).read_bytes()
