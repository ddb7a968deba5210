"""One accuracy with own edges that may be published: a noisy count of correct answers, paid from the ledger."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gcon.edges.source import Edges
from gcon.errors import InputError
from gcon.mechanisms.pure import ENDS_OF_AN_EDGE, NoisyCount
from gcon.methods.model import Model
from gcon.methods.own_edges import own_edge_answers
from gcon.privacy.account import release_once
from gcon.privacy.boundary import Private
from gcon.privacy.ledger import Ledger
from gcon.privacy.randomness import Randomness
from gcon.privacy.receipt import Receipt


@dataclass(frozen=True)
class PaidAccuracy:
    """A publishable estimate: the noisy share of correct answers and the noise's standard deviation."""

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
    """Count correct own-edges answers on the nodes of a mask, with noise for `epsilon`.

    Privacy:
        One edge changes the answers of its two ends at most, so the count has sensitivity 2. Costs (epsilon, 0).
    """
    if not 0 < epsilon < math.inf:  # without noise it would be the exact count
        rule = "must be a positive, finite number"
        raise InputError("epsilon", rule=rule, got=epsilon, fix="Usual is 0.1: noise of some 30 answers.")
    if mask.dtype != torch.bool or tuple(mask.shape) != (len(features),):
        raise InputError(
            "mask", rule="must hold one boolean per node", got=str(mask.dtype), fix="An index could count a node twice."
        )
    total = int(mask.sum())
    if total == 0:
        raise InputError("mask", rule="needs at least one node to score", got="an empty mask", fix="Mark test nodes.")
    answer = own_edge_answers(model, features)

    def correct(opened: Edges) -> int:
        classes = answer(opened).classes
        return int((classes[mask] == labels[mask]).sum())

    mechanism = NoisyCount(epsilon, correct, ENDS_OF_AN_EDGE)
    purpose = "accuracy with own edges, to be published"
    released = release_once(mechanism, edges, ledger=ledger, randomness=randomness, purpose=purpose)
    share = min(max(released.value / total, 0.0), 1.0)
    return PaidAccuracy(share, mechanism.standard_deviation / total, total, released.receipt)
