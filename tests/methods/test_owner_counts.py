"""How much the mean answer around a node weighs for its owner."""

from types import SimpleNamespace

import pytest
import torch

from gcon.learn.after_counts import CountModel
from gcon.methods.moments import MOST_LEAN, OwnerCounts, owner_counts, owners_way


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


@pytest.mark.parametrize(("moved", "alone"), [(0, False), (9, False), (11, True), (40, True)])
def test_owners_count_by_later_codes_unless_classes_moved_far(moved, alone):
    """Of a hundred nodes so many were counted as class 0 and are answered class 1 since."""
    codes = torch.arange(100) % 2
    later = codes.clone()
    later[codes.eq(0).nonzero()[:moved, 0]] = 1
    nothing = torch.zeros(2, dtype=torch.float64)
    counts = OwnerCounts(
        start=torch.full((100, 2), 0.5),
        codes=codes,
        model=CountModel(torch.ones(1).double(), torch.zeros(1, 11, 2).double()),
        proportions=torch.full((2, 2), 0.5).double(),
        crowding=nothing + 1,
        edge_shares=nothing + 0.5,
        edge_messages=nothing,
        lean=0.0,
        voice=0.0,
    )
    published = torch.nn.functional.one_hot(later, 2).float()
    _, rows = owners_way(published, torch.full((100,), -1), counts, 0.8)
    assert rows.counted_alone is alone
    assert torch.equal(rows[:][:, 2:4].argmax(dim=1), codes)
    assert torch.equal(rows[:][:, 4:6].argmax(dim=1), codes if alone else later)
    assert torch.equal(rows[:][:, 6:].argmax(dim=1), later)
