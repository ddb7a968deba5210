"""Exactly rounded real noise: against many digits for chosen bits, undecided cases, its law, what it draws and refuses.

Laws are tested with fresh system randomness; each test has a false-alarm probability below 1e-6.
"""

import itertools
import math
import random

import mpmath
import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.mechanisms.counting import Counting

from gcon.errors import PlanMismatchError
from gcon.mechanisms.samplers import rounded
from gcon.mechanisms.samplers.rounded import SPACING, rounded_noise
from gcon.privacy.randomness import SeededRandomness, SystemRandomness
from gcon_lab.mechanisms.samplers import rounded_laplace

LEVEL = 1e-6
LAWS = {"gaussian": (rounded_noise, scipy.stats.norm, 2), "laplace": (rounded_laplace, scipy.stats.laplace, 1)}
TOP = 2**52 - 1
EXTREME = [0, 1, 2, 2**20, 2**50, 2**51 - 1, 2**51, 2**51 + 1, 3 * 2**50, TOP - 2**25, TOP - 1, TOP]


class Chosen:
    """Two uniform numbers with these first 52 bits; further words come from `more`."""

    source, keeps_promise = "chosen", False

    def __init__(self, places, more):
        self.first = b"".join((place << 12 | 0xABC).to_bytes(8, "little") for place in places)
        self.more, self.further = more, []

    def take(self, count):
        if self.first:
            assert count == len(self.first)
            given, self.first = self.first, b""
            return given
        assert count == 8
        self.further.append(next(self.more))
        return self.further[-1].to_bytes(8, "little")


def cells(places, further):
    """The intervals of both uniform numbers, from all bits that were drawn."""
    numbers = list(places)
    for first, second in zip(further[::2], further[1::2], strict=True):
        numbers = [numbers[0] << 64 | first, numbers[1] << 64 | second]
    return numbers, 52 + 32 * len(further)


def answers(law, place, bits, value, ratio):
    """Nearest whole numbers to value + ratio Z at points all over the cell, with 200 digits."""
    found = []
    with mpmath.workdps(200):
        parts = [mpmath.mpf(part) / 1000 for part in (1, 500, 999)]
        for one, other in itertools.product(parts, parts):
            first, second = (
                mpmath.ldexp(number + part, -bits) for number, part in zip(place, (one, other), strict=True)
            )
            if law == "laplace":
                noises = [mpmath.log(second) - mpmath.log(first)]
            else:
                radius, angle = mpmath.sqrt(-2 * mpmath.log(first)), 2 * mpmath.pi * second
                noises = [radius * mpmath.cos(angle), radius * mpmath.sin(angle)]
            found.append([int(mpmath.floor(mpmath.mpf(value) + mpmath.mpf(ratio) * noise + 0.5)) for noise in noises])
    return found


def check(law, places, value, ratio, more):
    draw, _, numbers = LAWS[law]
    source = Chosen(places, more)
    values = torch.full((numbers,), value, dtype=torch.float64)
    found = draw(source, values, scale=ratio, spacing=1.0).tolist()
    place, bits = cells(places, source.further)
    expected = answers(law, place, bits, value, ratio)
    assert all(answer == expected[0] for answer in expected)  # the bits that were drawn decide it
    assert found == [float(answer) for answer in expected[0]]
    return len(source.further)


def words(seed):
    generator = random.Random(seed)
    while True:
        yield generator.getrandbits(64)


# --- against many digits ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
def test_extreme_bits(law):
    """Uniform numbers next to 0 and 1, tiny to huge ratios of scale to spacing."""
    further = 0
    for places in itertools.product(EXTREME, EXTREME):
        for ratio, value in ((2.0**-30, 0.5), (0.3, -7.25), (4096.7, 1e6 + 1 / 3), (2.0**60, 0.0), (2.0**150, 0.1)):
            further += check(law, places, value, ratio, words(hash((places, ratio)))) > 0
    assert further > 100


@pytest.mark.parametrize("law", LAWS)
def test_random_bits(law):
    generator = random.Random(5)
    further = 0
    for _ in range(600):
        places = (generator.getrandbits(generator.randint(1, 52)), generator.getrandbits(52))
        ratio = 2.0 ** generator.uniform(-20, 50)
        further += check(law, places, generator.uniform(-9, 9), ratio, words(generator.random())) > 0
    assert 0 < further < 600


