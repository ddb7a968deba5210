"""One training stays short enough to be followed."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "benchmarks" / "walk.py"


@pytest.mark.slow
def test_no_walk_is_longer_than_its_limit(tmp_path):
    page = tmp_path / "walk.md"
    done = subprocess.run([sys.executable, SCRIPT, "--page", page], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(program in page.read_text() for program in ("gcon train", "gcon predict", "NodeClassifier.fit"))
