"""What memory alone allows: random rows of 16 whole numbers, read and added, nothing else; on all cores.

    .venv/bin/python benchmarks/gather.py

The rows are those of walks over 250 thousand, 2.5 million and 25 million nodes: what `gcon bench` measures growth with.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numba import njit

from gcon.edges.kernels.multiply_numba import _fetch

ROWS, PARTS, REPEATS = 100_000_000, 32, 3


@njit(nogil=True)  # type: ignore[untyped-decorator]
def gather(places: Any, rows: Any, total: Any) -> None:
    """Add the rows at these places."""
    width = rows.shape[1]
    for entry in range(len(places)):
        _fetch(rows, np.int64(places[min(entry + 16, len(places) - 1)]))
        for column in range(width):
            total[column] += rows[places[entry], column]


def main() -> int:
    """Measure all three sizes."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    threads, generator = os.cpu_count() or 1, np.random.default_rng(0)
    for count in (250_000, 2_500_000, 25_000_000):
        rows = torch.ones(count, 16, dtype=torch.int64).numpy()
        parts = np.array_split(generator.integers(0, count, ROWS, dtype=np.int32), PARTS)
        gather(parts[0][:10], rows, np.zeros(16, np.int64))
        times = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(lambda part, rows=rows: gather(part, rows, np.zeros(16, np.int64)), parts))
            times.append(time.perf_counter() - start)
        print(f"{count:>11,} nodes: {1e9 * min(times) / ROWS:6.1f} ns per row (best of {REPEATS}, {threads} threads)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
