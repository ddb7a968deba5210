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
    empty = products is None and np.count_nonzero(inputs) < _MOSTLY_EMPTY * inputs.size
    compact: Any = scipy.sparse.csr_matrix(inputs) if empty else inputs

    def loss_and_slope(flat: Table, inputs: Any, pull: Callable[[Table], Table]) -> tuple[float, Table]:
        """Mean cross entropy + half of table . pull(table), where pull is linear and symmetric."""
        table = flat.reshape(width, wanted.shape[1])
        scores = inputs @ table.astype(np.float32)
        scores -= np.ascontiguousarray(scores.T).max(axis=0)[:, None]  # along short rows numpy is slow
        raised = np.exp(scores)
        totals = raised.sum(axis=1, keepdims=True)
        pulled = pull(table)
        slope = inputs.T @ (raised / totals - wanted) / size + pulled
        loss = np.log(totals).sum(dtype=np.float64) - np.multiply(wanted, scores).sum(dtype=np.float64)
        return float(loss) / size + float(np.vdot(table, pulled)) / 2, slope.ravel()

    for penalty in penalties:
        ridge, white = np.full(width, penalty / size), None
        ridge[-1] = _FREE
        given, pull, start, steep = compact, ridge[:, None].__mul__, found, _STEEP
        if products is not None:
            bound = products * (0.5 / size) + np.diag(ridge)
            try:
                root = cholesky(bound, lower=True)
            except LinAlgError:  # long rows, rounded: any regular matrix near it whitens too
                root = cholesky(bound + np.eye(width) * (_NEAR * np.trace(bound)), lower=True)
            white = solve_triangular(root, np.eye(width), lower=True).T
            pull = ((white.T * ridge) @ white).__matmul__
            given, start, steep = inputs @ white.astype(np.float32), root.T @ found, _STEEP_WHITE
        least = minimize(
            loss_and_slope,
            start.ravel(),
            (given, pull),
            method="L-BFGS-B",
            jac=True,
            options={"maxiter": _MOST_STEPS, "gtol": steep, "ftol": _GAIN},
        )
        found = least.x.reshape(start.shape)
        found = found if white is None else white @ found
        table = torch.zeros(width, targets.shape[1], dtype=torch.float64)
        table[-1] -= _SURE
        table[:, seen] = torch.from_numpy(found)
        tables.append(table)
    return tables
