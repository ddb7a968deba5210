"""The fast kernel of the processor: compiled loops over rows of whole numbers, a few neighbours fetched ahead.

Chosen by benchmarks/propagation.py. What makes it fast: the next neighbours' rows are on their way from memory while this one is
added, no value is stored beside an edge, and restart and normalisation happen while a row is at hand.
"""

from __future__ import annotations

import math
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

from gcon.edges.fixed_point import CHUNK, HIGH, Walk
from gcon.edges.source import RowBlock

_AHEAD = 48  # neighbours (benchmarks/stripes.py)
_LINE = 64  # bytes that one fetch brings
_PARTS = 16  # a thread: rows differ, so threads that are done early take another part
_SMALL = 2**15  # entries that one thread does before two have begun
_FAR = 2**31  # bytes of a walk from which on it is read in stripes (benchmarks/stripes.py)
_STRIPE = 2**20  # nodes, at least
_TOGETHER = 2**17  # rows that are summed side by side
_ROWS_AHEAD, _OF_A_ROW = 6, 3  # in stripes, of the row after so many the next neighbours are fetched


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
def _add_rows(columns: Any, current: Any, total: Any, start: int, stop: int, end: int) -> None:
    """Add the rows of some neighbours; `end` is one after the last entry that will be read later."""
    width = current.shape[1]
    total[:] = 0
    for entry in range(start, stop):
        _fetch(current, np.int64(columns[min(entry + _AHEAD, end - 1)]))
        node = columns[entry]
        for column in range(width):
            total[column] += current[node, column]


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _row_sums(columns: Any, current: Any, total: Any, sums: Any, start: int, stop: int, end: int) -> None:
    """The sum over neighbours as float64, rounded once."""
    width = current.shape[1]
    if stop - start <= CHUNK:
        _add_rows(columns, current, total, start, stop, end)
        for column in range(width):
            sums[column] = float(total[column])
        return
    # The sum may need more than 63 bits: two parts, which float64 puts together with one rounding.
    high, low = np.zeros(width, np.int64), np.zeros(width, np.int64)
    for chunk in range(start, stop, CHUNK):
        _add_rows(columns, current, total, chunk, min(chunk + CHUNK, stop), end)
        for column in range(width):
            high[column] += total[column] >> 32
            low[column] += total[column] & 0xFFFFFFFF
    for column in range(width):
        sums[column] = float(high[column]) * HIGH + float(low[column])


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _write_row(sums: Any, degree: float, own_row: Any, origin: Any, scale: Any, out: Any, mix: Any) -> None:
    """The step that fixed_point.py writes."""
    restart, keep, clip, self_weight = mix
    weight = min(1.0 / (degree + self_weight), clip)
    own = (1.0 - degree * weight) * keep
    weight *= keep
    for column in range(len(sums)):
        moved = weight * sums[column] + own * float(own_row[column])
        out[column] = np.int64(np.rint(moved + restart * np.rint(float(origin[column]) * scale[column])))


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
    width, end = current.shape[1], pointers[last]
    total, sums = np.empty(width, np.int64), np.empty(width, np.float64)
    for row in range(first, last):
        start, stop = pointers[row], pointers[row + 1]
        _row_sums(columns, current, total, sums, start, stop, end)
        _write_row(sums, float(stop - start), own_rows[row], origin[row], scale, out[row], mix)


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _walk_rows_by_stripes(
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
    stripe: int,
    together: int,
) -> None:
    """The same, one stripe of neighbours after another: memory that lies together is read together.

    Many rows are summed side by side. Of each, the neighbours of the first `stripe` nodes are added, then those of the next, and
    so on; neighbours rise in a row, so a cursor a row is enough.
    """
    width, end, num_nodes = current.shape[1], pointers[last], current.shape[0]
    totals, cursors = np.empty((together, width), np.int64), np.empty(together, np.int64)
    total, sums = np.empty(width, np.int64), np.empty(width, np.float64)
    for block in range(first, last, together):
        count = min(together, last - block)
        for place in range(count):
            start, stop = pointers[block + place], pointers[block + place + 1]
            cursors[place] = start if stop - start <= CHUNK else stop  # longer rows are summed by themselves
            totals[place] = 0
        for limit in range(stripe, num_nodes + stripe, stripe):
            for place in range(count):
                soon = place + _ROWS_AHEAD
                if soon < count:
                    for entry in range(cursors[soon], min(cursors[soon] + _OF_A_ROW, pointers[block + soon + 1])):
                        if columns[entry] < limit:
                            _fetch(current, np.int64(columns[entry]))
                entry, stop = cursors[place], pointers[block + place + 1]
                while entry < stop and columns[entry] < limit:
                    node = columns[entry]
                    for column in range(width):
                        totals[place, column] += current[node, column]
                    entry += 1
                cursors[place] = entry
        for place in range(count):
            row = block + place
            start, stop = pointers[row], pointers[row + 1]
            if stop - start > CHUNK:
                _row_sums(columns, current, total, sums, start, stop, end)
            else:
                for column in range(width):
                    sums[column] = float(totals[place, column])
            _write_row(sums, float(stop - start), own_rows[row], origin[row], scale, out[row], mix)


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
    stripes = stripes_of(len(block.row_pointers) - 1, len(block.columns), current)
    if stripes is None:
        _in_parts(block, lambda first, last: _walk_rows(*arrays, mix, first, last))
    else:
        _in_parts(block, lambda first, last: _walk_rows_by_stripes(*arrays, mix, first, last, *stripes))


def stripes_of(num_rows: int, entries: int, current: Tensor) -> tuple[int, int] | None:
    """How to read a walk that lies far apart in memory: nodes a stripe, and rows side by side; None to read row by row.

    A walk of gigabytes has more pages than a processor remembers the places of. In stripes it looks fewer of them up; that pays
    where a row has a neighbour or two in each stripe, and where many rows are summed side by side.
    """
    num_nodes = len(current)
    if current.numel() * 8 < _FAR or num_rows < 4 * _TOGETHER:
        return None
    stripe = max(_STRIPE, math.ceil(1.6 * num_nodes * num_rows / max(entries, 1)))
    return (stripe, _TOGETHER) if num_nodes >= 4 * stripe else None


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
