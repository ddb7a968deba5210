"""Sensitivities are those of the numbers that are really added: rows in fixed point, and the rounding on both sides."""

import itertools
from fractions import Fraction

import mpmath
import pytest
import torch

from gcon.edges.edge_list import public_edges
from gcon.edges.schemes import Schemes
from gcon.mechanisms import edge_moments
from gcon.mechanisms import statistic as statistics
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon_lab.mechanisms import bilinear_sums
from gcon_lab.mechanisms.bilinear_sums import BilinearSums
from gcon_lab.mechanisms.class_sums import ClassSums
from gcon_lab.mechanisms.walk_moments import WalkMoments

WIDE = torch.float64
PAIR = public_edges(torch.tensor([[0], [1]]), 3)


def whole_rows(rows, bits):
    """Fixed point once more: whole numbers and units, powers of two for which entries are below 2^bits units."""
    columns, units = [], []
    for column in rows.T.tolist():
        largest, unit = max(abs(Fraction(number)) for number in column), Fraction(1)
        while largest >= unit * 2**bits:
            unit *= 2
        while largest < unit * 2 ** (bits - 1):
            unit /= 2
        columns.append([round(Fraction(number) / unit) for number in column])
        units.append(unit)
    return columns, units


@pytest.mark.parametrize("size", [9_000, 20_000])
def test_moments_pay_for_the_last_rounding_on_both_sides(size):
    """Parallel rows, as large as they come: the complete graph rounds its entries by 2^-106 each, before and after."""
    lengths = 1 - 1e-3 * torch.rand(size, 1, generator=torch.Generator().manual_seed(4), dtype=WIDE)
    rows = lengths * torch.tensor([[0.6, 0.8]], dtype=WIDE)
    columns, units = whole_rows(rows, 22)
    with mpmath.workdps(40):
        squares = sorted(
            sum((number * unit) ** 2 for number, unit in zip(row, units, strict=True))
            for row in zip(*columns, strict=True)
        )
        first, second = (mpmath.sqrt(mpmath.mpf(s.numerator) / s.denominator) for s in squares[:-3:-1])
        entries = [
            (sum(columns[a]) * sum(columns[b]) - sum(x * y for x, y in zip(columns[a], columns[b], strict=True)))
            * units[a]
            * units[b]
            for a, b in itertools.product(range(2), repeat=2)
        ]
        rounding = mpmath.ldexp(mpmath.norm([mpmath.mpf(e.numerator) / e.denominator for e in entries]), -106)
        needed = 2 * first * second * (1 + mpmath.mpf(10) ** -9) + 2 * rounding
        moments = EdgeMoments(rows)
        assert rounding <= moments.rounding <= 10 * rounding
        assert needed <= moments.sensitivity <= needed * (1 + 1e-8)


def test_the_rounding_of_moments_is_inside_their_sensitivity(monkeypatch):
    """It is tiny beside the allowance of lengths: made larger, it shows."""
    rows = torch.ones(50, 1, dtype=WIDE)
    bare = EdgeMoments(rows)
    monkeypatch.setattr(edge_moments, "_LAST_ROUNDING", 1e-3)
    moments = EdgeMoments(rows)
    assert moments.rounding == pytest.approx(1e-3 * 50 * 49)
    assert moments.sensitivity == pytest.approx(bare.sensitivity + 2 * moments.rounding)


@pytest.mark.parametrize("bits", [2, 3, 5])
def test_lengths_are_measured_after_rounding_to_fixed_point(monkeypatch, bits):
    """With few bits rounding lengthens rows visibly; an edge between the two longest moves the sums by all of it."""
    monkeypatch.setattr(statistics, "LEFT_BITS", bits)
    generator, longer = torch.Generator().manual_seed(5), 0
    for _ in range(40):
        rows = 0.3 + 0.05 * torch.rand(8, 3, generator=generator, dtype=WIDE)
        statistic = EdgeMoments(rows)
        nothing = statistic.of(public_edges(torch.zeros(2, 0, dtype=torch.int64), 8))
        moved = []
        for pair in itertools.combinations(range(8), 2):
            value = statistic.of(public_edges(torch.tensor(pair)[:, None], 8))
            moved.append(float(torch.linalg.matrix_norm(value - nothing)))
        assert 0 < max(moved) <= statistic.sensitivity
        bare = 2 * rows.norm(dim=1).topk(2).values.prod()
        longer += max(moved) > float(bare) * (1 + 1e-6)
    assert longer > 5


WEIGHTED = pytest.mark.parametrize(
    "statistic",
    [
        lambda rows, schemes: ClassSums(torch.eye(3, 2), rows, schemes),
        WalkMoments,
        lambda rows, schemes: BilinearSums(rows, torch.eye(3, 2)),
    ],
    ids=["class sums", "walk moments", "bilinear sums"],
)


@WEIGHTED
def test_walks_are_weighted_by_rows_in_fixed_point(monkeypatch, statistic):
    """With two bits in place of 22 a weight of 0.65 counts as 0.75: the sensitivity must know, the value does."""
    rows, schemes = torch.tensor([[0.65, 0.0], [0.0, 0.65], [0.0, 0.0]], dtype=WIDE), Schemes(0.0, (1,))
    fine, fine_value = statistic(rows, schemes).sensitivity, statistic(rows, schemes).of(PAIR)
    monkeypatch.setattr(statistics, "LEFT_BITS", 2)
    coarse = statistic(rows, schemes)
    assert coarse.sensitivity == pytest.approx(fine * 0.75 / 0.65, rel=1e-6)
    assert torch.allclose(coarse.of(PAIR), fine_value * 0.75 / 0.65, rtol=1e-6)


@WEIGHTED
def test_the_rounding_of_walks_is_inside_their_sensitivity(monkeypatch, statistic):
    """It is tiny beside the allowances: made larger, it shows."""
    random, schemes = torch.rand(3, 2, generator=torch.Generator().manual_seed(6), dtype=WIDE), Schemes(0.0, (1, 2))
    bare = statistic(random, schemes)
    monkeypatch.setattr(bilinear_sums, "STEP_ERROR", 2**42 * bilinear_sums.STEP_ERROR)
    large = statistic(random, schemes)
    assert large.rounding == pytest.approx(2**42 * bare.rounding)
    assert large.rounding > 0.01 * bare.sensitivity
    assert large.sensitivity == pytest.approx(bare.sensitivity + 2 * large.rounding)
