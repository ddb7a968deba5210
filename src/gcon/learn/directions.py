"""Principal directions of public features: what nodes are compared by, and what members of the ensemble learn from.

Features are taken as they are, or weighted (for bags of words tf-idf, so that the directions are those of latent semantic
indexing). Weights and directions are those of the sampled nodes (sample.py). Features may lie in a file (a memory map): of
large graphs a block is read at a time.
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
_NARROW = 1000  # so many columns have a square matrix of products that is cheap, and gives the directions exactly

Weighting = Callable[[Tensor], Tensor]  # features of some nodes, float32 -> unit rows


def weighting(features: Tensor) -> Weighting:
    """Tf-idf for bags of words, columns of mean 0 and deviation 1 for anything else; the weights are those of these features."""
    rows = features.to(torch.float32)
    filled = rows.count_nonzero(dim=0)
    if bool((rows >= 0).all()) and int(filled.sum()) <= MOST_FILLED * rows.numel():
        factors = torch.log(len(rows) / (1 + filled)).clamp_min(0)
        return lambda some: normalize(some * factors.to(some.device), dim=1)
    centre, deviations = rows.mean(dim=0), rows.std(dim=0, correction=0)
    deviations = deviations.masked_fill(deviations == 0, 1.0)
    return lambda some: normalize((some - centre.to(some.device)) / deviations.to(some.device), dim=1)


def principal_rows(features: Tensor, weigh: Weighting, width: int) -> tuple[Tensor, Tensor]:
    """Weighted features along their leading principal directions (not centred), the strongest first; and these directions.

    Args:
        features: one row per node.
        weigh: makes unit rows of features.
        width: the number of directions, or less where rows or columns are fewer.

    Returns:
        n x k rows, and d x k directions: weighted features of other nodes times these are their rows.
    """
    rows, kept = weigh(features.to(torch.float32)), min(width, *features.shape)
    if rows.shape[1] <= _NARROW:
        axes = torch.linalg.eigh((rows.T @ rows).double()).eigenvectors  # the strongest last
        directions = axes[:, -kept:].flip(1).float().contiguous()
        return rows @ directions, directions
    sparse = int(rows.count_nonzero()) <= MOST_FILLED * rows.numel()
    matrix = scipy.sparse.csr_matrix(rows.numpy()) if sparse else rows.numpy()
    left, strengths, right = randomized_svd(matrix, kept, random_state=0)
    found = (np.ascontiguousarray(each, dtype=np.float32) for each in (left * strengths, right.T))
    principal, directions = map(torch.from_numpy, found)
    return principal, directions


def unit_rows_along(directions: Tensor, weigh: Weighting, features: Tensor, device: str) -> Tensor:
    """The same rows for all nodes of a large graph, of length 1, a block at a time; float32."""
    rows, along = torch.empty(len(features), directions.shape[1]), directions.to(device)
    for nodes in blocks(len(features)):
        rows[nodes] = normalize(weigh(features[nodes].to(device, torch.float32)) @ along, dim=1).cpu()
    return rows
