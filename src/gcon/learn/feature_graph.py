"""A graph that everybody may know: every node joined to the nodes with the most similar public features.

Rows of principal directions are compared by cosine, and the nearest ones joined. Nothing here can see private edges.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch.nn.functional import normalize, one_hot

from gcon.learn import sizes
from gcon.learn.cells import matches_in_cells

_LABEL_RESTART = 0.1
_LITTLE, _NOTHING = 0.01, 1e-12  # beside what a node hears on average, and instead of a division by 0
_COLUMNS = 32  # smoothed at a time: so few stay in the processor's cache; it does not change the result


@dataclass(frozen=True, eq=False, kw_only=True)
class Nearest:
    """The nearest other nodes of every node.

    Attributes:
        places: n x k node numbers, the nearest first; never the node itself. Of 32 bits if they are many.
        cosines: n x k similarities; negative ones count as 0.
    """

    places: Tensor
    cosines: Tensor


def nearest_rows(rows: Tensor, count: int, *, chunk: int = 1024) -> Nearest:
    """The most similar other rows of every row, by cosine; of more than `COMPARED_NODES` rows nearly so (cells.py).

    Args:
        rows: one per node.
        count: the number of neighbours, or all others if there are fewer.
        chunk: so many rows at a time are compared with all; it bounds the memory and does not change the result.
    """
    units = normalize(rows.to(torch.float32), dim=1)
    if len(units) > sizes.COMPARED_NODES:
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


def smoothed_rows(
    graph: scipy.sparse.csr_matrix, rows: Tensor, restarts: Sequence[float], *, steps: int = 10
) -> list[Tensor]:
    """Personalised PageRank of rows, for several restarts: Z <- (1 - restart) G Z + restart X, so many times from Z = X.

    All of them are sums of the same products G^k X, which are made once.

    Args:
        graph: symmetric, n x n.
        rows: X, n x d.
        restarts: 1 leaves the rows as they are.
        steps: how often.
    """
    smoothed = [torch.empty_like(rows) for _ in restarts]
    for start in range(0, rows.shape[1], _COLUMNS):
        part = slice(start, start + _COLUMNS)
        product = np.ascontiguousarray(rows[:, part].numpy())
        for step in range(steps + 1):
            if step > 0:
                product = graph @ product
            for restart, table in zip(restarts, smoothed, strict=True):
                weight = (1 - restart) ** step * (restart if step < steps else 1.0)
                if step == 0:
                    torch.mul(torch.from_numpy(product), weight, out=table[:, part])
                else:
                    table[:, part].add_(torch.from_numpy(product), alpha=weight)
    return smoothed


def spread_labels(graph: scipy.sparse.csr_matrix, labels: Tensor, known: Tensor, num_classes: int) -> Tensor:
    """Class probabilities from known labels that spread over the graph, every class as much as any other; float64."""
    seeds = one_hot(labels[known], num_classes).float()
    rows = torch.zeros(len(labels), num_classes)
    rows[known] = seeds / seeds.sum(dim=0).clamp_min(1)
    (found,) = smoothed_rows(graph, rows, (_LABEL_RESTART,))
    return _as_probabilities(found)


def answers_around(graph: scipy.sparse.csr_matrix, answers: Tensor) -> Tensor:
    """The mean answer of every node's neighbours, without its own; float64."""
    return _as_probabilities(torch.from_numpy(graph @ answers.numpy()))


def _as_probabilities(rows: Tensor) -> Tensor:
    """Rows of sum 1. A little is added everywhere: whoever hears nothing knows nothing."""
    some = rows.double() + _LITTLE * rows.mean().double() + _NOTHING
    return some / some.sum(dim=1, keepdim=True)


def graph_moments(graph: scipy.sparse.csr_matrix, rows: Tensor) -> Tensor:
    """F' G F, float64."""
    wide = rows.double()
    return wide.T @ torch.from_numpy(graph @ wide.numpy())


def label_agreement(nearest: Nearest, labels: Tensor, known: Tensor) -> float:
    """How much more often than chance a node and its nearest nodes share their label, where both labels are known.

    Returns:
        1 for always, 0 for as often as two random nodes do (and if no pair of known labels is there).
    """
    places = nearest.places[known].long()
    pairs = known[places]
    if not bool(pairs.any()):
        return 0.0
    same = float((labels[known, None] == labels[places])[pairs].double().mean())
    chance = float((torch.bincount(labels[known]).double() / int(known.sum())).square().sum())
    return (same - chance) / (1 - chance) if chance < 1 else 0.0
