"""How common classes are, where twenty nodes of each were labelled."""

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch.nn.functional import one_hot

from gcon.errors import InputError
from gcon.learn.class_shares import believed_shares, shift_to_believed_shares
from gcon.learn.ensemble import Ensemble
from gcon.nodes import PublicNodes, checked_shares, shares_in_order

TRUE = torch.tensor([0.55, 0.3, 0.1, 0.05], dtype=torch.float64)


def drawn(labels, sureness, seed):
    """Answers of a model that was taught by even labels: calibrated for even shares."""
    noise = torch.randn(len(labels), 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return torch.softmax(sureness * one_hot(labels, 4) + sureness**0.5 * noise, dim=1)


def everybody(seed, size=4000):
    generator = torch.Generator().manual_seed(seed)
    return torch.multinomial(TRUE.repeat(size, 1), 1, generator=generator)[:, 0]


EXAMPLES = torch.arange(4).repeat_interleave(20)


def apart(one, other):
    return float((one - other).abs().sum()) / 2


@pytest.mark.parametrize("seed", range(5))
def test_shares_are_nearer_to_the_truth_than_the_mean_answer(seed):
    answers = drawn(everybody(seed), 3.0, seed)
    found, trust = believed_shares(answers.mean(dim=0), drawn(EXAMPLES, 3.0, 100 + seed), EXAMPLES)
    assert 0.4 < trust < 1
    assert float(found.sum()) == pytest.approx(1)
    assert apart(found, TRUE) < 0.7 * apart(answers.mean(dim=0), TRUE)


def test_answers_that_tell_no_class_change_nothing():
    mean = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64)
    found, trust = believed_shares(mean, mean.repeat(80, 1), EXAMPLES)
    assert apart(found, mean) < 1e-6
    assert trust < 1e-6


def test_few_examples_are_believed_less_than_many():
    mean = drawn(everybody(0), 2.0, 0).mean(dim=0)
    few, many = EXAMPLES[::10], EXAMPLES.repeat(50)
    (one, little), (other, much) = (believed_shares(mean, drawn(each, 2.0, 7), each) for each in (few, many))
    assert apart(one, mean) < 0.7 * apart(other, mean)
    assert little < 0.7 * much


def test_a_class_without_an_example_and_an_answer_of_zero_are_no_trouble():
    answers = one_hot(everybody(1), 4).double()
    answers[:, 3] = 0
    answers = answers / answers.sum(dim=1, keepdim=True).clamp_min(1)
    labels = EXAMPLES[:60]
    shift = shift_to_believed_shares(answers, [answers], one_hot(labels, 4).double(), labels)
    assert bool(torch.isfinite(shift).all())


def test_the_mean_comes_as_near_to_the_shares_as_they_are_trusted():
    answers, examples = drawn(everybody(3), 3.0, 3), drawn(EXAMPLES, 3.0, 4)
    shift = shift_to_believed_shares(answers, [answers], examples, EXAMPLES)
    reached = torch.softmax(answers.log() + shift, dim=1).mean(dim=0)
    mean = answers.mean(dim=0)
    shares, trust = believed_shares(mean, examples, EXAMPLES)
    wanted = mean ** (1 - trust**2) * shares**trust**2
    assert torch.allclose(reached, wanted / wanted.sum(), atol=1e-6)
    assert apart(reached, TRUE) < apart(mean, TRUE)


def ensemble_of(*, validation, class_shares=None):
    """Regressions on rows that tell the class; balanced labels teach, and nodes without a label come as classes come."""
    labels = torch.cat([EXAMPLES, everybody(5, 400)])
    place = torch.arange(480)
    rows = drawn(labels, 2.0, 5).float()
    nodes = PublicNodes(
        features=rows,
        labels=labels,
        num_classes=4,
        train_mask=place < 80,
        validation_mask=(place >= 80) & (place < 80 + validation),
        test_mask=place < 0,
        class_shares=class_shares,
    )
    return Ensemble(nodes=nodes).taught([rows], (0.1,))


def test_only_where_training_nodes_judge():
    few, many = (ensemble_of(validation=size) for size in (0, 100))
    for each in (few, many):
        assert torch.allclose(each.moved()[0].sum(dim=1), torch.ones(480, dtype=torch.float64))
    assert float(few.shift.abs().max()) > 0.05
    assert many.shift is None
    assert many.moved()[0] is many.answers


def test_shares_that_are_told_are_those_of_the_answers():
    told = (0.55, 0.3, 0.1, 0.05)
    ensemble = ensemble_of(validation=0, class_shares=told)
    answers, judged, twins = ensemble.moved()
    free = ~ensemble.nodes.train_mask
    assert torch.allclose(answers[free].mean(dim=0), TRUE, atol=1e-6)
    assert apart(ensemble.answers[free].mean(dim=0), TRUE) > 0.02
    for one, other in zip([*twins, judged], [*ensemble.twins, ensemble.judged], strict=True):  # all by the same shift
        logs = one.log() - other.double().log()
        assert torch.allclose(logs - logs[:, :1], (ensemble.shift - ensemble.shift[0]).expand(len(logs), -1), atol=1e-4)
    assert ensemble_of(validation=100, class_shares=told).shift is None  # they tell better than rough numbers do


def test_shares_are_named_and_add_to_one():
    names = ("red", "blue", 3)
    assert shares_in_order({"3": 0.2, "blue": 0.5, "red": 0.3}, names) == (0.3, 0.5, 0.2)
    assert checked_shares((0.33, 0.33, 0.33), 3) == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    for wrong in ({"red": 0.5, "blue": 0.5}, {"red": 0.5, "blue": 0.3, "green": 0.2}, {3: 0.1, "3": 0.1, "red": 0.8}):
        with pytest.raises(InputError, match="must be a share for every class by its name: red, blue, 3"):
            shares_in_order(wrong, names)
    for wrong in ([0.3, 0.5, 0.2], 5, "x", {}):
        with pytest.raises(InputError, match="by its name"):
            shares_in_order(wrong, names)
    with pytest.raises(InputError, match="by its name"):
        shares_in_order({"1": 0.5}, (1, "1"))  # which one is meant?
    for wrong in (
        (0.5, 0.5),
        (0.5, 0.5, 0.0),
        (0.5, 0.4, 0.2),
        (0.5, 0.6, -0.1),
        (float("nan"), 0.5, 0.5),
        (1e-9, 0.5, 0.5),
        None,
    ):
        with pytest.raises(InputError, match="for each of the 3 classes, together 1"):
            checked_shares(wrong, 3)


@given(st.lists(st.floats(2e-6, 1), min_size=1, max_size=8))
def test_a_second_look_finds_what_the_first_did(numbers):
    total = sum(numbers)
    try:
        once = checked_shares([each / total for each in numbers], len(numbers))
    except InputError:
        assume(False)
    assert checked_shares(once, len(numbers)) == once
