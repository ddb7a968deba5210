"""The fast kernel of the processor: compiled loops over rows of whole numbers, a few neighbours fetched ahead.

Chosen by benchmarks/propagation.py. What makes it fast: the next neighbours' rows are on their way from memory while this one is
added, no value is stored beside an edge, and restart and normalisation happen while a row is at hand.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from torch import Tensor

from gcon.graphs.source import RowBlock
from gcon.propagate.fixed_point import CHUNK, HIGH, Walk

_AHEAD = 16  # neighbours
_LINE = 64  # bytes that one fetch brings
_PARTS = 16  # a thread: rows differ, so threads that are done early take another part
_SMALL = 2**15  # entries that one thread does before two have begun


@intrinsic  # type: ignore[untyped-decorator]
def _fetch(context: Any, rows: Any, row: Any) -> Any:
    """Ask for a row that will be read soon: every line of memory that it lies in, up to four."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = cgutils.create_struct_proxy(signature.args[0])(context, builder, arguments[0])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        fetch = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [byte, number, number, number]), "llvm.prefetch.p0"
        )
        stride = cgutils.unpack_tuple(builder, array.strides)[0]
        start = builder.gep(builder.bitcast(array.data, byte), [builder.mul(arguments[1], stride)])
        for line in range(4):
            wanted = builder.icmp_signed(">", stride, stride.type(line * _LINE))
            with builder.if_then(wanted):
                builder.call(
                    fetch, [builder.gep(start, [ir.IntType(64)(line * _LINE)]), number(0), number(3), number(1)]
                )
        return context.get_dummy_value()

    return types.void(rows, row), generate


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _sum_rows(pointers: Any, columns: Any, rows: Any, out: Any, first: int, last: int) -> None:
    width, end = rows.shape[1], pointers[last]
    total = np.empty(width, np.int64)
    for row in range(first, last):
        total[:] = 0
        for entry in range(pointers[row], pointers[row + 1]):
            _fetch(rows, np.int64(columns[min(entry + _AHEAD, end - 1)]))
            node = columns[entry]
            for column in range(width):
                total[column] += rows[node, column]
        for column in range(width):
            out[row, column] = float(total[column])


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _walk_rows(
    pointers: Any,
    columns: Any,
    current: Any,
    own_rows: Any,
    origin: Any,
    scale: Any,
    out: Any,
    mix: Any,
    first: int,
    last: int,
) -> None:
    restart, keep, clip, self_weight = mix
    width, end = current.shape[1], pointers[last]
    total, sums = np.empty(width, np.int64), np.empty(width, np.float64)
    high, low = np.empty(width, np.int64), np.empty(width, np.int64)
    for row in range(first, last):
        start, stop = pointers[row], pointers[row + 1]
        if stop - start <= CHUNK:
            total[:] = 0
            for entry in range(start, stop):
                _fetch(current, np.int64(columns[min(entry + _AHEAD, end - 1)]))
                node = columns[entry]
                for column in range(width):
                    total[column] += current[node, column]
            for column in range(width):
                sums[column] = float(total[column])
        else:  # the sum may need more than 63 bits: two parts, which float64 puts together with one rounding
            high[:], low[:] = 0, 0
            for chunk in range(start, stop, CHUNK):
                total[:] = 0
                for entry in range(chunk, min(chunk + CHUNK, stop)):
                    _fetch(current, np.int64(columns[min(entry + _AHEAD, end - 1)]))
                    node = columns[entry]
                    for column in range(width):
                        total[column] += current[node, column]
                for column in range(width):
                    high[column] += total[column] >> 32
                    low[column] += total[column] & 0xFFFFFFFF
            for column in range(width):
                sums[column] = float(high[column]) * HIGH + float(low[column])
        degree = float(stop - start)
        weight = min(1.0 / (degree + self_weight), clip)
        own = (1.0 - degree * weight) * keep
        weight *= keep
        for column in range(width):
            moved = weight * sums[column] + own * float(own_rows[row, column])
            out[row, column] = np.int64(np.rint(moved + restart * np.rint(float(origin[row, column]) * scale[column])))


def neighbour_totals(block: RowBlock, rows: Tensor) -> Tensor:
    """Row k is the sum of the rows of the k-th node's neighbours."""
    out = torch.empty(len(block.row_pointers) - 1, rows.shape[1], dtype=torch.float64)
    arrays = [each.numpy() for each in (block.row_pointers, block.columns, rows.contiguous(), out)]
    _in_parts(block, lambda first, last: _sum_rows(*arrays, first, last))
    return out


def walk_step(
    block: RowBlock, current: Tensor, origin: Tensor, scale: Tensor | None = None, *, walk: Walk, out: Tensor
) -> None:
    """One step, as fixed_point.py writes it."""
    scale = torch.ones(current.shape[1], dtype=torch.float64) if scale is None else scale
    tensors = (block.row_pointers, block.columns, current, current[block.nodes], origin[block.nodes], scale, out)
    arrays = [each.numpy() for each in tensors]
    mix = (walk.restart, walk.keep, walk.clip, walk.self_weight)
    _in_parts(block, lambda first, last: _walk_rows(*arrays, mix, first, last))


def _in_parts(block: RowBlock, work: Callable[[int, int], None]) -> None:
    """All rows, in parts with equally many neighbours, by as many threads as torch may use."""
    num_rows, threads = len(block.row_pointers) - 1, torch.get_num_threads()
    if threads == 1 or len(block.columns) < _SMALL:
        if len(block.columns) or num_rows:
            work(0, num_rows)
        return
    goals = torch.linspace(0, len(block.columns), threads * _PARTS + 1).long()
    cuts = torch.searchsorted(block.row_pointers, goals)
    cuts[0], cuts[-1] = 0, num_rows
    for done in [
        _pool(threads).submit(work, *pair) for pair in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)
    ]:
        done.result()


@lru_cache(maxsize=4)
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads)
