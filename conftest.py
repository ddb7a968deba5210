"""Settings for all tests, and the command line in this process."""

import ctypes
import gc
import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# A slow machine is not a failure: examples have no deadline.
settings.register_profile("gcon", deadline=None)
settings.load_profile("gcon")

MARK = "GCON_TESTS"
PR_SET_PDEATHSIG = 1
SECONDS, SECONDS_IF_SLOW = 120, 600


def pytest_configure(config):
    """No process outlives the suite, even a killed one: see tests/watchdog.py."""
    if sys.platform != "linux":
        return
    kernel = ctypes.CDLL(None)
    # A fork has the environment that this process began with, which may lack the mark.
    os.register_at_fork(after_in_child=lambda: kernel.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
    if hasattr(config, "workerinput"):
        return  # a worker of a parallel run, which has the mark of the suite
    without = dict(os.environ)
    without.pop(MARK, None)
    os.environ[MARK] = secrets.token_hex(16)
    command = [
        sys.executable,
        "-I",
        "-S",
        Path(__file__).parent / "tests" / "watchdog.py",
        f"{MARK}={os.environ[MARK]}",
    ]
    watchdog = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, env=without)
    os.register_at_fork(after_in_child=watchdog.stdin.close)  # only this process holds it open

    def end():
        watchdog.stdin.close()
        watchdog.wait()

    config.add_cleanup(end)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Thousands of tests are collected and kept: looking for garbage meanwhile would take a quarter of that time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()  # nor is it looked for among them later
        gc.enable()


def pytest_collection_modifyitems(items):
    """Every test has a time limit, kept by pytest-timeout."""
    for item in items:
        if item.get_closest_marker("timeout") is None:
            slow = item.get_closest_marker("slow") is not None
            item.add_marker(pytest.mark.timeout(SECONDS_IF_SLOW if slow else SECONDS))


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Matrices are tiny here: a second thread only waits for the first."""
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def state_home(tmp_path_factory):
    """Where users' state folders are in tests."""
    return tmp_path_factory.mktemp("state")


@pytest.fixture(autouse=True)
def own_state(state_home, monkeypatch):
    """Every test is an operator of its own: what other tests did with equal edges is nothing to it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(state_home / secrets.token_hex(8)))


@pytest.fixture
def interrupts():
    """Ctrl-C works here, and in processes started here, even where the suite's caller ignores it, as in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def run(capsys, monkeypatch):
    """Run `gcon ...` in this process; returns exit code, standard output and standard error."""
    from gcon.cli import app as cli  # tests on a GPU machine, which lacks its libraries, do without

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["gcon", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        printed = capsys.readouterr()
        return stopped.value.code, printed.out, printed.err

    return call
