# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: ANN001, ANN202
"""The fast kernel of the GPU: sum, normalisation and restart in one pass, 32-bit columns with 64-bit row pointers.

One program takes a few rows. Rows with very many neighbours are summed by many programs at once, whose whole numbers add up to
the same in any order. Parameters travel in a float64 tensor: Triton would pass Python's numbers in single precision.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from gcon.edges.fixed_point import Walk
from gcon.edges.source import RowBlock

_LONG = 2**15  # neighbours from which a row is shared between programs
_SHARE = 2**13  # neighbours that one program then takes
_ROWS = 1  # rows a program
_ENTRIES = 32  # neighbours fetched at a time
_WARPS = 1


@triton.jit  # type: ignore[untyped-decorator]
def _gather(columns, rows, start, stop, lanes, inside, width, ENTRIES: tl.constexpr, LANES: tl.constexpr):
    """The sum of some neighbours' rows in two parts, high * 2^32 + low."""
    high = tl.zeros([LANES], dtype=tl.int64)
    low = tl.zeros([LANES], dtype=tl.int64)
    places = tl.arange(0, ENTRIES)
    for base in range(start, stop, ENTRIES):
        taken = base + places < stop
        nodes = tl.load(columns + base + places, mask=taken, other=0).to(tl.int64)
        found = tl.load(rows + nodes[:, None] * width + lanes[None, :], mask=taken[:, None] & inside[None, :], other=0)
        part = tl.sum(found.to(tl.int64), axis=0)
        high += part >> 32
        low += part & 0xFFFFFFFF
    return high, low


@triton.jit  # type: ignore[untyped-decorator]
def _finish(
    high,
    low,
    degree,
    row,
    own_rows,
    origin,
    out,
    mix,
    lanes,
    inside,
    width,
    WALK: tl.constexpr,
):
    """Write one row: the sum itself, or the step that fixed_point.py writes."""
    place = row * width + lanes
    high += low >> 32  # of very many neighbours the low parts add to more than float64 holds
    low = low & 0xFFFFFFFF
    total = high.to(tl.float64) * 4294967296.0 + low.to(tl.float64)
    if WALK:
        restart = tl.load(mix)
        keep = tl.load(mix + 1)
        count = degree.to(tl.float64)
        weight = tl.minimum(1.0 / (count + tl.load(mix + 3)), tl.load(mix + 2))
        own = (1.0 - count * weight) * keep
        mine = tl.load(own_rows + place, mask=inside, other=0).to(tl.float64)
        back = tl.load(origin + place, mask=inside, other=0).to(tl.float64) * tl.load(
            mix + 4 + lanes, mask=inside, other=0
        )
        # Adding and subtracting 1.5 * 2^52 rounds numbers below 2^51 to the nearest whole one.
        back = (back + 6755399441055744.0) - 6755399441055744.0
        moved = (weight * keep) * total + own * mine + restart * back
        tl.store(out + place, ((moved + 6755399441055744.0) - 6755399441055744.0).to(tl.int64), mask=inside)
    else:
        tl.store(out + place, total, mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _rows_kernel(
    pointers, columns, rows, own_rows, origin, out, mix, num_rows, width,
    LANES: tl.constexpr, ENTRIES: tl.constexpr, ROWS: tl.constexpr, LONG: tl.constexpr, WALK: tl.constexpr,
):  # fmt: skip
    lanes = tl.arange(0, LANES)
    inside = lanes < width
    first = tl.program_id(0).to(tl.int64) * ROWS
    for step in range(ROWS):
        row = first + step
        if row < num_rows:
            start = tl.load(pointers + row)
            stop = tl.load(pointers + row + 1)
            if stop - start <= LONG:
                high, low = _gather(columns, rows, start, stop, lanes, inside, width, ENTRIES, LANES)
                _finish(high, low, stop - start, row, own_rows, origin, out, mix, lanes, inside, width, WALK)


@triton.jit  # type: ignore[untyped-decorator]
def _shares_kernel(
    starts, stops, owners, columns, rows, highs, lows, width,
    LANES: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    lanes = tl.arange(0, LANES)
    inside = lanes < width
    share = tl.program_id(0)
    high, low = _gather(
        columns, rows, tl.load(starts + share), tl.load(stops + share), lanes, inside, width, ENTRIES, LANES
    )
    owner = tl.load(owners + share) * width
    tl.atomic_add(highs + owner + lanes, high, mask=inside)
    tl.atomic_add(lows + owner + lanes, low, mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _long_rows_kernel(
    pointers,
    long_rows,
    highs,
    lows,
    own_rows,
    origin,
    out,
    mix,
    width,
    LANES: tl.constexpr,
    WALK: tl.constexpr,
):
    lanes = tl.arange(0, LANES)
    inside = lanes < width
    place = tl.program_id(0)
    row = tl.load(long_rows + place)
    degree = tl.load(pointers + row + 1) - tl.load(pointers + row)
    high = tl.load(highs + place * width + lanes, mask=inside, other=0)
    low = tl.load(lows + place * width + lanes, mask=inside, other=0)
    _finish(high, low, degree, row, own_rows, origin, out, mix, lanes, inside, width, WALK)


def neighbour_totals(block: RowBlock, rows: Tensor) -> Tensor:
    """Row k is the sum of the rows of the k-th node's neighbours."""
    rows = rows.contiguous()
    out = torch.empty(len(block.row_pointers) - 1, rows.shape[1], dtype=torch.float64, device=rows.device)
    nothing = out.new_zeros(4)
    _launch(block, rows, nothing, nothing, out, nothing, walk=False)
    return out


def walk_step(
    block: RowBlock, current: Tensor, origin: Tensor, scale: Tensor | None = None, *, walk: Walk, out: Tensor
) -> None:
    """One step, as fixed_point.py writes it."""
    scales = torch.ones(out.shape[1], dtype=torch.float64, device=out.device) if scale is None else scale
    mix = torch.cat([scales.new_tensor([walk.restart, walk.keep, walk.clip, walk.self_weight]), scales])
    _launch(block, current, current[block.nodes], origin[block.nodes], out, mix, walk=True)


def _launch(
    block: RowBlock, rows: Tensor, own: Tensor, origin: Tensor, out: Tensor, mix: Tensor, *, walk: bool
) -> None:
    num_rows, width = out.shape
    if not out.numel():
        return
    sizes: dict[str, Any] = {"LANES": triton.next_power_of_2(width)}
    # Fused operations round once where the others round twice: switched off, so that all devices give the same bits.
    options: dict[str, Any] = {"num_warps": _WARPS, "enable_fp_fusion": False}
    _rows_kernel[(triton.cdiv(num_rows, _ROWS),)](
        block.row_pointers, block.columns, rows, own, origin, out, mix, num_rows, width,
        ENTRIES=_ENTRIES, ROWS=_ROWS, LONG=_LONG, WALK=walk, **sizes, **options,
    )  # fmt: skip
    long_rows, starts, stops, owners = block.shared_rows(_LONG, _SHARE)
    if len(long_rows):
        highs = torch.zeros(len(long_rows), width, dtype=torch.int64, device=out.device)
        lows = torch.zeros_like(highs)
        _shares_kernel[(len(starts),)](
            starts, stops, owners, block.columns, rows, highs, lows, width, ENTRIES=_ENTRIES, **sizes, **options
        )
        _long_rows_kernel[(len(long_rows),)](
            block.row_pointers, long_rows, highs, lows, own, origin, out, mix, width, WALK=walk, **sizes, **options
        )
