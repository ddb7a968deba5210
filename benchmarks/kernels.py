"""Which kernel for the processor: one step of 16 columns by everything that could do it, on one graph, in turns.

    .venv/bin/python benchmarks/kernels.py [--nodes 1000000 --entries 20000000]

torch's product is Intel's MKL. suitesparse_graphblas is measured where it is installed. All compute in float64 or whole numbers
of 64 bits. The median of five turns counts.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
import torch

from gcon.edges.edge_list import EdgeList
from gcon.edges.fixed_point import Walk
from gcon.edges.kernels import multiply_numba, multiply_torch
from gcon_lab.bench.contenders import COLUMNS, RESTART
from gcon_lab.bench.graphs import made_edges


def contenders(edges: EdgeList) -> dict[str, Callable[[], object]]:
    """Name -> one step."""
    block = next(edges.blocks(torch.device("cpu")))
    current = torch.randint(-(2**48), 2**48, (edges.num_nodes, COLUMNS))
    out, walk = torch.empty_like(current), Walk(restart=RESTART)
    real = current.double()
    values = torch.ones(len(edges.columns), dtype=torch.float64)
    shape = (edges.num_nodes, edges.num_nodes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sparse = torch.sparse_csr_tensor(
            edges.row_pointers.int(), edges.columns, values, size=shape, check_invariants=False
        )
    matrix = scipy.sparse.csr_matrix((values.numpy(), edges.columns.numpy(), edges.row_pointers.numpy()), shape=shape)
    found: dict[str, Callable[[], object]] = {
        "ours: numba, whole numbers": lambda: multiply_numba.walk_step(block, current, current, walk=walk, out=out),
        "ours: torch, whole numbers": lambda: multiply_torch.walk_step(block, current, current, walk=walk, out=out),
        "torch CSR, float64": lambda: torch.addmm(real, sparse, real, beta=RESTART, alpha=1 - RESTART),
        "scipy CSR, float64": lambda: (1 - RESTART) * (matrix @ real.numpy()) + RESTART * real.numpy(),
    }
    try:
        found["SuiteSparse:GraphBLAS, float64"] = _graphblas(matrix, real.numpy())
    except (ImportError, OSError) as error:
        print(f"not measured: {error}")
    return found


def _graphblas(matrix: Any, rows: Any) -> Callable[[], object]:
    """A times a full matrix, plus and times; through the library's own C interface."""
    from suitesparse_graphblas import check_status, ffi, initialize, is_initialized, lib  # type: ignore[import-not-found]

    if not is_initialized():
        initialize()
    count, width = rows.shape

    def new(kind: Any, height: int, columns: int) -> Any:
        made = ffi.new("GrB_Matrix*")
        check_status(made, lib.GrB_Matrix_new(made, kind, height, columns))
        return made

    left, right, out = (new(lib.GrB_FP64, count, columns) for columns in (count, width, width))
    places = np.repeat(np.arange(count, dtype=np.uint64), np.diff(matrix.indptr))
    _build(ffi, lib, left, places, matrix.indices.astype(np.uint64), matrix.data)
    across = np.tile(np.arange(width, dtype=np.uint64), count)
    _build(ffi, lib, right, np.repeat(np.arange(count, dtype=np.uint64), width), across, rows.ravel())
    null = ffi.NULL
    return lambda: lib.GrB_mxm(out[0], null, null, lib.GrB_PLUS_TIMES_SEMIRING_FP64, left[0], right[0], null)


def _build(ffi: Any, lib: Any, target: Any, rows: Any, columns: Any, values: Any) -> None:
    values = np.ascontiguousarray(values)
    parts = [ffi.cast(kind, each.ctypes.data) for kind, each in (("GrB_Index*", rows), ("GrB_Index*", columns))]
    lib.GrB_Matrix_build_FP64(
        target[0], *parts, ffi.cast("double*", values.ctypes.data), len(values), lib.GrB_PLUS_FP64
    )


def main() -> None:
    """Measure in turns and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--entries", type=int, default=20_000_000)
    arguments = parser.parse_args()
    edges = made_edges(arguments.nodes, arguments.entries)
    steps = contenders(edges)
    times: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(6):
        for name, step in steps.items():
            start = time.perf_counter()
            step()
            if turn:  # the first warms up
                times[name].append(time.perf_counter() - start)
    print(f"{arguments.nodes:,} nodes, {len(edges.columns):,} entries, {torch.get_num_threads()} threads")
    for name, found in sorted(times.items(), key=lambda item: statistics.median(item[1])):
        print(f"{name:34s} {1e3 * statistics.median(found):9.1f} ms")


if __name__ == "__main__":
    main()
