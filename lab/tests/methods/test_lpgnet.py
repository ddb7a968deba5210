"""LPGNet: counts without noise by hand, own edges, what is charged, noise per layer and run."""

import dataclasses
import itertools
import math

import pytest
import torch

from gcon.edges.edge_list import public_edges
from gcon.edges.graph import PublicGraph, private_graph
from gcon.errors import AccessRefusedError, InputError
from gcon.files.datasets import social_circles_parts
from gcon.learn.unit_rows import rows_with_sum_one
from gcon.privacy.budget import Budget
from gcon.privacy.ledger import Kind, MemoryLedger
from gcon.privacy.randomness import SeededRandomness
from gcon_lab.methods.lpgnet import LPGNet
from gcon_lab.methods.networks import Perceptron, Training, fit_on_rows, logits_of, seeded

NODES, EDGE_INDEX = social_circles_parts(
    120, num_classes=3, per_class=6, num_validation=30, num_test=60, mean_degree=4.0, seed=3
)
SMALL = {"epochs": 8, "hidden": 8}


def graph(edge_index=EDGE_INDEX):
    return private_graph(NODES, edge_index, name="circles")


def adjacency(edge_index):
    dense = torch.zeros(120, 120, dtype=torch.float64)
    dense[edge_index[0], edge_index[1]] = dense[edge_index[1], edge_index[0]] = 1
    return dense


def perceptron(rows, place, seed=0):
    with seeded(seed + place):
        network = Perceptron(rows.shape[1], 8, 3, layers=2, share=0.5, bias=False, drop_input=False)
        fit_on_rows(network, rows, NODES, Training(epochs=8, falling=True), weight_decay=5e-4)
    return logits_of(network, rows)


def counts_by_hand(scores):
    """Counts from the dense matrix, clipped, rows of zeros repaired with the seed's class."""
    return adjacency(EDGE_INDEX) @ torch.eye(3, dtype=torch.float64)[scores.argmax(dim=1)]


def repaired_by_hand(counts, place):
    drawn = torch.randint(3, (120,), generator=torch.Generator().manual_seed(place))
    rows = counts.clamp(min=0).float()
    for node in range(120):
        if not rows[node].any():
            rows[node, drawn[node]] = 1
    return rows


@pytest.mark.parametrize("stacked", [1, 2])
@pytest.mark.parametrize("access", ["cached", "own-edges"])
def test_infinite_epsilon_is_the_method_without_noise(stacked, access):
    columns = [perceptron(rows_with_sum_one(NODES.features), 0)]
    for place in range(1, stacked + 1):
        columns.append(repaired_by_hand(counts_by_hand(columns[-1]), place))
        columns.append(perceptron(torch.cat(columns, dim=1), place))
    assert torch.cat(columns[:-1], dim=1).shape[1] == 2 * 3 * stacked
    fitted = LPGNet(epsilon=math.inf, stacked=stacked, **SMALL).fit(graph())
    found = fitted.predictions(graph(), access=access)
    assert torch.allclose(found.probabilities, torch.softmax(columns[-1], dim=1), atol=1e-6)
    assert math.isinf(fitted.receipts[0].budget.epsilon)
    assert not fitted.receipts[0].keeps_promise


@pytest.mark.parametrize("stacked", [1, 2])
def test_cached_scores_follow_from_what_was_released(released, stacked):
    """With noise too: the whole rest is computed from the released counts and public features."""
    method = LPGNet(epsilon=2.0, stacked=stacked, **SMALL)
    fitted = method.fit(graph(), randomness=SeededRandomness(2))  # no chance that rounding tips the choice of an epoch
    noisy = [line.value for line in released]
    assert len(noisy) == stacked
    columns = [perceptron(rows_with_sum_one(NODES.features), 0)]
    for place in range(1, stacked + 1):
        columns.append(repaired_by_hand(noisy[place - 1], place))
        columns.append(perceptron(torch.cat(columns, dim=1), place))
    found = fitted.predictions(graph()).probabilities
    assert torch.allclose(found, torch.softmax(columns[-1], dim=1), atol=1e-6)


