"""Softmax regressions, by L-BFGS: what members of the ensemble and the student are. Nothing here can see private edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import minimize
from torch import Tensor

_NARROW, _NARROW_SPARSE = (
    1000,
    512,
)  # rows of at most so many columns are whitened: the matrix for it is cheap beside them
_FREE = 1e-9  # the penalty on the last row of a table, instead of none: it keeps that matrix regular
_NEAR = 1e-3  # relative; more than float32 loses in that matrix
_SURE = 30.0  # a score so much lower than others is as good as none
_SOME, _MANY_TIMES = 2000, 3  # rows, about, and so many times as many are many
_STEEP, _STEEP_WHITE, _GAIN = 1e-3, 5e-4, 1e-14  # where it stops: slope, gain of a step
_REMEMBERED, _REMEMBERED_WHITE = 5, 10  # steps; of tables with many entries few: the work with these is most of it
_MOST_STEPS, _LAST_STEPS = 100, 5  # and after so many steps; so many for all rows, after some of many

Table = NDArray[np.float64]
Floats = NDArray[np.float32]


def softmax_regressions(
    rows: Tensor | scipy.sparse.csr_matrix, targets: Tensor, penalties: Sequence[float], *, exactly: bool = False
) -> list[Tensor]:
    """For every penalty p the table W of least sum of cross entropies + p/2 |W without its last row|^2, nearly.

    Scores are rows times the table, plus its last row; a regression answers with their softmax. Each one starts from the one
    before it.

    Narrow rows are whitened by X'X / 2 + p, which bounds the Hessian (Böhning's bound): then a dozen steps of L-BFGS do for what
    takes a hundred without. Of others the columns are scaled by the root of the diagonal of X'X / 4 + p: that takes half of them.

    Args:
        rows: n x d, float32, or sparse.
        targets: n x c: class probabilities, or a one for the label. A class that has none gets a score as good as none.
        penalties: positive.
        exactly: ten times as near to the least: for one that answers alone.

    Returns:
        Tables, (d + 1) x c, float64.
    """
    seen = targets.sum(dim=0) > 0
    given: Any = rows.numpy() if isinstance(rows, Tensor) else rows
    every = np.ascontiguousarray(targets[:, seen].T.float().numpy())  # classes first
    size, width, classes = given.shape[0], given.shape[1] + 1, len(every)
    found, tables, products = np.zeros((width, classes)), [], None
    # Of many rows some, evenly, first: from where they lead few steps are left for all.
    apart = size // _SOME
    parts = [(given, every, _MOST_STEPS)]
    if apart >= _MANY_TIMES:
        thinned = given[::apart], np.ascontiguousarray(every[:, ::apart])
        parts = [(*thinned, _MOST_STEPS), (given, every, _MOST_STEPS if exactly else _LAST_STEPS)]
    dense, some = isinstance(given, np.ndarray), parts[0][0]
    if width <= (_NARROW if dense else _NARROW_SPARSE):
        first: Any = np.ones((some.shape[0], 1), dtype=np.float32)
        first = (
            np.concatenate([some, first], axis=1)
            if dense
            else scipy.sparse.csr_matrix(scipy.sparse.hstack([some, first]))
        )
        products = first.T @ first
        products = (products if dense else products.toarray()) * np.float32(0.5 / some.shape[0])
    elif dense:
        energies = np.append(np.einsum("nd,nd->d", given, given), size)
    else:
        energies = np.append(np.bincount(given.indices, given.data**2.0, minlength=width - 1), size)

    def loss_and_slope(flat: Table, inputs: Any, wanted: Floats, white: Floats, ridge: Table) -> tuple[float, Table]:
        """Mean cross entropy + half of the squared table, every row of it times its ridge."""
        table = _times(white, flat.reshape(width, classes).astype(np.float32))
        scores = np.ascontiguousarray((inputs @ table[:-1].astype(np.float32)).T)  # along short rows numpy is slow
        scores += table[-1].astype(np.float32)[:, None]
        scores -= scores.max(axis=0)
        loss = -float(np.vdot(wanted, scores))
        raised = np.exp(scores, out=scores)
        totals = raised.sum(axis=0)
        loss += float(np.log(totals).sum(dtype=np.float64))
        raised /= totals
        raised -= wanted
        slope = np.concatenate([inputs.T @ raised.T, raised.sum(axis=1)[None]]) / inputs.shape[0]
        pulled = ridge[:, None] * table
        slope = slope + pulled
        loss = loss / inputs.shape[0] + float(np.vdot(table, pulled)) / 2
        return loss, _times(white.T, slope.astype(np.float32)).astype(np.float64).ravel()

    for penalty in penalties:
        ridge = np.full(width, penalty / size)
        ridge[-1] = _FREE
        if products is not None:
            bound = products + np.diag(ridge)
            try:
                root = cholesky(bound, lower=True)
            except LinAlgError:  # long rows, rounded: any regular matrix near it whitens too
                root = cholesky(bound + np.eye(width) * (_NEAR * np.trace(bound)), lower=True)
            white = solve_triangular(root, np.eye(width), lower=True).T.astype(np.float32)
            start, steep, remembered = root.T @ found, _STEEP_WHITE, _REMEMBERED_WHITE
        else:
            root = np.sqrt(energies / (4 * size) + ridge)
            white = (1 / root).astype(np.float32)
            start, steep, remembered = root[:, None] * found, _STEEP, _REMEMBERED
        for inputs, wanted, steps in parts:
            tolerance = steep / 10 if exactly else steep
            least = minimize(
                loss_and_slope,
                start.ravel(),
                (inputs, wanted, white, ridge),
                method="L-BFGS-B",
                jac=True,
                options={"maxiter": steps, "gtol": tolerance, "ftol": _GAIN, "maxcor": remembered},
            )
            start = least.x.reshape(start.shape)
        found = _times(white, start)
        table = torch.zeros(width, targets.shape[1], dtype=torch.float64)
        table[-1] -= _SURE
        table[:, seen] = torch.from_numpy(found)
        tables.append(table)
    return tables


def probabilities(scores: Tensor) -> Tensor:
    """The softmax of rows, the same bits whatever other rows are there. Torch's own takes four times as long for short rows."""
    raised = (scores - scores.amax(dim=1, keepdim=True)).exp_()
    return raised.div_(raised.sum(dim=1, keepdim=True))


def _times(matrix: Floats, table: NDArray[Any]) -> NDArray[Any]:
    """A matrix, or the diagonal of one, times a table."""
    found: NDArray[Any] = matrix @ table if matrix.ndim == 2 else matrix[:, None] * table
    return found
