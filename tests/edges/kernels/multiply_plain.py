"""The reference kernel: one node at a time, in Python's whole numbers. Obviously right, slow."""

from __future__ import annotations

import torch
from torch import Tensor

from gcon.edges.fixed_point import Walk
from gcon.edges.source import RowBlock


def neighbour_totals(block: RowBlock, rows: Tensor) -> Tensor:
    """Row k is the sum of the rows of the k-th node's neighbours."""
    sums = [[float(total) for total in _sum(block, rows, row)] for row in range(len(block.degrees))]
    return torch.tensor(sums, dtype=torch.float64).reshape(len(block.degrees), rows.shape[1])


def walk_step(
    block: RowBlock, current: Tensor, origin: Tensor, scale: Tensor | None = None, *, walk: Walk, out: Tensor
) -> None:
    """One step, as fixed_point.py writes it. Python rounds a whole number of any size to the nearest float64."""
    mine, origins = current[block.nodes].tolist(), origin[block.nodes].tolist()
    scales = [1.0] * current.shape[1] if scale is None else scale.tolist()
    for row, degree in enumerate(block.degrees.tolist()):
        weight = min(1 / (degree + walk.self_weight), walk.clip)
        own = 1 - degree * weight
        found = []
        for column, total in enumerate(_sum(block, current, row)):
            back = round(float(origins[row][column]) * scales[column])
            moved = (weight * walk.keep) * float(total) + (own * walk.keep) * float(mine[row][column])
            found.append(round(moved + walk.restart * float(back)))
        out[row] = torch.tensor(found)


def _sum(block: RowBlock, rows: Tensor, row: int) -> list[int]:
    first, last = int(block.row_pointers[row]), int(block.row_pointers[row + 1])
    chosen = rows[block.columns[first:last].long()].tolist()
    return [sum(entries[column] for entries in chosen) for column in range(rows.shape[1])]
