"""The same without the command line's libraries, which a machine with a GPU may lack: python -m gcon_lab.bench --help."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from gcon.errors import InputError
from gcon_lab.bench.page import read_results, table_text
from gcon_lab.bench.run import WORKERS, WORKS, run_tasks, tasks
from gcon_lab.bench.training import FEATURES


def main() -> int:
    """Measure and print; the tables and pictures are made by `gcon bench --kept`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", choices=WORKS, default="walk")
    parser.add_argument("--engines", default="cpu")
    parser.add_argument("--entries", default="1e5,1e6,1e7")
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--features", type=int, default=FEATURES)
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--no-rivals", action="store_true")
    parser.add_argument("--scratch", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    try:
        wanted = tasks(
            given.engines.split(","),
            [int(float(size)) for size in given.entries.split(",")],
            nodes=given.nodes,
            rivals=not given.no_rivals,
            work=given.work,
            features=given.features,
            workers=given.workers,
        )
    except InputError as error:
        parser.error(str(error))

    def told(words: str) -> None:
        sys.stderr.write(f"{words}\n")
        sys.stderr.flush()

    with tempfile.TemporaryDirectory(dir=given.scratch) as scratch:
        for _ in run_tasks(wanted, out=given.out, scratch=Path(scratch), progress=told, repeats=given.repeats):
            pass
    sys.stdout.write(table_text(read_results(given.out)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
