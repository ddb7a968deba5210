"""What GAP, ProGAP and LPGNet have in common: charged once, noise anew for every release, answers from own edges alone."""

import dataclasses
import itertools
import math

import pytest
import torch
from lab.tests.methods.circles import EDGE_INDEX, NODES, graph

from gcon.edges.edge_list import public_edges
from gcon.edges.graph import PublicGraph, private_graph
from gcon.errors import AccessRefusedError, InputError
from gcon.files.datasets import social_circles_parts
from gcon.mechanisms.gaussian_curve import gaussian_epsilon, gaussian_multiplier
from gcon.privacy.budget import Budget, checked_budget
from gcon.privacy.ledger import Kind, MemoryLedger
from gcon.privacy.randomness import SeededRandomness
from gcon_lab.methods import GAP, LPGNet, ProGAP

ROUNDS = {GAP: "hops", ProGAP: "depth", LPGNet: "stacked"}
SMALL = {"epochs": 6, "hidden": 8}
every = pytest.mark.parametrize("kind", ROUNDS)
gaussian = pytest.mark.parametrize("kind", [GAP, ProGAP])


def small(kind, rounds=2, **settings):
    return kind(**{"epsilon": 1.0, ROUNDS[kind]: rounds, **SMALL, **settings})


@every
@pytest.mark.parametrize("rounds", [1, 2])
def test_charged_once(released, kind, rounds):
    ledger, laplace = MemoryLedger("circles"), kind is LPGNet
    fitted = small(kind, rounds, epsilon=1.5, delta=1e-4).fit(graph(), ledger=ledger)
    (entry,) = ledger.entries()
    cost = Budget(1.5, 0.0 if laplace else 1e-4)
    assert entry.request.cost == ledger.total() == fitted.receipts[0].budget == cost
    scale = 2 * rounds / 1.5 if laplace else math.sqrt(2 * rounds) * gaussian_multiplier(1.5, 1e-4)
    assert entry.request.plan["scale"] == pytest.approx(scale, rel=1e-8)
    distance = None if laplace else pytest.approx(math.sqrt(2 * rounds) / scale, rel=1e-8)
    assert entry.request.gaussian_distance == distance
    assert len(released) == rounds
    fitted.predict(graph())
    fitted.score(graph(), NODES.test_mask)
    assert len(ledger.entries()) == 1  # cached quantities are free
    fitted.predict(graph(), access="own-edges")
    fitted.score(graph(), NODES.test_mask, access="own-edges")
    kinds = [entry.request.kind for entry in ledger.entries()]
    assert kinds == [Kind.RELEASE, Kind.DELIVERY, Kind.DIAGNOSTIC]
    assert ledger.total() == cost


@gaussian
def test_delta_comes_from_the_public_number_of_nodes(kind):
    ledger = MemoryLedger("circles")
    small(kind).fit(graph(), ledger=ledger)
    assert ledger.total() == checked_budget(1.0, None, 120)


@gaussian
def test_directed_convention_is_labelled_and_charged_at_what_it_costs(kind):
    ledger = MemoryLedger("circles")
    small(kind, delta=1e-4, edge_sensitivity="directed").fit(graph(), ledger=ledger)
    (entry,) = ledger.entries()
    true = gaussian_epsilon(math.sqrt(2) / gaussian_multiplier(1.0, 1e-4), 1e-4)
    assert ledger.total().epsilon == pytest.approx(true, rel=1e-6)
    assert ledger.total().epsilon > 1.4
    assert entry.request.plan["edge_sensitivity"] == "directed"
    with pytest.raises(InputError, match="edge_sensitivity"):
        small(kind, edge_sensitivity="none")


@every
def test_noise_from_a_seed_is_charged_as_infinite(kind):
    ledger = MemoryLedger("circles")
    fitted = small(kind).fit(graph(), ledger=ledger, randomness=SeededRandomness(1))
    assert math.isinf(ledger.total().epsilon)
    assert not fitted.receipts[0].keeps_promise


@gaussian
def test_noise_differs_between_runs_and_rounds(released, kind):
    """The same seed of the weights: the noise has nothing to do with it."""
    for _ in range(2):
        small(kind, seed=5).fit(graph(EDGE_INDEX[:, :0]))  # without edges the sums are noise alone
    values = [line.value for line in released]
    # Lattice points: of 960 pairs of independent ones 0.1 are expected to be equal, and an eighth of all 3,840 repeated.
    for first, second in itertools.combinations(values, 2):
        assert float((first == second).double().mean()) < 0.02
    assert len(torch.stack(values).unique()) > 1_920


@every
@pytest.mark.parametrize("rounds", [1, 2])
def test_an_answer_from_own_edges_reads_own_edges_only(kind, rounds):
    fitted = small(kind, rounds).fit(graph())
    before = fitted.predictions(graph(), access="own-edges").probabilities
    moved = []
    for place in range(0, EDGE_INDEX.shape[1], 10):
        ends = EDGE_INDEX[:, place].tolist()
        kept = torch.cat([EDGE_INDEX[:, :place], EDGE_INDEX[:, place + 1 :]], dim=1)
        after = fitted.predictions(graph(kept), access="own-edges").probabilities
        others = [node for node in range(120) if node not in ends]
        assert torch.equal(before[others], after[others])
        moved.append(not torch.equal(before[ends], after[ends]))
    assert any(moved) if kind is LPGNet else all(moved)  # a count of one class may be all that moves
    # Without any edge every row still has an answer.
    empty = fitted.predictions(graph(EDGE_INDEX[:, :0]), access="own-edges").probabilities
    assert bool(torch.isfinite(empty).all())


@every
def test_refusals(kind):
    fitted = small(kind).fit(graph())
    for access in ("none", "full", "public-graph"):
        with pytest.raises(AccessRefusedError, match="cached, own-edges"):
            fitted.predict(graph(), access=access)
    with pytest.raises(AccessRefusedError, match="private edges"):
        fitted.predict(PublicGraph(NODES.features, public_edges(EDGE_INDEX, 120)), access="own-edges")
    for epsilon in (0.0, -1.0):
        with pytest.raises(InputError, match="epsilon"):
            small(kind, epsilon=epsilon)
    for rounds in (0, 1.5, True, 101):
        with pytest.raises(InputError, match=ROUNDS[kind]):
            small(kind, rounds)


@every
def test_learns_from_neighbours(kind):
    signal = 2.0 if kind is LPGNet else 1.5
    nodes, edge_index = social_circles_parts(
        400, num_classes=3, feature_signal=signal, mean_degree=20.0, homophily=0.95, seed=1
    )
    settings = {}
    if kind is LPGNet:  # rows are divided by their sums
        nodes = dataclasses.replace(nodes, features=nodes.features.clamp(min=0))
        settings = {"epochs": 100, "hidden": 16, "learning_rate": 0.05}
    easy = private_graph(nodes, edge_index)
    fitted = kind(**{"epsilon": 20.0, ROUNDS[kind]: 1, **settings}).fit(easy)
    assert fitted.score(easy, nodes.test_mask) > 0.8
