"""Softmax regressions, by L-BFGS: what members of the ensemble and the student are. Nothing here can see private edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import minimize
from torch import Tensor

_MOSTLY_EMPTY = 0.2  # wide rows that are emptier than this are kept sparse
_NARROW = 1000  # rows of at most so many columns are whitened: the matrix for it is cheap
_FREE = 1e-9  # the penalty on the last row of a table, instead of none: it keeps that matrix regular
_NEAR = 1e-3  # relative; more than float32 loses in that matrix
_SURE = 30.0  # a score so much lower than others is as good as none
_STEEP, _STEEP_WHITE, _GAIN, _MOST_STEPS = 1e-5, 5e-5, 1e-14, 100  # where it stops: slope, gain of a step, steps

Table = NDArray[np.float64]


def softmax_regressions(rows: Tensor, targets: Tensor, penalties: Sequence[float]) -> list[Tensor]:
    """For every penalty p the table W of least sum of cross entropies + p/2 |W without its last row|^2, nearly.

    Scores are rows times the table, plus its last row; a regression answers with their softmax. Each one starts from the one
    before it.

    Narrow rows are whitened by X'X / 2 + p, which bounds the Hessian (Böhning's bound): then a dozen steps of L-BFGS do for what
    takes a hundred without.

    Args:
        rows: n x d, float32.
        targets: n x c: class probabilities, or a one for the label. A class that has none gets a score as good as none.
        penalties: positive.

    Returns:
        Tables, (d + 1) x c, float64.
    """
    seen = targets.sum(dim=0) > 0
    inputs, wanted = torch.cat([rows, rows.new_ones(len(rows), 1)], dim=1).numpy(), targets[:, seen].float().numpy()
    size, width = inputs.shape
    found, tables = np.zeros((width, wanted.shape[1])), []
    products = inputs.T @ inputs if width <= _NARROW else None
    for penalty in penalties:
        ridge = np.full(width, penalty / size)
        ridge[-1] = _FREE
        if products is not None:
            bound = products * (0.5 / size) + np.diag(ridge)
            try:
                root = cholesky(bound, lower=True)
            except LinAlgError:  # long rows, rounded: any regular matrix near it whitens too
                root = cholesky(bound + np.eye(width) * (_NEAR * np.trace(bound)), lower=True)
            white = solve_triangular(root, np.eye(width), lower=True).T
            pull = (white.T * ridge) @ white
            whitened = inputs @ white.astype(np.float32)
            found = white @ _least_loss(whitened, wanted, pull.__matmul__, root.T @ found, _STEEP_WHITE)
        else:
            empty = np.count_nonzero(inputs) < _MOSTLY_EMPTY * inputs.size
            compact = scipy.sparse.csr_matrix(inputs) if empty else inputs
            found = _least_loss(compact, wanted, ridge[:, None].__mul__, found, _STEEP)
        table = torch.zeros(width, targets.shape[1], dtype=torch.float64)
        table[-1] -= _SURE
        table[:, seen] = torch.from_numpy(found)
        tables.append(table)
    return tables


def _least_loss(
    inputs: Any, wanted: NDArray[np.float32], pull: Callable[[Table], Table], start: Table, steep: float
) -> Table:
    """The table of least mean cross entropy + half of table . pull(table), where pull is linear and symmetric."""

    def loss_and_slope(flat: NDArray[np.float64]) -> tuple[float, Table]:
        table = flat.reshape(start.shape)
        scores = inputs @ table.astype(np.float32)
        scores -= scores.max(axis=1, keepdims=True)
        raised = np.exp(scores)
        totals = raised.sum(axis=1, keepdims=True)
        pulled = pull(table)
        slope = inputs.T @ (raised / totals - wanted) / len(wanted) + pulled
        loss = np.log(totals).sum(dtype=np.float64) - np.multiply(wanted, scores).sum(dtype=np.float64)
        return float(loss) / len(wanted) + float(np.vdot(table, pulled)) / 2, slope.ravel()

    found = minimize(
        loss_and_slope,
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": _MOST_STEPS, "gtol": steep, "ftol": _GAIN},
    )
    table: Table = found.x.reshape(start.shape)
    return table
