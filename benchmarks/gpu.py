"""Ten propagation steps, a statistic and a solve on one GPU, against torch's own sparse product and the memory's limits.

    python benchmarks/gpu.py [--nodes 111059956 --entries 3200000000] [--json FILE]

The graph is made on the device (gcon_lab.bench.graphs), with neighbours all over the place. In one run are measured

- the bandwidth of a copy, and of a gather of random rows of the same width: the physical limits;
- one step of 16 columns, ours and torch's CSR product in float64 (which gets values and 64-bit columns: more than 2^31 entries);
- everything: class sums after ten steps with their noise, and objective perturbation on the aggregates of the labelled nodes.

Exits with 1 if a step is less than twice as fast as torch's, or below 40 % of the random gather's bandwidth, or if everything
takes 8 s or 48 GiB or more.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl

from gcon.edges.fixed_point import Walk
from gcon.edges.kernels import multiply_triton
from gcon.edges.source import RowBlock
from gcon_lab.bench.graphs import made_edges
from gcon_lab.bench.large_release import COLUMNS, RESTART, large_release

GIB = 2**30


def seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """The median, after one run to warm up."""
    work()
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


@triton.jit  # type: ignore[untyped-decorator]
def _gather_kernel(places, rows, out, count, ENTRIES: tl.constexpr, LANES: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    program = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, LANES)
    spots = program * ENTRIES + tl.arange(0, ENTRIES)
    nodes = tl.load(places + spots, mask=spots < count, other=0).to(tl.int64)
    found = tl.load(rows + nodes[:, None] * LANES + lanes[None, :])
    tl.store(out + program * LANES + lanes, tl.sum(found, axis=0))


def gather_bandwidth(num_nodes: int, device: torch.device) -> float:
    """Bytes of rows per second that a plain kernel gathers at random places (the places themselves not counted)."""
    count, width = 2**29, 256
    rows = torch.ones(num_nodes, COLUMNS, dtype=torch.int64, device=device)
    places = torch.randint(num_nodes, (count,), dtype=torch.int32, device=device)
    out = torch.empty(count // width, COLUMNS, dtype=torch.int64, device=device)
    best = 0.0
    for warps in (1, 2, 4, 8):
        took = seconds(
            lambda warps=warps: _gather_kernel[(count // width,)](  # type: ignore[misc]
                places, rows, out, count, ENTRIES=width, LANES=COLUMNS, num_warps=warps
            )
        )
        best = max(best, count * COLUMNS * 8 / took)
    return best


def copy_bandwidth(device: torch.device) -> float:
    """Bytes read and written per second by a copy."""
    source = torch.ones(2**30, dtype=torch.int64, device=device)
    target = torch.empty_like(source)
    return 2 * source.numel() * 8 / seconds(lambda: target.copy_(source))


def step_seconds(block: RowBlock) -> float:
    """One step of 16 columns."""
    device = block.columns.device
    current = torch.randint(-(2**48), 2**48, (block.num_nodes, COLUMNS), device=device)
    origin, out = torch.randn(current.shape, device=device), torch.empty_like(current)
    walk, scale = Walk(restart=RESTART), torch.full((COLUMNS,), 2.0**45, dtype=torch.float64, device=device)
    return seconds(lambda: multiply_triton.walk_step(block, current, origin, scale, walk=walk, out=out))


def torch_seconds(block: RowBlock) -> float | None:
    """The same step by torch in float64: one CSR product with the restart added; None if memory is too small.

    Self-loops are left out, and the values are all the same: both in torch's favour.
    """
    device = block.columns.device
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            matrix = torch.sparse_csr_tensor(
                block.row_pointers,
                block.columns.long(),
                torch.ones(len(block.columns), dtype=torch.float64, device=device),
                size=(block.num_nodes, block.num_nodes),
                check_invariants=False,
            )
        current, origin = (torch.randn(block.num_nodes, COLUMNS, dtype=torch.float64, device=device) for _ in range(2))
        return seconds(lambda: torch.addmm(origin, matrix, current, beta=RESTART, alpha=1 - RESTART), repeats=3)
    except torch.cuda.OutOfMemoryError:
        return None


def main() -> int:
    """Measure, print, and say whether the targets are met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=111_059_956)
    parser.add_argument("--entries", type=int, default=3_200_000_000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    device = torch.device("cuda", 0)
    found: dict[str, Any] = {"device": torch.cuda.get_device_name(device), "nodes": arguments.nodes, "columns": COLUMNS}
    found["copy TB/s"] = copy_bandwidth(device) / 1e12
    found["random gather TB/s"] = gather_bandwidth(arguments.nodes, device) / 1e12
    torch.cuda.empty_cache()
    start = time.perf_counter()
    edges = made_edges(arguments.nodes, arguments.entries, "cuda")
    torch.cuda.synchronize()
    print(f"graph made in {time.perf_counter() - start:.1f} s", flush=True)
    block = next(edges.blocks(device))
    found["entries"] = len(block.columns)
    torch.cuda.empty_cache()
    found["step s"] = step_seconds(block)
    gathered = COLUMNS * 8 * len(block.columns)
    found["step TB/s"] = gathered / found["step s"] / 1e12
    found["of the random gather"] = found["step TB/s"] / found["random gather TB/s"]
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    found |= large_release(edges, device)
    found["peak GiB"] = torch.cuda.max_memory_allocated() / GIB
    torch.cuda.empty_cache()
    found["torch CSR step s"] = torch_seconds(block)
    found["torch over ours"] = found["torch CSR step s"] / found["step s"] if found["torch CSR step s"] else None
    total = found["ten steps, class sums, noise, s"] + found["ten steps again, perturb, solve, s"]
    found["all s"] = total
    for name, value in found.items():
        print(f"{name:45s} {value:,.4g}" if isinstance(value, float) else f"{name:45s} {value}")
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")
    faster = found["torch over ours"] is None or found["torch over ours"] >= 2
    good = faster and found["of the random gather"] >= 0.4 and total < 8 and found["peak GiB"] < 48
    print("all targets met" if good else "a target is MISSED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
