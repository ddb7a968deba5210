"""Memory that processes of one machine lend each other: the same bytes, nobody else's, and nothing that stays."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch

from gcon.edges.cluster import nearby
from gcon.edges.cluster.desk import borrowed
from gcon.edges.cluster.nearby import Segment, borrow
from gcon.edges.cluster.packing import LEAST_LENT, LostError, Package, pack
from gcon.errors import BoundaryError


@pytest.fixture
def segment():
    lent = Segment(1000)
    lent.write(0, np.arange(1000).astype(np.uint8))
    return lent


def test_another_process_reads_what_is_lent_and_cannot_change_it(segment):
    script = (
        "import pickle, sys; from gcon.edges.cluster.nearby import borrow\n"
        "found = borrow(pickle.load(sys.stdin.buffer)); total = int(found.sum()); found[:] = 0; print(total)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], input=pickle.dumps(segment.lent), capture_output=True, check=True, timeout=60
    )
    assert int(done.stdout) == int(segment.bytes.sum()) == int(np.arange(1000).astype(np.uint8).sum())


@pytest.mark.parametrize(
    "other", [{"sign": bytes(64)}, {"size": 999}, {"size": 1001}, {"descriptor": 1}, {"descriptor": 10**6}]
)
def test_memory_of_the_same_number_elsewhere_is_not_taken_for_it(segment, other):
    """Machines that are set up alike have the same numbers of processes and files."""
    assert borrow(segment.lent) is not None
    assert borrow(segment.lent._replace(**other)) is None
    with pytest.raises(LostError):
        borrowed(segment.lent._replace(**other), (1000,), torch.uint8)


def test_a_pipe_in_its_place_does_not_hold_anybody_up(segment, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    descriptor = os.open(tmp_path / "pipe", os.O_RDWR)
    try:
        assert borrow(segment.lent._replace(descriptor=descriptor)) is None
    finally:
        os.close(descriptor)


def test_it_ends_with_the_lender_but_stays_with_who_has_opened_it(segment):
    lent, found = segment.lent, borrow(segment.lent)
    expected = segment.bytes.copy()
    del segment.bytes
    segment.__del__()
    segment._descriptor = -1
    assert borrow(lent) is None
    assert np.array_equal(found, expected)


def test_pieces_that_several_threads_write_are_where_they_belong(monkeypatch):
    monkeypatch.setattr(nearby, "_PIECE", 1000)
    given = np.random.default_rng(0).integers(0, 256, 12_345, dtype=np.uint8)
    segment = Segment(len(given) + 7)
    segment.write(7, given)
    assert np.array_equal(borrow(segment.lent)[7:], given)


def test_without_such_memory_nothing_is_lent(monkeypatch):
    monkeypatch.delattr(os, "memfd_create")
    segment = Segment(4)
    segment.write(1, np.ones(2, dtype=np.uint8))
    assert segment.bytes[1:3].tolist() == [1, 1]
    assert segment.lent is None
    assert borrow(segment.lent) is None
    rows = torch.arange(LEAST_LENT)
    assert torch.equal(pickle.loads(pickle.dumps(pack(rows).lend())).unpack(), rows)


def test_a_system_that_forbids_such_memory_is_like_one_without(monkeypatch):
    """Linux refuses it under `vm.memfd_noexec=2`, and containers may."""

    def refuse(name):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "memfd_create", refuse)
    segment = Segment(4)
    segment.write(1, np.ones(2, dtype=np.uint8))
    assert segment.bytes[1:3].tolist() == [1, 1]
    assert segment.lent is None


def test_only_the_user_has_a_right_to_it_and_no_terminal_is_taken_over(segment, monkeypatch):
    how, opened = [], os.open
    monkeypatch.setattr(os, "open", lambda path, flags: how.append(flags) or opened(path, flags))
    assert borrow(segment.lent) is not None
    assert how[0] & os.O_NOCTTY
    assert os.fstat(segment.lent.descriptor).st_mode & 0o777 == 0o600


def test_a_package_that_is_lent_travels_without_its_matrices():
    value = torch.arange(LEAST_LENT), "word", torch.ones(3, 5, dtype=torch.int8), torch.empty(0)
    package = pack(value).lend()
    bytes_of_it = pickle.dumps(package, protocol=5)
    assert len(bytes_of_it) < 2000
    found = pickle.loads(bytes_of_it).unpack()
    assert found[1] == "word"
    for place in (0, 2, 3):
        assert torch.equal(found[place], value[place])
        assert found[place].dtype == value[place].dtype
    assert isinstance(pickle.loads(bytes_of_it), Package)
    del package
    assert pickle.loads(bytes_of_it) is None  # nobody lends it any more
    assert torch.equal(found[0], value[0])  # who has it keeps it


def test_small_packages_are_sent_as_they_are():
    package = pack(torch.ones(3))
    assert package.lend() is package


def test_a_segment_is_not_pickled(segment):
    with pytest.raises(BoundaryError):
        pickle.dumps(segment)
