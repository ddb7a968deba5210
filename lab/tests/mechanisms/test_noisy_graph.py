"""Noisy graphs: pair numbers, the laws of both samplers, their promise by audit, and what is refused.

All tests of laws draw from the operating system. Every comparison raises a false alarm with probability below 1e-8, a
whole test below 1e-6 (exact binomial and Clopper-Pearson bounds, wider than four standard errors for that reason).
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st

import gcon
from gcon.edges.edge_list import private_edges
from gcon.errors import InputError, PlanMismatchError, PrivateComputationError
from gcon.privacy.account import release_once
from gcon.privacy.randomness import SeededRandomness, SystemRandomness
from gcon_lab.mechanisms import noisy_graph
from gcon_lab.mechanisms.noisy_graph import (
    RandomFlips,
    TopPairs,
    distinct_below,
    edges_of,
    independent_places,
    largest_laplaces,
    numbers_of,
    pair_ends,
    pair_numbers,
    top_pairs,
)

LEVEL = 1e-8
SYSTEM = SystemRandomness()


def random_numbers(num_nodes, count, seed=0):
    """A made-up graph as rising pair numbers."""
    pairs = num_nodes * (num_nodes - 1) // 2
    return np.sort(np.random.default_rng(seed).choice(pairs, count, replace=False))


def test_pairs_are_numbered_one_by_one():
    for size in (2, 3, 10, 60):
        pairs = np.array([(low, high) for high in range(size) for low in range(high)])
        assert pair_numbers(pairs[:, 0], pairs[:, 1]).tolist() == list(range(len(pairs)))
        assert np.array_equal(np.stack(pair_ends(np.arange(len(pairs))), axis=1), pairs)


@given(st.integers(1, 10**6 - 1), st.floats(0, 1))
def test_pair_numbers_are_exact_for_a_million_nodes(high, place):
    lows = np.unique([0, round(place * (high - 1)), high - 1])
    highs = np.full(len(lows), high)
    low, found = pair_ends(pair_numbers(lows, highs))
    assert low.tolist() == lows.tolist()
    assert found.tolist() == highs.tolist()


def test_all_corners_of_the_triangle_up_to_a_million_nodes():
    high = np.arange(1, 10**6)
    for low in (np.zeros_like(high), high - 1):
        found_low, found_high = pair_ends(pair_numbers(low, high))
        assert np.array_equal(found_low, low)
        assert np.array_equal(found_high, high)


def test_a_graph_goes_through_its_numbers_unchanged():
    numbers = random_numbers(50, 300)
    edges = edges_of(numbers, 50)
    assert np.array_equal(numbers_of(edges), numbers)
    assert edges.num_nodes == 50
    assert int(edges.degrees.sum()) == 600


# Random flips (EdgeRand)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_edges_and_other_pairs_are_flipped_at_the_right_rate_only(epsilon):
    truth = random_numbers(600, 60_000)
    mechanism = RandomFlips(epsilon=epsilon, num_nodes=600)
    flips = np.setxor1d(truth, numbers_of(mechanism.apply(edges_of(truth, 600), SYSTEM)))
    lost = int(np.isin(flips, truth).sum())
    for hits, of in ((lost, len(truth)), (len(flips) - lost, mechanism.num_pairs - len(truth))):
        assert scipy.stats.binomtest(hits, of, 1 / (1 + math.exp(epsilon))).pvalue > LEVEL
        for wrong in (2 / 3, 3 / 2):
            assert scipy.stats.binomtest(hits, of, 1 / (1 + math.exp(wrong * epsilon))).pvalue < LEVEL


def graph_law(epsilon):
    """Probabilities of the 64 sets of flips on the six pairs of four nodes."""
    flip = 1 / (1 + math.exp(epsilon))
    flipped = np.array([number.bit_count() for number in range(64)])
    return flip**flipped * (1 - flip) ** (6 - flipped)


@pytest.mark.parametrize("tail", [noisy_graph._TAIL, 0.5])
def test_every_set_of_flips_has_its_probability(tail, monkeypatch):
    """Also when most gaps are cut and drawn on (tail 1/2)."""
    monkeypatch.setattr(noisy_graph, "_TAIL", tail)
    epsilon, runs = 1.0, 200_000
    bits = np.zeros(6 * runs, dtype=np.int64)
    bits[independent_places(SYSTEM, 6 * runs, 1 / (1 + math.exp(epsilon)))] = 1
    observed = np.bincount(bits.reshape(runs, 6) @ (1 << np.arange(6)), minlength=64)
    assert scipy.stats.chisquare(observed, runs * graph_law(epsilon)).pvalue > LEVEL
    for wrong in (2 / 3, 3 / 2):
        assert scipy.stats.chisquare(observed, runs * graph_law(wrong * epsilon)).pvalue < LEVEL


@pytest.mark.parametrize("size", [0, 1, 2, 1000])
@pytest.mark.parametrize("probability", [0.5, 0.01, 1e-7])
def test_places_are_distinct_rising_and_inside(size, probability):
    places = independent_places(SYSTEM, size, probability)
    assert (np.diff(places) > 0).all()
    assert len(places) == 0 or (places[0] >= 0 and places[-1] < size)


def test_flips_do_not_look_at_the_edges_so_the_ratio_is_exact():
    """B is the symmetric difference of A and flips that do not depend on A: P[B|A]/P[B|A'] is f/(1-f) or its inverse."""
    mechanism = RandomFlips(epsilon=1.3, num_nodes=40)
    flip = mechanism.flip_probability
    assert (1 - flip) / flip == pytest.approx(math.exp(1.3), rel=3e-9)
    first = random_numbers(40, 100)
    for changed in (first[:1], first[50:51], np.setdiff1d(np.arange(780), first)[:1]):
        second = np.setxor1d(first, changed)
        outputs = [mechanism._noisy(truth, SeededRandomness(5)) for truth in (first, second)]
        assert np.setxor1d(*outputs).tolist() == changed.tolist()


@pytest.mark.parametrize("epsilon", [1e-12, 1e-3, 0.5, 1.0, 4.0, 8.0, 16.0])
def test_the_flip_probability_errs_on_the_private_side(epsilon):
    """By a relative 1e-9 at least, unless it is 1/2, which needs no allowance; by no more than the grid asks for."""
    flip = RandomFlips(epsilon=epsilon, num_nodes=40).flip_probability
    exact = 1 / (1 + Fraction(math.exp(epsilon)))
    assert Fraction(flip) >= min(exact * (1 + Fraction(9, 10**10)), Fraction(1, 2))
    assert flip <= 0.5
    assert flip <= float(exact) * (1 + 1.1e-9) + 2.0**-36


# Top pairs (LapGraph)


def test_largest_laplaces_are_order_statistics():
    draws = np.stack([largest_laplaces(SYSTEM, 10, of=10) for _ in range(3_000)])
    few = np.stack([largest_laplaces(SYSTEM, 3, of=50_000) for _ in range(3_000)])
    assert (np.diff(draws) <= 0).all()
    for sample, place, of in [(draws, 1, 10), (draws, 6, 10), (draws, 10, 10), (few, 1, 50_000), (few, 3, 50_000)]:
        tails = scipy.stats.laplace.sf(sample[:, place - 1])
        assert scipy.stats.kstest(tails, scipy.stats.beta(place, of - place + 1).cdf).pvalue > LEVEL
        for wrong in (2 / 3, 3 / 2):
            tails = scipy.stats.laplace.sf(sample[:, place - 1] * wrong)
            if place != 6:  # near the median all scales look alike
                assert scipy.stats.kstest(tails, scipy.stats.beta(place, of - place + 1).cdf).pvalue < LEVEL


@pytest.mark.parametrize("count", [0, 1, 3, 5, 6])
def test_every_set_is_equally_likely(count):
    sets = list(itertools.combinations(range(6), count))
    observed = dict.fromkeys(sets, 0)
    for _ in range(4_000):
        observed[tuple(distinct_below(SYSTEM, 6, count).tolist())] += 1
    assert len(sets) == 1 or scipy.stats.chisquare(list(observed.values())).pvalue > LEVEL


def dense_top_pairs(edges, *, num_pairs, kept, scale):
    values = scale * np.random.default_rng().laplace(size=num_pairs)
    values[edges] += 1
    return np.argsort(-values)[:kept]


@pytest.mark.parametrize(("edges", "kept", "scale"), [(900, 900, 1 / 4), (15_000, 12_000, 1.0)])
def test_sparse_and_dense_sampling_agree_on_200_nodes(edges, kept, scale):
    truth, pairs, runs = random_numbers(200, edges), 19_900, 80
    sparse = [top_pairs(SYSTEM, truth, num_pairs=pairs, kept=kept, scale=scale) for _ in range(runs)]
    assert all(len(np.unique(found)) == kept and found.min() >= 0 and found.max() < pairs for found in sparse)

    def true_ones(found):
        return np.array([int(np.isin(one, truth).sum()) for one in found])

    def p_value(wrong):
        dense = [dense_top_pairs(truth, num_pairs=pairs, kept=kept, scale=wrong * scale) for _ in range(runs)]
        return scipy.stats.ks_2samp(true_ones(sparse), true_ones(dense)).pvalue

    assert p_value(1.0) > LEVEL
    assert p_value(2 / 3) < LEVEL
    assert p_value(3 / 2) < LEVEL
    # Pairs that are no edges are kept equally often wherever they lie, and so are edges.
    everything, is_edge = np.concatenate(sparse), np.isin(np.arange(pairs), truth)
    for kind in (is_edge, ~is_edge):
        parts = np.array_split(np.flatnonzero(kind), 10)
        hits = np.bincount(everything, minlength=pairs)
        found, sizes = [hits[part].sum() for part in parts], np.array([len(part) for part in parts])
        assert scipy.stats.chisquare(found, sum(found) * sizes / sizes.sum()).pvalue > LEVEL


@pytest.mark.parametrize(("epsilon", "share"), [(1.0, 0.005), (4.0, 0.087)])
def test_share_of_real_edges_kept_on_a_graph_like_cora_ml(epsilon, share):
    """The expected share is count * e / ((P - m) + m e), e = exp(0.99 epsilon): the count is m up to noise."""
    nodes, count, runs = 2995, 8158, 10
    truth, mechanism = random_numbers(nodes, count), TopPairs(epsilon=epsilon, num_nodes=nodes)
    factor = math.exp(0.99 * epsilon)
    weight = factor / ((mechanism.num_pairs - count) + count * factor)
    assert count * weight == pytest.approx(share, rel=0.05)
    found = [mechanism._noisy(truth, SYSTEM) for _ in range(runs)]
    kept = sum(int(np.isin(one, truth).sum()) for one in found)
    expected = np.mean([len(one) for one in found]) * weight
    assert scipy.stats.binomtest(kept, runs * count, expected).pvalue > LEVEL
    if epsilon == 4.0:
        for wrong in (2 / 3, 3 / 2):
            other = math.exp(0.99 * epsilon * wrong)
            rate = count * other / ((mechanism.num_pairs - count) + count * other)
            assert scipy.stats.binomtest(kept, runs * count, rate).pvalue < LEVEL


def test_the_count_has_two_sided_geometric_noise():
    truth, runs, rate = random_numbers(30, 200), 3_000, 1.0
    mechanism = TopPairs(epsilon=2.0, num_nodes=30, count_share=0.5)
    sample = np.array([len(mechanism._noisy(truth, SYSTEM)) for _ in range(runs)]) - 200

    def p_value(rate):
        decay, inner = math.exp(-rate), np.arange(-3, 4)
        law = [*((1 - decay) / (1 + decay) * decay ** np.abs(inner)), *([decay**4 / (1 + decay)] * 2)]
        seen = [*((sample == k).sum() for k in inner), (sample <= -4).sum(), (sample >= 4).sum()]
        return scipy.stats.chisquare(seen, runs * np.array(law)).pvalue

    assert p_value(rate) > LEVEL
    assert p_value(rate * 2 / 3) < LEVEL
    assert p_value(rate * 3 / 2) < LEVEL


def test_the_count_is_clipped():
    for edges in (random_numbers(12, 2), np.arange(66)):
        sizes = [len(TopPairs(epsilon=0.5, num_nodes=12)._noisy(edges, SYSTEM)) for _ in range(300)]
        assert min(sizes) == 0  # noise of standard deviation 283: missed with probability below 0.6^300
        assert max(sizes) == 66
    limited = TopPairs(epsilon=2.0, num_nodes=100, most_pairs=60)
    assert max(len(limited._noisy(random_numbers(100, 4_000), SYSTEM)) for _ in range(20)) == 60


# Audits: 20 nodes, a graph with and without the edge {0, 1}, which is pair number 0


def audited_epsilon(draw, *, truth, event, runs=3_000):
    """Lower bound on epsilon from how often an event happens on two neighbours; above the truth with probability 2e-8."""
    neighbours = np.setdiff1d(truth, [0]), np.union1d(truth, [0])
    hits = [sum(event(draw(graph)) for _ in range(runs)) for graph in neighbours]
    often, rarely = max(hits), min(hits)
    low = scipy.stats.beta.ppf(LEVEL, often, runs - often + 1)
    high = scipy.stats.beta.isf(LEVEL, rarely + 1, runs - rarely)
    return math.log(low / high)


# The expected bounds lie more than seven standard deviations from the limits below.


def test_audit_of_random_flips():
    def measured(epsilon):
        mechanism = RandomFlips(epsilon=epsilon, num_nodes=20)
        return audited_epsilon(
            lambda graph: mechanism._noisy(graph, SYSTEM), truth=random_numbers(20, 30), event=lambda found: 0 in found
        )

    assert 0.5 < measured(1.0) <= 1.0  # 0.77 expected
    assert measured(2.0) > 1.0  # 1.69 expected: half the noise is caught


@pytest.mark.slow
def test_audit_of_top_pairs():
    """Both costs at once: the pair is there, and the count is not below that of the graph with the edge."""
    truth = np.arange(61)

    def measured(epsilon):
        mechanism = TopPairs(epsilon=epsilon, num_nodes=20, count_share=0.5)
        return audited_epsilon(
            lambda graph: mechanism._noisy(graph, SYSTEM),
            truth=truth,
            event=lambda found: len(found) >= len(truth) and 0 in found,
        )

    assert 0.1 < measured(1.0) <= 1.0  # 0.59 expected
    assert measured(2.0) > 1.0  # 1.50 expected


@pytest.mark.slow
def test_audit_of_the_noise_on_bits():
    """With 100 of 190 pairs kept, a pair is left out e^epsilon times as often if it is no edge."""

    def measured(scale):
        return audited_epsilon(
            lambda graph: top_pairs(SYSTEM, graph, num_pairs=190, kept=100, scale=scale),
            truth=random_numbers(20, 20),
            event=lambda found: 0 not in found,
            runs=2_500,
        )

    assert 0.3 < measured(1.0) <= 1.0  # 0.68 expected
    assert measured(0.5) > 1.0  # 1.48 expected


# The gate


MECHANISMS = [RandomFlips, TopPairs]


@pytest.mark.parametrize("kind", MECHANISMS)
def test_released_graph_is_paid_once_and_recorded(kind):
    edges, _ = private_edges(torch.tensor([[0, 1, 2], [1, 2, 3]]), 30)
    ledger = gcon.MemoryLedger("made up")
    mechanism = kind(epsilon=1.5, num_nodes=30)
    released = release_once(mechanism, edges, ledger=ledger, randomness=SYSTEM, purpose="test")
    assert ledger.total() == gcon.Budget(1.5, 0.0)
    assert released.receipt.keeps_promise
    assert released.value.num_nodes == 30
    assert (released.value.columns < 30).all()
    record = mechanism.record
    assert record["epsilon"] == 1.5
    assert record["num_pairs"] == 435
    again = release_once(mechanism, edges, ledger=ledger, randomness=SYSTEM, purpose="test")
    # Equal graphs have probability below 1e-20 for the flips; for top pairs they do happen when both are empty.
    assert kind is TopPairs or not np.array_equal(numbers_of(released.value), numbers_of(again.value))


@pytest.mark.parametrize("kind", MECHANISMS)
def test_a_seed_carries_no_promise(kind):
    edges, _ = private_edges(torch.tensor([[0], [1]]), 30)
    ledger = gcon.MemoryLedger("made up")
    mechanism = kind(epsilon=1.0, num_nodes=30)
    released = release_once(mechanism, edges, ledger=ledger, randomness=SeededRandomness(1), purpose="test")
    assert math.isinf(ledger.total().epsilon)
    assert not released.receipt.keeps_promise


@pytest.mark.parametrize("kind", MECHANISMS)
def test_infinite_epsilon_gives_the_graph_and_promises_nothing(kind):
    mechanism, truth = kind(epsilon=math.inf, num_nodes=20), edges_of(random_numbers(20, 30), 20)
    assert mechanism.apply(truth, SYSTEM) is truth
    assert math.isinf(mechanism.budget.epsilon)
    assert mechanism.record["epsilon"] == math.inf


@pytest.mark.parametrize("kind", MECHANISMS)
def test_graphs_without_pairs(kind):
    for size in (1, 2):
        empty = edges_of(np.empty(0, dtype=np.int64), size)
        assert kind(epsilon=1.0, num_nodes=size).apply(empty, SYSTEM).num_nodes == size


@pytest.mark.parametrize("kind", MECHANISMS)
@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, -math.inf, 17.0, "1", True, None])
def test_refused_epsilons(kind, epsilon):
    with pytest.raises(InputError, match="epsilon"):
        kind(epsilon=epsilon, num_nodes=20)


