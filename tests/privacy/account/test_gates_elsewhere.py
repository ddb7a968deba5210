"""Edges on other machines: whole computations go there, and answers for owners, which would be lost there, are refused."""

import pytest

from gcon.errors import AccessRefusedError, InputError, PrivateComputationError
from gcon.privacy.account import release_once
from gcon.privacy.boundary import Private
from gcon.privacy.gates import answer_owners, diagnose
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.opening import check_here
from gcon.privacy.randomness import SystemRandomness

FAR = Private("the edges", "edges on a cluster", run=lambda compute: compute("the edges over there"))


def test_answers_are_refused():
    ledger = MemoryLedger()
    with pytest.raises(AccessRefusedError, match="cluster"):
        answer_owners(lambda value: value, FAR, ledger=ledger, purpose="test")
    assert not ledger.entries()


def test_a_computation_goes_where_the_edges_are():
    assert diagnose(str.upper, FAR, ledger=MemoryLedger(), purpose="test") == "THE EDGES OVER THERE"


def test_a_failure_there_tells_nothing():
    def fail(compute):
        raise ValueError("977 edges")

    with pytest.raises(PrivateComputationError) as raised:
        diagnose(len, Private("x", "far edges", run=fail), ledger=MemoryLedger(), purpose="test")
    assert "977" not in str(raised.value)


def test_other_values_are_here():
    with pytest.raises(AccessRefusedError, match="Nothing was recorded"):
        check_here(FAR)
    check_here(Private(3, "a number"))


def test_machines_that_are_gone_are_noticed_before_the_charge(kit):
    def gone():
        raise InputError("scheduler", rule="must be there", got="no answer", fix="Start it.")

    ledger = MemoryLedger()
    for check, entries in ((gone, 0), (lambda: None, 1)):
        edges = Private("edges", "edges on a cluster", run=lambda compute: pytest.fail("was read"), check=check)
        with pytest.raises((InputError, PrivateComputationError)) as raised:
            release_once(kit.mechanism(), edges, ledger=ledger, randomness=SystemRandomness(), purpose="test")
        assert (raised.type is InputError) == (entries == 0)
        assert len(ledger.entries()) == entries
