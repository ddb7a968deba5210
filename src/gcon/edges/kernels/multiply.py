"""The hot loops: sums over neighbours, and a step of a walk. Three kernels that agree bit for bit (tests have a plain one).

| kernel | runs on | needs |
|---|---|---|
| `multiply_numba` | processor | numba (extra `fast`) |
| `multiply_triton` | GPU | Triton, which comes with torch's GPU builds |
| `multiply_torch` | both | torch alone |
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Protocol, cast

from torch import Tensor

from gcon.edges.fixed_point import MOST_NODES, Walk
from gcon.edges.kernels import multiply_torch
from gcon.edges.source import RowBlock
from gcon.errors import InputError

# The module of the fastest kernel that is there, by the type of the device; it is loaded when it is needed.
KERNELS = {
    device: f"gcon.edges.kernels.{fast if all(map(find_spec, needs)) else 'multiply_torch'}"
    for device, fast, needs in (
        ("cpu", "multiply_numba", ("numba", "llvmlite")),
        ("cuda", "multiply_triton", ("triton",)),
    )
}


class Kernel(Protocol):
    """What the module of a kernel has."""

    def neighbour_totals(self, block: RowBlock, rows: Tensor) -> Tensor:
        """Row k is the sum of the rows of the k-th node's neighbours, as float64.

        Args:
            block: some nodes and their neighbours.
            rows: one row per node of the graph: whole numbers (int32 or int64, on processors int8 too) whose absolute values
                add to at most 2^53 a column, so that float64 holds every sum of some of them.
        """

    def walk_step(
        self, block: RowBlock, current: Tensor, origin: Tensor, scale: Tensor | None = None, *, walk: Walk, out: Tensor
    ) -> None:
        """The rows of the block after one step (fixed_point.py).

        Args:
            block: some nodes and their neighbours.
            current: one row per node of the graph, int64, contiguous, entries below 2^50.
            origin: where the walk restarts: one row per node of the graph, of any type; it is multiplied by `scale` and
                rounded to whole numbers. So public features in single precision serve as they are.
            scale: one number per column, powers of two, float64; None: the origin holds whole numbers already.
            walk: how to mix.
            out: one row per node of the block, int64, contiguous; shares no memory with the others.
        """


def walk_step(
    block: RowBlock, current: Tensor, origin: Tensor, scale: Tensor | None = None, *, walk: Walk, out: Tensor
) -> None:
    """The rows of the block after one step (see `Kernel`)."""
    if not all(each.is_contiguous() for each in (current, origin, out)):
        raise ValueError("A kernel reads and writes rows that are contiguous in memory.")
    if block.num_nodes > MOST_NODES:
        raise InputError(
            "nodes",
            rule=f"must be at most {MOST_NODES:,}: sums over so many neighbours are exact",
            got=f"{block.num_nodes:,}",
            fix="Take a sample of the nodes.",
        )
    kernel_for(out).walk_step(block, current, origin, scale, walk=walk, out=out)


def kernel_for(rows: Tensor) -> Kernel:
    """The one for the device that rows lie on. Imports are written out: what reads edges imports nothing by a name made up."""
    name = KERNELS[rows.device.type].rpartition(".")[2]
    if name == "multiply_numba":
        from gcon.edges.kernels import multiply_numba

        return cast(Kernel, multiply_numba)
    if name == "multiply_triton":
        from gcon.edges.kernels import multiply_triton

        return cast(Kernel, multiply_triton)
    return cast(Kernel, multiply_torch)
