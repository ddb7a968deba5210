"""The noise that is really inside released tables of neighbour counts, measured end to end.

Released minus exact is the noise. It must have the two-sided geometric law at the rate of the plan, which is written out here
by hand from the budget, without any function of the package: a factor lost anywhere between the budget and the table shows.
Chi-square at level 1e-6 with fresh system randomness.
"""

import math

import networkx
import numpy as np
import pytest
import scipy.optimize
import scipy.stats
import torch

from gcon.edges.edge_list import private_edges
from gcon.mechanisms.counts import NeighbourCounts
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.gaussian_release import NoisyRelease
from gcon.mechanisms.mixed_release import mixed_plan
from gcon.privacy.account import spend
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.opening import apply_private
from gcon.privacy.randomness import SystemRandomness

LEVEL = 1e-6
EPSILON, DELTA, SHARE = 1.0, 1e-5, 0.1
SIZE, CLASSES = 400, 10
GRAPH = networkx.gnp_random_graph(SIZE, 0.05, seed=3)
PRIVATE, _ = private_edges(torch.tensor(list(GRAPH.edges)).T, SIZE)
CODES = torch.randint(CLASSES, (SIZE,), generator=torch.Generator().manual_seed(1))
EXACT = networkx.to_numpy_array(GRAPH).astype(np.int64) @ np.eye(CLASSES, dtype=np.int64)[CODES.numpy()]
PLAN = mixed_plan(EPSILON, DELTA, first_share=SHARE, answer_share=0.0, method="test")


def gaussian(t, mu):
    return scipy.stats.norm.cdf(mu / 2 - t / mu) - math.exp(t) * scipy.stats.norm.cdf(-mu / 2 - t / mu)


def rate_by_hand(responses):
    """Each of three branches at a third of delta; a tenth of the squared distance is spent before."""
    mu = scipy.optimize.brentq(lambda mu: gaussian(EPSILON, mu) - DELTA / 3, 0.01, 2, xtol=1e-13)
    first = math.sqrt(SHARE) * mu

    def excess(rate):
        up = 1 / (1 + math.exp(-rate))
        binomial = scipy.stats.binom(responses, up)
        costs = [
            binomial.pmf(ups) * gaussian(EPSILON - (2 * ups - responses) * rate, first) for ups in range(responses + 1)
        ]
        return sum(costs) - DELTA / 3

    return scipy.optimize.brentq(excess, 0.01, 2, xtol=1e-13)


def released(rounds):
    with spend(PRIVATE, PLAN, ledger=MemoryLedger(), randomness=SystemRandomness(), purpose="test") as account:
        account.release(NoisyRelease(plan=PLAN, statistic=EdgeMoments(torch.ones(SIZE, 1)), share=SHARE))
        table = NeighbourCounts(codes=CODES, num_codes=CLASSES, rate=PLAN.rates[rounds - 1], rounds=rounds)
        tables = [account.release(table) for _ in range(rounds)]
    return np.stack([table.value.numpy() - EXACT for table in tables])


def p_value(sample, rate):
    """Against q^|k| (1-q)/(1+q), tails pooled."""
    decay, edge = math.exp(-rate), 1
    while decay ** (edge + 1) / (1 + decay) * len(sample) > 10:
        edge += 1
    inner = np.arange(-edge + 1, edge)
    expected = [*((1 - decay) / (1 + decay) * decay ** np.abs(inner)), *([decay**edge / (1 + decay)] * 2)]
    observed = [*((sample == k).sum() for k in inner), (sample <= -edge).sum(), (sample >= edge).sum()]
    return scipy.stats.chisquare(observed, np.array(expected) * len(sample)).pvalue


@pytest.mark.parametrize("rounds", [1, 2])
def test_released_tables_hold_the_noise_of_their_branch(rounds):
    noise, rate = released(rounds), rate_by_hand(2 * rounds)
    assert PLAN.rates[rounds - 1] == pytest.approx(rate, rel=1e-6)
    sample = noise.ravel()
    assert p_value(sample, rate) > LEVEL
    for factor in (2 / 3, 3 / 2):
        assert p_value(sample, rate / factor) < LEVEL
    assert sample.std() == pytest.approx(math.sqrt(2 * math.exp(-rate)) / (1 - math.exp(-rate)), rel=0.2)


def test_one_way_tables_hold_half_of_the_noise_where_nobody_counts_back():
    plan = mixed_plan(EPSILON, DELTA, first_share=SHARE, answer_share=0.0, method="test", one_way=True)
    codes = torch.where(torch.arange(SIZE) % 2 == 0, CODES, -1)
    table = NeighbourCounts(codes=codes, num_codes=CLASSES, rate=plan.rates[1], one_way=True)
    with spend(PRIVATE, plan, ledger=MemoryLedger(), randomness=SystemRandomness(), purpose="test") as account:
        account.release(NoisyRelease(plan=plan, statistic=EdgeMoments(torch.ones(SIZE, 1)), share=SHARE))
        released = account.release(table).value.numpy()
    counted = np.eye(CLASSES, dtype=np.int64)[CODES.numpy()] * (codes.numpy() >= 0)[:, None]
    noise = released - networkx.to_numpy_array(GRAPH).astype(np.int64) @ counted
    rate = rate_by_hand(1)
    assert plan.rates == pytest.approx((rate_by_hand(2), rate), rel=1e-6)
    assert 1.9 * rate_by_hand(2) < rate < 2 * rate_by_hand(2)
    for rows, own in ((codes.numpy() < 0, rate), (codes.numpy() >= 0, rate / 2)):
        sample = noise[rows].ravel()
        assert p_value(sample, own) > LEVEL
        for factor in (2 / 3, 3 / 2):
            assert p_value(sample, own / factor) < LEVEL


@pytest.mark.parametrize("factor", [1 / 2, 2 / 3, 3 / 2, 2])
def test_a_wrong_scale_is_caught(factor):
    """Tables made with so many times the noise, on purpose."""
    rate = rate_by_hand(2)
    wrong = NeighbourCounts(codes=CODES, num_codes=CLASSES, rate=rate / factor)
    table = apply_private(lambda edges: wrong.apply(edges, SystemRandomness()), PRIVATE).value.numpy()
    assert p_value((table - EXACT).ravel(), rate) < LEVEL


def test_entries_rows_and_tables_are_independent():
    first, second = released(2)
    assert scipy.stats.spearmanr(first.ravel(), second.ravel()).pvalue > LEVEL / 4
    assert scipy.stats.spearmanr(first[:, :-1].ravel(), first[:, 1:].ravel()).pvalue > LEVEL / 4
    assert scipy.stats.spearmanr(first[:-1].ravel(), first[1:].ravel()).pvalue > LEVEL / 4
    assert scipy.stats.spearmanr(first.ravel(), EXACT.ravel()).pvalue > LEVEL / 4


def test_the_noise_is_the_same_for_counts_that_are_zero():
    noise = released(1)[0]
    assert 0.05 < (EXACT == 0).mean() < 0.95
    for part in (noise[EXACT == 0], noise[EXACT > 0]):
        assert p_value(part, rate_by_hand(2)) > LEVEL / 2
