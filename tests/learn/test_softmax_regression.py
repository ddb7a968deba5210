"""Softmax regressions: the least loss, by another program too, however the rows are scaled."""

import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.linear_model import LogisticRegression
from tests.learn.regressions import class_probabilities
from torch.nn.functional import one_hot

from gcon.learn import softmax_regression
from gcon.learn.softmax_regression import probabilities, softmax_regressions

PENALTIES = (1.0, 0.1)


def examples(num_classes, size=150, width=6, *, scales=1.0):
    generator = torch.Generator().manual_seed(num_classes)
    labels = torch.arange(size) % num_classes
    centres = torch.randn(num_classes, width, generator=generator)
    return (centres[labels] + torch.randn(size, width, generator=generator)) * scales, labels


@pytest.mark.parametrize("narrow", [True, False])
@pytest.mark.parametrize("num_classes", [3, 5])
def test_it_answers_as_scikit_learn_does(monkeypatch, narrow, num_classes):
    for name in ("_STEEP", "_STEEP_WHITE"):
        monkeypatch.setattr(softmax_regression, name, 1e-7)
    if not narrow:
        monkeypatch.setattr(softmax_regression, "_NARROW", 0)
    rows, labels = examples(num_classes)
    for penalty, table in zip(PENALTIES, softmax_regressions(rows, one_hot(labels), PENALTIES), strict=True):
        assert (table.shape, table.dtype) == ((7, num_classes), torch.float64)
        model = LogisticRegression(C=1 / penalty, tol=1e-9, max_iter=10_000).fit(rows.double().numpy(), labels.numpy())
        found = class_probabilities(rows, table).numpy()
        np.testing.assert_allclose(found, model.predict_proba(rows.numpy()), atol=1e-3)


def test_columns_of_any_scale_take_the_same_answers():
    """Whitening makes up for scales; the penalty does not, so it is small here."""
    rows, labels = examples(3)
    scales = torch.tensor([1e-2, 1.0, 1e2, 1.0, 1e-1, 10.0])
    tables = [softmax_regressions(each, one_hot(labels), [1e-6])[0] for each in (rows, rows * scales)]
    one, two = (class_probabilities(each, table) for each, table in zip((rows, rows * scales), tables, strict=True))
    assert torch.allclose(one, two, atol=0.02)


@pytest.mark.parametrize("scale", [1e1, 1e2, 1e3, 1e4, 1e6])
@pytest.mark.parametrize("size", [20, 1000, 20_000])
def test_long_rows_that_hardly_differ_are_no_reason_to_fail(scale, size):
    """What is learned between two releases was paid for: an error there loses it."""
    rows = scale + 1e-3 * torch.randn(size, 3, generator=torch.Generator().manual_seed(0))
    for table in softmax_regressions(rows, one_hot(torch.arange(size) % 3), PENALTIES):
        assert bool(table.isfinite().all())


def test_sparse_rows_teach_what_dense_ones_do(monkeypatch):
    rows, labels = examples(3)
    rows = torch.where(rows > 1.5, rows, 0.0)
    for name in ("_STEEP", "_STEEP_WHITE"):
        monkeypatch.setattr(softmax_regression, name, 1e-6)
    monkeypatch.setattr(softmax_regression, "_NARROW", 0)
    (sparse,) = softmax_regressions(scipy.sparse.csr_matrix(rows.numpy()), one_hot(labels), [1.0])
    (dense,) = softmax_regressions(rows, one_hot(labels), [1.0])
    assert torch.allclose(sparse, dense, atol=1e-3)


def test_many_rows_teach_as_some_of_them_and_then_all(monkeypatch):
    """Some rows lead near, and a few steps with all of them do the rest."""
    rows, labels = examples(3, size=9000)
    quick = softmax_regressions(rows, one_hot(labels), PENALTIES)
    monkeypatch.setattr(softmax_regression, "_SOME", 10**6)
    monkeypatch.setattr(softmax_regression, "_STEEP_WHITE", 1e-7)
    for one, two in zip(quick, softmax_regressions(rows, one_hot(labels), PENALTIES), strict=True):
        apart = (class_probabilities(rows, one) - class_probabilities(rows, two)).abs()
        assert float(apart.mean()) < 2e-3
        assert float(apart.max()) < 0.03


def test_soft_targets_are_met():
    rows, _ = examples(3, size=400)
    targets = torch.softmax(rows[:, :3].double(), dim=1)
    (table,) = softmax_regressions(rows, targets, [1e-3])
    assert torch.allclose(class_probabilities(rows, table), targets, atol=0.01)


@pytest.mark.parametrize("num_classes", [2, 3, 5])
@pytest.mark.parametrize("known", [1, 2])
def test_classes_that_nobody_taught_get_next_to_nothing(num_classes, known):
    rows, labels = examples(known)
    (table,) = softmax_regressions(rows, one_hot(labels + num_classes - known, num_classes), [1.0])
    answers = class_probabilities(rows, table)
    assert bool(table.isfinite().all())
    assert torch.allclose(answers.sum(dim=1), torch.ones(len(rows), dtype=torch.float64))
    assert not answers[:, : num_classes - known].numel() or float(answers[:, : num_classes - known].max()) < 1e-9


def test_a_larger_penalty_gives_smaller_weights():
    rows, labels = examples(4)
    strict, loose = softmax_regressions(rows, one_hot(labels), (100.0, 0.1))
    assert float(strict[:-1].norm()) < float(loose[:-1].norm()) / 2


def test_rows_without_anything_learn_the_shares():
    rows, labels = torch.zeros(90, 4), torch.arange(90) % 3 // 2
    (table,) = softmax_regressions(rows, one_hot(labels, 2), [1.0])
    expected = torch.tensor([2 / 3, 1 / 3], dtype=torch.float64).expand(90, 2)
    assert torch.allclose(class_probabilities(rows, table), expected, atol=1e-2)


@pytest.mark.parametrize(("size", "num_classes"), [(1, 2), (37, 3), (4425, 6), (19_717, 10)])
def test_probabilities_are_the_softmax_whatever_the_rows_and_threads_beside(size, num_classes):
    scores = 8 * torch.randn(size, num_classes, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found, threads = probabilities(scores), torch.get_num_threads()
    assert torch.allclose(found, torch.softmax(scores, dim=1), atol=1e-15)
    assert torch.equal(torch.cat([probabilities(part) for part in scores.split(31)]), found)
    try:
        torch.set_num_threads(3)
        assert torch.equal(probabilities(scores), found)
    finally:
        torch.set_num_threads(threads)
