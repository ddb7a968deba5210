"""Another ledger, or a new one, does not start from zero without a word."""

import pytest


@pytest.fixture
def trained(run, tmp_path):
    run("data", "make", "--out", tmp_path, "--nodes", 60, "--classes", 2)
    files = ["--edges", tmp_path / "edges.csv", "--nodes", tmp_path / "nodes.csv", "--method", "paper", "--hidden", 0]
    call = ["train", *files, "--epsilon", 1, "--quiet", "--out"]
    assert run(*call, tmp_path / "first")[0] == 0
    return call


def test_a_ledger_that_was_deleted_is_missed(run, trained, tmp_path):
    for path in tmp_path.glob("edges.csv.ledger*"):
        path.unlink()
    code, _, said = run(*trained, tmp_path / "second")
    assert code == 0
    assert "first says that epsilon 1 was spent on 'edges' by then, but the ledger" in said
    assert "knows of 0" in said


def test_another_ledger_than_that_of_the_edges_is_told(run, trained, tmp_path):
    _, _, said = run(*trained, tmp_path / "second", "--ledger", tmp_path / "mine")
    assert "What was spent there is not counted here" in said


def test_the_right_ledger_is_no_reason_to_warn(run, trained, tmp_path):
    assert run(*trained, tmp_path / "second") == (0, "", "")
