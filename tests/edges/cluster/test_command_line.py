"""`gcon train` on a cluster: the same model as on one machine, refused before anything is charged where it cannot work."""

import pytest

from gcon.release.store import load_release


@pytest.fixture
def files(run, tmp_path):
    assert run("data", "make", "--out", tmp_path, "--nodes", 150, "--quiet")[0] == 0
    (tmp_path / "large").mkdir()
    plain = ("--nodes", tmp_path / "nodes.csv", "--edges", tmp_path / "edges.csv")
    assert run("data", "convert", *plain, "--out", tmp_path / "large", "--format", "csr", "--quiet")[0] == 0
    large = tmp_path / "large"
    return ("--nodes", large / "nodes.parquet", "--features", large / "features.npy", "--edges", large / "edges.csr")


@pytest.mark.slow
def test_workers_train_the_same_model(run, files, tmp_path):
    weights = []
    for number, where in enumerate(((), ("--workers", 2))):
        out = tmp_path / f"model{number}"
        options = ("--method", "paper", "--epsilon", 1, "--seed", 5, "--ledger", tmp_path / "ledger")
        code, _, errors = run("train", *files, *options, *where, "--out", out, "--quiet")
        assert code == 0, errors
        weights.append(load_release(out).weights)
    assert weights[0].abs().sum() > 0
    assert (weights[0] == weights[1]).all()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (("--workers", 2, "--scheduler", "tcp://127.0.0.1:1"), "exclude each other"),
        (("--workers", 2, "--device", "cuda"), "must be cpu"),
        (("--workers", 0), "workers"),
        (("--scheduler", "nowhere"), "scheduler"),
    ],
)
def test_what_cannot_work_is_refused_and_nothing_is_charged(run, files, tmp_path, wrong, words):
    code, _, errors = run("train", *files, "--epsilon", 1, "--out", tmp_path / "model", *wrong)
    assert code == 2
    assert words in errors
    assert not (tmp_path / "model").exists()
    assert not (tmp_path / "large" / "edges.csr.ledger").exists()


def test_a_cluster_wants_a_store(run, tmp_path, files):
    plain = ("--nodes", tmp_path / "nodes.csv", "--edges", tmp_path / "edges.csv")
    code, _, errors = run("train", *plain, "--epsilon", 1, "--out", tmp_path / "model", "--workers", 2)
    assert code == 2
    assert "edge store" in errors
