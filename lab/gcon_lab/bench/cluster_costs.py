"""What one step over all edges costs on a cluster, calculated from public sizes: `python -m gcon_lab.bench.cluster_costs`.

A step is one pass over the edges: one step of a walk, or one statistic without steps. Nothing here is measured: the speeds are
assumptions that you replace by what your machines do (`--help`).
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from gcon.edges.store_format import column_type
from gcon.errors import check_number
from gcon_lab.tables import markdown

NUMBER_BYTES = 8  # of a matrix entry, and of a row pointer
ORIGIN_BYTES = 4  # of an entry of the features, where the walk restarts
BLOCK_ENTRIES = 2**24
EDGES = (10**8, 10**9, 10**10, 10**11, 10**12)
MOST_NODES = 2**28  # of edge moments
DEGREE = 50


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Assumed speeds of one worker.

    Attributes:
        additions: matrix entries that it adds per second: neighbours times columns.
        disk: bytes per second that it reads from the store, while all others read too.
        network: bytes per second that it sends, and as many that it receives.
    """

    additions: float = 4e8
    disk: float = 1e9
    network: float = 1.25e9

    def __post_init__(self) -> None:
        for name in ("additions", "disk", "network"):
            check_number(
                name,
                getattr(self, name),
                allowed=lambda speed: 0 < speed < math.inf,
                rule="must be positive",
                fix="Measure it on one worker (benchmarks/cluster.py).",
            )


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Of one step, in seconds and bytes.

    Attributes:
        read, add, exchange: seconds of the parts of a step, one after the other.
        store: bytes on disk.
        received: bytes that every worker receives from the others, and as many that it sends.
        memory: bytes of a worker; the coordinator is one of them and needs no more, but for the rows that a release asks for.
    """

    read: float
    add: float
    exchange: float
    store: int
    received: int
    memory: int

    @property
    def seconds(self) -> float:
        """Of the step."""
        return self.read + self.add + self.exchange


def needed_rows(edges: int, nodes: int, workers: int) -> float:
    """How many rows of other workers stand beside the nodes of one, if neighbours are anywhere: the worst case.

    Example:
        >>> round(needed_rows(10**6, 10**5, 2))  # 10^6 entries hit nearly all of 5 * 10^4 rows
        49998
    """
    return nodes * (1 - 1 / workers) * -math.expm1(-2 * edges / (nodes * workers))


def costs(edges: int, nodes: int, columns: int, workers: int, machine: Machine | None = None) -> Costs:
    """The costs of one step of a walk.

    Args:
        edges: undirected; twice as many entries are stored.
        nodes: of the graph.
        columns: that travel at a time, at most 32 (`gcon.edges.schemes`); wider features take more passes.
        workers: machines, each with a share of the entries.
        machine: their speeds.

    Example:
        >>> one = costs(10**9, 10**7, 16, 10)
        >>> round(one.received / (10**7 * 16 * 8), 3)  # of the whole matrix
        0.9
        >>> round(one.add, 3)
        8.0
    """
    for name, value in (("edges", edges), ("nodes", nodes), ("columns", columns), ("workers", workers)):
        check_number(
            name,
            value,
            allowed=lambda count: count >= 1,
            rule="must be a whole number from 1",
            fix="Count them.",
            whole=True,
        )
    machine = machine or Machine()
    entries, entry_bytes = 2 * edges, column_type(nodes).itemsize
    pointers, row = (nodes + 1) * NUMBER_BYTES, columns * NUMBER_BYTES
    needed, own = needed_rows(edges, nodes, workers), nodes / workers
    block = min(BLOCK_ENTRIES, -(-entries // workers)) * entry_bytes
    received = round(needed * row)
    return Costs(
        read=entries * entry_bytes / (workers * machine.disk),
        add=entries * columns / (workers * machine.additions),
        exchange=received / machine.network,
        store=entries * entry_bytes + pointers,
        received=received,
        # A table with room for all nodes, its own rows before and after the step, where they restart (as given, and in place),
        # which rows are needed here and elsewhere, pointers, a block.
        memory=round((nodes + 2 * own) * row + 2 * own * columns * ORIGIN_BYTES + 2 * needed * entry_bytes)
        + pointers
        + block,
    )


def table(columns: int, workers: int, machine: Machine) -> str:
    """A table for graphs of 10^8 to 10^12 edges."""
    rows = []
    for edges in EDGES:
        nodes = min(2 * edges // DEGREE, MOST_NODES)
        found = costs(edges, nodes, columns, workers, machine)
        sizes = found.store, found.received, found.memory
        times = found.read, found.add, found.exchange, found.seconds
        rows.append([_short(edges), _short(nodes), *map(_size, sizes), *map(_time, times)])
    words = (
        f"Calculated, not measured: one step, {columns} columns, {workers} workers; assumed per worker: {machine.additions:.3g} "
        f"additions per second, {machine.disk / 1e9:g} GB/s from disk, {machine.network / 1e9:g} GB/s of network.\n\n"
    )
    head = ["edges", "nodes", "store", "a worker receives", "its memory", "read", "add", "exchange", "a step"]
    return words + markdown(head, rows)


def _short(count: int) -> str:
    return f"{count:.2g}".replace("e+0", "e").replace("e+", "e")


def _size(count: int) -> str:
    power = min(4, max(2, int(math.log10(count)) // 3))
    return f"{count / 1000**power:,.2f} {('MB', 'GB', 'TB')[power - 2]}"


def _time(seconds: float) -> str:
    return f"{seconds:,.1f} s" if seconds < 600 else f"{seconds / 60:,.0f} min"


def main(given: Sequence[str] | None = None) -> None:
    usual, parser = (
        Machine(),
        argparse.ArgumentParser(prog="python -m gcon_lab.bench.cluster_costs", description=__doc__),
    )
    parser.add_argument("--columns", type=int, default=16)
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument(
        "--additions", type=float, default=usual.additions, help="entries that a worker adds per second"
    )
    parser.add_argument("--disk", type=float, default=usual.disk, help="bytes per second that a worker reads")
    parser.add_argument("--network", type=float, default=usual.network, help="bytes per second that a worker sends")
    chosen = parser.parse_args(given)
    machine = Machine(additions=chosen.additions, disk=chosen.disk, network=chosen.network)
    sys.stdout.write(table(chosen.columns, chosen.workers, machine))


if __name__ == "__main__":
    main()
