"""Answers for owners are not computed on other machines, where they would be lost: refused before anything is recorded."""

import pytest

from gcon.errors import AccessRefusedError
from gcon.privacy.boundary import Private
from gcon.privacy.gates import answer_owners
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.opening import is_elsewhere, map_private


class Far:
    runs_elsewhere = True

    def run(self, compute):
        pytest.fail("something was computed")


FAR = Private(Far(), "edges on a cluster")
WAITING = map_private(lambda value: value, FAR, "waits to be computed there")


@pytest.mark.parametrize("private", [FAR, WAITING])
def test_answers_are_refused(private):
    ledger = MemoryLedger()
    with pytest.raises(AccessRefusedError, match="cluster"):
        answer_owners(lambda value: value, private, ledger=ledger, purpose="test")
    assert not ledger.entries()


def test_other_values_are_here():
    assert not is_elsewhere(Private(3, "a number"))
    assert not is_elsewhere(map_private(lambda value: value, Private(3, "a number"), "another"))
