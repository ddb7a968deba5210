"""Tables too large for memory are read a batch of rows at a time; the features of many nodes may lie on disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

BATCH_ROWS = 65_536
BATCH_ENTRIES = 2**23


def row_slices(num_rows: int, batch_rows: int = BATCH_ROWS) -> Iterator[slice]:
    """Consecutive slices that cover all rows."""
    return (slice(start, min(start + batch_rows, num_rows)) for start in range(0, num_rows, batch_rows))


def light_slices(shape: tuple[int, ...]) -> Iterator[slice]:
    """The same with fewer rows where they are wide: for passes that look at every number and keep none."""
    width = max(int(shape[1]) if len(shape) > 1 else 1, 1)
    return row_slices(int(shape[0]), max(min(BATCH_ROWS, BATCH_ENTRIES // width), 1))


def mean_row(batches: Iterable[Tensor]) -> Tensor:
    """The mean of all rows, in float64: batches are added up one after another."""
    total, count = None, 0
    for batch in batches:
        sums = batch.to(torch.float64).sum(dim=0)
        total, count = sums if total is None else total + sums, count + len(batch)
    if total is None:
        raise ValueError("no rows have no mean")
    return total / count
