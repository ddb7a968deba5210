"""GPR-GNN (Chien et al. 2021): learnt weights of the powers of the graph. Not private: the heterophily reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import scipy.sparse
import torch
from torch import Tensor, nn

from gcon.edges.source import Edges
from gcon.learn.encoder import scaled_rows
from gcon.nodes import PublicNodes
from gcon_lab.methods.graph_products import ExactMethod, normalised
from gcon_lab.methods.networks import (
    Perceptron,
    Training,
    drop,
    fit_network,
    seeded,
    sparse_if_worth_it,
    sparse_product,
)

Start = Literal["restart", "first", "last"]


@dataclass(frozen=True, kw_only=True)
class GPRGNN(ExactMethod):
    """Logits = sum over k = 0..K of g_k S^k F, with F a perceptron on the features and g learnt (of any sign).

    Attributes:
        steps: K.
        restart: a; g starts as a (1 - a)^k, and (1 - a)^K for k = K.
        start: `restart` as above, or all on g_0 (`first`) or on g_K (`last`).
        hidden: width of the perceptron's hidden layer.
        dropout: share of inputs and hidden values dropped in training.
        score_dropout: the same for F (the authors' dprate).
        learning_rate: of Adam, for all parameters.
        weight_decay: on the perceptron, not on g.
        epochs: at most; the state with the lowest validation loss is kept.
        window: stop when the validation loss exceeds its mean over so many epochs before; None never stops early.
    """

    name = "gpr-gnn"

    steps: int = 10
    restart: float = 0.1
    start: Start = "restart"
    hidden: int = 64
    dropout: float = 0.5
    score_dropout: float = 0.5
    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    epochs: int = 1000
    window: int | None = 200

    def _network(self, nodes: PublicNodes, edges: Edges) -> PowersNetwork:
        first_weights = start_weights(self.steps, self.restart, self.start)
        rows, graph = sparse_if_worth_it(scaled_rows(nodes.features, by="sum")), normalised(edges)
        training = Training(learning_rate=self.learning_rate, epochs=self.epochs, window=self.window)
        masks = nodes.train_mask, nodes.validation_mask
        with seeded(self.seed):
            shares = self.dropout, self.score_dropout
            network = PowersNetwork(rows.shape[1], self.hidden, nodes.num_classes, shares, first_weights)
            fit_network(
                network,
                training=training,
                train=(lambda: network(rows, graph)[masks[0]], nodes.labels[masks[0]]),
                validation=(lambda: network(rows, graph)[masks[1]], nodes.labels[masks[1]]),
                groups=[
                    {"params": list(network.scores.parameters()), "weight_decay": self.weight_decay},
                    {"params": [network.weights]},
                ],
            )
        return network


def start_weights(steps: int, restart: float, start: Start = "restart") -> Tensor:
    """The first value of g.

    Example:
        >>> start_weights(2, 0.5).tolist()
        [0.5, 0.25, 0.25]
    """
    if start == "restart":
        weights = restart * (1 - restart) ** torch.arange(steps + 1, dtype=torch.float64).float()
        weights[-1] = (1 - restart) ** steps
    else:
        weights = torch.zeros(steps + 1)
        weights[0 if start == "first" else -1] = 1.0
    return weights


class PowersNetwork(nn.Module):
    """A perceptron, then weighted powers of S."""

    def __init__(self, inputs: int, hidden: int, outputs: int, shares: tuple[float, float], weights: Tensor) -> None:
        super().__init__()
        self.scores = Perceptron(inputs, hidden, outputs, layers=2, share=shares[0])
        self.share = shares[1]
        self.weights = nn.Parameter(weights.clone())

    def forward(self, rows: Tensor, graph: scipy.sparse.csr_matrix) -> Tensor:
        power = drop(self.scores(rows), self.share, self.training)
        total = self.weights[0] * power
        for weight in self.weights[1:]:
            power = sparse_product(graph, power)
            total = total + weight * power
        return total

    def logits(self, features: Tensor, edges: Edges) -> Tensor:
        """Logits of all nodes of a public graph, in evaluation mode."""
        self.eval()
        with torch.no_grad():
            return self(sparse_if_worth_it(scaled_rows(features, by="sum")), normalised(edges))  # type: ignore[no-any-return]
