"""The one-run bound: against brute force, against laws that keep the promise, and on a graph."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats
import torch

from gcon.edges.edge_list import public_edges
from gcon.errors import InputError
from gcon.privacy.randomness import SystemRandomness
from gcon_lab.audits.one_run import one_run_bound, one_run_error, place_canaries, right_guesses


@pytest.mark.parametrize("guesses", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_without_delta_it_is_randomised_response(guesses, epsilon):
    """All outcomes of r coins of probability e^eps / (1 + e^eps)."""
    coin = math.exp(epsilon) / (1 + math.exp(epsilon))
    for right in range(guesses + 1):
        expected = sum(
            math.prod(coin if hit else 1 - coin for hit in outcome)
            for outcome in itertools.product([0, 1], repeat=guesses)
            if sum(outcome) >= right
        )
        found = one_run_error(canaries=guesses + 3, guesses=guesses, right=right, epsilon=epsilon, delta=0.0)
        assert found == pytest.approx(expected)


@pytest.mark.parametrize(("canaries", "guesses"), [(3, 2), (6, 5), (8, 8)])
def test_with_delta_it_is_the_formula_of_the_paper(canaries, guesses):
    epsilon, delta = 0.7, 1e-3
    coin = math.exp(epsilon) / (1 + math.exp(epsilon))

    def at_least(count):
        return sum(
            math.comb(guesses, hits) * coin**hits * (1 - coin) ** (guesses - hits)
            for hits in range(max(count, 0), guesses + 1)
        )

    for right in range(guesses + 1):
        slopes = [(at_least(right - step) - at_least(right)) / step for step in range(1, right + 1)]
        expected = at_least(right) + 2 * canaries * delta * max(slopes, default=0.0)
        found = one_run_error(canaries=canaries, guesses=guesses, right=right, epsilon=epsilon, delta=delta)
        assert found == pytest.approx(min(1.0, expected))


@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.02])
def test_a_law_that_keeps_the_promise_is_hardly_ever_above(delta):
    """Every canary is told with probability delta, and answered by randomised response else: (epsilon, delta)-DP."""
    epsilon, canaries, error = 1.0, 40, 0.05
    rate = delta + (1 - delta) / (1 + math.exp(-epsilon))
    for right in range(canaries + 1):
        allowed = one_run_error(canaries=canaries, guesses=canaries, right=right, epsilon=epsilon, delta=delta)
        assert scipy.stats.binom.sf(right - 1, canaries, rate) <= allowed + 1e-12
    wrong = sum(
        scipy.stats.binom.pmf(right, canaries, rate)
        for right in range(canaries + 1)
        if one_run_bound(canaries=canaries, guesses=canaries, right=right, delta=delta, error=error) > epsilon
    )
    assert wrong <= error


def test_bounds_by_hand():
    # All of r guesses right: q^r = error at the bound.
    coin = 0.05 ** (1 / 100)
    found = one_run_bound(canaries=100, guesses=100, right=100, delta=0.0, error=0.05)
    assert found == pytest.approx(math.log(coin / (1 - coin)))
    assert one_run_bound(canaries=100, guesses=100, right=50, delta=0.0, error=0.05) == 0
    rising = [
        one_run_bound(canaries=100, guesses=100, right=right, delta=1e-4, error=0.05) for right in range(50, 101, 5)
    ]
    assert rising == sorted(rising)
    with pytest.raises(InputError, match="right"):
        one_run_error(canaries=3, guesses=4, right=2, epsilon=1.0, delta=0.0)


def test_canaries_are_disjoint_new_edges_put_in_by_fair_coins():
    base = public_edges(torch.stack([torch.arange(199), torch.arange(1, 200)]), 200)
    canaries = place_canaries(base, 100, SystemRandomness())
    assert len(canaries.pairs) >= 80
    assert len(np.unique(canaries.pairs)) == canaries.pairs.size
    graph = canaries.graph
    for (low, high), included in zip(canaries.pairs, canaries.included, strict=True):
        assert not bool((base.neighbours(low) == high).any())
        assert bool((graph.neighbours(low) == high).any()) == included
    assert len(graph.columns) == len(base.columns) + 2 * canaries.included.sum()
    assert 10 <= canaries.included.sum() <= 90
    with pytest.raises(InputError, match="canaries"):
        place_canaries(base, 101, SystemRandomness())


def test_guesses_are_the_extreme_scores():
    scores, included = np.array([3.0, -1.0, 0.1, 2.0]), np.array([True, True, False, True])
    assert right_guesses(scores, included, guesses=2) == 1
    assert right_guesses(scores, included, guesses=4) == 3
