"""Principal directions, smoothing and moments of large feature tables: passes over blocks of nodes.

The same quantities as in feature_graph.py. Tables may lie in a file (a memory map): a block is read at a time. Beyond the
table there are float32 matrices of as many columns as directions, and nothing of the size of the table itself.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse
import torch
from sklearn.utils.extmath import randomized_svd
from torch import Tensor
from torch.nn.functional import normalize

from gcon.learn.feature_graph import MOST_FILLED
from gcon.learn.sizes import DIRECTION_ROWS, blocks, sampled

_COLUMNS = 32  # of the rows that are smoothed at a time
_SEED = 1  # of the rows that directions are taken from

Weighting = Callable[[Tensor], Tensor]  # features of some nodes -> unit rows


def plain_rows(features: Tensor) -> Tensor:
    """Features of some nodes as unit rows."""
    return normalize(features.to(torch.float32), dim=1)


def weighting(features: Tensor) -> Weighting:
    """`weighted_rows` as a function of some of the rows; the weights are those of the whole table."""
    size, width = features.shape
    filled = torch.zeros(width, dtype=torch.int64)
    sums, squares = torch.zeros(width, dtype=torch.float64), torch.zeros(width, dtype=torch.float64)
    positive, origin = True, features[: next(blocks(size)).stop].double().mean(dim=0)
    for nodes in blocks(size):
        rows = features[nodes].to(torch.float32)
        positive = positive and bool((rows >= 0).all())
        filled += rows.count_nonzero(dim=0)
        centred = rows.double() - origin  # near the mean, so that squares do not swamp the deviations
        sums += centred.sum(dim=0)
        squares += centred.square().sum(dim=0)
    if positive and int(filled.sum()) <= MOST_FILLED * size * width:
        factors = torch.log(size / (1 + filled)).clamp_min(0)
        return lambda part: normalize(part.to(torch.float32) * factors, dim=1)
    means = sums / size
    deviations = (squares / size - means.square()).clamp_min(0).sqrt().float()
    centre = (origin + means).float()
    # A constant column has rounding for deviations.
    still = deviations <= 1e-6 * centre.abs()
    return lambda part: normalize(
        torch.where(still, 0.0, part.to(torch.float32) - centre) / deviations.masked_fill(still, 1.0), dim=1
    )


def large_principal_rows(features: Tensor, weighted: Weighting, width: int) -> Tensor:
    """`principal_rows` of the weighted features; the directions are those of a sample of the nodes."""
    some = weighted(features[sampled(torch.arange(len(features)), DIRECTION_ROWS, seed=_SEED)])
    sparse = int(some.count_nonzero()) <= MOST_FILLED * some.numel()
    matrix = scipy.sparse.csr_matrix(some.numpy()) if sparse else some.numpy()
    _, _, right = randomized_svd(matrix, min(width, *some.shape), random_state=0)
    directions = torch.from_numpy(np.ascontiguousarray(right.T, dtype=np.float32))
    principal = torch.empty(len(features), directions.shape[1])
    for nodes in blocks(len(features)):
        principal[nodes] = weighted(features[nodes]) @ directions
    return principal


def smoothed_together(
    graph: scipy.sparse.csr_matrix, rows: Tensor, restarts: tuple[float, ...], *, steps: int = 10
) -> list[Tensor]:
    """`smoothed_rows` for several restarts, as unit rows: all are sums of the same powers, sum_k w_k G^k X.

    Args:
        graph: of nearest features.
        rows: n x k.
        restarts: 1 is no smoothing.
        steps: of each; the weights are restart (1 - restart)^k, and (1 - restart)^steps for the last power.
    """
    found = [restart * rows if restart < 1 else rows.clone() for restart in restarts]
    for start in range(0, rows.shape[1], _COLUMNS):
        part = slice(start, start + _COLUMNS)
        power = np.ascontiguousarray(rows[:, part].numpy())
        for step in range(1, steps + 1):
            power = graph @ power
            for restart, total in zip(restarts, found, strict=True):
                if restart < 1:
                    weight = (1 - restart) ** step * (restart if step < steps else 1.0)
                    total[:, part].add_(torch.from_numpy(power), alpha=weight)
    for total in found:
        for nodes in blocks(len(total)):
            total[nodes] = normalize(total[nodes], dim=1)
    return found


def graph_moments(graph: scipy.sparse.csr_matrix, rows: Tensor) -> Tensor:
    """F' G F for the graph of nearest features, float64."""
    moments, table = torch.zeros(rows.shape[1], rows.shape[1], dtype=torch.float64), rows.numpy()
    for nodes in blocks(len(rows)):
        moments += rows[nodes].double().T @ torch.from_numpy(graph[nodes] @ table).double()
    return moments


def gram(rows: Tensor) -> Tensor:
    """F' F, float64."""
    total = torch.zeros(rows.shape[1], rows.shape[1], dtype=torch.float64)
    for nodes in blocks(len(rows)):
        block = rows[nodes].double()
        total.addmm_(block.T, block)
    return total
