"""How much the mean answer around a node weighs for its owner."""

from types import SimpleNamespace

import pytest
import torch

from gcon.methods.moments import MOST_LEAN, owner_counts


def leaned(num_classes, homophily, gain=0.0):
    """The weight of the mean answer, where counts made answers surer by so much."""
    before = torch.full((40, num_classes), 0.5 / (num_classes - 1), dtype=torch.float64)
    before[:, 0] = 0.5
    answers = before.clone()
    answers[:, 0] += gain
    belief = SimpleNamespace(proportions=None, crowding=None)
    found = SimpleNamespace(answers=answers, start=before, belief=belief, model=None)
    counts, codes = torch.ones(40, num_classes, dtype=torch.int64), torch.zeros(40, dtype=torch.int64)
    return owner_counts(found, counts, coded=codes, before=before, labels=codes - 1, homophily=homophily).lean


@pytest.mark.parametrize("gain", [0.0, 0.1])
def test_the_mean_around_weighs_more_with_many_classes(gain):
    few, ten, thirty, hundred = (leaned(classes, 0.5, gain) for classes in (4, 10, 30, 100))
    assert few == ten == pytest.approx(0.25 + 6 * gain)
    assert thirty == pytest.approx(min(3 * ten, MOST_LEAN))
    assert hundred == MOST_LEAN
    assert leaned(100, 0.005) == 0.0  # edges avoid their own class


def test_the_mean_around_weighs_less_where_answers_are_sure():
    """From a fifth of doubt on all of it, and a fifth of it where there is none."""
    assert leaned(4, 0.5, 0.25) == pytest.approx(0.25 + 6 * 0.25)
    assert leaned(4, 0.5, 0.4) == pytest.approx(MOST_LEAN * 5 * 0.1)
    assert leaned(4, 0.5, 0.5) == pytest.approx(MOST_LEAN / 5)
