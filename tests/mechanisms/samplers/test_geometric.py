"""Two-sided geometric numbers: their exact law, from every way in which coins can fall; digits of chances; what is refused.

Random bytes are replaced by all answers that a comparison can have, each with its exact probability. Tests with system
randomness have a false-alarm probability below 1e-6.
"""

import itertools
import math
import os
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.stats
import torch
from mpmath.ctx_mp import MPContext
from tests.mechanisms.counting import Counting

from gcon.errors import PlanMismatchError
from gcon.mechanisms.samplers import geometric
from gcon.mechanisms.samplers.geometric import LEAST_RATE, MOST_RATE, two_sided_geometric_numbers
from gcon.privacy.randomness import SeededRandomness, SystemRandomness

LEVEL = 1e-6
WORDS = 2**32
BELOW, EQUAL, ABOVE = range(3)


class MoreNeededError(Exception):
    """The script ended before the sampler did."""


class Scripted:
    """Words that lie below, at or above the digits that they are compared with, as a script says; and how likely that is.

    It follows the order in which coins are thrown: digit by digit for all numbers, then what lies above the digits for those
    that go on, twice (a difference of two numbers).
    """

    source, keeps_promise = "scripted", False

    def __init__(self, script, rate, digits, count):
        self.script, self.rate, self.digits, self.count = iter(script), rate, digits, count
        self.place, self.word, self.chance, self.heads = 0, 0, Fraction(1), 0

    def take(self, size):
        digit = geometric._word(self.rate, self.place, self.place == self.digits, self.word)
        out, equal = b"", 0
        for _ in range(size // 4):
            side = next(self.script, None)
            if side is None:
                raise MoreNeededError
            self.chance *= Fraction((digit, 1, WORDS - 1 - digit)[side], WORDS)
            if not self.chance:
                return bytes(size)  # impossible: whatever follows does not count
            out += (digit - 1, digit, digit + 1)[side].to_bytes(4, "little")
            equal += side == EQUAL
            self.heads += side == BELOW
        self._next_coin(equal)
        return out

    def _next_coin(self, equal):
        self.word += 1
        if equal:
            return
        self.word = 0
        if self.place < self.digits:
            self.place += 1
        elif not self.heads:
            self.place = 0  # the other number of the difference
        self.heads = 0


class First:
    """Words of a source for the first of the two numbers of a difference; then all coins fall on tails."""

    source, keeps_promise = "first", False

    def __init__(self, words, rate):
        self.words, self.rate, self.digits = words, rate, digits_for(rate)
        self.place, self.word, self.heads, self.ended = 0, 0, False, False

    def take(self, size):
        if self.ended:
            return b"\xff" * size
        digit = geometric._word(self.rate, self.place, self.place == self.digits, self.word)
        given = self.words.take(size)
        drawn = np.frombuffer(given, dtype="<u4")
        self.word, self.heads = self.word + 1, self.heads or bool((drawn < digit).any())
        if not (drawn == digit).any():  # the next coin
            self.ended = self.place == self.digits and not self.heads
            self.place, self.word, self.heads = min(self.place + 1, self.digits), 0, False
        return given


def first_numbers(words, rate, count):
    """The first of the two geometric numbers that every number is the difference of."""
    return two_sided_geometric_numbers(First(words, rate), rate, count).tolist()


def law(draw, rate, digits, count, least):
    """All outcomes with their probabilities, and what is left out: ways less likely than `least`."""
    found, left, scripts = defaultdict(Fraction), Fraction(0), [()]
    while scripts:
        script = scripts.pop()
        source = Scripted(script, rate, digits, count)
        try:
            outcome = draw(source)
        except MoreNeededError:
            if source.chance < least:
                left += source.chance
            else:
                scripts += [(*script, side) for side in range(3)]
            continue
        found[outcome] += source.chance
    return found, left


def digits_for(rate):
    return max(0, math.ceil(math.log2(geometric._RARE / rate)))


@pytest.fixture
def common(monkeypatch):
    """What lies above the digits is rare, once in 2^64 times. Here it is common, so that few coins show all of it."""
    monkeypatch.setattr(geometric, "_RARE", 1.0)


def check_law(found, left, exact):
    assert sum(found.values()) + left == 1
    for outcome, chance in found.items():
        with mpmath.workdps(40):
            expected = exact(outcome)
            assert -1e-30 <= expected - mpmath.mpf(chance.numerator) / chance.denominator <= float(left) + 1e-30


@pytest.mark.parametrize("rate", [0.15, 0.3, 1.0, 2.5])
def test_the_law_of_one_geometric_number(common, rate):
    digits = digits_for(rate)
    found, left = law(lambda source: first_numbers(source, rate, 1)[0], rate, digits, 1, Fraction(1, 2**35))
    assert left < 1e-7
    check_law(found, left, lambda g: -mpmath.expm1(-mpmath.mpf(rate)) * mpmath.exp(-mpmath.mpf(rate) * g))
    assert len(found) > 2**digits


def test_the_law_with_all_digits():
    """As it is: five digits for this rate, and nothing above them in all the ways that are followed."""
    rate = 2.0
    found, left = law(lambda source: first_numbers(source, rate, 1)[0], rate, digits_for(rate), 1, Fraction(1, 2**45))
    assert digits_for(rate) == 5
    assert left < 2.0**-30
    check_law(found, left, lambda g: -mpmath.expm1(-mpmath.mpf(rate)) * mpmath.exp(-mpmath.mpf(rate) * g))


@pytest.mark.parametrize("rate", [0.9, 1.7])
def test_the_law_of_the_difference(common, rate):
    """P(k) = (1-q)/(1+q) q^|k|, the same for k and -k."""
    found, left = law(
        lambda source: int(two_sided_geometric_numbers(source, rate, 1)[0]),
        rate,
        digits_for(rate),
        1,
        Fraction(1, 2**24),
    )
    assert left < 1e-3

    def exact(k):
        decay = mpmath.exp(-mpmath.mpf(rate))
        return (1 - decay) / (1 + decay) * decay ** abs(k)

    check_law(found, left, exact)
    assert {-3, -1, 0, 1, 3} <= set(found)


def test_numbers_drawn_together_are_independent(common):
    """Two at once: every pair of outcomes has the product of their probabilities."""
    rate = 1.3
    found, left = law(lambda source: tuple(first_numbers(source, rate, 2)), rate, 0, 2, Fraction(1, 2**20))
    assert left < 1e-2

    def exact(pair):
        return mpmath.expm1(-mpmath.mpf(rate)) ** 2 * mpmath.exp(-mpmath.mpf(rate) * sum(pair))

    check_law(found, left, exact)
    assert {(0, 0), (0, 2), (2, 0), (1, 3)} <= set(found)


# --- digits of chances ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rate", [1e-9, 0.1, 0.3320905958732599, 1.0, 37.3, pytest.param(1000.0, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("above", [False, True])
def test_words_are_the_digits_of_the_chance(rate, above):
    """Read back from fifty words, with a precision of its own: never too large, and short by less than one unit."""
    for place in (0, 3):
        total = sum(Fraction(geometric._word(rate, place, above, word), WORDS ** (word + 1)) for word in range(50))
        with mpmath.workprec(5000):
            power = mpmath.exp(mpmath.mpf(rate) * 2**place)
            chance = 1 / power if above else 1 / (1 + power)
            rest = chance - mpmath.mpf(total.numerator) / total.denominator
            assert 0 < rest < mpmath.mpf(2) ** (-32 * 50)


def test_digits_that_are_not_sure_are_computed_again(monkeypatch):
    """With one sure bit many words are undecided at first; asked again with more, they are the same."""
    expected = [geometric._word(0.7, place, above, 0) for place in range(6) for above in (False, True)]
    geometric._word.cache_clear()
    monkeypatch.setattr(geometric, "_SURE", 1)
    assert [geometric._word(0.7, place, above, 0) for place in range(6) for above in (False, True)] == expected
    geometric._word.cache_clear()


class Fixed:
    """These words, then ends with an error: nobody asks for more."""

    source, keeps_promise = "fixed", False

    def __init__(self, words):
        self.words = list(words)

    def take(self, size):
        given, self.words = self.words[: size // 4], self.words[size // 4 :]
        assert len(given) == size // 4
        return b"".join(word.to_bytes(4, "little") for word in given)


@pytest.mark.parametrize("equal", [0, 1, 2])
@pytest.mark.parametrize(("more", "heads"), [(-1, 1), (1, 0)])
def test_a_coin_compares_as_many_words_as_it_takes(equal, more, heads):
    """The coin of the lowest digit; those of the other digits, and of what lies above them, fall on tails."""
    *same, last = (geometric._word(0.4, 0, False, place) for place in range(equal + 1))
    source = Fixed([*same, last + more, *[WORDS - 1] * digits_for(0.4)])
    assert first_numbers(source, 0.4, 1) == [heads]
    assert not source.words


def test_undecided_coins_are_asked_again_and_only_they():
    first, second = (geometric._word(0.4, 0, False, place) for place in range(2))
    tails = [WORDS - 1] * 4 * digits_for(0.4)
    source = Fixed([first - 1, first, first + 1, first, second + 1, second - 1, *tails])
    assert first_numbers(source, 0.4, 4) == [1, 0, 0, 1]
    assert not source.words
    assert first_numbers(Fixed([]), 0.4, 0) == []


@pytest.mark.parametrize("rate", [1e-9, 0.05, 1.0, 30.0, 1000.0])
@pytest.mark.parametrize("times", [1, 3])
def test_the_rare_branch_above_the_digits(rate, times):
    """All digits 0; then the coin that shows heads once in 2^64 times does, so often; then tails."""
    digits = digits_for(rate)
    tails = [WORDS - 1] * digits
    heads, leading = [], 0
    while geometric._word(rate, digits, True, leading) == 0:
        leading += 1
    heads = [0] * leading + [geometric._word(rate, digits, True, leading) - 1]
    numbers = first_numbers(Fixed([*tails, *heads * times, WORDS - 1]), rate, 1)
    assert numbers == [times * 2**digits]
    assert 2**digits * rate >= 64 * math.log(2) * (1 - 1e-9)
    assert leading >= 1


def test_only_those_above_go_on():
    """Three numbers, of which the second is above the digits, twice."""
    rate = 30.0
    digits, leading = digits_for(rate), 0
    while geometric._word(rate, digits, True, leading) == 0:
        leading += 1
    below, high = geometric._word(rate, digits, True, leading) - 1, WORDS - 1
    words = [high] * 3 * digits + [high, 0, high] + [0] * (leading - 1) + [below] + [0] * leading + [below] + [high]
    assert first_numbers(Fixed(words), rate, 3) == [0, 2 * 2**digits, 0]


# --- with random bytes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [LEAST_RATE, 1e-6])
def test_tiny_rates(rate):
    """Then rate times the number has nearly the Laplace law."""
    sample = rate * two_sided_geometric_numbers(SystemRandomness(), rate, 4000).double().numpy()
    assert scipy.stats.kstest(sample, scipy.stats.laplace.cdf).pvalue > LEVEL
    for factor in (2 / 3, 3 / 2):
        assert scipy.stats.kstest(factor * sample, scipy.stats.laplace.cdf).pvalue < LEVEL


@pytest.mark.parametrize("rate", [60.0, MOST_RATE])
def test_huge_rates(rate):
    assert int(two_sided_geometric_numbers(SystemRandomness(), rate, 500).abs().sum()) == 0  # but once in 1e23


def test_every_digit_is_fair_to_its_chance():
    """Digit by digit against 1/(1 + e^(rate 2^i)), and no two digits together more often than apart."""
    rate, draws = 0.05, 20_000
    numbers = np.array(first_numbers(SystemRandomness(), rate, draws))
    for place in range(9):
        ones = int((numbers >> place & 1).sum())
        assert scipy.stats.binomtest(ones, draws, 1 / (1 + math.exp(rate * 2**place))).pvalue > LEVEL / 20
    for one, other in itertools.combinations(range(5), 2):
        table = np.histogram2d(numbers >> one & 1, numbers >> other & 1, bins=2)[0]
        assert scipy.stats.chi2_contingency(table).pvalue > LEVEL / 20


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (7,), (4, 5), (2, 3, 4)])
def test_shapes(shape):
    numbers = two_sided_geometric_numbers(SystemRandomness(), 0.5, *shape)
    assert numbers.shape == shape
    assert numbers.dtype == torch.int64


