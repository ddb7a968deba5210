"""What is wrong with a cluster is said before anything is paid; and what travels says nothing of itself."""

import shutil
import sys
from contextlib import nullcontext
from dataclasses import replace

import distributed
import numpy as np
import pytest
import torch

import gcon
import gcon.edges.cluster.edges
from gcon.edges.cluster import cluster_edges
from gcon.edges.cluster.coordinator import check_everywhere
from gcon.edges.cluster.edges import open_cluster
from gcon.edges.cluster.local import local_cluster
from gcon.edges.cluster.packing import pack, pack_with_randomness, states, take_over
from gcon.edges.cluster.tasks import check_store, chunk_balance
from gcon.edges.store_format import COLUMNS, HEADER, ChunkChecksums, render_header
from gcon.edges.stored import StoredEdges
from gcon.errors import BoundaryError, InputError, MissingExtraError, PrivateComputationError
from gcon.files.edge_store import write_edge_store
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.privacy.boundary import Private
from gcon.privacy.opening import apply_private
from gcon.privacy.randomness import SeededRandomness, SystemRandomness

pytestmark = pytest.mark.slow


def refusal(*given, **options):
    with pytest.raises(InputError) as raised:
        cluster_edges(*given, **options)
    assert raised.value.__cause__ is None
    return str(raised.value)


@pytest.mark.slow
def test_private_edges_of_a_sound_cluster(cluster, folder):
    ids = StoredEdges(folder).header.node_ids
    edges = cluster_edges(cluster.address, folder, num_nodes=100, node_ids=ids, security=cluster.security)
    assert isinstance(edges, Private)
    assert apply_private(lambda opened: opened.num_nodes, edges) == 100
    assert "edges.csr" not in repr(edges)


def test_other_nodes(cluster, folder):
    assert "another number of nodes" in refusal(cluster.address, folder, num_nodes=99, security=cluster.security)
    assert "other ids" in refusal(cluster.address, folder, node_ids="ab", security=cluster.security)


def test_another_version(cluster, folder, monkeypatch):
    monkeypatch.setattr(gcon.edges.cluster.edges, "__version__", "0.0.0")
    assert "version 0.0.0 of gcon" in refusal(cluster.address, folder, security=cluster.security)


def test_workers_with_different_stores(folder, tmp_path, monkeypatch):
    """Each worker sees its own copy under the same path; here the answers of two are put together."""
    other = tmp_path / "edges.csr"
    write_edge_store([torch.tensor([[0], [1]]).numpy()], other, num_nodes=100)
    answers = {"one": check_store(folder), "two": check_store(other)}

    class OneWorker:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def run(self, function, path):
            assert function is check_store
            return answers

    monkeypatch.setattr(distributed, "worker_client", OneWorker)
    assert check_everywhere(folder, gcon.__version__) == ("must be the same store; got different ones", 0, "")
    answers["two"] = answers["one"]
    assert check_everywhere(folder, gcon.__version__)[:2] == ("", 100)


def test_no_store_and_a_damaged_one(cluster, folder, tmp_path):
    assert "on every worker" in refusal(cluster.address, tmp_path / "none.csr", security=cluster.security)
    short = tmp_path / "short.csr"
    shutil.copytree(folder, short)
    with (short / COLUMNS).open("ab") as file:
        file.write(b"0")
    assert "full size" in refusal(cluster.address, short, security=cluster.security)


def test_a_changed_column_is_found_by_its_checksum(cluster, folder, tmp_path):
    changed = tmp_path / "changed.csr"
    shutil.copytree(folder, changed)
    with (changed / COLUMNS).open("r+b") as file:
        file.seek(40)
        byte = file.read(1)[0]
        file.seek(40)
        file.write(bytes([byte ^ 1]))
    edges = open_cluster(cluster.address, changed, security=cluster.security)
    with pytest.raises(PrivateComputationError):
        edges.run(EdgeMoments(torch.ones(100, 1)).precisely)


def forged(folder, columns, chunk_bytes):
    """A store whose checksums agree with other columns."""
    np.asarray(columns, dtype="<i4").tofile(folder / COLUMNS)
    checksums = ChunkChecksums(chunk_bytes)
    checksums.update(memoryview((folder / COLUMNS).read_bytes()))
    header = replace(StoredEdges(folder).header, chunk_bytes=chunk_bytes, columns=checksums.all())
    (folder / HEADER).write_text(render_header(header))


