"""Edges on other machines: whole computations go there, and answers for owners, which would be lost there, are refused."""

import pytest

from gcon.errors import AccessRefusedError, PrivateComputationError
from gcon.privacy.boundary import Private
from gcon.privacy.gates import answer_owners, diagnose
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.opening import check_here

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
