"""The noisy count: sensitivity 2 on every small graph, the right noise law, and an audit that catches half the noise."""

import itertools
import math
from fractions import Fraction

import networkx
import numpy as np
import pytest
import scipy.stats
import torch

import gcon
from gcon.choose.paid_accuracy import paid_accuracy
from gcon.edges.edge_list import public_edges
from gcon.errors import AnswersWarning, InputError
from gcon.mechanisms.counts import NoisyCount
from gcon.mechanisms.samplers import geometric
from gcon.methods.accuracy import beyond
from gcon.methods.own_edges import own_edge_predictions
from gcon.privacy.opening import apply_private
from gcon.privacy.randomness import SystemRandomness, randomness_from

LEVEL = 1e-6
DRAWS = 6_000
EDGES = public_edges(torch.tensor([[0, 1], [1, 2]]), 4)


def noisy(epsilon, sensitivity, count=0):
    return NoisyCount(epsilon, lambda edges: count, sensitivity)


def two_sided_geometric(randomness, rate, count):
    return torch.tensor([geometric.two_sided_geometric(randomness, Fraction(rate)) for _ in range(count)])


def chi_square(sample, rate):
    """P-value of a chi-square test against q^|k| (1-q)/(1+q), tails pooled."""
    decay = math.exp(-rate)
    edge = 1
    while decay ** (edge + 1) / (1 + decay) * len(sample) > 10:
        edge += 1
    inner = np.arange(-edge + 1, edge)
    expected = [*((1 - decay) / (1 + decay) * decay ** np.abs(inner)), *([decay**edge / (1 + decay)] * 2)]
    observed = [*((sample == k).sum() for k in inner), (sample <= -edge).sum(), (sample >= edge).sum()]
    return scipy.stats.chisquare(observed, np.array(expected) * len(sample)).pvalue


@pytest.mark.parametrize("rate", [0.1, 0.5, 2.0])
def test_noise_law_at_the_right_scale_only(rate):
    sample = two_sided_geometric(SystemRandomness(), rate, DRAWS).numpy()
    assert chi_square(sample, rate) > LEVEL
    assert chi_square(sample, rate * 2 / 3) < LEVEL
    assert chi_square(sample, rate * 3 / 2) < LEVEL


def test_standard_deviation_is_that_of_the_noise():
    mechanism = noisy(0.5, 2)
    sample = two_sided_geometric(SystemRandomness(), 0.25, 20_000).double()
    assert float(sample.std()) == pytest.approx(mechanism.standard_deviation, rel=0.06)


@pytest.fixture(scope="module")
def model():
    graph = gcon.datasets.social_circles(60, num_classes=3, per_class=5, num_validation=10, num_test=20, seed=2)
    return gcon.GCON(epsilon=4.0, epochs=10, random_state=1).fit(graph).model_


def test_one_edge_changes_at_most_two_answers(model):
    """All graphs with up to five nodes, every edge: only the two ends' answers may change; two do change somewhere."""
    generator = torch.Generator().manual_seed(0)
    features = 2 * torch.randn(5, 32, generator=generator)
    largest = 0
    for atlas in networkx.graph_atlas_g()[1:53]:
        size = atlas.number_of_nodes()
        encoded = model.encoder.encode(features[:size])
        ends = torch.tensor(list(atlas.edges), dtype=torch.int64).reshape(-1, 2)
        full = own_edge_predictions(model, encoded, public_edges(ends.T, size)).classes
        for dropped in range(len(ends)):
            kept = ends[torch.arange(len(ends)) != dropped]
            less = own_edge_predictions(model, encoded, public_edges(kept.T, size)).classes
            changed = (full != less).nonzero()[:, 0].tolist()
            assert set(changed) <= set(ends[dropped].tolist())
            largest = max(largest, len(changed))
    assert 1 <= largest <= 2


