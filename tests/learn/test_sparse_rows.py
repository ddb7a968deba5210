"""Sparse rows: the product with a table and its gradient, as torch's own sparse product has them."""

import pytest
import torch

from gcon.learn.sparse_rows import SparseRows


def some_rows(num_rows, width, filled):
    generator = torch.Generator().manual_seed(num_rows + width)
    rows = torch.randn(num_rows, width, generator=generator)
    return torch.where(torch.rand(num_rows, width, generator=generator) < filled, rows, 0.0)


@pytest.mark.parametrize("columns", [1, 3, 16, 33, 64])
@pytest.mark.parametrize(("num_rows", "width", "filled"), [(60, 200, 0.1), (1, 5, 1.0), (300, 7, 0.02), (4, 6, 0.0)])
def test_the_product_and_its_gradient(num_rows, width, filled, columns):
    rows = some_rows(num_rows, width, filled)
    table, slope = torch.randn(width, columns), torch.randn(num_rows, columns)
    found, expected = table.clone().requires_grad_(), table.clone().requires_grad_()
    ours, theirs = SparseRows.of(rows) @ found, torch.sparse.mm(rows.to_sparse_coo().coalesce(), expected)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(ours.double(), rows.double() @ table.double(), rtol=1e-4, atol=1e-5, check_dtype=False)
    ours.backward(slope)
    theirs.backward(slope)
    torch.testing.assert_close(found.grad, expected.grad)


def test_no_gradient_is_asked_for_where_nothing_is_learned():
    with torch.no_grad():
        assert not (SparseRows.of(some_rows(5, 9, 0.2)) @ torch.ones(9, 2, requires_grad=True)).requires_grad


def test_a_slope_that_is_a_view():
    """What comes back from a sum is one number, repeated."""
    rows = some_rows(20, 8, 0.3)
    table = torch.ones(8, 3, requires_grad=True)
    (SparseRows.of(rows) @ table).sum().backward()
    torch.testing.assert_close(table.grad, rows.sum(dim=0)[:, None].expand(8, 3))
