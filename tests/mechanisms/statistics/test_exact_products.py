"""Products of whole numbers without rounding: against Python's own, at the ends of the range, in any number of rows."""

from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gcon.edges.fixed_point import real_numbers
from gcon.mechanisms import statistic as module
from gcon.mechanisms.statistic import LEFT_BITS, ROWS_AT_ONCE, exact_products, exact_total, left_numbers

ONE = torch.ones(1, dtype=torch.float64)
BITS, STRETCH = module._PIECE_BITS, 2**module._ROW_BITS
MOST = 2 ** (BITS - 1)  # of a piece, either sign


def whole_sum(pieces):
    return sum(piece.numpy().astype(object) << (BITS * place) for place, piece in enumerate(pieces))


def expected(left, right):
    return left.numpy().astype(object).T @ right.numpy().astype(object)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(data=st.data())
def test_as_in_whole_numbers(data):
    bits = data.draw(st.sampled_from([1, BITS - 1, BITS, 2 * BITS - 1, 2 * BITS, 49, 50, 52]))
    rows, first, second = (data.draw(st.integers(0 if place == 0 else 1, 5)) for place in range(3))

    def drawn(width, bits):
        edge = st.sampled_from([2**bits, -(2**bits), 2**bits - 1, MOST, -MOST, 0]).filter(lambda n: abs(n) <= 2**bits)
        entry = st.one_of(edge, st.integers(-(2**bits), 2**bits))
        numbers = data.draw(st.lists(entry, min_size=rows * width, max_size=rows * width))
        return torch.tensor(numbers, dtype=torch.int64).reshape(rows, width)

    left, right = drawn(first, LEFT_BITS), drawn(second, bits)
    pieces = exact_products(left, right, right_bits=bits)
    assert len(pieces) == -(-(bits + 1) // BITS)  # public: whatever the numbers are
    assert (whole_sum(pieces) == expected(left, right)).all() if rows else not any(piece.any() for piece in pieces)


@pytest.mark.parametrize("rows", [1, STRETCH - 1, STRETCH, STRETCH + 1, 30_000])
@pytest.mark.parametrize("low", [MOST, -MOST, MOST - 1])
def test_the_largest_numbers_in_many_rows(rows, low):
    """Every piece at its end, all of one sign: partial sums are as large as they can be, and still whole."""
    right = torch.full((rows, 1), (MOST - 1) * 2**BITS + low, dtype=torch.int64)
    left = torch.full((rows, 2), 2**LEFT_BITS, dtype=torch.int32)
    bits = 2 * BITS - 1
    assert int(right[0]) <= 2**bits
    assert len(pieces := exact_products(left, right, right_bits=bits)) == 2
    assert whole_sum(pieces).tolist() == [[rows * 2**22 * int(right[0])]] * 2


def test_where_the_limits_come_from():
    assert STRETCH * 2**LEFT_BITS * MOST <= 2**53  # a product of float64 matrices
    between = module._BEFORE_OVERFLOW // (ROWS_AT_ONCE >> module._ROW_BITS)  # settlements
    assert between >= 1
    assert between * (ROWS_AT_ONCE // STRETCH + 1) * STRETCH * 2**LEFT_BITS * MOST < 2**63
    left = torch.zeros(ROWS_AT_ONCE + 1, 1)
    with pytest.raises(ValueError, match="rows at a time"):
        exact_products(left, left, right_bits=50)
    with pytest.raises(ValueError, match="53 bits"):
        exact_products(left[:1], left[:1], right_bits=54)


def test_sums_beyond_64_bits():
    """Many blocks of the largest products: the total has more than 64 bits, and loses none."""
    left, right = torch.full((8192, 1), 2**22), torch.full((8192, 1), 2**50 - 1)
    pieces = exact_products(left, right, right_bits=50)
    exact = 1000 * 8192 * 2**22 * (2**50 - 1)
    found = exact_total(([piece.clone() for piece in pieces] for _ in range(1000)), ONE, ONE)
    assert exact > 2**64
    assert int(found.value) + int(found.rest) == exact
    assert float(found.rest) != 0


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    number=st.integers(-(2**99), 2**99),
    parts=st.just(1) | st.integers(1, 9),
    exponents=st.tuples(st.integers(-400, 200), st.integers(-400, 200)),
)
def test_value_and_rest(number, parts, exponents):
    """The value is the nearest float64 number, and with the rest nothing but 2^-106 of it is missing."""
    pieces = [number >> BITS * place & 2**BITS - 1 for place in range(5)] + [number >> 5 * BITS]
    units = [torch.tensor([2.0**exponent], dtype=torch.float64) for exponent in exponents]
    found = exact_total([[torch.tensor([[piece]]) for piece in pieces]], *units, parts=parts)
    exact = Fraction(number, parts) * Fraction(2) ** sum(exponents)
    value, rest = Fraction(float(found.value)), Fraction(float(found.rest))
    assert float(found.value) == float(exact)
    assert abs(value + rest - exact) <= abs(exact) / 2**106
    assert abs(rest) <= abs(exact) / 2**53


def test_without_rows_the_sum_is_zero():
    found = exact_total([], torch.ones(2, dtype=torch.float64), torch.ones(3, dtype=torch.float64))
    assert found.value.tolist() == found.rest.tolist() == [[0.0] * 3] * 2


def test_left_numbers_are_the_nearest_of_22_bits():
    rows = torch.tensor([[1 - 2.0**-53, 0.0, 1e-30, 1e-300], [-0.3, 0.0, 3e-31, 0.0]], dtype=torch.float64)
    whole, units = left_numbers(rows)
    assert whole.dtype == torch.int32
    assert int(whole.abs().max()) == 2**LEFT_BITS
    assert bool(((real_numbers(whole, units) - rows).abs() <= units / 2).all())
    assert whole[:, 1].tolist() == whole[:, 3].tolist() == [0, 0]  # zeros, and what is too small beside the largest
    assert int(whole[0, 2]) >= 2**20  # a small column keeps its digits
    assert left_numbers(torch.zeros(0, 2, dtype=torch.float64)).numbers.shape == (0, 2)
    assert left_numbers(torch.ones(3, 2, dtype=torch.float64).T).numbers.is_contiguous()
