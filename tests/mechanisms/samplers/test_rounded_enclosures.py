"""Exactly rounded noise where it is decided by a hair: intervals, their margins, and several draws side by side.

The further bits of every uniform number here repeat for ever, so the real number is known, and so is the one right answer.
"""

import math
import random
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import torch

from gcon.errors import PlanMismatchError
from gcon.mechanisms.samplers.rounded import GAUSSIAN, Law, rounded_noise
from gcon.privacy.randomness import SystemRandomness
from gcon_lab.mechanisms.samplers import LAPLACE, rounded_laplace

LAWS = {"gaussian": (rounded_noise, 2), "laplace": (rounded_laplace, 1)}
RATIO = 8000.0
FULL = 2**64 - 1


class Repeating:
    """Uniform numbers with these first 52 bits, then these pairs of words, then one pair of words for ever."""

    source, keeps_promise = "chosen", False

    def __init__(self, places, words, last):
        self.first = b"".join((place << 12 | 0x5A5).to_bytes(8, "little") for row in places for place in row)
        self.words, self.last, self.given = [word for pair in words for word in pair], last, 0

    def take(self, count):
        if self.first:
            assert count == len(self.first)
            given, self.first = self.first, b""
            return given
        assert count == 8
        word = self.words[self.given] if self.given < len(self.words) else self.last[self.given % 2]
        self.given += 1
        return word.to_bytes(8, "little")


def number(place, words, last):
    """The real number with these bits."""
    for word in words:
        place = place << 64 | word
    return mpmath.ldexp(place + mpmath.mpf(last) / FULL, -52 - 64 * len(words))


def noises(law, first, second):
    if law == "laplace":
        return [mpmath.log(second) - mpmath.log(first)]
    radius, angle = mpmath.sqrt(-2 * mpmath.log(first)), 2 * mpmath.pi * second
    return [radius * mpmath.cos(angle), radius * mpmath.sin(angle)]


def nearest(value, ratio, noise):
    return float(mpmath.floor(mpmath.mpf(value) + mpmath.mpf(ratio) * noise + 0.5))


