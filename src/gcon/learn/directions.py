"""Principal directions of public features: what nodes are compared by, and what members of the ensemble learn from.

Features are taken as they are, or weighted (for bags of words tf-idf, so that the directions are those of latent semantic
indexing). Weights and directions are those of a sample of the nodes, which is everybody up to `EXACT_NODES`. Features may
lie in a file (a memory map): of more nodes, a block is read at a time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse
import torch
from sklearn.utils.extmath import randomized_svd
from torch import Tensor
from torch.nn.functional import normalize

from gcon.learn.sizes import blocks

MOST_FILLED = 0.2  # bags of words are emptier than this

Weighting = Callable[[Tensor], Tensor]  # features of some nodes, float32 -> unit rows


def weighting(features: Tensor) -> Weighting:
    """Tf-idf for bags of words, columns of mean 0 and deviation 1 for anything else; the weights are those of these features."""
    rows = features.to(torch.float32)
    filled = rows.count_nonzero(dim=0)
    if bool((rows >= 0).all()) and int(filled.sum()) <= MOST_FILLED * rows.numel():
        factors = torch.log(len(rows) / (1 + filled)).clamp_min(0)
        return lambda some: normalize(some * factors, dim=1)
    centre, deviations = rows.mean(dim=0), rows.std(dim=0, correction=0)
    deviations = deviations.masked_fill(deviations == 0, 1.0)
    return lambda some: normalize((some - centre) / deviations, dim=1)


def principal_rows(features: Tensor, sample: Tensor, weigh: Weighting, width: int) -> Tensor:
    """Weighted features along the leading principal directions of a sample (not centred); the strongest one first.

    Args:
        features: one row per node.
        sample: some of these rows, or all of them.
        weigh: makes unit rows of features.
        width: the number of directions, or less where rows or columns are fewer.
    """
    rows = weigh(sample.to(torch.float32))
    sparse = int(rows.count_nonzero()) <= MOST_FILLED * rows.numel()
    matrix = scipy.sparse.csr_matrix(rows.numpy()) if sparse else rows.numpy()
    left, strengths, right = randomized_svd(matrix, min(width, *rows.shape), random_state=0)
    if len(sample) == len(features):
        return torch.from_numpy(np.ascontiguousarray(left * strengths, dtype=np.float32))
    directions = torch.from_numpy(np.ascontiguousarray(right.T, dtype=np.float32))
    principal = torch.empty(len(features), directions.shape[1])
    for nodes in blocks(len(features)):
        principal[nodes] = weigh(features[nodes].to(torch.float32)) @ directions
    return principal
