"""Rate limits: a burst, then a trickle; shared by processes; keys apart."""

import os

import pytest

from gcon.serve.limits import RateLimit


@pytest.fixture
def clock():
    return [100.0]


@pytest.fixture
def limit(clock):
    return RateLimit(per_minute=60, burst=3, clock=lambda: clock[0])


def test_a_burst_then_one_a_second(limit, clock):
    assert [limit.wait("a") for _ in range(3)] == [0, 0, 0]
    assert limit.wait("a") == pytest.approx(1)
    clock[0] += 0.5
    assert limit.wait("a") == pytest.approx(0.5)
    clock[0] += 0.5
    assert [limit.wait("a") for _ in range(2)] == [0, pytest.approx(1)]
    clock[0] += 100
    assert [limit.wait("a") > 0 for _ in range(4)] == [False, False, False, True]


def test_keys_do_not_share(limit):
    assert all(limit.wait(f"key {number}") == 0 for number in range(100))


def test_refused_requests_do_not_make_it_longer(limit):
    for _ in range(50):
        limit.wait("a")
    assert limit.wait("a") == pytest.approx(1)


def test_forked_workers_share(clock):
    limit = RateLimit(per_minute=60, burst=40, clock=lambda: clock[0])
    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            os._exit(sum(limit.wait("a") == 0 for _ in range(25)))
        children.append(child)
    passed = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert sum(passed) == 40
    assert limit.wait("a") > 0
