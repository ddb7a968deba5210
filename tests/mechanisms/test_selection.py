"""Private selection: its exact law, the wrong scale caught, and an audit on the worst pair of counts."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
import torch

from gcon.edges.edge_list import public_edges
from gcon.errors import InputError
from gcon.mechanisms.counts import Selection
from gcon.mechanisms.samplers.geometric import coin_exp, shuffled
from gcon.privacy.randomness import SystemRandomness

LEVEL = 1e-6
EDGES = public_edges(torch.tensor([[0, 1], [1, 2]]), 4)


def selection(epsilon, sensitivity, counts):
    return Selection(epsilon, lambda edges: counts, sensitivity)


def law(counts, rate):
    """Probabilities of permute-and-flip, by going through all orders."""
    heads = np.exp(-rate * (max(counts) - np.array(counts, dtype=float)))
    found, orders = np.zeros(len(counts)), list(itertools.permutations(range(len(counts))))
    for order in orders:
        left = 1.0
        for place in order:
            found[place] += left * heads[place] / len(orders)
            left *= 1 - heads[place]
    return found


def exponential_noise_law(counts, rate):
    """Probabilities that a count plus exponential noise is the largest, by numerical integration."""
    counts = np.array(counts, dtype=float)
    grid = np.linspace(0, 40 / rate, 200_001)
    found = []
    for place in range(len(counts)):
        others = np.delete(counts, place)
        below = np.prod(-np.expm1(-rate * np.clip(counts[place] + grid[:, None] - others, 0, None)), axis=1)
        found.append(np.trapezoid(rate * np.exp(-rate * grid) * below, grid))
    return np.array(found)


def draw(epsilon, sensitivity, counts, draws):
    mechanism = selection(epsilon, sensitivity, counts)
    drawn = Counter(mechanism.apply(EDGES, SystemRandomness()) for _ in range(draws))
    return np.array([drawn[place] for place in range(len(counts))])


@pytest.mark.parametrize("counts", [(10, 10), (3, 7, 6), (100, 90, 99, 95), (0,)])
def test_permute_and_flip_is_report_noisy_max_with_exponential_noise(counts):
    assert law(counts, 0.25) == pytest.approx(exponential_noise_law(counts, 0.25), abs=1e-6)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_law_at_the_right_scale_only(epsilon):
    counts = (12, 9, 3, 11)
    seen = draw(epsilon, 2, counts, 20_000)

    def p_value(factor):
        return scipy.stats.chisquare(seen, law(counts, factor * epsilon / 4) * seen.sum()).pvalue

    assert p_value(1) > LEVEL
    assert p_value(2 / 3) < LEVEL
    assert p_value(3 / 2) < LEVEL


def test_no_pair_of_neighbouring_counts_exceeds_epsilon_and_one_reaches_it():
    """All pairs of three small counts that differ by at most 2 each."""
    epsilon, largest = 0.8, 0.0
    changes = list(itertools.product((-2, 0, 2), repeat=3))
    for counts in itertools.product(range(5), repeat=3):
        here = np.log(law(counts, epsilon / 4))
        for change in changes:
            there = np.log(law(np.add(counts, change), epsilon / 4))
            largest = max(largest, float(np.abs(here - there).max()))
    assert largest <= epsilon + 1e-12
    assert largest == pytest.approx(epsilon, abs=1e-9)


def lower_bound(epsilon, sensitivity, draws=40_000):
    """Clopper-Pearson lower bound on epsilon from the worst pair: equal counts, and counts moved apart by the edge."""
    equal, apart = (draw(epsilon, sensitivity, counts, draws) for counts in ((10, 10), (8, 12)))
    low = scipy.stats.binomtest(int(equal[0]), draws).proportion_ci(0.9999, "exact").low
    high = scipy.stats.binomtest(int(apart[0]), draws).proportion_ci(0.9999, "exact").high
    return math.log(low / high)


def test_audit_measures_epsilon_and_catches_half_the_noise():
    assert 0.85 <= lower_bound(1.0, 2) <= 1.0
    assert lower_bound(1.0, 1) > 1.5  # sensitivity 1 instead of 2 is half the noise


def test_exact_pieces():
    randomness = SystemRandomness()
    heads = sum(coin_exp(randomness, Fraction(3, 2)) for _ in range(20_000))
    assert scipy.stats.binomtest(heads, 20_000, math.exp(-1.5)).pvalue > LEVEL
    assert coin_exp(randomness, Fraction(0))
    assert not coin_exp(
        randomness, Fraction(10**30) + Fraction(1, 3)
    )  # as many coins as that, but the first tails end it
    orders = Counter(tuple(shuffled(randomness, 3)) for _ in range(12_000))
    assert scipy.stats.chisquare([orders[order] for order in itertools.permutations(range(3))]).pvalue > LEVEL
    assert shuffled(randomness, 1) == [0]


def test_refusals():
    for epsilon, sensitivity in ((0.0, 2), (-1.0, 2), (math.nan, 2), (1.0, 0)):
        with pytest.raises(InputError):
            selection(epsilon, sensitivity, (3, 4))
    assert selection(math.inf, 2, (3, 9, 9)).apply(EDGES, SystemRandomness()) == 1


def test_the_counts_are_those_of_the_edges_and_the_bound_travels_with_them():
    def degrees(edges):
        return edges.degrees.tolist()

    assert Selection(math.inf, degrees, 1).apply(EDGES, SystemRandomness()) == 1
    assert Selection(1.0, degrees, 1).record["sensitivity"] == 1


def test_coins_use_the_decimal_that_the_ledger_adds_up(monkeypatch):
    seen = []
    monkeypatch.setattr("gcon.mechanisms.counts.coin_exp", lambda randomness, exponent: seen.append(exponent) or True)
    for _ in range(40):
        selection(0.1, 2, (0, 3)).apply(EDGES, SystemRandomness())
    assert set(seen) <= {Fraction(0), Fraction(3, 40)}
    assert Fraction(3, 40) in seen  # missed with probability 2^-40
