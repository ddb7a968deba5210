"""DPGCN (Wu et al. 2022): release a noisy graph once, then train and test a GCN on it. All after the release is free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from gcon.edges.source import Edges
from gcon.methods.method import Trained
from gcon.nodes import PublicNodes
from gcon_lab.mechanisms.noisy_graph import MOST_PAIRS, RandomFlips, TopPairs
from gcon_lab.mechanisms.plain_sums import neighbour_sums
from gcon_lab.methods.competitor import PaidEdges, PrivateCompetitorMethod
from gcon_lab.methods.gcn import trained_gcn
from gcon_lab.methods.graph_products import roots_of_degrees
from gcon_lab.methods.networks import Training

Variant = Literal["top-pairs", "random-flips"]


@dataclass(frozen=True, kw_only=True)
class DPGCN(PrivateCompetitorMethod):
    """The GCN of `gcon_lab.methods.gcn` on a noisy graph; degrees are those of the noisy graph.

    Attributes:
        variant: `top-pairs` (LapGraph) or `random-flips` (EdgeRand).
        hidden: H.
        dropout: share of inputs and hidden values dropped in training.
        learning_rate: of Adam.
        weight_decay: on W1 only.
        epochs: the state with the lowest validation loss is kept.
        most_pairs: a noisy graph that is expected to be larger is refused before anything is paid.

    Privacy:
        (epsilon, 0) for the noisy graph; delta is not used. With own edges, only the last layer reads the node's own
        true edges; what it adds up is computed from the noisy graph.
    """

    name = "dpgcn"
    about = "Releases a noisy graph, once, with pure epsilon; everything else is computed from it."

    variant: Variant = "top-pairs"
    hidden: int = 16
    dropout: float = 0.5
    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    epochs: int = 500
    most_pairs: int = MOST_PAIRS

    def learn(self, nodes: PublicNodes, edges: PaidEdges) -> Trained:
        noisy = edges.release_once(self.mechanism(nodes.num_nodes), f"DPGCN, {self.variant}")
        network = trained_gcn(
            nodes,
            noisy.value,
            hidden=self.hidden,
            dropout=self.dropout,
            training=Training(learning_rate=self.learning_rate, epochs=self.epochs),
            weight_decay=self.weight_decay,
            seed=self.seed,
        )

        def cached(features: Tensor, _: Edges | None) -> Tensor:
            return network.logits(features, noisy.value)

        def own_edges(features: Tensor, opened: Edges | None) -> Tensor:
            assert opened is not None
            return last_layer(network.messages(features, noisy.value), noisy=noisy.value, own=opened)

        return Trained(score_functions={"cached": cached, "own-edges": own_edges}, receipts=(noisy.receipt,))

    def mechanism(self, num_nodes: int) -> TopPairs | RandomFlips:
        """What releases the noisy graph."""
        kind = TopPairs if self.variant == "top-pairs" else RandomFlips
        return kind(epsilon=self.epsilon, num_nodes=num_nodes, most_pairs=self.most_pairs)


def last_layer(messages: Tensor, *, noisy: Edges, own: Edges) -> Tensor:
    """The last product with S, each row with its node's true neighbours and degree and the noisy degrees of the others.

    Row i is r_i (sum over true neighbours j of q_j m_j) + r_i^2 m_i, with r_i from the true degree of i and q_j from the
    noisy degree of j: besides public values it depends on the edges of i alone.
    """
    true_roots, noisy_roots = roots_of_degrees(own)[:, None], roots_of_degrees(noisy)[:, None]
    rows = messages.to(torch.float64)
    return true_roots * neighbour_sums(own, noisy_roots * rows) + true_roots.square() * rows
