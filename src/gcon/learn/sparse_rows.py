"""Rows that are mostly zeros, as bags of words are: what networks learn from, times a table of weights.

A product is a weighted sum of the table's rows for each of ours, which torch calls an embedding bag; so is its gradient, by
columns. `torch.sparse.mm` adds the same numbers in the same order, and takes twenty times as long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag


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
    def of(cls, rows: Tensor) -> SparseRows:
        """The same rows, on the same device."""
        by_row = scipy.sparse.csr_matrix(rows.cpu().numpy())
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
        return cls(*(torch.from_numpy(part).to(rows.device) for part in parts))

    def __matmul__(self, table: Tensor) -> Tensor:
        product: Tensor = _Product.apply(table, self)  # type: ignore[no-untyped-call]
        return product


class _Product(torch.autograd.Function):
    """Sparse rows times a table; the slope of the table is known, that of the rows is not."""

    @staticmethod
    def forward(context: Any, table: Tensor, given: SparseRows) -> Tensor:
        context.given = given
        return embedding_bag(given.columns, table, given.row_starts, mode="sum", per_sample_weights=given.values)

    @staticmethod
    def backward(context: Any, *slopes: Tensor) -> tuple[Tensor, None]:
        given: SparseRows = context.given
        weights, slope = given.values[given.by_column], slopes[0].contiguous()
        return embedding_bag(given.rows, slope, given.column_starts, mode="sum", per_sample_weights=weights), None
