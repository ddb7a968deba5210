"""Scores by hand and against scikit-learn; classes that the model does not know; one entry in the ledger."""

import json
import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from gcon.errors import InputError
from gcon.methods.calibration import calibration_error, reliability_bins
from gcon.methods.predictions import Predictions
from gcon.methods.scores import OTHER, score


def predictions(probabilities, names):
    rows = torch.tensor(probabilities, dtype=torch.float64)
    return Predictions(classes=rows.argmax(dim=1), probabilities=rows, class_names=names, access="none")


def everybody(count):
    return torch.ones(count, dtype=torch.bool)


def test_by_hand():
    found = score(
        predictions([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.3, 0.7]], ("cat", "dog")),
        torch.tensor([0, 1, 1, 1]),
        everybody(4),
    )
    assert found.micro_f1 == 0.75
    assert found.recall == {"cat": 1.0, "dog": pytest.approx(2 / 3)}
    assert found.balanced_accuracy == pytest.approx(5 / 6)
    assert found.macro_f1 == pytest.approx((2 / 3 + 0.8) / 2)
    assert found.confusion == {"cat": {"cat": 1, "dog": 0}, "dog": {"cat": 1, "dog": 2}}
    assert found.log_loss == pytest.approx(-(math.log(0.9) + math.log(0.4) + math.log(0.8) + math.log(0.7)) / 4)
    # Each confidence has a group of its own: 0.9, 0.6 (wrong), 0.8, 0.7.
    assert found.expected_calibration_error == pytest.approx((0.1 + 0.6 + 0.2 + 0.3) / 4)


def test_confidences_of_one_group_are_averaged_before_they_are_compared():
    sure = predictions([[1.0, 0.0]] * 20, (0, 1))
    assert score(sure, torch.zeros(20, dtype=torch.int64), everybody(20)).expected_calibration_error == 0
    assert score(sure, torch.tensor([0, 1] * 10), everybody(20)).expected_calibration_error == 0.5


def test_the_calibration_error_is_the_reports():
    rows = torch.rand(200, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).softmax(dim=1)
    labels = torch.randint(3, (200,), generator=torch.Generator().manual_seed(2))
    groups = reliability_bins(rows, labels)
    assert {group.count for group in groups} == {20}
    assert score(predictions(rows.tolist(), (0, 1, 2)), labels, everybody(200)).expected_calibration_error == (
        calibration_error(groups)
    )


def test_a_class_that_the_model_does_not_know_is_always_wrong():
    found = score(predictions([[0.9, 0.1], [0.1, 0.9]], ("a", "b")), torch.tensor([0, -1]), everybody(2))
    assert found.micro_f1 == 0.5
    assert found.recall == {"a": 1.0, OTHER: 0.0}
    assert found.balanced_accuracy == 0.5
    assert found.macro_f1 == pytest.approx(1 / 3)  # a, b and the other class
    assert found.confusion == {"a": {"a": 1, "b": 0}, OTHER: {"a": 0, "b": 1}}
    assert found.log_loss == math.inf


def test_only_the_nodes_of_the_mask_count():
    found = predictions([[0.9, 0.1], [0.9, 0.1], [0.2, 0.8]], ("a", "b"))
    labels = torch.tensor([0, 1, 1])
    masked = score(found, labels, torch.tensor([True, False, True]))
    assert (masked.micro_f1, masked.confusion["b"]) == (1.0, {"a": 0, "b": 1})
    with pytest.raises(InputError, match=r"^mask"):
        score(found, labels, torch.zeros(3, dtype=torch.bool))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(2, 5))
