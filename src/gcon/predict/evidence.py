"""What a node's neighbours say about it: evidence that adds up, for friends who are alike and for friends who are not.

Every neighbour sends the logarithm of how likely her answer is under each class of the receiver, given how often edges stay
inside a class. Messages are bounded, because answers of neighbours err together. Where friends are alike, the mean answer
of the neighbourhood counts as one more witness: it is better on sparse graphs, and is outvoted on dense ones.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gcon.graphs.edges import EdgeList
from gcon.propagate.schemes import Schemes, propagate
from gcon.propagate.sums import neighbour_sums

LOUDEST = 1.0  # the largest message, in units of log-probability
_SMALLEST = 1e-4
_TELLING = 0.1  # homophily must be so far from chance, on a scale where 1 is perfect, to tell anything
_OWN_WEIGHT = 0.2  # of a node itself in the mean answer of its neighbourhood
_FAR = Schemes(0.1, (10,))


def messages(answers: Tensor, homophily: float, shares: Tensor | None = None) -> Tensor:
    """Log-likelihoods of the receiver's class, centred and bounded; one row a sender.

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


def scores_with_own_edges(answers: Tensor, edges: EdgeList, homophily: float, shares: Tensor | None = None) -> Tensor:
    """Log-scores of every node: its own answer, the messages of its neighbours, and the mean answer around it.

    Arguments are those of `messages`.

    Privacy:
        Works on opened edges, inside a gate; row i reads the edges of node i only.
    """
    scores = answers.clamp_min(_SMALLEST).log()
    if not tells(homophily, answers.shape[1]):
        return scores
    scores = scores + neighbour_sums(edges, messages(answers, homophily, shares))
    if above_chance(homophily, answers.shape[1]) < 0:
        return scores
    around = propagate(edges, answers, Schemes(_OWN_WEIGHT, (1,)))
    return scores + around.clamp_min(_SMALLEST).log()


def scores_on_public_graph(answers: Tensor, edges: EdgeList, homophily: float, shares: Tensor) -> Tensor:
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
