"""Features that do not fit into memory are checked, encoded and predicted from all the same."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
SHAPE = (600_000, 128)  # 307 MB


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    """Zeros: they take no room on disk."""
    path = tmp_path_factory.mktemp("large") / "x.npy"
    np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=SHAPE)
    return path


def run(features, out, room):
    threads = dict.fromkeys(("OMP_NUM_THREADS", "POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    command = [sys.executable, str(HERE / "bounded_run.py"), str(features), str(out), str(room)]
    return subprocess.run(
        command, env={**os.environ, **threads}, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is measured as Linux tells it")
def test_from_the_file_to_the_predictions_in_less_memory_than_the_features_take(features, tmp_path):
    done = run(features, tmp_path / "labels.csv", 200 * 2**20)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) == SHAPE[0]
    assert [entry.name for entry in tmp_path.iterdir()] == ["labels.csv"]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is measured as Linux tells it")
def test_the_limit_is_one(features, tmp_path):
    """With less room than one batch needs it fails: the test above could fail too."""
    done = run(features, tmp_path / "labels.csv", 20 * 2**20)
    assert done.returncode != 0
    assert "alloc" in done.stderr or "MemoryError" in done.stderr