@pytest.mark.parametrize("law", LAWS)
def test_undecided_bits_are_decided_by_more_bits_and_only_by_them(law):
    """Values for which the first bits leave half a unit exactly: then the next bits decide, one way or the other."""
    draw, _, numbers = LAWS[law]
    generator, both = random.Random(6), 0
    for _ in range(40):
        places = (generator.getrandbits(52) | 1, generator.getrandbits(52) | 1)
        with mpmath.workdps(60):
            first, second = (mpmath.ldexp(2 * place + 1, -53) for place in places)
            if law == "laplace":
                noise = mpmath.log(second) - mpmath.log(first)
            else:
                noise = mpmath.sqrt(-2 * mpmath.log(first)) * mpmath.cos(2 * mpmath.pi * second)
            total = 5000 * noise
            value = float(mpmath.floor(total) + 0.5 - total)
        assert check(law, places, value, 5000.0, words(generator.random())) >= 2
        ends = set()
        for filling in itertools.product((0, 2**64 - 1), repeat=2):
            values = torch.full((numbers,), value, dtype=torch.float64)
            source = Chosen(places, itertools.cycle(filling))
            ends.add(float(draw(source, values, scale=5000.0, spacing=1.0)[0]))
        both += len(ends) == 2
    assert both == 40


@pytest.mark.parametrize("law", LAWS)
def test_an_interval_at_zero_is_divided_until_it_leaves_zero(law):
    for zeros in (2, 4, 10):
        more = itertools.chain([0] * zeros, words(zeros))
        assert check(law, (0, 2**51 + 5), 0.2, 4096.0, more) == zeros + 2


@pytest.mark.parametrize("law", LAWS)
def test_a_shift_by_whole_units_shifts_the_answer(law):
    """With the same bits: x on the lattice plus rounded noise is the rounding of x plus noise."""
    draw, _, _ = LAWS[law]
    zero = torch.zeros(3, 1000, dtype=torch.float64)
    shift = torch.arange(-1500.0, 1500.0, dtype=torch.float64).reshape(3, 1000) * 0.125
    noise, noisy = (draw(SeededRandomness(3), values, scale=700.0, spacing=0.125) for values in (zero, shift))
    assert torch.equal(noisy, shift + noise)
    assert noise.shape == zero.shape
    assert torch.equal(noise.remainder(0.125), zero)


def test_numpy_stays_below_the_error_that_is_allowed_to_it():
    """2^-46 is allowed for (docs/proofs/exact-noise.md, 2); a sixteenth of it is not reached."""
    generator = random.Random(7)
    places = [*EXTREME, *(generator.getrandbits(generator.randint(1, 52)) for _ in range(3000))]
    uniforms = (np.array(places, dtype=np.float64) + 0.5) * 2.0**-52
    angles = 2 * np.pi * uniforms
    with mpmath.workdps(40):
        for found, exact, relative in (
            (np.log(uniforms), [mpmath.log(mpmath.mpf(u)) for u in uniforms.tolist()], True),
            (np.cos(angles), [mpmath.cos(mpmath.mpf(a)) for a in angles.tolist()], False),
            (np.sin(angles), [mpmath.sin(mpmath.mpf(a)) for a in angles.tolist()], False),
        ):
            errors = [
                abs((f - e) / (e if relative else 1))
                for f, e in zip(map(mpmath.mpf, found.tolist()), exact, strict=True)
            ]
            assert max(errors) < 2.0**-50


# --- the law ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("ratio", [0.6, 2.3, 4096.0, 8191.0])
def test_law_at_the_right_scale_only(law, ratio):
    """Cells of equal probability under the rounded real law: chi-square with the exact probabilities of the cells."""
    draw, real, _ = LAWS[law]
    values = torch.full((40_000,), 0.3, dtype=torch.float64)
    found = draw(SystemRandomness(), values, scale=ratio, spacing=1.0).numpy()
    edges = np.unique(np.round(real(0.3, ratio).ppf(np.linspace(0.02, 0.98, 25)))) + 0.5

    def p_value(scale):
        tails = np.concatenate([[0.0], real(0.3, scale).cdf(edges), [1.0]])
        counts = np.bincount(np.searchsorted(edges, found), minlength=len(edges) + 1)
        return scipy.stats.chisquare(counts, len(found) * np.diff(tails)).pvalue

    assert p_value(ratio) > LEVEL
    assert p_value(2 / 3 * ratio) < LEVEL
    assert p_value(3 / 2 * ratio) < LEVEL


