"""Sparse rows: products with a table, of the rows and of their transpose, as torch's own sparse product has them."""

import pytest
import scipy.sparse
import torch

from gcon.learn.sparse_rows import SparseRows, compact, with_rows_divided


def some_rows(num_rows, width, filled):
    generator = torch.Generator().manual_seed(num_rows + width)
    rows = torch.randn(num_rows, width, generator=generator)
    return torch.where(torch.rand(num_rows, width, generator=generator) < filled, rows, 0.0)


@pytest.mark.parametrize("columns", [1, 3, 16, 33, 64])
@pytest.mark.parametrize(("num_rows", "width", "filled"), [(60, 200, 0.1), (1, 5, 1.0), (300, 7, 0.02), (4, 6, 0.0)])
def test_products_of_the_rows_and_of_their_transpose(num_rows, width, filled, columns):
    rows = some_rows(num_rows, width, filled)
    table, slope = torch.randn(width, columns), torch.randn(num_rows, columns)
    sparse, theirs = SparseRows.of(rows), rows.to_sparse_coo().coalesce()
    torch.testing.assert_close(sparse @ table, torch.sparse.mm(theirs, table))
    torch.testing.assert_close(sparse.turned_times(slope), torch.sparse.mm(theirs.T, slope))


def test_a_table_that_is_a_view():
    rows = some_rows(20, 8, 0.3)
    found = SparseRows.of(rows).turned_times(torch.ones(1, 1).expand(20, 3))
    torch.testing.assert_close(found, rows.sum(dim=0)[:, None].expand(8, 3))


@pytest.mark.parametrize("shape", [(30, 11), (1, 50), (5, 0), (0, 5)])
def test_compact_rows_are_scipys(shape):
    rows = some_rows(*shape, 0.1)
    rows[:1] = 0
    found, expected = compact(rows, 2.0), scipy.sparse.csr_matrix(rows.numpy())
    if rows.numel() == 0:
        assert found is None  # nothing to be faster with
        return
    assert (found.toarray() == expected.toarray()).all()
    assert (found.indptr == expected.indptr).all()
    assert compact(torch.ones(4, 4)) is None
    for by, order in (("length", 2), ("sum", 1)):
        scaled = torch.from_numpy(with_rows_divided(found, by).toarray())
        torch.testing.assert_close(scaled, torch.nn.functional.normalize(rows, p=order, dim=1))