def test_against_scikit_learn(seed, count, classes):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(classes), count)
    labels = rng.integers(0, classes, count)
    found = score(predictions(shares.tolist(), tuple(range(classes))), torch.from_numpy(labels), everybody(count))
    answers = shares.argmax(axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # answers of a class that no label has
        balanced = metrics.balanced_accuracy_score(labels, answers)
    assert found.micro_f1 == pytest.approx(metrics.f1_score(labels, answers, average="micro"))
    assert found.macro_f1 == pytest.approx(metrics.f1_score(labels, answers, average="macro", zero_division=0))
    assert found.balanced_accuracy == pytest.approx(balanced)
    assert found.log_loss == pytest.approx(metrics.log_loss(labels, shares, labels=list(range(classes))))
    assert sum(sum(row.values()) for row in found.confusion.values()) == count
    assert 0 <= found.expected_calibration_error <= 1


def test_without_test_nodes_nothing_is_opened_or_recorded(run, tmp_path):
    """That there is nobody to score is public: it is told, and not found out inside a gate."""
    assert run("data", "make", "--out", tmp_path, "--nodes", 200, "--quiet")[0] == 0
    files = ["--edges", tmp_path / "edges.csv", "--nodes", tmp_path / "nodes.csv"]
    assert run("train", *files, "--epsilon", 1, "--out", tmp_path / "model", "--quiet")[0] == 0
    (tmp_path / "nodes.csv").write_text((tmp_path / "nodes.csv").read_text().replace(",test,", ",,"))
    before = (tmp_path / "edges.csv.ledger").read_bytes()
    for more in ([], ["--access", "own-edges"], ["--access", "own-edges", "--paid", 1]):
        code, out, _ = run("evaluate", tmp_path / "model", *files, *more, "--json")
        assert (code, json.loads(out)["error"]) == (2, "InputError")
    assert (tmp_path / "edges.csv.ledger").read_bytes() == before


def test_access_none_opens_no_edges_file(run, tmp_path):
    assert run("data", "make", "--out", tmp_path, "--nodes", 200, "--quiet")[0] == 0
    edges, nodes = ["--edges", tmp_path / "edges.csv"], ["--nodes", tmp_path / "nodes.csv"]
    assert run("train", *edges, *nodes, "--epsilon", 1, "--out", tmp_path / "model", "--quiet")[0] == 0
    whole = run("evaluate", tmp_path / "model", *edges, *nodes, "--json")
    (tmp_path / "edges.csv").unlink()
    assert run("evaluate", tmp_path / "model", *edges, *nodes, "--json") == whole
    assert run("evaluate", tmp_path / "model", *nodes, "--json") == whole


FIELDS = {"micro_f1", "macro_f1", "balanced_accuracy", "log_loss", "expected_calibration_error", "recall", "confusion"}


def test_the_verb_gives_all_scores_in_one_entry_and_a_paid_count_alone(run, tmp_path):
    assert run("data", "make", "--out", tmp_path, "--nodes", 200, "--quiet")[0] == 0
    files = ["--edges", tmp_path / "edges.csv", "--nodes", tmp_path / "nodes.csv"]
    assert run("train", *files, "--epsilon", 1, "--out", tmp_path / "model", "--quiet")[0] == 0
    verb = ["evaluate", tmp_path / "model", *files]
    free = json.loads(run(*verb, "--json")[1])
    own = json.loads(run(*verb, "--access", "own-edges", "--json")[1])
    paid = json.loads(run(*verb, "--access", "own-edges", "--paid", 1, "--json")[1])
    common = {"access", "nodes", "publishable", "note"}
    assert set(free) == set(own) == FIELDS | common
    assert (free["publishable"], own["publishable"]) == (True, False)
    assert "Do not publish" in own["note"]
    assert set(paid) == common | {"micro_f1", "standard_deviation", "epsilon"}
    entries = json.loads(run("ledger", "show", tmp_path / "edges.csv.ledger", "--json")[1])["entries"]
    assert [entry["kind"] for entry in entries] == ["release", "diagnostic", "release"]
    assert "macro-F1" in run(*verb)[1]
    assert "macro-F1" not in run(*verb, "--access", "own-edges", "--paid", 1)[1]
