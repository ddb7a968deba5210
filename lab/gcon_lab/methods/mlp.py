"""MLP: features and labels only. No edge is read, so every promise about edges holds."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from gcon.edges.source import Edges
from gcon.learn.encoder import scaled_rows
from gcon.methods.method import Trained
from gcon.nodes import PublicNodes
from gcon_lab.methods.competitor import CompetitorMethod, PaidEdges
from gcon_lab.methods.networks import Perceptron, Training, fit_on_rows, logits_of, seeded


@dataclass(frozen=True, kw_only=True)
class PerceptronMethod(CompetitorMethod):
    """A method made of perceptrons: linear layers with ReLU and dropout.

    Attributes:
        hidden: width of the hidden layers.
        layers: number of linear layers.
        dropout: share of hidden values dropped in training; inputs are kept (dropping half costs CiteSeer 4 points).
        learning_rate, weight_decay, epochs: of Adam; the state with the lowest validation loss is kept.
    """

    hidden: int = 64
    layers: int = 2
    dropout: float = 0.5
    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    epochs: int = 500

    def _perceptron(
        self, rows: Tensor, nodes: PublicNodes, *, place: int = 0, bias: bool = True, falling: bool = False
    ) -> Perceptron:
        """Trained; `place` tells several of one method apart, `falling` lets the learning rate fall to 0."""
        shape = {"layers": self.layers, "share": self.dropout, "bias": bias, "drop_input": False}
        with seeded(self.seed + place):
            network = Perceptron(rows.shape[1], self.hidden, nodes.num_classes, **shape)  # type: ignore[arg-type]
            training = Training(learning_rate=self.learning_rate, epochs=self.epochs, falling=falling)
            fit_on_rows(network, rows, nodes, training, weight_decay=self.weight_decay)
        return network


@dataclass(frozen=True, kw_only=True)
class MLP(PerceptronMethod):
    """One perceptron on the features."""

    name = "mlp"
    about = "Reads no edge: every promise about edges holds."

    def learn(self, nodes: PublicNodes, edges: PaidEdges) -> Trained:
        network = self._perceptron(scaled_rows(nodes.features, by="sum"), nodes)

        def without_edges(features: Tensor, _: Edges | None) -> Tensor:
            return logits_of(network, scaled_rows(features, by="sum"))

        return Trained(score_functions={"none": without_edges})