def test_other_refusals():
    with pytest.raises(InputError, match="num_nodes"):
        RandomFlips(epsilon=1.0, num_nodes=0)
    for share in (0.0, 1.0, math.nan):
        with pytest.raises(InputError, match="count_share"):
            TopPairs(epsilon=1.0, num_nodes=20, count_share=share)
    with pytest.raises(PlanMismatchError):
        RandomFlips(epsilon=1.0, num_nodes=20).apply(edges_of(random_numbers(21, 30), 21), SYSTEM)


def test_graphs_that_would_not_fit_are_refused_by_public_numbers():
    with pytest.raises(InputError, match="most_pairs"):
        RandomFlips(epsilon=0.5, num_nodes=19717)  # PubMed: 73 million pairs
    assert RandomFlips(epsilon=4.0, num_nodes=19717).expected_noise_pairs == pytest.approx(3.5e6, rel=0.01)
    with pytest.raises(InputError, match="most_pairs"):
        TopPairs(epsilon=1e-6, num_nodes=19717)  # the count would be off by a hundred million


def test_a_plan_for_another_graph_fails_inside_the_gate_without_details():
    edges, _ = private_edges(torch.tensor([[0], [1]]), 30)
    with pytest.raises((PlanMismatchError, PrivateComputationError)):
        release_once(
            RandomFlips(epsilon=1.0, num_nodes=29),
            edges,
            ledger=gcon.MemoryLedger("made up"),
            randomness=SYSTEM,
            purpose="test",
        )
