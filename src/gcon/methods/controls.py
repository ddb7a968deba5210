"""Zero-budget controls: what the default and the paper's GCON give with the private statistics left out.

Under the paper's inference rule a node's own edges are free, so a private model is worth its budget only if it beats
models that were trained without any edge and are used in the same way. The strongest one here is `MomentsWithoutEdges`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from gcon.edges.edge_list import EdgeList
from gcon.edges.schemes import Schemes, propagate
from gcon.learn.edge_free import learn_without_edges
from gcon.learn.encoder import Encoder
from gcon.learn.perceptron import EncoderSettings, train_encoder
from gcon.learn.student import train_student
from gcon.methods.graph_facts import usual_homophily
from gcon.methods.method import Method, Scorer, Trained
from gcon.methods.predictions import Access
from gcon.methods.scorers import AnswersScorer
from gcon.methods.scorers import Scorer as ModelScorer
from gcon.nodes import PublicNodes
from gcon.privacy.boundary import Private
from gcon.privacy.ledger import Ledger
from gcon.privacy.randomness import Randomness


@dataclass(frozen=True, kw_only=True)
class EncoderAlone(Method):
    """GCON's encoder, a two-layer perceptron on features.

    Attributes:
        hidden: width of the hidden layer.
    """

    name = "encoder"
    about = "Reads no edge in training and none at inference: every promise about edges holds."

    hidden: int = 16

    def _train(
        self, nodes: PublicNodes, edges: Private[EdgeList], *, ledger: Ledger, randomness: Randomness
    ) -> Trained:
        encoder = self._encoder(nodes)
        return Trained(scorers={"none": edge_free_scorers(encoder.probabilities, 1.0)["none"]})

    def _encoder(self, nodes: PublicNodes) -> Encoder:
        return train_encoder(nodes, EncoderSettings(hidden=self.hidden, seed=self.seed))


@dataclass(frozen=True, kw_only=True)
class EncoderOneHop(EncoderAlone):
    """The encoder's class probabilities, averaged over a node's own neighbourhood.

    Attributes:
        inference_restart: the weight a of a node itself in (1 - a) T + a I; fixed in advance, never chosen with edges.
    """

    name = "encoder-one-hop"
    about = "Reads no edge in training; every node's answer is computed from its own edges."

    inference_restart: float = 0.2

    def _train(
        self, nodes: PublicNodes, edges: Private[EdgeList], *, ledger: Ledger, randomness: Randomness
    ) -> Trained:
        return Trained(scorers=edge_free_scorers(self._encoder(nodes).probabilities, self.inference_restart))


@dataclass(frozen=True, kw_only=True)
class MomentsWithoutEdges(Method):
    """The control of `Moments`: the same pipeline with the private statistics left out."""

    name = "moments-without-edges"
    about = "Reads no edge in training; every node's answer is computed from its own edges."

    def _train(
        self, nodes: PublicNodes, edges: Private[EdgeList], *, ledger: Ledger, randomness: Randomness
    ) -> Trained:
        free = learn_without_edges(nodes, seed=self.seed)
        scorer = AnswersScorer(
            free.answers,
            free.answers,
            student=train_student(nodes.features, free.answers),
            homophily=usual_homophily(free.neighbours_agree),
            training_nodes=nodes.fingerprint,
        )
        scorers = model_scorers(scorer)
        del scorers["cached"]  # nothing is released
        return Trained(scorers=scorers)


def edge_free_scorers(probabilities: Callable[[Tensor], Tensor], restart: float) -> dict[Access, Scorer]:
    """How a model without edges is used: with one hop over own edges (T = D^-1 (A + I)), or without.

    Args:
        probabilities: class probabilities from features.
        restart: weight of a node itself in the hop; 1 leaves the edges out.
    """

    def own_edges(features: Tensor, opened: EdgeList | None) -> Tensor:
        assert opened is not None
        return _scores(propagate(opened, probabilities(features), Schemes(restart=restart, steps=(1,))))

    def without_edges(features: Tensor, _: EdgeList | None) -> Tensor:
        return _scores(probabilities(features))

    return {"own-edges": own_edges, "none": without_edges}


def _scores(probabilities: Tensor) -> Tensor:
    return torch.log(probabilities.to(torch.float64).clamp_min(1e-12))


def model_scorers(scorer: ModelScorer) -> dict[Access, Scorer]:
    """Every access of a released model, as scorers of opened edges."""

    def own_edges(features: Tensor, opened: EdgeList | None) -> Tensor:
        assert opened is not None
        return scorer.own_edges(scorer.start(features, "own-edges"), opened)

    def public_graph(features: Tensor, edges: EdgeList | None) -> Tensor:
        assert edges is not None
        return scorer.public_graph(scorer.start(features, "public-graph"), edges)

    def fixed(access: Access) -> Scorer:
        return lambda features, _: scorer.without_edges(scorer.start(features, access))

    return {"own-edges": own_edges, "none": fixed("none"), "cached": fixed("cached"), "public-graph": public_graph}
