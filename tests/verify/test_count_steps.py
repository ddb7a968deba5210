"""What the verifier sees in the numbers of neighbour counts: codes that were not allowed, noise that is not there."""

import math

import pytest
import torch

from gcon.verify.count_steps import Table, check_codes, check_labels_alone, check_values
from gcon.verify.steps import Steps

NODES, CLASSES, RATE = 400, 24, 0.4
GENERATOR = torch.Generator().manual_seed(3)
PAIRS = torch.rand(NODES, NODES, generator=GENERATOR).triu(1) < 0.03
CODES = torch.randint(CLASSES, (NODES,), generator=GENERATOR)
SOME = torch.where(torch.arange(NODES) % 4 == 0, -1, CODES)  # a quarter has none


def exact(codes):
    counted = torch.nn.functional.one_hot(codes.clamp_min(0), CLASSES) * (codes >= 0)[:, None]
    return (PAIRS | PAIRS.T).long() @ counted


def noise(rates, seed=1):
    """Two-sided geometric, a rate for every row; whole parts of exponential numbers are geometric."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.rand(2, NODES, CLASSES, generator=generator, dtype=torch.float64).log() / -rates[:, None]
    return drawn[0].long() - drawn[1].long()


def verdicts(value, codes, *, one_way):
    steps = Steps()
    table = Table(place=0, settings={}, record={}, value=value)
    check_values([table], codes, rate=RATE, one_way=one_way, steps=steps)
    return [step.holds for step in steps.taken]


def rates(listeners, counted):
    return torch.where(SOME < 0, listeners, counted).double()


def test_noise_that_is_not_there_is_noticed_where_there_are_many_codes():
    """Edges between two codes are counted from both ends; with 24 codes there are 276 such numbers."""
    drawn = noise(torch.full((NODES,), RATE, dtype=torch.float64))
    assert verdicts(exact(CODES) + drawn, CODES, one_way=False) == [True, True]
    assert verdicts(exact(CODES), CODES, one_way=False) == [True, False]
    assert verdicts(exact(CODES) + 3 * drawn, CODES, one_way=False) == [True, False]


def test_of_one_way_counts_the_rows_of_those_who_are_counted_have_noise_of_half_the_rate():
    for seed in range(5):
        honest = noise(rates(RATE, RATE / 2), seed)
        assert verdicts(exact(SOME) + honest, SOME, one_way=True) == [True, True, True]
    assert verdicts(exact(SOME), SOME, one_way=True) == [True, True, False]
    assert verdicts(exact(SOME) + noise(rates(RATE, RATE)), SOME, one_way=True) == [True, True, False]
    assert verdicts(exact(SOME) + 2 * noise(rates(RATE, RATE / 2)), SOME, one_way=True)[2] is False


def test_numbers_lie_where_counts_and_their_own_noise_can_put_them():
    """A row has the range of its own noise, and a column that of the nodes with its code."""
    honest = exact(SOME) + noise(rates(RATE, RATE / 2))
    listener, counted = int((SOME < 0).nonzero()[0]), int((SOME >= 0).nonzero()[0])
    size = int((SOME == 2).sum())
    # As far as noise of so many numbers may go, but for a false alarm in 10^9: log(2 numbers 10^9)/rate, rounded up.
    reach = {
        row: math.ceil(math.log(2e9 * rows * CLASSES) / rate)
        for row, rows, rate in ((listener, 100, 0.4), (counted, 300, 0.2))
    }
    for row, place in ((listener, 0), (counted, 1)):
        for far, holds in ((reach[row], True), (reach[row] + 1, False)):
            for number in (-far, size + far):
                value = honest.clone()
                value[row, 2] = number
                assert verdicts(value, SOME, one_way=True)[place] is holds


@pytest.mark.parametrize("nobody", [True, False])
def test_one_way_where_nobody_or_everybody_is_counted(nobody):
    codes = torch.full((NODES,), -1) if nobody else CODES
    drawn = noise(torch.full((NODES,), RATE if nobody else RATE / 2, dtype=torch.float64))
    assert all(verdicts(exact(codes) + drawn, codes, one_way=True))


def code_verdict(check, *given):
    steps = Steps()
    check(*given, steps)
    [step] = steps.taken
    return step.holds


def test_codes_are_labels_or_the_likeliest_class():
    answers = torch.rand(NODES, CLASSES, generator=torch.Generator().manual_seed(5))
    labels = torch.where(torch.arange(NODES) < 40, CODES, -1)
    right = torch.where(labels >= 0, labels, answers.argmax(dim=1))
    assert code_verdict(check_codes, right, labels, answers)
    for row in (3, 300):
        wrong = right.clone()
        wrong[row] = (wrong[row] + 1) % CLASSES
        assert not code_verdict(check_codes, wrong, labels, answers)


def test_one_way_codes_are_labels_and_nothing_else():
    assert code_verdict(check_labels_alone, SOME, SOME)
    for row, code in ((0, 1), (1, -1), (1, int(SOME[1] + 1) % CLASSES)):
        wrong = SOME.clone()
        wrong[row] = code
        assert not code_verdict(check_labels_alone, wrong, SOME)
