"""How common classes are, where twenty nodes of each were labelled."""

import pytest
import torch
from torch.nn.functional import one_hot

from gcon.learn.class_shares import believed_shares, shift_of_scores
from gcon.learn.ensemble import Ensemble
from gcon.nodes import PublicNodes

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
    shift = shift_of_scores(answers, [answers], one_hot(labels, 4).double(), labels)
    assert bool(torch.isfinite(shift).all())


def test_the_mean_comes_as_near_to_the_shares_as_they_are_trusted():
    answers, examples = drawn(everybody(3), 3.0, 3), drawn(EXAMPLES, 3.0, 4)
    shift = shift_of_scores(answers, [answers], examples, EXAMPLES)
    reached = torch.softmax(answers.log() + shift, dim=1).mean(dim=0)
    mean = answers.mean(dim=0)
    shares, trust = believed_shares(mean, examples, EXAMPLES)
    wanted = mean ** (1 - trust**2) * shares**trust**2
    assert torch.allclose(reached, wanted / wanted.sum(), atol=1e-6)
    assert apart(reached, TRUE) < apart(mean, TRUE)


def test_only_where_training_nodes_judge():
    labels = torch.cat([EXAMPLES, everybody(5, 400)])
    train = torch.zeros(480, dtype=torch.bool)
    train[:80] = True
    validation = torch.zeros_like(train)
    rows = drawn(labels, 2.0, 5).float()
    shifts = []
    for size in (0, 100):
        validation[80 : 80 + size] = True
        nodes = PublicNodes(
            features=rows,
            labels=labels,
            num_classes=4,
            train_mask=train,
            validation_mask=validation,
            test_mask=train & False,
        )
        ensemble = Ensemble(nodes=nodes).taught([rows], (0.1,))
        assert torch.allclose(ensemble.moved()[0].sum(dim=1), torch.ones(480, dtype=torch.float64))
        shifts.append(ensemble.shift)
    assert float(shifts[0].abs().max()) > 0.05
    assert not bool(shifts[1].any())