def test_blocks_draw_bytes_of_their_own(monkeypatch):
    monkeypatch.setattr(geometric, "_BLOCK", 10)
    source = Counting()
    numbers = two_sided_geometric_numbers(source, 1e-3, 100)
    assert len(torch.unique(numbers.reshape(10, 10), dim=0)) == 10
    places = digits_for(1e-3) + 1
    assert sum(size == 40 for size in source.taken) == 10 * 2 * places  # a word per number and coin; more once in 2^32
    assert sum(source.taken) == 40 * 10 * 2 * places


def test_several_threads_use_every_byte_once(monkeypatch):
    monkeypatch.setattr(geometric, "_BLOCK", 10)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    threads, taken = set(), []

    def watched(count, urandom=os.urandom):
        threads.add(threading.get_ident())
        taken.append(urandom(count))
        time.sleep(1e-4)  # the others have their turn
        return taken[-1]

    monkeypatch.setattr(SystemRandomness, "take", staticmethod(watched))
    numbers = two_sided_geometric_numbers(SystemRandomness(), 1e-3, 20, 10)
    assert len(threads) == 4
    assert len(torch.unique(numbers, dim=0)) == 20
    places = digits_for(1e-3) + 1
    assert sum(map(len, taken)) == 40 * 20 * 2 * places  # a word per number and coin; more once in 2^32


