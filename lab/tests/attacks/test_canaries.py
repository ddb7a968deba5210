"""The canary test: formulas by hand; honest methods pass, broken ones are caught; false alarms below 1e-6."""

import math

import pytest
import torch
from scipy.stats import binom

from gcon.edges.edge_list import public_edges
from gcon.errors import InputError
from gcon.privacy.randomness import SeededRandomness, SystemRandomness
from gcon_lab.attacks.canaries import Guesses, draw_canaries, guess, within
from gcon_lab.attacks.view import View
from gcon_lab.attacks.white_box import NoisyNeighbourSums, WhiteBox
from gcon_lab.audits.pairs import is_linked, with_edges
from gcon_lab.mechanisms.neighbour_sums import laplace_sums_plan

ALARM = 1e-6
NODES, COINS = 6000, 2500


def ring(num_nodes):
    nodes = torch.arange(num_nodes)
    return public_edges(torch.stack([nodes, (nodes + 1) % num_nodes]), num_nodes)


def test_canaries_are_far_apart_and_use_no_node_twice():
    edges = ring(200)
    drawn = draw_canaries(edges, 60, seed=1)
    assert len(drawn.pairs.unique()) == 120
    for first, second in drawn.pairs.tolist():
        assert second not in within(edges, first, 3)
    truth = drawn.into(edges)
    assert [is_linked(truth, tuple(pair)) for pair in drawn.pairs.tolist()] == drawn.inserted.tolist()
    assert within(edges, 0, 2) == {198, 199, 0, 1, 2}


def test_too_many_canaries_are_refused():
    with pytest.raises(InputError, match="3 pairs of nodes that are not linked"):
        draw_canaries(ring(4), 3, seed=0)


def test_on_a_dense_graph_canaries_are_nearer():
    pairs = torch.combinations(torch.arange(60))
    edges = public_edges(pairs[torch.rand(len(pairs), generator=torch.Generator().manual_seed(1)) < 0.5].T, 60)
    drawn = draw_canaries(edges, 20, seed=1)
    assert len(drawn.pairs.unique()) == 40
    assert not any(is_linked(edges, tuple(pair)) for pair in drawn.pairs.tolist())


def test_p_values_by_hand():
    assert Guesses(8, 4, 4).p_value(0.0, 0.0) == pytest.approx(1 / 16)
    chance = math.e / (1 + math.e)
    assert Guesses(8, 5, 4).p_value(1.0, 0.0) == pytest.approx(binom.sf(3, 5, chance))
    # delta: 2 m delta times the steepest mean of P(v > B >= v - i) / i
    below = [binom.cdf(3, 5, chance) - binom.cdf(3 - step, 5, chance) for step in range(1, 5)]
    slope = max(mass / step for step, mass in enumerate(below, start=1))
    assert Guesses(8, 5, 4).p_value(1.0, 1e-3) == pytest.approx(binom.sf(3, 5, chance) + 16e-3 * slope)
    assert Guesses(8, 5, 0).p_value(1.0, 0.0) == 1.0
    assert Guesses(8, 5, 5).p_value(math.inf, 0.0) == 1.0


def test_guesses_name_the_extremes():
    scores, inserted = torch.tensor([5.0, 4.0, 0.0, 1.0, -2.0]), torch.tensor([True, False, True, False, False])
    assert guess(scores, inserted, 2) == Guesses(5, 2, 2)
    assert guess(scores, inserted, 4) == Guesses(5, 4, 2)
    for wrong in (3, 0, 6):
        with pytest.raises(InputError, match="made"):
            guess(scores, inserted, wrong)


def test_the_lower_bound_is_where_the_p_value_crosses():
    found = Guesses(200, 100, 95)
    bound = found.epsilon_at_least(1e-5, false_alarm=0.01)
    assert found.p_value(bound, 1e-5) <= 0.01 < found.p_value(bound + 1e-6, 1e-5)
    assert Guesses(200, 100, 50).epsilon_at_least(0.0, false_alarm=0.01) == 0.0
    assert 5 < Guesses(2000, 1000, 1000).epsilon_at_least(0.0, false_alarm=0.01) < 6


@pytest.fixture(scope="module")
def base():
    edges = ring(NODES)
    return edges, draw_canaries(edges, COINS, seed=5)


def lpgnet_like(base, *, true_epsilon, randomness):
    """Noisy neighbour counts of one-hot classes, released once at `true_epsilon`; the attacker's guesses of half the coins."""
    edges, drawn = base
    classes = torch.nn.functional.one_hot(torch.arange(NODES) % 4, 4).double()
    plan = laplace_sums_plan(true_epsilon, 1)
    value = plan.sums_of(classes).apply(drawn.into(edges), randomness)
    evidence = NoisyNeighbourSums(rows=classes, value=value, law="laplace", scale=plan.scale)
    view = View(features=classes, posteriors=classes, released=(evidence,))
    scores = WhiteBox((edges, with_edges(edges, drawn.pairs))).scores(view, drawn.pairs)
    return guess(scores, drawn.inserted, COINS // 2)


def test_an_honest_mechanism_passes_whatever_the_noise(base):
    # Real randomness: P(p < 1e-6) <= 1e-6 by the theorem.
    found = lpgnet_like(base, true_epsilon=1.0, randomness=SystemRandomness())
    assert found.p_value(1.0, 0.0) >= ALARM


@pytest.mark.parametrize("claimed", [1.0, 4.0])
def test_halved_noise_is_caught(base, claimed):
    found = lpgnet_like(base, true_epsilon=2 * claimed, randomness=SeededRandomness(1))
    assert found.p_value(claimed, 0.0) < ALARM
    assert claimed < found.epsilon_at_least(0.0, false_alarm=ALARM) <= 2 * claimed
    assert found.p_value(2 * claimed, 0.0) >= ALARM


def test_no_noise_passed_off_as_private_is_caught_even_at_a_large_epsilon(base):
    found = lpgnet_like(base, true_epsilon=math.inf, randomness=SeededRandomness(1))
    assert found.right == found.made
    assert found.p_value(4.0, 0.0) < ALARM
    assert found.p_value(4.0, 1e-5) > 1e-3  # delta allows for luck: 2 m delta over the width of the law
