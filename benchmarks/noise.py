"""Exactly rounded real noise against float64 noise that is rounded afterwards, side by side.

    .venv/bin/python benchmarks/noise.py [--quick]

A million numbers each, from the operating system's generator, with 4096 lattice points per scale; normal and Laplace noise.
Exits with 1 if exact noise takes more than 5 times as long.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from gcon.mechanisms.samplers.rounded import SPACING, rounded_noise
from gcon.privacy.randomness import SystemRandomness
from gcon_lab.mechanisms.samplers import laplaces, rounded_laplace, standard_normals

NUMBERS, SCALE, MOST = 1_000_000, 6.613, 5.0


def seconds(work: Callable[..., Tensor], *arguments: object, **options: object) -> float:
    """How long one run takes."""
    start = time.perf_counter()
    work(*arguments, **options)
    return time.perf_counter() - start


def added(draw: Callable[..., Tensor], values: Tensor) -> Tensor:
    """Float64 noise, added and then rounded."""
    noisy, spacing = values + SCALE * draw(SystemRandomness(), NUMBERS), SPACING * math.ulp(SCALE)
    return (noisy / spacing).round() * spacing


def main() -> int:
    """Print the ratios; 1 if a threshold is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    repeats = 5 if parser.parse_args().quick else 25
    source, values = SystemRandomness(), torch.rand(NUMBERS, dtype=torch.float64)
    spacing, passed = SPACING * math.ulp(SCALE), True
    print(f"{NUMBERS:,} numbers, {torch.get_num_threads()} threads, {repeats} repeats")
    for name, exact, plain in (
        ("normal", rounded_noise, standard_normals),
        ("Laplace", rounded_laplace, laplaces),
    ):
        times: dict[str, list[float]] = {"exact": [], "rounded": [], "bare": []}
        for _ in range(repeats):  # in turn: other work on the machine hits all alike
            times["exact"].append(seconds(exact, source, values, scale=SCALE, spacing=spacing))
            times["rounded"].append(seconds(added, plain, values))
            times["bare"].append(seconds(plain, source, NUMBERS))
        middle = {kind: float(np.median(some)) for kind, some in times.items()}
        spread = {kind: float(np.std(some)) for kind, some in times.items()}
        for kind, words in (
            ("exact", "real noise, rounded exactly"),
            ("rounded", "float64 noise, added and rounded"),
            ("bare", "float64 noise alone"),
        ):
            print(f"  {name:8} {words:34} {1e3 * middle[kind]:8.1f} ms  +- {1e3 * spread[kind]:.1f}")
        ratio = middle["exact"] / middle["bare"]
        print(f"  {name:8} exact / float64 alone: {ratio:.2f} (at most {MOST:g})")
        passed &= ratio <= MOST
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
