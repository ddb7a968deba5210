"""No process outlives the suite, even a killed one."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1]
STARTS = """
import os, subprocess, sys, time

def test_starts_processes():
    child = os.fork()
    if child == 0:
        time.sleep(600)
        os._exit(0)
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    with open("numbers", "w") as file:
        file.write(f"{child} {other.pid} {os.getpid()}")
    os.rename("numbers", "started")
    if "GO_ON" not in os.environ:
        time.sleep(600)
"""


def wait_for(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "this took too long"
        time.sleep(0.02)


def runs(number):
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
@pytest.mark.parametrize(
    ("ending", "workers"),
    [("killed", 1), *(pytest.param(ending, 0, marks=pytest.mark.slow) for ending in ("killed", "done"))],
)
def test_a_suite_leaves_no_process(tmp_path, ending, workers):
    (tmp_path / "test_inner.py").write_text(STARTS)
    environment = os.environ | {"PYTHONPATH": str(HERE)} | ({"GO_ON": "1"} if ending == "done" else {})
    command = [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", "-n", str(workers)]
    suite = subprocess.Popen([*command, "test_inner.py"], cwd=tmp_path, env=environment)
    try:
        wait_for(lambda: (tmp_path / "started").exists() or suite.poll() is not None)
        numbers = [int(number) for number in (tmp_path / "started").read_text().split()]
        if ending == "killed":
            assert all(map(runs, numbers))
            suite.kill()
        suite.wait(60)
        wait_for(lambda: not any(map(runs, numbers)))
    finally:
        suite.kill()
        suite.wait()
