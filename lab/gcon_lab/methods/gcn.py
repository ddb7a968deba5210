"""GCN (Kipf and Welling 2017): two layers on the exact graph. Not private: the upper reference."""

from __future__ import annotations

from dataclasses import dataclass

import scipy.sparse
import torch
from torch import Tensor, nn

from gcon.edges.source import Edges
from gcon.learn.encoder import scaled_rows
from gcon.nodes import PublicNodes
from gcon_lab.methods.graph_products import ExactMethod, Reach, normalised, reach
from gcon_lab.methods.networks import (
    SparseLinear,
    Training,
    drop,
    fit_network,
    seeded,
    sparse_if_worth_it,
    sparse_product,
)


@dataclass(frozen=True, kw_only=True)
class GCN(ExactMethod):
    """Logits = S dropout(ReLU(S dropout(X) W1)) W2, with S the symmetrically normalised graph; no bias.

    Attributes:
        hidden: H.
        dropout: share of inputs and hidden values dropped in training.
        learning_rate: of Adam.
        weight_decay: on W1 only.
        epochs: at most; the state with the lowest validation loss is kept.
        patience: stop after so many epochs without a better validation loss; None never stops early.
    """

    name = "gcn"

    hidden: int = 16
    dropout: float = 0.5
    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    epochs: int = 200
    patience: int | None = 10

    def _network(self, nodes: PublicNodes, edges: Edges) -> GraphNetwork:
        return trained_gcn(
            nodes,
            edges,
            hidden=self.hidden,
            dropout=self.dropout,
            training=Training(learning_rate=self.learning_rate, epochs=self.epochs, patience=self.patience),
            weight_decay=self.weight_decay,
            seed=self.seed,
        )


def trained_gcn(
    nodes: PublicNodes, edges: Edges, *, hidden: int, dropout: float, training: Training, weight_decay: float, seed: int
) -> GraphNetwork:
    """A two-layer GCN trained on public (declassified or noisy) edges."""
    rows, graph = scaled_rows(nodes.features, by="sum"), normalised(edges)
    masks = nodes.train_mask, nodes.validation_mask
    seen = [reach(graph, mask) for mask in masks]
    given = [sparse_if_worth_it(rows[part.inputs]) for part in seen]
    with seeded(seed):
        network = GraphNetwork(rows.shape[1], hidden, nodes.num_classes, dropout)
        fit_network(
            network,
            training=training,
            train=(lambda: network(given[0], seen[0]), nodes.labels[masks[0]]),
            validation=(lambda: network(given[1], seen[1]), nodes.labels[masks[1]]),
            groups=[
                {"params": list(network.first.parameters()), "weight_decay": weight_decay},
                {"params": list(network.second.parameters())},
            ],
        )
    return network


class GraphNetwork(nn.Module):
    """The two layers. What is public about the graph is an argument, so one network serves any graph."""

    def __init__(self, inputs: int, hidden: int, outputs: int, share: float) -> None:
        super().__init__()
        self.first = SparseLinear(inputs, hidden, bias=False)
        self.second = SparseLinear(hidden, outputs, bias=False)
        self.share = share

    def forward(self, rows: Tensor, seen: Reach) -> Tensor:
        """Logits of the scored nodes, from the rows of the nodes that they reach."""
        return sparse_product(seen.second, self.before_last(rows, seen.first))

    def before_last(self, rows: Tensor, graph: scipy.sparse.csr_matrix) -> Tensor:
        """What the last product aggregates: dropout(ReLU(S dropout(X) W1)) W2."""
        hidden = torch.relu(sparse_product(graph, self.first(drop(rows, self.share, self.training))))
        scores: Tensor = self.second(drop(hidden, self.share, self.training))
        return scores

    def messages(self, features: Tensor, edges: Edges) -> Tensor:
        """What the last product aggregates, for all nodes of a public graph, in evaluation mode."""
        self.eval()
        with torch.no_grad():
            return self.before_last(sparse_if_worth_it(scaled_rows(features, by="sum")), normalised(edges))

    def logits(self, features: Tensor, edges: Edges) -> Tensor:
        return sparse_product(normalised(edges), self.messages(features, edges))
