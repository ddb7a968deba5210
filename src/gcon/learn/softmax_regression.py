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

_NARROW = 1000  # rows of at most so many columns are whitened: the matrix for it is cheap
_FREE = 1e-9  # the penalty on the last row of a table, instead of none: it keeps that matrix regular
_NEAR = 1e-3  # relative; more than float32 loses in that matrix
_SURE = 30.0  # a score so much lower than others is as good as none
_SOME, _MANY_TIMES = 2000, 3  # rows, about, and so many times as many are many
_STEEP, _STEEP_WHITE, _GAIN = 1e-4, 5e-4, 1e-14  # where it stops: slope, gain of a step
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
    takes a hundred without.

    Args:
        rows: n x d, float32; sparse ones are not whitened.
        targets: n x c: class probabilities, or a one for the label. A class that has none gets a score as good as none.
        penalties: positive.
        exactly: ten times as near to the least, from all rows at once: for one that answers alone.

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
    if apart >= _MANY_TIMES and not exactly:
        some = given[::apart], np.ascontiguousarray(every[:, ::apart])
        parts = [(*some, _MOST_STEPS), (given, every, _LAST_STEPS)]
    if width <= _NARROW and isinstance(rows, Tensor):
        first = np.concatenate([parts[0][0], np.ones((len(parts[0][0]), 1), dtype=np.float32)], axis=1)
        products = first.T @ first * np.float32(0.5 / len(first))

    def loss_and_slope(
        flat: Table, inputs: Any, wanted: Floats, white: Floats | None, ridge: Table
    ) -> tuple[float, Table]:
        """Mean cross entropy + half of the squared table, every row of it times its ridge."""
        table: NDArray[Any] = flat.reshape(width, classes)
        if white is not None:
            table = white @ table.astype(np.float32)
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
        return loss, (slope if white is None else white.T @ slope.astype(np.float32)).astype(np.float64).ravel()

    for penalty in penalties:
        ridge, white, start, steep = np.full(width, penalty / size), None, found, _STEEP
        ridge[-1] = _FREE
        if products is not None:
            bound = products + np.diag(ridge)
            try:
                root = cholesky(bound, lower=True)
            except LinAlgError:  # long rows, rounded: any regular matrix near it whitens too
                root = cholesky(bound + np.eye(width) * (_NEAR * np.trace(bound)), lower=True)
            white = solve_triangular(root, np.eye(width), lower=True).T.astype(np.float32)
            start, steep = root.T @ found, _STEEP_WHITE
        for inputs, wanted, steps in parts:
            least = minimize(
                loss_and_slope,
                start.ravel(),
                (inputs, wanted, white, ridge),
                method="L-BFGS-B",
                jac=True,
                options={"maxiter": steps, "gtol": steep / 10 if exactly else steep, "ftol": _GAIN},
            )
            start = least.x.reshape(start.shape)
        found = start if white is None else white @ start
        table = torch.zeros(width, targets.shape[1], dtype=torch.float64)
        table[-1] -= _SURE
        table[:, seen] = torch.from_numpy(found)
        tables.append(table)
    return tables
