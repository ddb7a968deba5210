"""A graph that everybody may know: every node joined to the nodes with the most similar public features.

Feature rows are weighted and reduced to their principal directions (for bags of words: tf-idf, then latent semantic
indexing), compared by cosine, and the nearest ones joined. Nothing here can see private edges.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse
import torch
from sklearn.utils.extmath import randomized_svd
from torch import Tensor
from torch.nn.functional import normalize

from gcon.learn.cells import matches_in_cells
from gcon.learn.sizes import is_large

MOST_FILLED = 0.2  # bags of words are emptier than this


@dataclass(frozen=True, eq=False, kw_only=True)
class Nearest:
    """The nearest other nodes of every node.

    Attributes:
        places: n x k node numbers, the nearest first; never the node itself. Of 32 bits in large graphs.
        cosines: n x k similarities; negative ones count as 0.
    """

    places: Tensor
    cosines: Tensor


def weighted_rows(features: Tensor) -> Tensor:
    """Unit rows for comparing nodes: tf-idf for bags of words, columns of mean 0 and deviation 1 for anything else."""
    rows = features.to(torch.float32)
    filled = rows.count_nonzero(dim=0)
    if bool((rows >= 0).all()) and int(filled.sum()) <= MOST_FILLED * rows.numel():
        rows = rows * torch.log(len(rows) / (1 + filled)).clamp_min(0)
    else:
        deviations = rows.std(dim=0, correction=0)
        rows = (rows - rows.mean(dim=0)) / deviations.masked_fill(deviations == 0, 1.0)
    return normalize(rows, dim=1)


def principal_rows(rows: Tensor, width: int) -> Tensor:
    """Rows in their leading principal directions (not centred), at most `width`; the strongest direction first."""
    sparse = int(rows.count_nonzero()) <= MOST_FILLED * rows.numel()
    matrix = scipy.sparse.csr_matrix(rows.numpy()) if sparse else rows.numpy()
    left, strengths, _ = randomized_svd(matrix, min(width, *rows.shape), random_state=0)
    return torch.from_numpy(np.ascontiguousarray(left * strengths, dtype=np.float32))


def nearest_rows(rows: Tensor, count: int, *, chunk: int = 1024) -> Nearest:
    """The most similar other rows of every row, by cosine; of more than `EXACT_NODES` rows nearly so (cells.py).

    Args:
        rows: one a node.
        count: so many neighbours, or all others if there are fewer.
        chunk: so many rows at a time are compared with all; it bounds the memory and does not change the result.
    """
    units = normalize(rows.to(torch.float32), dim=1)
    if is_large(len(units)):
        found, similarities = matches_in_cells(units, count)
        return Nearest(places=found, cosines=similarities.clamp_min_(0))
    places, cosines = [], []
    for start in range(0, len(units), chunk):
        similar = units[start : start + chunk] @ units.T
        own = torch.arange(len(similar))
        similar[own, start + own] = -math.inf
        best = similar.topk(min(count, len(units) - 1), dim=1)
        places.append(best.indices)
        cosines.append(best.values.clamp_min(0))
    return Nearest(places=torch.cat(places), cosines=torch.cat(cosines))


def neighbour_graph(nearest: Nearest) -> scipy.sparse.csr_matrix:
    """D^-1/2 (W + W^T) D^-1/2 with W the squared cosines of the nearest nodes: symmetric, without loops."""
    size, count = nearest.places.shape
    weights = nearest.cosines.numpy().reshape(-1) ** 2
    columns, starts = nearest.places.numpy().reshape(-1), np.arange(size + 1) * count
    one_way = scipy.sparse.csr_matrix((weights, columns, starts), shape=(size, size))
    one_way.sort_indices()
    both = one_way + one_way.T
    degrees = np.asarray(both.sum(axis=1)).reshape(-1)
    roots = scipy.sparse.diags_array(1 / np.sqrt(np.where(degrees > 0, degrees, 1.0)))
    return scipy.sparse.csr_matrix(roots @ both @ roots, dtype=np.float32)


def smoothed_rows(graph: scipy.sparse.csr_matrix, rows: Tensor, *, restart: float, steps: int = 10) -> Tensor:
    """Personalised PageRank of rows: Z <- (1 - restart) G Z + restart X, so many times from Z = X."""
    given = rows.numpy()
    current = given
    for _ in range(steps if restart < 1 else 0):
        current = (1 - restart) * (graph @ current) + restart * given
    return torch.from_numpy(np.asarray(current, dtype=np.float32))


def label_agreement(nearest: Nearest, labels: Tensor, known: Tensor) -> float:
    """How much more often than chance a node and its nearest nodes share their label, where both labels are known.

    Returns:
        1 for always, 0 for as often as two random nodes do (and if no pair of known labels is there).
    """
    places = nearest.places[known].long()  # of known nodes alone: in a large graph these are few
    pairs = known[places]
    if not bool(pairs.any()):
        return 0.0
    same = float((labels[known, None] == labels[places])[pairs].double().mean())
    chance = float((torch.bincount(labels[known]).double() / int(known.sum())).square().sum())
    return (same - chance) / (1 - chance) if chance < 1 else 0.0
