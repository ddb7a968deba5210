"""The scores of neighbour counts and of mixed releases are exact log-likelihood ratios: of laws written out here."""

import itertools
import math

import numpy as np
import pytest
import torch
from lab.tests.audits.sampled_losses import measured_epsilon

from gcon.mechanisms.gaussian_curve import mixed_delta
from gcon.privacy.randomness import SystemRandomness
from gcon_lab.audits.cases.mixed_release import mixed_release
from gcon_lab.audits.cases.neighbour_counts import count_losses, neighbour_counts

pytestmark = pytest.mark.slow


def log_chance(table, exact, rate):
    return -rate * float((table - exact).abs().sum())


def test_one_table():
    """All tables with entries from -2 to 3: with the edge, node 0 has a neighbour of code 1 and node 1 one of code 0."""
    rate, exact = 0.7, torch.tensor([[0, 1], [1, 0]])
    tables = torch.tensor(list(itertools.product(range(-2, 4), repeat=4))).reshape(-1, 1, 2, 2)
    expected = [log_chance(table[0], exact, rate) - log_chance(table[0], 0 * exact, rate) for table in tables]
    assert (rate * count_losses(tables)).tolist() == pytest.approx(expected)


def test_two_tables_with_codes_from_the_first():
    rate, generator = 0.4, torch.Generator().manual_seed(1)
    tables = torch.randint(-3, 5, (500, 2, 2, 2), generator=generator)
    for run, found in zip(tables, (rate * count_losses(tables)).tolist(), strict=True):
        expected, codes = 0.0, [0, 1]
        for table in run:
            exact = torch.zeros(2, 2, dtype=torch.int64)
            exact[0, codes[1]] = exact[1, codes[0]] = 1
            expected += log_chance(table, exact, rate) - log_chance(table, 0 * exact, rate)
            codes = [int(row[1] > row[0]) for row in table]
        assert found == pytest.approx(expected)


RESPONSES = {
    "1 round": 2,
    "2 rounds": 4,
    "one way, one counted": 1,
    "one way, both counted": 2,
}  # that share the epsilon


@pytest.mark.parametrize("case", neighbour_counts(), ids=lambda case: case.options)
def test_losses_of_counts_are_those_of_randomised_responses(case):
    """Their number of values, and how often each occurs: within six deviations."""
    runs, bits = 40_000, RESPONSES[case.options]
    rate = 1 / bits
    losses = rate * case.score(case.run(case.pair.joined, runs, SystemRandomness()))
    up = 1 / (1 + math.exp(-rate))
    for ups in range(bits + 1):
        chance = math.comb(bits, ups) * up**ups * (1 - up) ** (bits - ups)
        found = float(np.isclose(losses, (2 * ups - bits) * rate).mean())
        assert found == pytest.approx(chance, abs=6 * math.sqrt(chance * (1 - chance) / runs))
    assert measured_epsilon(torch.from_numpy(losses), 0.05) == pytest.approx(exact_epsilon(rate, bits, 0.05), abs=0.03)


def exact_epsilon(rate, bits, delta):
    low, high = 0.0, rate * bits
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if mixed_delta(middle, 0.0, [(rate, bits)]) > delta else (low, middle)
    return high


@pytest.mark.parametrize("case", mixed_release(), ids=lambda case: case.options)
def test_losses_of_mixed_releases_have_the_curve_of_the_plan(case):
    """The mean of e^-loss with the edge is 1, as for every exact loss; and the curve at delta is what the pair's epsilon says."""
    runs = 40_000
    losses = torch.from_numpy(case.score(case.run(case.pair.joined, runs, SystemRandomness())))
    back = torch.exp(-losses)
    assert float(back.mean()) == pytest.approx(1, abs=6 * float(back.std()) / math.sqrt(runs))
    found = measured_epsilon(losses, case.claimed.delta)
    assert found < case.claimed.epsilon
    if case.pair_epsilon is not None:
        assert found == pytest.approx(case.pair_epsilon, abs=0.06)  # more than six deviations
    halved = next(variant for variant in case.broken if variant.kind == "halved noise")
    wrong = torch.from_numpy(halved.score(halved.run(case.pair.joined, 10_000, SystemRandomness())))
    assert measured_epsilon(wrong, case.claimed.delta) > 1.3 * case.claimed.epsilon
