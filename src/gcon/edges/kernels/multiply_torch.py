"""The kernel that needs torch alone, on processor and GPU: sparse products in float64, which holds such whole numbers exactly."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import torch
from torch import Tensor

from gcon.edges.fixed_point import Walk
from gcon.edges.source import RowBlock
from gcon.errors import InputError

_NODES = 2**18  # at a time: what a product makes is small beside the rows
_ENTRIES = 2**31  # and so many neighbours: row pointers of 32 bits hold them
_LOW = 2.0**26  # entries below 2^50 in two parts, of at most 2^24 and 2^25
_MOST_NODES = 2**28  # sums of so many of either part are at most 2^53


def neighbour_totals(block: RowBlock, rows: Tensor) -> Tensor:
    """Row k is the sum of the rows of the k-th node's neighbours."""
    block, rows = _neighbours_only(block, rows)
    numbers = rows.to(torch.float64)
    out = torch.empty(len(block.row_pointers) - 1, rows.shape[1], dtype=torch.float64, device=rows.device)
    for piece in _pieces(block, _NODES):
        out[_within(piece, block)] = adjacency(piece) @ numbers
    return out


def walk_step(
    block: RowBlock, current: Tensor, origin: Tensor, scale: Tensor | None = None, *, walk: Walk, out: Tensor
) -> None:
    """One step, as fixed_point.py writes it; every operation by itself, so that none is fused."""
    if block.num_nodes > _MOST_NODES:
        raise InputError(
            "nodes",
            rule=f"must be at most {_MOST_NODES:,} for walks without a compiled kernel",
            got=f"{block.num_nodes:,}",
            fix="Install the extra `fast` (numba), or on a GPU Triton.",
        )
    own_rows, width = current[block.nodes], current.shape[1]
    block, current = _neighbours_only(block, current)
    numbers = current.to(torch.float64)
    high = (numbers / _LOW).round_()
    parts = torch.cat([high, numbers - high * _LOW], dim=1)
    del high, numbers
    for piece in _pieces(block, _NODES):
        both = adjacency(piece) @ parts
        sums = both[:, :width] * _LOW + both[:, width:]
        degrees = piece.degrees.to(torch.float64)[:, None]
        weight = (1 / (degrees + walk.self_weight)).clamp_max(walk.clip)
        own = 1 - degrees * weight
        moved = (weight * walk.keep) * sums + (own * walk.keep) * own_rows[_within(piece, block)].to(torch.float64)
        back = origin[piece.nodes].to(torch.float64)
        back = back if scale is None else (back * scale).round_()
        out[_within(piece, block)] = (moved + walk.restart * back).round_().to(torch.int64)


def _neighbours_only(block: RowBlock, rows: Tensor) -> tuple[RowBlock, Tensor]:
    """A block of few neighbours with their rows alone, in their order: a small block must not cost a copy of all rows."""
    entries = len(block.columns)
    if entries >= block.num_nodes:
        return block, rows
    numbered = torch.arange(entries, dtype=block.columns.dtype, device=block.columns.device)
    return RowBlock(block.nodes, block.row_pointers, numbered, entries), rows.index_select(0, block.columns)


def _pieces(block: RowBlock, most_nodes: int) -> Iterator[RowBlock]:
    """The block in pieces of so many nodes, and of fewer where these have very many neighbours."""
    for piece in block.parts(most_nodes):
        if len(piece.columns) < _ENTRIES or most_nodes == 1:
            yield piece
        else:
            yield from _pieces(piece, most_nodes // 2)


def _within(piece: RowBlock, block: RowBlock) -> slice:
    return slice(piece.nodes.start - block.nodes.start, piece.nodes.stop - block.nodes.start)


def adjacency(block: RowBlock) -> Tensor:
    """The rows of the adjacency matrix as a sparse matrix of ones."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch announces that sparse CSR is in beta
        return torch.sparse_csr_tensor(
            block.row_pointers.to(block.columns.dtype),
            block.columns,
            torch.ones(len(block.columns), dtype=torch.float64, device=block.columns.device),
            size=(len(block.row_pointers) - 1, block.num_nodes),
            check_invariants=False,
        )