@pytest.mark.parametrize("stacked", [1, 2])
def test_charged_once_and_only_epsilon(released, stacked):
    ledger = MemoryLedger("circles")
    fitted = LPGNet(epsilon=1.5, delta=1e-5, stacked=stacked, **SMALL).fit(graph(), ledger=ledger)
    (entry,) = ledger.entries()
    assert entry.request.kind is Kind.RELEASE
    assert entry.request.cost == ledger.total() == fitted.receipts[0].budget == Budget(1.5, 0.0)
    assert entry.request.plan["scale"] == pytest.approx(2 * stacked / 1.5, rel=1e-8)
    assert len(released) == stacked
    fitted.predict(graph())
    assert len(ledger.entries()) == 1  # cached quantities are free
    fitted.predict(graph(), access="own-edges")
    assert [entry.request.kind for entry in ledger.entries()] == [Kind.RELEASE, Kind.DELIVERY]
    assert ledger.total() == Budget(1.5, 0.0)


def test_noise_from_a_seed_is_charged_as_infinite():
    ledger = MemoryLedger("circles")
    fitted = LPGNet(epsilon=1.0, **SMALL).fit(graph(), ledger=ledger, randomness=SeededRandomness(1))
    assert math.isinf(ledger.total().epsilon)
    assert not fitted.receipts[0].keeps_promise


def test_noise_differs_between_runs_and_layers(released):
    """The same seed of the weights: the noise has nothing to do with it."""
    for _ in range(2):
        LPGNet(epsilon=1.0, stacked=2, seed=5, **SMALL).fit(graph())
    one, two, three, four = (line.value for line in released)
    # The counts are whole numbers, so the fractions are noise alone: of 360 pairs of independent lattice points that
    # agree in their fractions 0.4 are expected (the spacing is 2^-10), 18 never.
    fractions = [part - part.round() for part in (one, two, three, four)]
    for first, second in itertools.combinations(fractions, 2):
        assert int((first == second).sum()) < 18


@pytest.mark.parametrize("stacked", [1, 2])
def test_an_answer_from_own_edges_reads_own_edges_only(stacked):
    fitted = LPGNet(epsilon=1.0, stacked=stacked, **SMALL).fit(graph())
    before = fitted.predictions(graph(), access="own-edges").probabilities
    moved = 0
    for place in range(0, EDGE_INDEX.shape[1], 10):
        ends = EDGE_INDEX[:, place].tolist()
        kept = torch.cat([EDGE_INDEX[:, :place], EDGE_INDEX[:, place + 1 :]], dim=1)
        after = fitted.predictions(graph(kept), access="own-edges").probabilities
        others = [node for node in range(120) if node not in ends]
        assert torch.equal(before[others], after[others])
        moved += int((before[ends] != after[ends]).any())
    assert moved > 0
    # Without any edge every row still has an answer.
    empty = fitted.predictions(graph(EDGE_INDEX[:, :0]), access="own-edges").probabilities
    assert bool(torch.isfinite(empty).all())


def test_one_stacked_layer_is_clean_at_inference(released):
    """The noisy row of the asking node is not used: two runs that differ in that row alone would answer alike."""
    fitted = LPGNet(epsilon=1.0, **SMALL).fit(graph())
    first = fitted.predictions(graph(), access="own-edges").probabilities
    assert torch.equal(first, fitted.predictions(graph(), access="own-edges").probabilities)
    released[0].value.add_(100.0)  # changing what was kept changes nothing
    assert torch.equal(first, fitted.predictions(graph(), access="own-edges").probabilities)


def test_refusals():
    fitted = LPGNet(epsilon=1.0, **SMALL).fit(graph())
    for access in ("none", "full", "public-graph"):
        with pytest.raises(AccessRefusedError, match="cached, own-edges"):
            fitted.predict(graph(), access=access)
    with pytest.raises(AccessRefusedError, match="private edges"):
        fitted.predict(PublicGraph(NODES.features, public_edges(EDGE_INDEX, 120)), access="own-edges")
    for stacked in (0, 3, 1.5, True):
        with pytest.raises(InputError, match="stacked"):
            LPGNet(epsilon=1.0, stacked=stacked)
    with pytest.raises(InputError, match="epsilon"):
        LPGNet(epsilon=0.0)


def test_learns_from_neighbours():
    nodes, edge_index = social_circles_parts(
        400, num_classes=3, feature_signal=2.0, mean_degree=20.0, homophily=0.95, seed=1
    )
    nodes = dataclasses.replace(nodes, features=nodes.features.clamp(min=0))  # rows are divided by their sums
    easy = private_graph(nodes, edge_index)
    fitted = LPGNet(epsilon=20.0, epochs=100, hidden=16, learning_rate=0.05).fit(easy)
    assert fitted.score(easy, nodes.test_mask) > 0.8
