"""What a long ledger costs a training (open, check, reserve, settle), and reading all of it: seconds and memory.

    .venv/bin/python benchmarks/ledger.py --entries 100000

The first use of a ledger without a checkpoint reads every line, and writes one.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from gcon.mechanisms.mixed_release import mixed_plan
from gcon.privacy.budget import Budget
from gcon.privacy.ledger import Kind, Outcome, Request
from gcon.privacy.ledger_file import FileLedger
from gcon.privacy.ledger_lines import FORMAT, HEAD_OF, VERSION, Chain, write_request


def write_ledger(path: Path, entries: int, request: Request) -> None:
    """A ledger of released entries, all alike."""
    chain, fields, time_ = Chain(), write_request(request), "2030-01-01T00:00:00+00:00"
    with path.open("wb") as file:

        def add(content: dict[str, object]) -> None:
            line = chain.render(content)
            chain.last_hash = line.partition(b'"hash":"')[2][:64].decode()
            chain.lines += 1
            file.write(line)

        add({"line": "header", "format": FORMAT, "version": VERSION, "data_set": "made up", "created": time_})
        for number in range(entries):
            add({"line": "reserve", "number": number, "time": time_, "request": fields})
            add({"line": "settle", "number": number, "time": time_, "outcome": "released"})
    path.with_name(f"{path.name}.head").write_bytes(HEAD_OF.format(chain).encode())


def timed(words: str, work: Callable[[], object]) -> None:
    """Run it, and print how long it took."""
    begun = time.perf_counter()
    work()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{words:40s} {time.perf_counter() - begun:7.2f} s, at most {memory} MB so far", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=100_000)
    given = parser.parse_args()
    plan = mixed_plan(1.0, 1e-5, first_share=0.05, answer_share=0.05, method="moments")
    request = Request(
        kind=Kind.RELEASE,
        mechanism=plan.name,
        purpose="node classification",
        cost=Budget(1.0, 1e-5),
        plan=plan.public_record(()),
    )

    def training(path: Path) -> None:
        ledger = FileLedger(path)
        ledger.check(request)
        ledger.settle(ledger.reserve(request), Outcome.RELEASED)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger"
        write_ledger(path, given.entries, request)
        print(f"{given.entries} entries, {path.stat().st_size / 2**20:.0f} MiB")
        timed("a training, without a checkpoint", lambda: training(path))
        timed("a training", lambda: training(path))
        timed("all entries (show)", lambda: FileLedger(path).overview())
        timed("verify", lambda: FileLedger(path).verify())


if __name__ == "__main__":
    main()
