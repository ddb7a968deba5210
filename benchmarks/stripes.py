"""What could make walks over far-apart rows faster: one step of 16 columns by variants of the processor's kernel, in turns.

    .venv/bin/python benchmarks/stripes.py [--nodes 10000000 --entries 200000000 --store FOLDER --turns 3 --only NAME ...]

A variant is the kernel's own source with some text replaced, or rows that lie elsewhere in memory; all must give the same bits.
The best of the turns counts, in seconds of the processor by all threads (other programs may run).
"""

from __future__ import annotations

import argparse
import importlib.util
import mmap
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from gcon.edges.fixed_point import Walk
from gcon.edges.kernels import multiply_numba
from gcon.edges.source import RowBlock
from gcon.edges.stored import StoredEdges
from gcon_lab.bench.contenders import COLUMNS, RESTART
from gcon_lab.bench.graphs import made_edges


class Variant(NamedTuple):
    """Text to replace in the kernel's source, and how the rows lie in memory."""

    replaced: tuple[tuple[str, str], ...] = ()
    place: str = "plain"


def _ahead(entries: int) -> tuple[str, str]:
    """So many neighbours are fetched ahead."""
    return "_AHEAD = 48", f"_AHEAD = {entries}"


ROW_BY_ROW, STRIPES = ("_FAR = 2**31", "_FAR = 2**60"), ("_FAR = 2**31", "_FAR = 2**10")
VARIANTS = {
    "as it is": Variant(),
    "row by row": Variant((ROW_BY_ROW,)),
    **{f"row by row, {ahead} ahead": Variant((ROW_BY_ROW, _ahead(ahead))) for ahead in (8, 16, 24, 32, 64, 96)},
    "stripes": Variant((STRIPES,)),
    "stripes of 2^19 nodes": Variant((STRIPES, ("_STRIPE = 2**20", "_STRIPE = 2**19"), ("ceil(1.6 *", "ceil(0.8 *"))),
    "stripes of 2^21 nodes": Variant((STRIPES, ("_STRIPE = 2**20", "_STRIPE = 2**21"))),
    "2^15 rows side by side": Variant((STRIPES, ("_TOGETHER = 2**17", "_TOGETHER = 2**15"))),
    "2^16 rows side by side": Variant((STRIPES, ("_TOGETHER = 2**17", "_TOGETHER = 2**16"))),
    "2^18 rows side by side": Variant((STRIPES, ("_TOGETHER = 2**17", "_TOGETHER = 2**18"))),
    "rows fetched 12 ahead": Variant((STRIPES, ("_ROWS_AHEAD, _OF_A_ROW = 6, 3", "_ROWS_AHEAD, _OF_A_ROW = 12, 3"))),
    "rows fetched 12 ahead, 6 of each": Variant(
        (STRIPES, ("_ROWS_AHEAD, _OF_A_ROW = 6, 3", "_ROWS_AHEAD, _OF_A_ROW = 12, 6"))
    ),
    "rows fetched 24 ahead, 6 of each": Variant(
        (STRIPES, ("_ROWS_AHEAD, _OF_A_ROW = 6, 3", "_ROWS_AHEAD, _OF_A_ROW = 24, 6"))
    ),
    "fetched past the caches": Variant((("number(0), number(3), number(1)", "number(0), number(0), number(1)"),)),
    "rows at multiples of 128 bytes": Variant(place="aligned"),
    "large pages": Variant(place="large pages"),
    "large pages, row by row": Variant((ROW_BY_ROW,), place="large pages"),
}


def built(name: str, replaced: tuple[tuple[str, str], ...], folder: Path) -> ModuleType:
    """The kernel with other text in it."""
    if not replaced:
        return multiply_numba
    assert multiply_numba.__file__ is not None
    source = Path(multiply_numba.__file__).read_text()
    for old, new in replaced:
        if old not in source:
            raise ValueError(f"{name}: the kernel has no {old!r} any more")
        source = source.replace(old, new)
    path = folder / f"variant_{len(list(folder.glob('*.py')))}.py"
    path.write_text(source)
    description = importlib.util.spec_from_file_location(path.stem, path)
    assert description is not None
    assert description.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(description)
    description.loader.exec_module(module)
    return module


def placed(rows: Tensor, place: str) -> Tensor:
    """A copy of the rows that lies somewhere else in memory."""
    if place == "plain":
        return rows
    memory = mmap.mmap(-1, rows.nbytes + 2**21, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if place == "large pages":
        memory.madvise(mmap.MADV_HUGEPAGE)
    found = np.frombuffer(memory, dtype=np.uint8)
    start = -found.ctypes.data % (2**21 if place == "large pages" else 128)
    copy = torch.from_numpy(found[start : start + rows.nbytes]).view(rows.dtype).view(rows.shape)
    return copy.copy_(rows)


def step_of(module: ModuleType, block: RowBlock, current: Tensor, origin: Tensor, out: Tensor) -> Callable[[], None]:
    """One step of a walk by one variant."""
    return lambda: module.walk_step(block, current, origin, walk=Walk(restart=RESTART), out=out)


def main() -> int:
    """Measure in turns, print, and insist on the same bits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=10_000_000)
    parser.add_argument("--entries", type=int, default=200_000_000)
    parser.add_argument(
        "--store", type=Path, help="an edge store (gcon_lab.bench.stores) instead of --nodes and --entries"
    )
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--only", nargs="*", choices=VARIANTS, default=list(VARIANTS))
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    edges = StoredEdges(arguments.store).load() if arguments.store else made_edges(arguments.nodes, arguments.entries)
    block = next(edges.blocks(torch.device("cpu")))
    rows = torch.randint(-(2**48), 2**48, (edges.num_nodes, COLUMNS), generator=torch.Generator().manual_seed(0))
    origin, out = torch.zeros(edges.num_nodes, COLUMNS, dtype=torch.float32), torch.empty_like(rows)
    names = list(dict.fromkeys(["as it is", *arguments.only]))
    times: dict[str, list[float]] = {name: [] for name in names}
    bits: dict[str, int] = {}
    print(f"{edges.num_nodes:,} nodes, {len(edges.columns):,} entries, {arguments.threads} threads", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        modules = {name: built(name, VARIANTS[name].replaced, Path(folder)) for name in names}
        for turn in range(1 + arguments.turns):
            for name in names:
                current = placed(rows, VARIANTS[name].place)
                step = step_of(modules[name], block, current, origin, out)
                start = time.process_time()
                step()
                if turn:  # the first compiles
                    times[name].append(time.process_time() - start)
                bits[name] = int(out.view(-1)[::1009].sum())
                del current, step
    usual = min(times["as it is"])
    for name in names:
        each = ", ".join(f"{seconds:.2f}" for seconds in times[name])
        print(f"{name:34s} {min(times[name]):6.2f} s  {usual / min(times[name]):5.2f} times as fast  ({each})")
    return 0 if len(set(bits.values())) == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
