"""The same without the command line's libraries: python -m gcon_lab.bench ENGINES ENTRIES OUT [REPEATS]."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from gcon_lab.bench.run import run_tasks, tasks

if __name__ == "__main__":
    engines, sizes, out, *more = sys.argv[1:]
    wanted = tasks(engines.split(","), [int(float(size)) for size in sizes.split(",")], nodes=None, rivals=True)
    with tempfile.TemporaryDirectory() as scratch:
        for result in run_tasks(
            wanted,
            out=Path(out),
            scratch=Path(scratch),
            progress=lambda words: None,
            repeats=int(more[0]) if more else 2,
        ):
            sys.stdout.write(f"{result}\n")
