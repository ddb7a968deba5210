"""The ledger in a file: many processes at once, killed ones, links and locks."""

import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from gcon.privacy import ledger_file
from gcon.privacy.budget import Budget, compose
from gcon.privacy.ledger import Outcome
from gcon.privacy.ledger_file import FileLedger

SOURCE = Path(ledger_file.__file__).parents[2]

# The children load the ledger without the rest of the package, which takes seconds to import.
CHILD = f"""
import sys, types
package = types.ModuleType("gcon")
package.__path__ = [{str(SOURCE / "gcon")!r}]
sys.modules["gcon"] = package
from gcon.errors import BudgetExceededError
from gcon.privacy.budget import Budget
from gcon.privacy.ledger import Kind, Outcome, Request
from gcon.privacy.ledger_file import FileLedger
path, times = sys.argv[1], int(sys.argv[2])
ledger = FileLedger(path, data_set="friendships")
print("ready", flush=True)
sys.stdin.readline()
for _ in range(times):
    try:
        cost = Budget(0.1, 1e-6)
        reservation = ledger.reserve(Request(kind=Kind.RELEASE, mechanism="m", purpose="p", cost=cost))
        print("granted", flush=True)
        ledger.settle(reservation, Outcome.RELEASED)
    except BudgetExceededError:
        print("refused", flush=True)
"""


@contextmanager
def children(path, *, number, times):
    command = [sys.executable, "-W", "error", "-c", CHILD, str(path), str(times)]
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(number)
    ]
    try:
        yield started
    finally:
        for child in started:
            child.kill()
            child.communicate()


def test_processes_cannot_overspend(path):
    with children(path, number=4, times=10) as started:  # all four may find no file, and make one
        for child in started:
            assert child.stdout.readline() == "ready\n"
        FileLedger(path).set_ceiling(Budget(2.5, 1e-3))
        for child in started:
            child.stdin.write("\n")
            child.stdin.flush()
        answers = "".join(child.communicate(timeout=60)[0] for child in started).split()
        assert [child.returncode for child in started] == [0] * 4
    ledger = FileLedger(path)
    assert answers.count("granted") == 25
    assert answers.count("refused") == 15
    assert ledger.total() == Budget(2.5, 2.5e-5)
    assert [entry.number for entry in ledger.entries()] == list(range(25))
    assert {entry.outcome for entry in ledger.entries()} == {Outcome.RELEASED}
    assert ledger.verify().lines == 2 + 50


@pytest.mark.parametrize("after", [1, 4, 9])
def test_a_killed_process_stays_charged_and_holds_nobody_up(path, after, release):
    with children(path, number=1, times=10**6) as (child,):
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline() == "ready\n"
        acknowledged = 0
        while acknowledged < after:
            assert child.stdout.readline() == "granted\n"
            acknowledged += 1
        child.send_signal(signal.SIGKILL)
        acknowledged += child.communicate()[0].count("granted\n")
    ledger = FileLedger(path)
    assert ledger.verify().ok
    assert acknowledged <= len(ledger.entries()) <= acknowledged + 1
    assert compose([Budget(0.1, 1e-6)] * len(ledger.entries())) == ledger.total()
    ledger.reserve(release())
    assert ledger.verify().ok


def test_a_link_to_the_file_shares_its_lock(path, tmp_path, release, small_ledger):
    small_ledger(path)
    (tmp_path / "folder").mkdir()
    link = tmp_path / "folder" / "link"
    link.symlink_to(path)
    FileLedger(link).reserve(release())
    assert FileLedger(path).total().epsilon == 4.0
    assert [file.name for file in link.parent.iterdir()] == ["link"]


def test_a_lock_file_that_was_removed_is_made_again(path, release, small_ledger):
    ledger = small_ledger(path)
    path.with_name(path.name + ".lock").unlink()
    ledger.reserve(release())
    assert path.with_name(path.name + ".lock").exists()
