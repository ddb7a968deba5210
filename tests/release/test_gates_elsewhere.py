"""From edges on other machines only releases come back: the other gates refuse them before anything is charged."""

import pytest

from gcon.errors import AccessRefusedError
from gcon.privacy.boundary import Private
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.opening import is_elsewhere, map_private
from gcon.release.gate import answer_owners, declassify, diagnose


class Far:
    runs_elsewhere = True

    def run(self, compute):
        pytest.fail("something was computed")


FAR = Private(Far(), "edges on a cluster")
WAITING = map_private(lambda value: value, FAR, "waits to be computed there")


@pytest.mark.parametrize("private", [FAR, WAITING])
@pytest.mark.parametrize(
    "gate",
    [
        lambda private, ledger: answer_owners(lambda value: value, private, ledger=ledger, purpose="test"),
        lambda private, ledger: diagnose(lambda value: value, private, ledger=ledger, purpose="test"),
        lambda private, ledger: declassify(private, reason="test", ledger=ledger),
    ],
    ids=["answers", "diagnostic", "declassify"],
)
def test_gates_without_noise_refuse_them(gate, private):
    ledger = MemoryLedger()
    with pytest.raises(AccessRefusedError, match="cluster"):
        gate(private, ledger)
    assert not ledger.entries()


def test_other_values_are_here():
    assert not is_elsewhere(Private(3, "a number"))
    assert not is_elsewhere(map_private(lambda value: value, Private(3, "a number"), "another"))
