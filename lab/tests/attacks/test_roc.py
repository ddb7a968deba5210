"""ROC and limits against numbers by hand."""

import math

import numpy as np
import pytest
import torch

from gcon.errors import InputError
from gcon_lab.attacks.roc import most_true_positives, roc_figure, roc_of


def test_a_curve_by_hand():
    roc = roc_of(torch.tensor([4.0, 3.0, 3.0, 1.0]), torch.tensor([True, False, True, False]))
    assert roc.false_positives.tolist() == [0.0, 0.0, 0.5, 1.0]
    assert roc.true_positives.tolist() == [0.0, 0.5, 1.0, 1.0]
    assert roc.area == pytest.approx(0.875)  # of 4 (linked, unlinked) couples: 3 in order, 1 tie
    assert roc.true_positives_at(0.01) == 0.5
    assert roc.true_positives_at(0.5) == 1.0


def test_equal_scores_tell_nothing():
    roc = roc_of(torch.zeros(6), torch.tensor([True, False] * 3))
    assert roc.area == 0.5
    assert roc.true_positives_at(0.01) == 0.0


def test_the_area_counts_couples():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randint(0, 8, (60,), generator=generator).double()
    linked = torch.rand(60, generator=generator) < 0.4
    gaps = scores[linked][:, None] - scores[~linked][None]
    by_hand = ((gaps > 0).double() + (gaps == 0).double() / 2).mean()
    assert roc_of(scores, linked).area == pytest.approx(float(by_hand))


@pytest.mark.parametrize(
    ("scores", "linked", "words"),
    [([1.0, 2.0], [True, True], "both kinds"), ([1.0, math.nan], [True, False], "numbers")],
)
def test_what_is_no_curve_is_refused(scores, linked, words):
    with pytest.raises(InputError, match=words):
        roc_of(torch.tensor(scores), torch.tensor(linked))


def test_limits_by_hand():
    # e^epsilon = 2: below FPR 1/3 the first line counts, above it the second.
    found = most_true_positives([0.0, 0.2, 1 / 3, 0.5, 1.0], math.log(2), 0.0)
    assert found.tolist() == pytest.approx([0.0, 0.4, 2 / 3, 0.75, 1.0])
    assert most_true_positives([0.0, 0.1], 0.0, 0.01).tolist() == pytest.approx([0.01, 0.11])
    assert most_true_positives([0.0], math.inf, 0.0).tolist() == [1.0]


def test_randomised_response_lies_on_the_limit():
    epsilon = 1.3
    flip = 1 / (1 + math.exp(epsilon))
    assert most_true_positives([flip], epsilon, 0.0)[0] == pytest.approx(1 - flip)


def test_the_drawing_is_one_svg_with_its_limit():
    roc = roc_of(torch.tensor([1.0, 0.0]), torch.tensor([True, False]))
    drawn = roc_figure({"one": roc}, title="a title", promise=(1.0, 1e-5))
    assert drawn.startswith("<svg")
    assert "limit of epsilon 1, delta 1e-05" in drawn
    assert "AUC 1.000" in drawn
    assert drawn == roc_figure({"one": roc}, title="a title", promise=(1.0, 1e-5))
    assert "limit" not in roc_figure({"one": roc}, title="", promise=None)
    assert np.isfinite(roc.area)
