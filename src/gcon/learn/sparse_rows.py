"""Rows that are mostly zeros, as bags of words are: what networks learn from, times a table of weights.

A product is a weighted sum of the table's rows for each of ours, which torch calls an embedding bag; so is a product with their
transpose, by columns. `torch.sparse.mm` adds the same numbers in the same order, and takes twenty times as long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

MOSTLY_EMPTY = 0.2  # bags of words have fewer entries than this
THIN = 0.05  # narrow rows that are fuller than this are multiplied faster as they are


def compact(rows: Tensor, most: float = MOSTLY_EMPTY) -> scipy.sparse.csr_matrix | None:
    """Rows with less than this share of entries as a sparse matrix of float32; None for others."""
    table = rows.cpu().float().contiguous().numpy()
    filled = table != 0
    counts = np.count_nonzero(filled, axis=1)
    starts = np.concatenate([[0], np.cumsum(counts)])
    if not starts[-1] < most * table.size:
        return None
    places = np.flatnonzero(filled)  # scipy looks for them in the numbers themselves, which takes four times as long
    columns = places - np.repeat(np.arange(len(table)) * table.shape[1], counts)
    parts: Any = table.ravel()[places], columns, starts
    return scipy.sparse.csr_matrix(parts, shape=table.shape)  # with numbers of 32 bits for places, where they do


def with_rows_divided(rows: scipy.sparse.csr_matrix, by: str) -> scipy.sparse.csr_matrix:
    """Every row divided by its `length`, or by the `sum` of its absolute values; zero rows stay zero."""
    if by == "nothing":
        return rows
    places = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    sizes = np.bincount(places, np.abs(rows.data) if by == "sum" else rows.data**2.0, minlength=rows.shape[0])
    sizes = np.where(sizes == 0, 1.0, sizes if by == "sum" else np.sqrt(sizes)).astype(np.float32)
    return scipy.sparse.csr_matrix((rows.data / sizes[places], rows.indices, rows.indptr), shape=rows.shape)


@final
@dataclass(frozen=True, eq=False)
class SparseRows:
    """Entries that are not 0, row after row, and where to find them column after column.

    Attributes:
        values, columns: of the entries.
        row_starts: where in these every row begins.
        by_column: the places of the entries, column after column.
        rows: of the entries in that order.
        column_starts: where in that order every column begins.
    """

    values: Tensor
    columns: Tensor
    row_starts: Tensor
    by_column: Tensor
    rows: Tensor
    column_starts: Tensor

    @classmethod
    def of(cls, rows: Tensor | scipy.sparse.csr_matrix, device: str | torch.device = "cpu") -> SparseRows:
        """The same rows, on a device."""
        by_row = scipy.sparse.csr_matrix(rows.cpu().numpy()) if isinstance(rows, Tensor) else rows
        places = (np.arange(by_row.nnz), by_row.indices, by_row.indptr)
        by_column = scipy.sparse.csr_matrix(places, shape=by_row.shape).tocsc()
        parts = (
            by_row.data,
            by_row.indices,
            by_row.indptr[:-1],
            by_column.data,
            by_column.indices,
            by_column.indptr[:-1],
        )
        return cls(*(torch.from_numpy(part).to(device) for part in parts))

    def __matmul__(self, table: Tensor) -> Tensor:
        return embedding_bag(self.columns, table, self.row_starts, mode="sum", per_sample_weights=self.values)

    def turned_times(self, table: Tensor) -> Tensor:
        """The transpose of these rows times a table."""
        weights = self.values[self.by_column]
        return embedding_bag(self.rows, table.contiguous(), self.column_starts, mode="sum", per_sample_weights=weights)