def test_a_block_that_fails_fails_all(monkeypatch):
    """Otherwise its numbers would be what the memory held before."""
    monkeypatch.setattr(geometric, "_BLOCK", 10)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    left = itertools.count()

    def breaking(count, urandom=os.urandom):
        if next(left) == 100:
            raise OSError("no more bytes")
        return urandom(count)

    monkeypatch.setattr(SystemRandomness, "take", staticmethod(breaking))
    with pytest.raises(OSError, match="no more bytes"):
        two_sided_geometric_numbers(SystemRandomness(), 1e-3, 1000)


def test_one_chance_is_computed_at_a_time(monkeypatch):
    """What mpmath keeps of constants is not guarded: two threads could leave a wrong one, and every chance after it."""
    inside, most = [], []

    def watched():
        context = MPContext()
        exp = context.exp

        def slow_exp(number):
            inside.append(number)
            most.append(len(inside))
            time.sleep(1e-3)
            inside.pop()
            return exp(number)

        context.exp = slow_exp
        return context

    monkeypatch.setattr(geometric, "MPContext", watched)
    geometric._word.cache_clear()
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda place: geometric._word(0.3, place, False, 0), range(12)))
    assert len(most) >= 12
    assert set(most) == {1}


def test_a_seed_repeats_its_numbers_and_two_draws_differ():
    one, other = (two_sided_geometric_numbers(SeededRandomness(3), 0.01, 50) for _ in range(2))
    assert torch.equal(one, other)
    one, other = (two_sided_geometric_numbers(SystemRandomness(), 0.01, 50) for _ in range(2))
    assert not torch.equal(one, other)


@pytest.mark.parametrize("rate", [0.0, -1.0, 0.9 * LEAST_RATE, 1.1 * MOST_RATE, math.inf, math.nan])
def test_refusals(rate):
    with pytest.raises(PlanMismatchError, match="rate"):
        two_sided_geometric_numbers(SystemRandomness(), rate, 3)
