"""A score that says what it read, what it cost and who may see it."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from gcon.choose.paid_accuracy import paid_accuracy
from gcon.edges.edge_list import EdgeList
from gcon.methods.accuracy import beyond, micro_f1
from gcon.methods.model import Model
from gcon.methods.own_edges import own_edge_answers
from gcon.methods.predictions import audience_of, why_no_promise
from gcon.privacy.account import telling_charges
from gcon.privacy.boundary import Private
from gcon.privacy.budget import NOTHING, Budget
from gcon.privacy.gates import diagnose
from gcon.privacy.ledger import Ledger
from gcon.privacy.randomness import SystemRandomness


@dataclass(frozen=True, kw_only=True)
class NodeScore:
    """A share of right answers, with what it read and who may see it.

    Attributes:
        micro_f1: the share.
        nodes: of how many.
        access: which edges were read.
        audience: `public` or `operator only`.
        cost: what was charged.
        standard_deviation: of the noise in it; 0 if there is none.
    """

    micro_f1: float
    nodes: int
    access: str
    audience: str
    cost: Budget = NOTHING
    standard_deviation: float = 0.0

    def __str__(self) -> str:
        said = [f"noise: {self.standard_deviation:.4f}", beyond(self.micro_f1)] if self.standard_deviation else []
        noise = f" ({'; '.join(filter(None, said))})" if said else ""
        price = "nothing was charged" if self.cost == NOTHING else f"epsilon {self.cost.epsilon:g} was charged"
        who = "may be published" if self.audience == "public" else "for the operator's eyes: do not publish"
        return f"micro-F1 {self.micro_f1:.4f}{noise} on {self.nodes} nodes (access {self.access}); {price}; {who}"


def own_edge_score(
    model: Model,
    features: Tensor,
    labels: Tensor,
    chosen: Tensor,
    edges: Private[EdgeList],
    *,
    pay: float | None,
    ledger: Ledger,
) -> NodeScore:
    """The score of answers from own edges: noisy and paid for with `pay`, or exact and for the operator only."""
    nodes = int(chosen.sum())
    if pay is None:
        answer = own_edge_answers(model, features)
        share = diagnose(
            lambda opened: micro_f1(answer(opened).classes, labels, chosen),
            edges,
            ledger=ledger,
            purpose="accuracy with own edges, for the operator",
        )
        return NodeScore(micro_f1=share, nodes=nodes, access="own-edges", audience="operator only")
    with telling_charges():
        bought = paid_accuracy(
            model, features, labels, chosen, edges, epsilon=pay, ledger=ledger, randomness=SystemRandomness()
        )
    return NodeScore(
        micro_f1=bought.micro_f1,
        nodes=nodes,
        access="own-edges",
        audience=audience_of("none", why_no_promise(model.receipt) or why_no_promise(bought.receipt)),
        cost=bought.receipt.budget,
        standard_deviation=bought.standard_deviation,
    )
