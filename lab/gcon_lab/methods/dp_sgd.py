"""DP-SGD at edge level: a one-layer graph convolution trained by noisy clipped gradients.

An edge-free encoder gives unit rows; row i of D^-1 (A + I) X is node i's mean over itself and its neighbours; a linear
classifier on these rows is trained with noise in every step. Its weights are all that is released.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from gcon.edges.schemes import Schemes, propagate
from gcon.edges.source import Edges
from gcon.learn.perceptron import EncoderSettings, train_encoder
from gcon.learn.unit_rows import unit_rows
from gcon.methods.method import Trained
from gcon.nodes import PublicNodes
from gcon.privacy.budget import checked_budget
from gcon_lab.mechanisms.noisy_gradients import NoisyGradients, Optimiser, gradient_plan
from gcon_lab.methods.competitor import PaidEdges, PrivateCompetitorMethod

ONE_STEP = Schemes(restart=0, steps=(1,))  # row i reads the edges of node i alone


@dataclass(frozen=True, kw_only=True)
class DPSGD(PrivateCompetitorMethod):
    """DP-SGD with Poisson sampling of nodes; one edge replaces the gradients of its two ends.

    Attributes:
        hidden: width of the edge-free encoder; None takes the features themselves, scaled to rows of length 1.
        clip: tau, the largest length of one node's gradient, from 1e-6 to 1e6.
        steps: number of noisy steps, fixed beforehand.
        sampling: q in (0, 1], the probability with which a labelled node enters a step.
        learning_rate: of the optimiser, at most 1e6.
        optimiser: `sgd` or `adam`, on noisy gradients.
    """

    name = "dp-sgd"
    about = "Releases linear weights trained by noisy clipped gradients; Gaussian noise, two replaced records an edge."

    hidden: int | None = 16
    clip: float = 0.1
    steps: int = 100
    sampling: float = 1.0
    learning_rate: float = 0.1
    optimiser: Optimiser = "adam"

    def learn(self, nodes: PublicNodes, edges: PaidEdges) -> Trained:
        plan = gradient_plan(
            self.epsilon,
            checked_budget(self.epsilon, self.delta, nodes.num_nodes).delta,
            sampling=self.sampling,
            steps=self.steps,
            clip=self.clip,
        )
        encode = self._encoder(nodes)
        encoded, mask = encode(nodes.features), nodes.train_mask
        training = NoisyGradients(
            plan=plan,
            rows=lambda opened: propagate(opened, encoded, ONE_STEP)[mask],
            labels=nodes.labels[mask],
            num_classes=nodes.num_classes,
            learning_rate=self.learning_rate,
            optimiser=self.optimiser,
        )
        released = edges.release_once(training, f"DP-SGD, {self.steps} step(s)")
        weights = released.value

        def without_edges(features: Tensor, _: Edges | None) -> Tensor:
            return encode(features) @ weights

        def with_edges(features: Tensor, opened: Edges | None) -> Tensor:
            assert opened is not None
            return propagate(opened, encode(features), ONE_STEP) @ weights

        return Trained(
            score_functions={"own-edges": with_edges, "none": without_edges, "public-graph": with_edges},
            receipts=(released.receipt,),
        )

    def _encoder(self, nodes: PublicNodes) -> Callable[[Tensor], Tensor]:
        if self.hidden is None:
            return unit_rows
        return train_encoder(nodes, EncoderSettings(hidden=self.hidden, seed=self.seed)).encode
