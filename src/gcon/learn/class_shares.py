"""How common classes are, where nobody drew the labels as classes come: people label twenty nodes of each.

Without validation nodes the training nodes tell what answers of a class look like, and the mean answer of all other nodes is a
mixture of these. The shares that explain it best are believed as far as so few nodes can tell. Free: reads public numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import one_hot

_DOUBT = 0.4  # standard deviation of the logarithm of a share around the mean answer, before anything is known
_USUAL_EXAMPLES = 2.0  # added to those of every class: they look like everybody
_LEAST_VARIANCE = 1e-9  # where all examples of all classes are answered alike
_LEAST_SHARE = 1e-9
_ROUNDS, _STEP = 30, 0.5


def believed_shares(mean: Tensor, examples: Tensor, labels: Tensor) -> tuple[Tensor, float]:
    """The shares w of greatest posterior density, by damped Gauss-Newton steps on their logarithms, float64; and their trust.

    The mean answer is taken to be normal around sum_y w_y m_y, with m_y the mean answer of the examples of class y. Its variance
    is that of the m_y: twenty examples do not tell them exactly. Before that, log w is normal around the logarithms of the mean
    answer. The trust, from 0 to 1, is the part of that variance that the mean answer took away.

    Args:
        mean: c: the mean answer of nodes without a label.
        examples: what nodes with a label are answered by models that their own label did not teach.
        labels: of the examples.
    """
    classes = one_hot(labels, len(mean)).double()
    sizes, usual = classes.sum(dim=0)[:, None], examples.mean(dim=0)
    means = (classes.T @ examples + _USUAL_EXAMPLES * usual) / (sizes + _USUAL_EXAMPLES)
    squares = classes.T @ (examples - means[labels]).square() + _USUAL_EXAMPLES * (examples - usual).square().mean(
        dim=0
    )
    variances = squares / (sizes + _USUAL_EXAMPLES) / sizes.clamp_min(1)
    start = (mean / mean.sum()).clamp_min(_LEAST_SHARE).log()
    found, prior = start, torch.eye(len(mean), dtype=torch.float64) / _DOUBT**2
    for _ in range(_ROUNDS):
        shares = torch.softmax(found, dim=0)
        slopes = (torch.diag(shares) - torch.outer(shares, shares)) @ means
        scaled = slopes / (shares.square() @ variances + _LEAST_VARIANCE)
        slope = scaled @ (mean - shares @ means) - (found - start) / _DOUBT**2
        precision = scaled @ slopes.T + prior
        found = found + _STEP * torch.linalg.solve(precision, slope)
    # A shift of all logarithms changes no share: nothing is ever told about that direction.
    left = float(torch.linalg.inv(precision).trace()) / _DOUBT**2 - 1
    return torch.softmax(found, dim=0), min(max(1 - left / max(len(mean) - 1, 1), 0.0), 1.0)


def shift_to_believed_shares(answers: Tensor, twins: Sequence[Tensor], examples: Tensor, labels: Tensor) -> Tensor:
    """What is added to the logarithms of all answers so that their mean comes nearer to the believed shares; float64.

    On the scale of logarithms it comes as near as the square of their trust says: the shares were held back by doubt once, and
    where labels say little about shares it is better to leave answers as they are.

    Args:
        answers: class probabilities of nodes without a label.
        twins: the same by those that answered the examples. They know fewer labels and are less sure: shares follow from them.
        examples: class probabilities of labelled nodes.
        labels: theirs.
    """
    mean = torch.stack([twin.double().mean(dim=0) for twin in twins]).mean(dim=0)
    shares, trust = believed_shares(mean, examples, labels)
    usual = answers.mean(dim=0).clamp_min(_LEAST_SHARE).log()
    return shift_to_shares(answers, usual + trust**2 * (shares.log() - usual))


def shift_to_shares(answers: Tensor, wanted: Tensor) -> Tensor:
    """What is added to the logarithms of all answers so that their mean has these shares, given as logarithms; float64."""
    logs, shift = answers.clamp_min(_LEAST_SHARE).log(), torch.zeros_like(wanted)
    for _ in range(_ROUNDS):
        reached = torch.softmax(logs + shift, dim=1).mean(dim=0).clamp_min(_LEAST_SHARE)
        shift = shift + torch.log_softmax(wanted, dim=0) - reached.log()
    return shift - shift.mean()
