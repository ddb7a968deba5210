"""One accuracy with own edges that may be published: a noisy count of correct answers, paid from the ledger."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gcon.edges.source import Edges
from gcon.errors import AnswersWarning, InputError, warn_caller
from gcon.mechanisms.counts import ENDS_OF_AN_EDGE, NoisyCount
from gcon.methods.model import Model
from gcon.methods.own_edges import own_edge_answers
from gcon.privacy.account import release_once
from gcon.privacy.boundary import Private
from gcon.privacy.ledger import Ledger
from gcon.privacy.randomness import Randomness
from gcon.privacy.receipt import Receipt

MOST_NOISE, USEFUL_NOISE = 0.1, 0.02  # standard deviations: a share that says little, and one that says something


@dataclass(frozen=True)
class PaidAccuracy:
    """A publishable estimate: the noisy share of correct answers and the noise's standard deviation.

    The share is as it was released: noise can make it more than all, or less than none.
    """

    micro_f1: float
    standard_deviation: float
    num_nodes: int
    receipt: Receipt


def paid_accuracy(
    model: Model,
    features: Tensor,
    labels: Tensor,
    mask: Tensor,
    edges: Private[Edges],
    *,
    epsilon: float,
    ledger: Ledger,
    randomness: Randomness,
) -> PaidAccuracy:
    """Count correct own-edges answers on the nodes of a mask, with noise for `epsilon`; before it is paid, warn of much noise.

    Privacy:
        One edge changes the answers of its two ends at most, so the count has sensitivity 2. Costs (epsilon, 0).
    """
    if mask.dtype != torch.bool or tuple(mask.shape) != (len(features),):
        raise InputError(
            "mask", rule="must hold one boolean per node", got=str(mask.dtype), fix="An index could count a node twice."
        )
    total = int(mask.sum())
    if total == 0:
        raise InputError("mask", rule="needs at least one node to score", got="an empty mask", fix="Mark test nodes.")
    deviation = paid_noise(epsilon, total)
    answer = own_edge_answers(model, features)

    def correct(opened: Edges) -> int:
        classes = answer(opened).classes
        return int((classes[mask] == labels[mask]).sum())

    mechanism = NoisyCount(epsilon, correct, ENDS_OF_AN_EDGE)
    if deviation > MOST_NOISE:
        warn_caller(
            f"With epsilon {epsilon:g} on {total} nodes this share has a noise of {deviation:.2g} (standard deviation): it "
            f"says little. Epsilon {epsilon_for(USEFUL_NOISE, total):.2g} would make that {USEFUL_NOISE}; more nodes help too.",
            AnswersWarning,
        )
    purpose = "accuracy with own edges, to be published"
    released = release_once(mechanism, edges, ledger=ledger, randomness=randomness, purpose=purpose)
    return PaidAccuracy(released.value / total, deviation, total, released.receipt)


def paid_noise(epsilon: float, num_nodes: int) -> float:
    """The standard deviation of the noise in a share of so many nodes: public, and known before anything is paid."""
    if not 0 < epsilon < math.inf:  # without noise it would be the exact count
        rule = "must be a positive, finite number"
        raise InputError("epsilon", rule=rule, got=epsilon, fix="Usual is 0.1: noise of about 30 answers.")
    return NoisyCount(epsilon, lambda _: 0, ENDS_OF_AN_EDGE).standard_deviation / num_nodes


def epsilon_for(deviation: float, num_nodes: int) -> float:
    """The epsilon, of two digits, whose noise in a share of so many nodes has this standard deviation or a smaller one.

    With q = exp(-epsilon / 2) that of a count is sqrt(2 q) / (1 - q) = 1 / (sqrt(2) sinh(epsilon / 4)).

    Example:
        >>> epsilon_for(0.02, 1000)
        0.15
    """
    exact = 2 * ENDS_OF_AN_EDGE * math.asinh(1 / (math.sqrt(2) * deviation * num_nodes))
    unit = 10.0 ** (math.floor(math.log10(exact)) - 1)
    return math.ceil(exact / unit) * unit
