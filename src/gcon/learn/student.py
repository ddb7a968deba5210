"""A linear model taught by released answers, so that nodes never seen can be answered too. Free post-processing."""

from __future__ import annotations

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax
from torch import Tensor

from gcon.learn import sizes
from gcon.learn.encoder import Encoder, scaled_input

_PENALTY = 1e-4  # half of it times the squared weights; rows have length 1
_MOST_STEPS = 100
_MOSTLY_EMPTY = 0.2
_SEED = 3  # of the nodes that teach, where there are many


def train_student(features: Tensor, answers: Tensor) -> Encoder:
    """Softmax regression from unit feature rows to class probabilities: least cross entropy, by L-BFGS.

    Of a large graph a fixed sample of the nodes teaches.

    Args:
        features: public, n x d0.
        answers: n x c, class probabilities that everybody may know.

    Privacy:
        Reads public features and released answers: there is no argument that could hold an edge.
    """
    some = sizes.sampled(len(features), sizes.EXACT_NODES, seed=_SEED)
    rows, targets = scaled_input(features[some], unit=True).numpy(), answers[some].double().numpy()
    filled = np.count_nonzero(rows) / max(rows.size, 1)
    inputs = scipy.sparse.csr_matrix(rows) if filled < _MOSTLY_EMPTY else rows
    size, width, classes = len(rows), rows.shape[1], targets.shape[1]

    def loss_and_slope(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        table = flat.reshape(width + 1, classes)
        weights, bias = table[:-1], table[-1]
        logs = log_softmax(np.asarray(inputs @ weights) + bias, axis=1)
        errors = (np.exp(logs) - targets) / size
        slope = np.vstack([np.asarray(inputs.T @ errors) + _PENALTY * weights, errors.sum(axis=0)])
        loss = -float((targets * logs).sum()) / size + _PENALTY / 2 * float(np.square(weights).sum())
        return loss, slope.ravel()

    start = np.zeros((width + 1) * classes)
    found = minimize(loss_and_slope, start, jac=True, method="L-BFGS-B", options={"maxiter": _MOST_STEPS})
    table = torch.from_numpy(found.x.reshape(width + 1, classes)).float()
    return Encoder(
        hidden_weight=None,
        hidden_bias=None,
        head_weight=table[:-1].clone(),
        head_bias=table[-1].clone(),
        unit_input=True,
        centre=None,
    )
