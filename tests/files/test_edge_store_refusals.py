"""Edge stores: what is refused, said and left behind; and whom a store belongs to."""

import os
import stat
from collections import namedtuple

import numpy as np
import pytest
import torch
from tests.files.stores import assert_same, random_pairs, write
from tests.opened import open_private

from gcon.edges.stored import StoredEdges
from gcon.errors import InputError
from gcon.files.edge_files import problems_of_edges
from gcon.files.edge_store import write_edge_store
from gcon.files.node_ids import as_node_ids
from gcon.files.store_files import ids_fingerprint, open_store, private_store, store_chunks

Usage = namedtuple("Usage", "total used free")


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
        write_edge_store([random_pairs(40, 300), wrong], tmp_path / "edges.csr", num_nodes=40, memory_bytes=4096)
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
    monkeypatch.setattr("gcon.files.edge_store.shutil.disk_usage", lambda _: Usage(9, 9, 10_000))

    def unread():
        raise AssertionError
        yield

    with pytest.raises(InputError) as refused:
        write_edge_store(unread(), tmp_path / "edges.csr", num_nodes=40, expected=987_654)
    assert "about 24 bytes for every edge" in str(refused.value)
    assert "987" not in str(refused.value)
    assert os.listdir(tmp_path) == []


def test_too_little_space_is_said_before_the_merge_where_nobody_knew_how_many_come(tmp_path, monkeypatch):
    monkeypatch.setattr("gcon.files.edge_store.shutil.disk_usage", lambda _: Usage(9, 9, 20_000))
    with pytest.raises(InputError, match="needs free space"):
        write(tmp_path / "edges.csr", random_pairs(400, 5000), 400)
    assert os.listdir(tmp_path) == []


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

    write_edge_store(meanwhile(), target, num_nodes=9)
    assert_same(target, random_pairs(9, 20), 9)


def test_refusals(tmp_path):
    write(tmp_path / "edges.csr", random_pairs(9, 20), 9)
    with pytest.raises(InputError, match="may not exist yet"):
        write(tmp_path / "edges.csr", random_pairs(9, 20), 9)
    with pytest.raises(InputError, match="at least 4096"):
        write(tmp_path / "b.csr", random_pairs(9, 20), 9, memory_bytes=4095)
    with pytest.raises(InputError, match="at most 2\\^32"):
        write(tmp_path / "b.csr", random_pairs(9, 20), 2**32 + 1)
    with pytest.raises(InputError, match="must lie in an existing folder"):
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
                edges = private_store(target, ids=as_node_ids(ids))
                assert torch.equal(open_private(edges).load().columns, StoredEdges(target).load().columns)
                assert open_private(edges).hygiene.given == 20
                assert repr(edges) == "<private: stored edges of a simple undirected graph>"
                assert problems_of_edges(target, ids=as_node_ids(ids)) == []
            else:
                with pytest.raises(InputError, match="made for the nodes of the nodes file"):
                    open_store(target, ids=as_node_ids(others))
                assert len(problems_of_edges(target, ids=as_node_ids(others))) == 1


def test_chunks_of_a_store_are_its_edges(tmp_path):
    pairs = random_pairs(60, 500)
    write(tmp_path / "a.csr", pairs, 60)
    again = np.concatenate(list(store_chunks(tmp_path / "a.csr", ids=None)), axis=1)
    assert (again[0] < again[1]).all()
    write(tmp_path / "b.csr", again, 60)
    for name in ("columns.bin", "row_pointers.bin"):
        assert (tmp_path / "a.csr" / name).read_bytes() == (tmp_path / "b.csr" / name).read_bytes()
