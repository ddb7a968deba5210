"""Exact sampling of whole-number noise, by fair coins and rational numbers only: no logarithm, no rounding.

The method is that of Canonne, Kamath and Steinke (2020): a coin of probability e^-x is built from coins of rational
probability, and the two-sided geometric law from such coins.
"""

from __future__ import annotations

from fractions import Fraction

from gcon.privacy.randomness import Randomness


def two_sided_geometric(randomness: Randomness, rate: Fraction) -> int:
    """A whole number k with probability exactly proportional to exp(-rate |k|), for a positive rational rate."""
    shrink, stretch = rate.numerator, rate.denominator
    while True:
        low = _below(randomness, stretch)
        if not _coin_exp(randomness, Fraction(low, stretch)):
            continue
        high = 0
        while _coin_exp(randomness, Fraction(1)):
            high += 1
        size = (low + stretch * high) // shrink
        negative = _below(randomness, 2) == 1
        if not (negative and size == 0):  # zero has one sign only
            return -size if negative else size


def coin_exp(randomness: Randomness, exponent: Fraction) -> bool:
    """True with probability exactly exp(-exponent), for an exponent of at least 0."""
    whole = int(exponent)
    return all(_coin_exp(randomness, Fraction(1)) for _ in range(whole)) and _coin_exp(randomness, exponent - whole)


def shuffled(randomness: Randomness, size: int) -> list[int]:
    """The numbers 0 to size - 1 in uniformly random order (Fisher and Yates)."""
    order = list(range(size))
    for last in range(size - 1, 0, -1):
        other = _below(randomness, last + 1)
        order[last], order[other] = order[other], order[last]
    return order


def _coin_exp(randomness: Randomness, exponent: Fraction) -> bool:
    """True with probability exactly exp(-exponent), for an exponent in [0, 1]."""
    count = 1
    while _below(randomness, exponent.denominator * count) < exponent.numerator:
        count += 1
    return count % 2 == 1


def _below(randomness: Randomness, limit: int) -> int:
    """A uniform whole number from 0 to limit - 1, by rejection."""
    size = (limit.bit_length() + 7) // 8
    largest = (256**size // limit) * limit
    while True:
        number = int.from_bytes(randomness.take(size), "little")
        if number < largest:
            return number % limit