def checked_apart(folder):
    """What the workers of a first pass say, chunk by chunk; None where one refuses."""
    edges, found = StoredEdges(folder), []
    assert len(edges.header.columns) > 3
    for place in range(len(edges.header.columns)):
        try:
            found.append(chunk_balance(edges, place, place + 1))
        except InputError:
            found.append(None)
    return found


def test_a_graph_that_is_not_simple_and_undirected_is_found_by_its_workers(cluster, folder, tmp_path):
    copy = tmp_path / "copy.csr"
    shutil.copytree(folder, copy)
    good = np.fromfile(copy / COLUMNS, dtype="<i4")
    one_way, falling = good.copy(), good.copy()
    one_way[95] = 99  # the last neighbour of the hub: node 99 has none
    falling[[24, 25]] = good[[25, 24]]  # 100 bytes are 25 columns: between two chunks, in the row of the hub
    for columns, says in ((good, 0), (one_way, "unbalanced"), (falling, "failed"), (good, 0)):
        forged(copy, columns, 100)
        found = checked_apart(copy)
        if says == "failed":
            assert found.count(None) == 1
        else:
            balance = sum(found) % 2**64
            assert (balance == 0) == (says == 0)
        edges = open_cluster(cluster.address, copy, security=cluster.security)
        with nullcontext() if says == 0 else pytest.raises(PrivateComputationError):
            edges.run(EdgeMoments(torch.ones(100, 1)).precisely)


def test_nobody_without_certificates_gets_in(cluster, folder, monkeypatch):
    monkeypatch.setattr(gcon.edges.cluster.edges, "CONNECT_SECONDS", 1)
    assert "no answer" in refusal(cluster.address.replace("tls://", "tcp://"), folder)
    assert "no answer" in refusal("tcp://127.0.0.1:9", folder)


def test_no_workers(folder):
    scheduler = {
        "cls": distributed.Scheduler,
        "options": {"host": "127.0.0.1", "port": 0, "dashboard_address": "127.0.0.1:0"},
    }
    with distributed.SpecCluster(scheduler=scheduler, workers={}) as empty:
        assert "must have workers" in refusal(empty.scheduler_address, folder)


def test_a_missing_extra_names_itself(folder, monkeypatch):
    for name in ("gcon.edges.cluster.edges", "gcon.edges.cluster.coordinator"):
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"gcon\[cluster\]"):
        cluster_edges("tcp://127.0.0.1:9", folder)
    with pytest.raises(MissingExtraError, match=r"gcon\[cluster\]"), local_cluster(1):
        pass


@pytest.mark.parametrize("workers", [0, 1.5, True, 5000])
def test_numbers_of_workers(workers):
    with pytest.raises(InputError, match="workers"), local_cluster(workers):
        pass


def test_parcels_keep_values_and_memory():
    matrix = torch.arange(6.0).reshape(2, 3)
    package = pack({"matrix": matrix, "empty": torch.empty(0, 2), "view": matrix.T, "none": None})
    found = package.unpack()
    assert torch.equal(found["matrix"], matrix)
    assert torch.equal(found["view"], matrix.T)
    assert found["empty"].shape == (0, 2)
    assert found["matrix"].data_ptr() == matrix.data_ptr()  # no copy was made
    assert repr(package) == str([package])[1:-1] == "<package>"
    assert sys.getsizeof(package) > 48


def test_randomness_moves_and_comes_back():
    here, alone = SeededRandomness(3), SeededRandomness(3)
    package, found, _ = pack_with_randomness((lambda: here.take(3), here))
    assert found == [here]
    (take, moved), sources = package.unpack()
    assert sources == [moved]
    assert take() == alone.take(3)
    take_over(found, states(sources))
    assert here.take(5) == alone.take(5)
    assert isinstance(pack(SystemRandomness()).unpack(), SystemRandomness)


def test_other_randomness_is_not_moved():
    class Mine:
        source, keeps_promise = "mine", False

        def take(self, count):
            return bytes(count)

    with pytest.raises(BoundaryError):
        pack([Mine()])


def test_a_computation_goes_elsewhere_in_one_piece():
    sent = []

    def run(compute):
        sent.append(compute)
        return compute(20)

    private = Private("a place that is not opened here", "a place", run=run)
    assert apply_private(lambda value: 2 * value + 2, private) == 42
    assert len(sent) == 1
