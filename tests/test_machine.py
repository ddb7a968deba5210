"""Threads: one where matrices are small, and nothing changed afterwards."""

import pytest
import torch
from threadpoolctl import threadpool_info

from gcon.machine import SMALL, threads_for


def pools():
    return [each["num_threads"] for each in threadpool_info()]


@pytest.fixture
def several():
    """Two threads, whatever the suite has."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_small_matrices_get_one_thread_and_give_the_others_back(several):
    before = pools()
    with pytest.raises(ZeroDivisionError), threads_for(SMALL - 1):
        assert torch.get_num_threads() == 1
        assert set(pools()) == {1}
        1 / 0  # noqa: B018
    assert torch.get_num_threads() == 2
    assert pools() == before


def test_large_ones_keep_all(several):
    with threads_for(SMALL):
        assert torch.get_num_threads() == 2