@pytest.mark.parametrize("law", LAWS)
def test_the_slow_way_has_the_same_law(law):
    """A ratio at which 52 bits decide nothing: every number goes the long way."""
    draw, real, _ = LAWS[law]
    found = (
        draw(SystemRandomness(), torch.zeros(1500, dtype=torch.float64), scale=2.0**80, spacing=1.0).numpy() / 2.0**80
    )
    assert scipy.stats.kstest(found, real.cdf).pvalue > LEVEL
    for factor in (1 / 2, 2):
        assert scipy.stats.kstest(factor * found, real.cdf).pvalue < LEVEL


def test_the_two_numbers_of_a_draw_are_independent():
    """Cosine and sine of one angle: the first half of a block and the second."""
    found = rounded_noise(SystemRandomness(), torch.zeros(20_000, dtype=torch.float64), scale=5000.0, spacing=1.0)
    first, second = found[:10_000].numpy(), found[10_000:].numpy()
    for one, other in ((first, second), (np.abs(first), np.abs(second)), (first[:-1], first[1:])):
        assert scipy.stats.spearmanr(one, other).pvalue > LEVEL / 4
    assert scipy.stats.kstest((first + second) / math.sqrt(2), scipy.stats.norm(scale=5000.0).cdf).pvalue > LEVEL / 4


def test_every_entry_has_its_own_scale():
    scales = torch.tensor([1.0, 100.0, 10_000.0], dtype=torch.float64)[:, None]
    found = rounded_noise(SystemRandomness(), torch.zeros(3, 4000, dtype=torch.float64), scale=scales, spacing=2.0**-12)
    for row, scale in zip(found.numpy(), scales[:, 0].tolist(), strict=True):
        assert scipy.stats.kstest(row / scale, scipy.stats.norm.cdf).pvalue > LEVEL / 3
        assert scipy.stats.kstest(row / scale * 1.5, scipy.stats.norm.cdf).pvalue < LEVEL


# --- what is drawn and refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("count", [0, 1, 2, 7, 100, rounded._BLOCK + 3])
def test_no_bit_is_used_twice(law, count):
    """Sixteen bytes a draw; a draw serves two normal numbers, or one Laplace number."""
    draw, _, numbers = LAWS[law]
    source = Counting()
    assert draw(source, torch.zeros(count, dtype=torch.float64), scale=5000.0, spacing=1.0).shape == (count,)
    blocks = [min(rounded._BLOCK, count - start) for start in range(0, count, rounded._BLOCK)]
    needed = [16 * math.ceil(block / numbers) for block in blocks]
    assert [taken for taken in source.taken if taken != 8] == needed  # 8: a word more, once in a hundred million


def test_noise_beside_values_beyond_all_bits():
    values = torch.tensor([2.0**60, -(2.0**60), 2.0**52 + 1, 0.0], dtype=torch.float64)
    found = rounded_noise(SeededRandomness(1), values, scale=5000.0, spacing=1.0)
    noise = rounded_noise(SeededRandomness(1), torch.zeros_like(values), scale=5000.0, spacing=1.0)
    assert found.tolist() == [float(int(value) + int(shift)) for value, shift in zip(values, noise, strict=True)]
    assert not bool(torch.signbit(rounded_noise(SeededRandomness(1), values[3:], scale=1e-9, spacing=1.0)).any())


@pytest.mark.parametrize("law", LAWS)
def test_refusals(law):
    draw, _, _ = LAWS[law]
    good = {"scale": 1.0, "spacing": 2.0**-12}
    for change in ({"scale": 0.0}, {"scale": -1.0}, {"scale": math.nan}, {"scale": math.inf}, {"spacing": 0.001}):
        with pytest.raises(PlanMismatchError):
            draw(SystemRandomness(), torch.zeros(3, dtype=torch.float64), **{**good, **change})
    for bad in (math.nan, math.inf, -math.inf):
        with pytest.raises(PlanMismatchError):
            draw(SystemRandomness(), torch.tensor([0.0, bad], dtype=torch.float64), **good)


@pytest.mark.parametrize("scale", [1e-150, 6.613, 1e150])
def test_any_scale_on_its_own_lattice(scale):
    spacing = SPACING * math.ulp(scale)
    found = rounded_noise(SystemRandomness(), torch.zeros(5000, dtype=torch.float64), scale=scale, spacing=spacing)
    assert torch.equal(found.remainder(spacing), torch.zeros_like(found))
    assert scipy.stats.kstest(found.numpy() / scale, scipy.stats.norm.cdf).pvalue > LEVEL


@given(st.floats(1e-100, 1e100))
def test_spacing_is_a_power_of_two_just_below_the_scale(scale):
    spacing = SPACING * math.ulp(scale)
    assert math.frexp(spacing)[0] == 0.5
    assert scale / 8192 < spacing <= scale / 4096
