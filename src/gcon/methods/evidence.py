"""What a node's neighbours say about it: evidence that adds up, for friends who are alike and for friends who are not.

Every neighbour sends the logarithm of how likely her answer is under each class of the receiver, given how often edges stay
inside a class. Messages are bounded, because answers of neighbours err together. Where friends are alike, the mean answer
of the neighbourhood counts as one more witness: it is better on sparse graphs, and is outvoted on dense ones.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcon.edges.kernels import multiply
from gcon.edges.schemes import Schemes, propagate
from gcon.edges.source import Edges, RowBlock
from gcon.nodes import row_slices

LOUDEST = 1.0  # the largest message, in units of log-probability
_SMALLEST = 1e-4
_TELLING = 0.1  # homophily must be so far from chance, on a scale where 1 is perfect, to tell anything
_OWN_WEIGHT = 0.2  # of a node itself in the mean answer of its neighbourhood
_FAR = Schemes(0.1, (10,))


def messages(answers: Tensor, homophily: float, shares: Tensor | None = None) -> Tensor:
    """Log-likelihoods of the receiver's class, centred and bounded; one row per sender.

    Args:
        answers: class probabilities of the senders.
        homophily: the share of edges inside a class.
        shares: of the classes among all nodes; None for those of the answers.
    """
    classes = answers.shape[1]
    apart = (1 - homophily) / (classes - 1)
    likelihood = answers / (answers.mean(dim=0) if shares is None else shares).clamp_min(_SMALLEST)
    likelihood = apart * likelihood.sum(dim=1, keepdim=True) + (homophily - apart) * likelihood
    said = (likelihood / likelihood.sum(dim=1, keepdim=True)).clamp_min(_SMALLEST).log()
    said = said - said.mean(dim=1, keepdim=True)
    return LOUDEST * torch.tanh(said / LOUDEST)


def scores_with_own_edges(answers: Tensor, edges: Edges, homophily: float, shares: Tensor | None = None) -> Tensor:
    """Log-scores of every node: its own answer, the messages of its neighbours, and the mean answer around it.

    One pass over the edges, block by block. What neighbours say is added up in fixed point, with a unit that depends on the
    number of nodes alone: sums are exact, the same in any order, and no other row has a say in them.

    Args: those of `messages`; the answers are float64.

    Privacy:
        Works on opened edges, inside a gate; row i reads the edges of node i only.
    """
    said, unit = what_all_say(answers, homophily, shares)
    scores = torch.empty_like(answers)
    edges.fill(scores, partial(_score_block, unit=unit), said, answers)
    return scores


def what_all_say(answers: Tensor, homophily: float, shares: Tensor | None = None) -> tuple[Tensor, float]:
    """What every node tells its neighbours, in whole numbers, and their unit; no column where neighbours tell nothing.

    Args: those of `messages`; the answers are float64, of all nodes of a graph.

    Privacy:
        Reads no edge.
    """
    classes = answers.shape[1]
    # Numbers are at most 1: those of all nodes together are below 2^52 units.
    unit = float(2.0 ** ((len(answers) - 1).bit_length() - 51))
    lean = above_chance(homophily, classes)
    if abs(lean) < _TELLING:
        return torch.empty(0, 0, dtype=torch.int64), unit
    shares, alike = answers.mean(dim=0) if shares is None else shares, lean >= 0
    said = torch.empty(len(answers), 2 * classes if alike else classes, dtype=torch.int64)
    for rows in row_slices(len(answers)):
        told = messages(answers[rows], homophily, shares)
        told = torch.cat([told, answers[rows]], dim=1) if alike else told
        said[rows] = (told / unit).round_().to(torch.int64)
    return said, unit


def _score_block(block: RowBlock, said: Tensor, answers: Tensor, *, unit: float, out: Tensor) -> None:
    own, classes = answers[block.nodes], answers.shape[1]
    out.copy_(own.clamp_min(_SMALLEST).log())
    if said.shape[1] == 0:
        return
    sums = multiply.kernel(said.device.type).neighbour_totals(block, said).mul_(unit)
    out.add_(sums[:, :classes])
    if sums.shape[1] > classes:
        weight = (1 - _OWN_WEIGHT) / (block.degrees.to(torch.float64) + 1)[:, None]
        around = weight * (sums[:, classes:] + own) + _OWN_WEIGHT * own
        out.add_(around.clamp_min_(_SMALLEST).log_())


def row_scores(answers: Tensor, homophily: float, shares: Tensor) -> Callable[[int, NDArray[Any]], NDArray[np.float64]]:
    """The same scores for one node at a time, from its row and its neighbours: for a service, where every call counts.

    What reads no edge is computed now. Sums are the same whole numbers; logarithms may differ from torch's in the last bit.

    Args: those of `messages`; the answers are float64, of all nodes of a graph.

    Privacy:
        The function is called inside a gate, or with neighbours that somebody named.
    """
    classes, known = answers.shape[1], answers.numpy()
    own_scores = np.log(np.maximum(known, _SMALLEST))
    whole, unit = what_all_say(answers, homophily, shares)
    if whole.shape[1] == 0:
        return lambda row, _: own_scores[row]
    said, alike = whole.numpy(), whole.shape[1] > classes

    def scores(row: int, neighbours: NDArray[Any]) -> NDArray[np.float64]:
        sums = said[neighbours].sum(axis=0).astype(np.float64) * unit
        found: NDArray[np.float64] = own_scores[row] + sums[:classes]
        if alike:
            weight = (1 - _OWN_WEIGHT) / (len(neighbours) + 1)
            around = weight * (sums[classes:] + known[row]) + _OWN_WEIGHT * known[row]
            found += np.log(np.maximum(around, _SMALLEST))
        return found

    return scores


def scores_on_public_graph(answers: Tensor, edges: Edges, homophily: float, shares: Tensor) -> Tensor:
    """Log-scores from all edges of a public graph: where friends are alike, answers from further away count as well."""
    scores = scores_with_own_edges(answers, edges, homophily, shares)
    if not tells(homophily, answers.shape[1]) or above_chance(homophily, answers.shape[1]) < 0:
        return scores
    return scores + propagate(edges, answers, _FAR).clamp_min(_SMALLEST).log()


def above_chance(homophily: float, num_classes: int) -> float:
    """0 for edges that do not care about classes, 1 if all stay inside a class; negative if they avoid their own."""
    return (homophily - 1 / num_classes) * num_classes / (num_classes - 1)


def tells(homophily: float, num_classes: int) -> bool:
    """Whether neighbours tell anything about a node's class."""
    return abs(above_chance(homophily, num_classes)) >= _TELLING