def lower_bound(mechanism, draws=60_000):
    """Clopper-Pearson lower bound on epsilon from counts 10 and 12; threshold chosen on one half, measured on the other."""
    scale = mechanism.epsilon / mechanism.sensitivity
    near = (12 + two_sided_geometric(SystemRandomness(), scale, draws)).numpy()
    far = (10 + two_sided_geometric(SystemRandomness(), scale, draws)).numpy()
    half = draws // 2

    def bound(cut, part):
        hits, alarms = int((near[part] >= cut).sum()), int((far[part] >= cut).sum())
        low = scipy.stats.binomtest(hits, half).proportion_ci(0.9999, "exact").low
        high = scipy.stats.binomtest(alarms, half).proportion_ci(0.9999, "exact").high
        return math.log(low / high)

    best = max(range(8, 18), key=lambda cut: bound(cut, slice(half)))
    return bound(best, slice(half, None))


@pytest.mark.slow
def test_audit_measures_epsilon_and_catches_half_the_noise():
    assert 0.8 <= lower_bound(noisy(1.0, 2)) <= 1.0
    # Sensitivity 1 instead of 2 is half the noise.
    assert lower_bound(noisy(1.0, 1)) > 1.0


def test_paid_accuracy_is_charged_and_near_the_truth(model):
    graph = gcon.datasets.social_circles(800, num_classes=3, per_class=5, num_validation=10, num_test=700, seed=2)
    nodes, ledger = graph.nodes, gcon.MemoryLedger("circles")
    found = paid_accuracy(
        model,
        nodes.features,
        nodes.labels,
        nodes.test_mask,
        graph.edges,
        epsilon=1.0,
        ledger=ledger,
        randomness=SystemRandomness(),
    )
    encoded = model.encoder.encode(nodes.features)
    truth = apply_private(lambda edges: own_edge_predictions(model, encoded, edges), graph.edges).classes
    exact = float((truth == nodes.labels)[nodes.test_mask].double().mean())
    assert found.micro_f1 == pytest.approx(exact, abs=40 / 700)
    assert found.standard_deviation == pytest.approx(noisy(1.0, 2).standard_deviation / 700)
    assert ledger.total() == gcon.Budget(1.0, 0.0)
    assert found.receipt.keeps_promise


def test_a_paid_accuracy_is_as_it_was_released_also_where_noise_made_it_more_than_all(model):
    graph = gcon.datasets.social_circles(200, num_classes=3, per_class=5, num_validation=10, num_test=100, seed=2)
    nodes, shares = graph.nodes, []
    for seed in range(6):
        given = (model, nodes.features, nodes.labels, nodes.test_mask, graph.edges)
        books = gcon.MemoryLedger("circles")
        with pytest.warns(AnswersWarning, match="says little"):
            bought = paid_accuracy(*given, epsilon=0.01, ledger=books, randomness=randomness_from(seed))
        shares.append(bought.micro_f1)
    said = {beyond(share) for share in shares}
    assert {"more than all: noise", "less than none: noise"} <= said
    assert [beyond(share) for share in (0.0, 0.5, 1.0)] == ["", "", ""]


def test_refusals():
    for epsilon, sensitivity in itertools.product((0.0, -1.0, math.nan), (1, 0)):
        with pytest.raises(InputError):
            noisy(epsilon, sensitivity)
    with pytest.raises(InputError):
        noisy(1.0, 0)


def test_the_count_is_that_of_the_edges_and_the_bound_travels_with_it():
    def lonely(edges):
        return int((edges.degrees == 0).sum())

    assert NoisyCount(math.inf, lonely, 2).apply(EDGES, SystemRandomness()) == 1
    mechanism = NoisyCount(1.0, lonely, 2)
    assert mechanism.record["sensitivity"] == 2
    assert mechanism.standard_deviation == noisy(0.5, 1).standard_deviation


def test_noise_uses_the_decimal_that_the_ledger_adds_up(monkeypatch):
    monkeypatch.setattr("gcon.mechanisms.counts.two_sided_geometric", lambda randomness, rate: rate.denominator)
    assert noisy(0.1, 2).apply(EDGES, SystemRandomness()) == 20
