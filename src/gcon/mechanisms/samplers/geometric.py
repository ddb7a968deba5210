"""Whole-number noise, sampled exactly: two-sided geometric numbers, one at a time or many at once.

One at a time, for any rational rate: by fair coins and rational numbers only, no logarithm, no rounding. The method is that of
Canonne, Kamath and Steinke (2020): a coin of probability e^-x is built from coins of rational probability, and the two-sided
geometric law from such coins.

Many at once, by comparing random words with the binary digits of real chances. A geometric number G, P(G = g) = (1 - q) q^g with
q = e^-rate, has independent binary digits: digit i is 1 with probability 1/(1 + e^(rate 2^i)), and what lies above the first m
digits is geometric again, with q^(2^m). The difference of two such numbers is two-sided geometric. A coin of chance p compares
random digits with those of p, as many as it takes to see a difference: no rounding, and no chance that float64 stands for
(docs/proofs/neighbour-counts.md, 4).
"""

from __future__ import annotations

import itertools
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import lru_cache

import numpy as np
import torch
from mpmath.ctx_mp import MPContext
from torch import Tensor

from gcon.errors import PlanMismatchError
from gcon.privacy.randomness import Randomness, SystemRandomness

_WORD = 32  # bits that are compared at a time
_RARE = 2 * _WORD * math.log(2)  # e^-this is the chance of anything above the digits that are drawn one by one
_SURE = 128  # bits beyond those asked for, to know where a chance lies
_BLOCK = 2**18
_alone = threading.Lock()  # what mpmath keeps of constants is not guarded, and a wrong one would be a wrong chance
LEAST_RATE, MOST_RATE = 1e-9, 1e3  # between noise that int64 holds with ease, and chances with few leading zeros


def two_sided_geometric(randomness: Randomness, rate: Fraction) -> int:
    """A whole number k with probability exactly proportional to exp(-rate |k|), for a positive rational rate."""
    shrink, stretch = rate.numerator, rate.denominator
    while True:
        low = _below(randomness, stretch)
        # Coins until the first tails: one of chance exp(-low/stretch), then of chance 1/e. Each as in `coin_exp`.
        exponent, draws, heads = Fraction(low, stretch), 1, 0
        while True:
            if _below(randomness, exponent.denominator * draws) < exponent.numerator:
                draws += 1
            elif draws % 2 == 1:
                exponent, draws, heads = Fraction(1), 1, heads + 1
            else:
                break
        if heads == 0:
            continue
        size = (low + stretch * (heads - 1)) // shrink
        negative = _below(randomness, 2) == 1
        if not (negative and size == 0):  # zero has one sign only
            return -size if negative else size


def coin_exp(randomness: Randomness, exponent: Fraction) -> bool:
    """True with probability exactly exp(-exponent), for an exponent of at least 0.

    As many coins of chance 1/e as it has wholes, and one of chance e^-x for the rest: draws that succeed with chance x, x/2,
    x/3, ..., until one fails; heads if that is the first, the third, and so on.
    """
    whole = int(exponent)
    for part in itertools.chain((Fraction(1) for _ in range(whole)), [exponent - whole]):  # there may be very many
        draws = 1
        while _below(randomness, part.denominator * draws) < part.numerator:
            draws += 1
        if draws % 2 == 0:
            return False
    return True


def shuffled(randomness: Randomness, size: int) -> list[int]:
    """The numbers 0 to size - 1 in uniformly random order (Fisher and Yates)."""
    order = list(range(size))
    for last in range(size - 1, 0, -1):
        other = _below(randomness, last + 1)
        order[last], order[other] = order[other], order[last]
    return order


def _below(randomness: Randomness, limit: int) -> int:
    """A uniform whole number from 0 to limit - 1, by rejection."""
    size = (limit.bit_length() + 7) // 8
    largest = (256**size // limit) * limit
    while True:
        number = int.from_bytes(randomness.take(size), "little")
        if number < largest:
            return number % limit


def two_sided_geometric_numbers(randomness: Randomness, rate: float, *shape: int) -> Tensor:
    """Independent whole numbers k with probability exactly proportional to exp(-rate |k|), int64.

    Args:
        randomness: where the bits come from.
        rate: public, positive; the float64 number is taken as the real number that it is.
        shape: of the result.
    """
    if not LEAST_RATE <= rate <= MOST_RATE:
        raise PlanMismatchError(f"Whole-number noise needs a rate from {LEAST_RATE:g} to {MOST_RATE:g}.")
    numbers = np.zeros(math.prod(shape), dtype=np.int64)
    digits = max(0, math.ceil(math.log2(_RARE / rate)))

    def fill(start: int) -> None:
        part = numbers[start : start + _BLOCK]
        for sign in (1, -1):  # the difference of two geometric numbers
            # A coin for every digit, the lowest first; then, as long as it falls on heads, for more.
            throwing, place = np.arange(len(part)), 0
            while len(throwing):
                # Coins of one chance: a uniform number below it, compared word by word.
                heads, undecided, word = np.zeros(len(part), dtype=np.bool_), throwing, 0
                while len(undecided):
                    digit = _word(rate, place, place == digits, word)
                    drawn = np.frombuffer(randomness.take(_WORD // 8 * len(undecided)), dtype="<u4")
                    heads[undecided[drawn < digit]] = True
                    undecided, word = undecided[drawn == digit], word + 1
                part += sign * (heads.astype(np.int64) << place)
                if place < digits:
                    place += 1
                else:
                    throwing = throwing[heads[throwing]]

    # Bytes of the operating system are independent in any order, so blocks are drawn side by side; a seed has one order.
    workers = torch.get_num_threads() if type(randomness) is SystemRandomness else 1
    with ThreadPoolExecutor(workers) as threads:
        for _ in threads.map(fill, range(0, len(numbers), _BLOCK)):
            pass  # an error in a block is raised here
    return torch.from_numpy(numbers).reshape(shape)


@lru_cache(maxsize=256)
def _word(rate: float, place: int, above: bool, word: int) -> int:
    """The binary digits of a chance, 32 at a time: of 1/(1 + e^x), or of e^-x where `above`, for x = rate 2^place.

    Chances are irrational (Lindemann), so their digits are decided once enough of them are computed.
    """
    bits, sure = _WORD * (word + 1), _SURE
    with _alone:
        while True:
            context = MPContext()
            context.prec = bits + 2 * sure
            power = context.exp(-context.mpf(rate) * 2**place)
            scaled = (power if above else power / (1 + power)) * context.mpf(2) ** bits
            floor = context.floor(scaled)
            if context.mpf(2) ** -sure < scaled - floor < 1 - context.mpf(2) ** -sure:
                digits: int = int(floor) % 2**_WORD
                return digits
            sure *= 2
