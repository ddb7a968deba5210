"""Ten propagation steps on the processor against the best of torch, scipy and PyTorch Geometric, in time and memory.

    .venv/bin/python benchmarks/propagation.py [--nodes 10000000 --entries 200000000] [--out FOLDER]

Each runs in a process of its own on one graph (gcon_lab.bench), 16 columns, float64 or whole numbers of 64 bits; the best of two
runs counts. A rival that runs out of memory is reported so. Exits with 1 if ours is less than 1.5 times as fast as the best,
or needs 1.5 times the memory of the graph's rows and two node arrays, or more.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from gcon_lab.bench.contenders import COLUMNS
from gcon_lab.bench.run import run_tasks, tasks


def main() -> int:
    """Measure, print, and say whether the targets are met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=10_000_000)
    parser.add_argument("--entries", type=int, default=200_000_000)
    parser.add_argument("--only", nargs="*", help="these rivals alone, by the names that are printed")
    parser.add_argument("--out", type=Path, help="keep the results there, and those that are there already")
    arguments = parser.parse_args()
    wanted = tasks(["cpu"], [arguments.entries], nodes=arguments.nodes, rivals=True)
    if arguments.only:
        wanted = [task for task in wanted if task.contender in ("gcon", *arguments.only)]
    with tempfile.TemporaryDirectory() as scratch:
        out = arguments.out or Path(scratch) / "out"
        results = list(run_tasks(wanted, out=out, scratch=Path(scratch) / "graphs", progress=lambda words: None))
    for each in results:
        numbers = (
            f"{each['seconds']:8.2f} s {each['peak_bytes'] / 2**30:6.2f} GiB" if "seconds" in each else each["failed"]
        )
        print(f"{each['contender']:16s} {numbers}")
    ours = next(each for each in results if each["contender"] == "gcon")
    best = min(each["seconds"] for each in results if each["contender"] != "gcon" and "seconds" in each)
    rows = 4 * arguments.entries + 8 * arguments.nodes
    allowed = 1.5 * (rows + 2 * 8 * COLUMNS * arguments.nodes)
    print(
        f"best rival over ours: {best / ours['seconds']:.2f}; memory over what is allowed: {ours['peak_bytes'] / allowed:.2f}"
    )
    good = best / ours["seconds"] >= 1.5 and ours["peak_bytes"] < allowed
    print("all targets met" if good else "a target is MISSED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
