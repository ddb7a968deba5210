"""Who is killed on a cluster: a training goes on with the same bits, or ends with one message that says what it cost."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from gcon.edges.cluster import edges as cluster_module
from gcon.errors import PrivateComputationError
from gcon.privacy.account import Account
from gcon.release.store import load_release


@contextmanager
def scheduler_and_workers(folder):
    """Two workers and their scheduler, each a process of its own that nobody starts again."""
    place, processes = folder / "scheduler.json", []
    folder.mkdir()

    def start(name, *arguments):
        command = [sys.executable, "-m", f"distributed.cli.dask_{name}", "--scheduler-file", place, *arguments]
        command += ["--host", "127.0.0.1", "--no-dashboard", "--dashboard-address", "127.0.0.1:0"]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        with (folder / "log").open("a") as log:
            made = subprocess.Popen([str(each) for each in command], stdout=log, stderr=log, env=environment)
        processes.append(made)
        return made

    try:
        scheduler = start("scheduler", "--port", 0)
        workers = [start("worker", "--nthreads", 1, "--no-nanny", "--local-directory", folder) for _ in range(2)]
        while not place.exists():
            time.sleep(0.1)
        address = json.loads(place.read_text())["address"]
        with cluster_module.connected(address, None) as client:
            client.wait_for_workers(2, timeout=60)
        yield address, {"one": workers[:1], "all": workers, "scheduler": [scheduler]}
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.fixture
def files(run, tmp_path):
    (tmp_path / "large").mkdir()
    assert run("data", "make", "--out", tmp_path, "--nodes", 150, "--quiet")[0] == 0
    plain = ("--nodes", tmp_path / "nodes.csv", "--edges", tmp_path / "edges.csv")
    assert run("data", "convert", *plain, "--out", tmp_path / "large", "--format", "csr", "--quiet")[0] == 0
    large = tmp_path / "large"
    return ("--nodes", large / "nodes.parquet", "--features", large / "features.npy", "--edges", large / "edges.csr")


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before the charge", "after it"])
@pytest.mark.parametrize("lost", ["one", "all", "scheduler"])
def test_who_is_killed(run, files, tmp_path, monkeypatch, lost, when):
    """Killed at the moment before, or after, the ledger is charged; edges are read after that."""
    monkeypatch.setattr(cluster_module, "WORKER_SECONDS", 2)
    monkeypatch.setattr(cluster_module, "CONNECT_SECONDS", 2)
    enter, ledger, model = Account.__enter__, tmp_path / "edges.csv.ledger", tmp_path / "model"
    options = ("--epsilon", 1, "--seed", 5, "--method", "paper", "--json")
    with scheduler_and_workers(tmp_path / "cluster") as (address, processes):

        def kill():
            for process in processes[lost]:
                process.send_signal(signal.SIGKILL)
                process.wait()

        def killing(account):
            if when == "after it":
                enter(account)
                kill()
                return account
            kill()
            return enter(account)

        monkeypatch.setattr(Account, "__enter__", killing)
        there = set(tmp_path.iterdir()) | {ledger, *(tmp_path / f"{ledger.name}.{each}" for each in ("head", "lock"))}
        code, said, _ = run("train", *files, *options, "--scheduler", address, "--out", model)
    monkeypatch.setattr(Account, "__enter__", enter)
    if lost == "one":
        assert code == 0, said
        assert run("train", *files, *options, "--out", tmp_path / "here")[0] == 0
        weights = [load_release(folder).weights for folder in (model, tmp_path / "here")]
        assert weights[0].abs().sum() > 0
        assert torch.equal(*weights)
        return
    answer = json.loads(said)
    assert answer["exit_code"] == code
    assert set(tmp_path.iterdir()) <= there
    if when == "before the charge":
        assert code == 2
        assert "Nothing was charged" in answer["message"]
        assert "scheduler: must" in answer["message"]
        assert not ledger.exists() or "reserve" not in ledger.read_text()
        return
    assert code == 7
    assert f"entry 0 (withheld) of {ledger}; it stays spent" in answer["message"]
    assert "scheduler and workers are still there" in answer["message"]
    assert answer["charged"][0]["entries"] == [{"number": 0, "outcome": "withheld"}]


def test_without_workers_it_waits_once():
    """A minute, in which others may be started: not a minute for every attempt."""

    class Nobody:
        asked = 0

        def wait_for_workers(self, count, timeout):
            self.asked += 1
            raise TimeoutError

    client = Nobody()
    with pytest.raises(PrivateComputationError):
        cluster_module.ClusterEdges("tcp://nowhere:1", Path("edges.csr"), 3)._coordinated(client, None, {})
    assert client.asked == 1
