"""Edges per second of one propagation step, against scipy's and torch's sparse products in the same run.

    .venv/bin/python benchmarks/propagation.py [--nodes 1000000 --edges 10000000]

A step is (1 - restart) T Z + restart X with 16 columns in float64; scipy and torch get the transition with self-loops as a
ready CSR matrix (torch with its default 64-bit indices) and do the same step. Exits with 1 if ours is slower than the
faster of the two by more than the spread of repeated runs (5 %).
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
import scipy.sparse
import torch

from gcon.datasets.synthetic import social_circles_parts
from gcon.graphs.edges import EdgeList, public_edges
from gcon.propagate.multiply import Multiplier
from gcon.propagate.transition import transition_weights

WIDTH, RESTART = 16, 0.2


def steps(edges: EdgeList) -> dict[str, Callable[[], object]]:
    """The same step three ways."""
    generator = torch.Generator().manual_seed(0)
    origin = torch.randn(edges.num_nodes, WIDTH, generator=generator, dtype=torch.float64)
    current = torch.randn(edges.num_nodes, WIDTH, generator=generator, dtype=torch.float64)
    weights = transition_weights(edges)
    ours = Multiplier(edges, weights)
    values = torch.repeat_interleave(weights.neighbour, edges.degrees).numpy()
    shape = (edges.num_nodes, edges.num_nodes)
    neighbours = scipy.sparse.csr_matrix((values, edges.columns.numpy(), edges.row_pointers.numpy()), shape=shape)
    matrix = (neighbours + scipy.sparse.diags(weights.own.numpy())).tocsr()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sparse = torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(np.int64)),
            torch.from_numpy(matrix.indices.astype(np.int64)),
            torch.from_numpy(matrix.data),
            size=shape,
        )
    flat_current, flat_origin = current.numpy(), origin.numpy()
    result = ours.step(current, origin, restart=RESTART)
    expected = (1 - RESTART) * (matrix @ flat_current) + RESTART * flat_origin
    if not np.allclose(result.numpy(), expected, rtol=0, atol=1e-12):
        raise SystemExit("the kernels disagree")
    return {
        "gcon": lambda: ours.step(current, origin, restart=RESTART),
        "torch": lambda: (1 - RESTART) * (sparse @ current) + RESTART * origin,
        "scipy": lambda: (1 - RESTART) * (matrix @ flat_current) + RESTART * flat_origin,
    }


def main() -> int:
    """Print the ratios; 1 if ours is the slower one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="*", default=[3_000, 100_000, 1_000_000])
    parser.add_argument("--edges", type=int, nargs="*", default=[8_000, 1_000_000, 10_000_000])
    arguments = parser.parse_args()
    passed = True
    for num_nodes, num_edges in zip(arguments.nodes, arguments.edges, strict=True):
        nodes, edge_index = social_circles_parts(num_nodes, mean_degree=2 * num_edges / num_nodes, num_features=4)
        edges = public_edges(edge_index, nodes.num_nodes)
        contenders = steps(edges)
        calls = max(1, 2_000_000 // num_edges)
        times: dict[str, list[float]] = {name: [] for name in contenders}
        for _ in range(9):  # interleaved, so that other work on the machine hits all alike
            for name, step in contenders.items():
                start = time.perf_counter()
                for _ in range(calls):
                    step()
                times[name].append((time.perf_counter() - start) / calls)
        best = {name: float(np.median(seconds)) for name, seconds in times.items()}
        rival = min(best["torch"], best["scipy"])
        print(f"{num_nodes:,} nodes, {num_edges:,} edges, {WIDTH} columns, {torch.get_num_threads()} threads")
        for name, seconds in best.items():
            print(f"  {name:6s} {1e3 * seconds:9.3f} ms/step  {2 * num_edges / seconds / 1e6:8.1f} M entries/s")
        print(f"  faster of the two over ours: {rival / best['gcon']:.2f}")
        passed &= rival / best["gcon"] >= 0.95
    print("not slower" if passed else "SLOWER")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