# --- several draws ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    ("firsts", "ratio"), [((2**51, 1, 2**51), RATIO), ((2**50, 2**51, 0, 7), RATIO), ((2**51, 0, 2**51), 0.3)], ids=str
)
def test_every_value_is_judged_by_the_interval_of_its_own_draw(law, firsts, ratio):
    """Short intervals of noise beside long ones: the long ones are never decided by the margin of the short ones."""
    draw, numbers = LAWS[law]
    generator = random.Random(11)
    count, decided = numbers * len(firsts), set()
    for _ in range(200):
        places = [list(firsts), [generator.getrandbits(52) | 1 for _ in firsts]]
        values = [generator.uniform(-9, 9) for _ in range(count)]
        last = [generator.randrange(1, 2 ** generator.randint(2, 64) - 1) for _ in range(2)]
        source = Repeating(places, (), last)
        found = draw(source, torch.tensor(values, dtype=torch.float64), scale=ratio, spacing=1.0).tolist()
        with mpmath.workprec(200):
            drawn = [
                noises(law, number(first, (), last[0]), number(second, (), last[1]))
                for first, second in zip(*places, strict=True)
            ]
            expected = [
                nearest(value, ratio, drawn[place % len(firsts)][place // len(firsts)])
                for place, value in enumerate(values)
            ]
        assert found == expected
        decided.add(source.given)
    assert min(decided) >= 2


# --- intervals --------------------------------------------------------------------------------------------------------


def fraction(exact):
    """A float64 or mpmath number as it is."""
    if isinstance(exact, float):
        return Fraction(exact)
    sign, mantissa, exponent, _ = exact._mpf_
    return (-1) ** sign * Fraction(int(mantissa)) * Fraction(2) ** exponent


@pytest.mark.parametrize("law", LAWS)
def test_the_formulas_get_the_middle_and_half_the_width_of_each_interval(law):
    real, seen = {"gaussian": GAUSSIAN, "laplace": LAPLACE}[law], []

    def recording(library, uniforms, half, allowance):
        seen.append((uniforms, half))
        return real.enclose(library, uniforms, half, allowance)

    generator, last = random.Random(12), [FULL - 2, 2**63 + 1]
    for _ in range(50):
        seen.clear()
        places = [[generator.getrandbits(52) | 1] for _ in range(2)]
        source = Repeating(places, (), last)
        watched = Law(real.numbers, recording)
        rounded_noise(source, torch.zeros(1, dtype=torch.float64), scale=2.0**130, spacing=1.0, law=watched)
        assert len(seen) >= 3
        for rounds, (uniforms, half) in enumerate(seen):
            for middle, row, word in zip(uniforms, places, last, strict=True):
                cell = row[0]
                for _ in range(rounds):
                    cell = cell << 64 | word
                width = Fraction(1, 2 ** (52 + 64 * rounds))
                exact = fraction(float(middle[0]) if rounds == 0 else middle)
                assert exact - fraction(half) == cell * width
                assert exact + fraction(half) == (cell + 1) * width


def corners(rounds, count):
    """Normal numbers next to a half that only the corners of their interval reach, after so many further words.

    The half lies at 0.95 to 0.995 of the way from the middle to the corner; the angle does most of that way.
    """
    generator, bits = random.Random(rounds), 52 + 64 * rounds
    found = []
    with mpmath.workprec(400):
        half = mpmath.ldexp(1, -bits - 1)
        while len(found) < count:
            value = generator.uniform(-0.5, 0.5)
            whole = int(generator.uniform(0.28, 0.48) * 2**52) << 64 * rounds | generator.getrandbits(64 * rounds)
            first = mpmath.ldexp(2 * whole + 1, -bits - 1)
            radius = mpmath.sqrt(-2 * mpmath.log(first))
            target = (generator.randint(-1500, 1500) + mpmath.mpf(0.5) - mpmath.mpf(value)) / mpmath.mpf(RATIO)
            turn = mpmath.acos(target / radius) / (2 * mpmath.pi)
            other = int(mpmath.floor(mpmath.ldexp(generator.choice((turn, 1 - turn)), bits)))
            angle = 2 * mpmath.pi * mpmath.ldexp(2 * other + 1, -bits - 1)
            reach = abs(mpmath.cos(angle)) / (first * radius) + 2 * mpmath.pi * radius * abs(mpmath.sin(angle))
            if 0.95 * reach < abs(radius * mpmath.cos(angle) - target) / half < 0.995 * reach:
                found.append((value, [split(whole, rounds), split(other, rounds)]))
    return found


def split(whole, rounds):
    """The first 52 bits and the further words of a number."""
    words = [whole >> 64 * (rounds - 1 - place) & FULL for place in range(rounds)]
    return whole >> 64 * rounds, words


@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_an_interval_is_decided_only_if_its_corners_agree(rounds):
    for value, numbers in corners(rounds, 60):
        places, words = [[place] for place, _ in numbers], [words for _, words in numbers]
        pairs, answers = list(zip(*words, strict=True)), set()
        for last in ((0, 0), (0, FULL), (FULL, 0), (FULL, FULL)):
            source = Repeating(places, pairs, last)
            values = torch.tensor([value], dtype=torch.float64)
            found = float(rounded_noise(source, values, scale=RATIO, spacing=1.0))
            with mpmath.workprec(400):
                uniforms = (number(place, more, end) for (place, more), end in zip(numbers, last, strict=True))
                expected = nearest(value, RATIO, noises("gaussian", *uniforms)[0])
            assert found == expected
            assert source.given > 2 * rounds
            answers.add(expected)
        assert len(answers) == 2


# --- margins ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
def test_what_the_library_may_get_wrong_is_never_decided_by_the_first_bits(law):
    """Logarithm, sine and cosine may be wrong by 2^-46 (docs/proofs/exact-noise.md, 2): 400 numbers that near to a half."""
    generator = random.Random(13)
    for case in range(400):
        places = [generator.getrandbits(52) | 1 for _ in range(2)]
        with mpmath.workprec(200):
            first, second = (mpmath.ldexp(2 * place + 1, -53) for place in places)
            logs = -mpmath.log(first), -mpmath.log(second)
            margin = 2.0**-46 * sum(logs) if law == "laplace" else 2.0**-45.2 * mpmath.sqrt(2 * logs[0])
            part = (-1) ** case * (case // 2) / 200
            total = RATIO * (noises(law, first, second)[0] + part * margin)
            value = float(mpmath.floor(total) + 0.5 - total)
        source = Repeating([[place] for place in places], (), (2**63, 2**62))
        LAWS[law][0](source, torch.tensor([value], dtype=torch.float64), scale=RATIO, spacing=1.0)
        assert source.given >= 2


@pytest.mark.parametrize("law", LAWS)
def test_what_the_last_sum_may_round_is_never_decided_by_the_first_bits(law):
    """Hardly any noise beside a value within 2^-51 of a half."""
    for half in (0.5, -0.5, 1.5, -1.5):
        for offset in range(-7, 8):
            value = half + math.copysign(offset * 2.0**-54, half)
            source = Repeating([[2**51 + 5], [2**50 + 2**48]], (), (2**63, 2**62))
            found = LAWS[law][0](source, torch.tensor([value], dtype=torch.float64), scale=2.0**-100, spacing=1.0)
            assert source.given >= 2
            with mpmath.workprec(400):
                uniforms = number(2**51 + 5, (), 2**63), number(2**50 + 2**48, (), 2**62)
                assert float(found) == nearest(value, 2.0**-100, noises(law, *uniforms)[0])


# --- ends of float64 --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    ("value", "scale", "spacing"),
    [(1.0, 1e300, 2.0**-100), (1e300, 1.0, 2.0**-100), (-1e300, 1.0, 2.0**-100), (1.7e308, 1e308, 2.0**1000)],
)
def test_quotients_that_float64_cannot_hold_are_refused_in_words(law, value, scale, spacing):
    values = torch.tensor([0.0, value], dtype=torch.float64)
    with pytest.raises(PlanMismatchError, match="power of two"):
        LAWS[law][0](SystemRandomness(), values, scale=scale, spacing=spacing)


@pytest.mark.parametrize("law", LAWS)
def test_large_numbers_that_float64_holds_are_not_refused(law):
    values = torch.tensor([0.0, 1e299, -1e299], dtype=torch.float64)
    found = LAWS[law][0](SystemRandomness(), values, scale=1e299, spacing=2.0**10)
    assert np.isfinite(found.numpy()).all()
