"""The other gates: recorded first, failures tell nothing, and bare edges make every total infinite."""

import math

import pytest

from gcon.errors import BudgetExceededError, InputError, PrivateComputationError
from gcon.privacy.account import release_once
from gcon.privacy.budget import NOTHING, Budget
from gcon.privacy.gates import answer_owners, declassify, diagnose
from gcon.privacy.ledger import Kind, Outcome
from gcon.privacy.randomness import SystemRandomness


def test_answers_to_owners_are_recorded(kit):
    ledger = kit.ledger(ceiling=NOTHING)
    answer = answer_owners(lambda edges: edges.num_nodes, kit.graph.edges, ledger=ledger, purpose="owners")
    assert answer == 60
    (entry,) = ledger.entries()
    assert (entry.request.kind, entry.outcome) == (Kind.DELIVERY, Outcome.RELEASED)
    assert entry.request.purpose == "owners"
    assert entry.request.cost == NOTHING
    assert kit.events == ["reserve", "settle as released"]


def test_diagnostics_are_recorded_as_not_for_publication(kit):
    ledger = kit.ledger()
    assert diagnose(lambda edges: edges.num_nodes, kit.graph.edges, ledger=ledger, purpose="look") == 60
    (entry,) = ledger.entries()
    assert entry.request.kind is Kind.DIAGNOSTIC
    assert "not for publication" in entry.request.mechanism
    assert entry.request.plan == {}


@pytest.mark.parametrize("gate", [answer_owners, diagnose])
def test_a_failure_in_these_gates_tells_nothing(kit, gate):
    ledger = kit.ledger()

    def fail(edges):
        raise ValueError(f"{edges.columns.tolist()}")

    with pytest.raises(PrivateComputationError, match=r"^A computation on private values failed"):
        gate(fail, kit.graph.edges, ledger=ledger, purpose="x")
    assert ledger.entries()[0].outcome is Outcome.WITHHELD


def test_declassification_makes_the_total_infinite(kit):
    ledger = kit.ledger()
    edges = declassify(kit.graph.edges, reason="an attack on a synthetic graph", ledger=ledger)
    assert edges.num_nodes == 60
    (entry,) = ledger.entries()
    assert entry.request.kind is Kind.DECLASSIFICATION
    assert entry.request.purpose == "an attack on a synthetic graph"
    assert math.isinf(ledger.total().epsilon)
    paid = {"ledger": ledger, "randomness": SystemRandomness(), "purpose": "a test"}
    assert math.isinf(release_once(kit.mechanism(), kit.graph.edges, **paid).receipt.total.epsilon)


@pytest.mark.parametrize("reason", ["", " ", "\n\t"])
def test_declassification_needs_a_reason(kit, reason):
    ledger = kit.ledger()
    with pytest.raises(InputError, match=r"^reason"):
        declassify(kit.graph.edges, reason=reason, ledger=ledger)
    assert not ledger.entries()


def test_a_ceiling_refuses_declassification(kit):
    ledger = kit.ledger(ceiling=Budget(10.0, 0.1))
    with pytest.raises(BudgetExceededError):
        declassify(kit.watched(), reason="a test", ledger=ledger)
    assert not kit.events
