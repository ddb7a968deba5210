"""The student: softmax regression that learns released answers, so that nodes never seen can be answered."""

import pytest
import torch

from gcon.learn.perceptron import train_student

CLASSES, WIDTH = 3, 8


def rows(count, *, seed=0, filled=1.0):
    generator = torch.Generator().manual_seed(seed)
    found = torch.randn(count, WIDTH, generator=generator)
    kept = torch.rand(count, WIDTH, generator=generator) < filled
    return torch.nn.functional.normalize(torch.where(kept, found, 0.0), dim=1)


@pytest.fixture(scope="module")
def teacher():
    weights = 3 * torch.randn(WIDTH, CLASSES, generator=torch.Generator().manual_seed(1))
    return lambda features: torch.softmax(features @ weights + torch.tensor([0.5, 0.0, -0.5]), dim=1)


def test_a_linear_teacher_is_found(teacher):
    features = rows(400)
    student = train_student(features, teacher(features))
    strangers = rows(200, seed=7)
    found = student.probabilities(strangers)
    assert float((found - teacher(strangers)).abs().max()) < 0.03
    assert float((found.argmax(dim=1) == teacher(strangers).argmax(dim=1)).double().mean()) > 0.97


def test_only_the_directions_of_features_matter(teacher):
    features = rows(60)
    one, two = (train_student(scale * features, teacher(features)) for scale in (1.0, 5.0))
    assert torch.allclose(one.head_weight, two.head_weight, atol=1e-3)
    assert torch.allclose(one.probabilities(features), one.probabilities(3 * features), atol=1e-5)


def test_mostly_empty_features_take_the_other_path_to_the_same_student(teacher, monkeypatch):
    features = rows(200, filled=0.1)
    assert float((features != 0).double().mean()) < 0.2
    sparse = train_student(features, teacher(features))
    monkeypatch.setattr("gcon.learn.perceptron.compact", lambda *_: None)
    dense = train_student(features, teacher(features))
    assert torch.allclose(sparse.head_weight, dense.head_weight, atol=1e-4)
    assert torch.allclose(sparse.probabilities(features), dense.probabilities(features), atol=1e-5)


def test_the_same_lesson_gives_the_same_student(teacher):
    features = rows(50)
    one, two = (train_student(features, teacher(features)) for _ in range(2))
    assert torch.equal(one.head_weight, two.head_weight)
    assert torch.equal(one.head_bias, two.head_bias)


def test_one_class_only():
    features, answers = rows(40), torch.zeros(40, CLASSES)
    answers[:, 1] = 1
    found = train_student(features, answers).probabilities(rows(20, seed=3))
    assert found.isfinite().all()
    assert float(found[:, 1].min()) > 0.9


def test_features_of_zero_leave_the_mean_answer(teacher):
    answers = teacher(rows(30))
    student = train_student(torch.zeros(30, WIDTH), answers)
    assert torch.equal(student.head_weight, torch.zeros(WIDTH, CLASSES))
    found = student.probabilities(torch.zeros(2, WIDTH))
    assert torch.allclose(found, answers.mean(dim=0).expand(2, -1), atol=1e-4)


@pytest.mark.parametrize("width", [1, WIDTH])
def test_one_node(width):
    features, answers = torch.ones(1, width), torch.tensor([[0.7, 0.2, 0.1]])
    assert torch.allclose(train_student(features, answers).probabilities(features), answers, atol=0.01)
