"""Zero-budget controls: what the default and the paper's GCON give with the private statistics left out.

Under the paper's inference rule a node's own edges are free, so a private model is worth its budget only if it beats
models that were trained without any edge and are used in the same way. The strongest one here is `MomentsWithoutEdges`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from gcon.edges.schemes import Schemes, propagate
from gcon.edges.source import Edges
from gcon.errors import check_number
from gcon.learn.edge_free import learn_without_edges
from gcon.learn.encoder import Encoder
from gcon.learn.perceptron import EncoderSettings, train_encoder, train_student
from gcon.methods.graph_facts import usual_homophily
from gcon.methods.method import Method, Progress, ScoreFunction, Trained, check_seed, silent
from gcon.methods.model import score_functions
from gcon.methods.moments import AnswersScorer, owners_way
from gcon.methods.predictions import Access
from gcon.nodes import PublicNodes
from gcon.privacy.boundary import Private
from gcon.privacy.ledger import Ledger
from gcon.privacy.randomness import Randomness


@dataclass(frozen=True, kw_only=True)
class EdgeFreeMethod(Method):
    """A method that reads no edge in training, so that every promise about edges holds.

    Attributes:
        seed: of initial weights and dropout; it has nothing to do with the noise and may be public.
    """

    seed: int = 0

    def __post_init__(self) -> None:
        check_seed("seed", self.seed)

    def train(
        self,
        nodes: PublicNodes,
        edges: Private[Edges],
        *,
        ledger: Ledger,
        randomness: Randomness,
        progress: Progress = silent,
        purpose: str = "node classification",
    ) -> Trained:
        """Edges, ledger and randomness stay untouched."""
        return self.learn(nodes)

    @abstractmethod
    def learn(self, nodes: PublicNodes) -> Trained:
        """Learn from public nodes alone."""


@dataclass(frozen=True, kw_only=True)
class EncoderAlone(EdgeFreeMethod):
    """GCON's encoder, a two-layer perceptron on features.

    Attributes:
        hidden: width of the hidden layer.
    """

    name = "encoder"
    about = "Reads no edge in training and none at inference: every promise about edges holds."

    hidden: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_whole("hidden", self.hidden, 1, 4096, fix="The default is 16.")

    def learn(self, nodes: PublicNodes) -> Trained:
        encoder = self._encoder(nodes)
        return Trained(score_functions={"none": edge_free_scorers(encoder.probabilities, 1.0)["none"]})

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

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(
            "inference_restart",
            self.inference_restart,
            allowed=lambda number: 0 <= number <= 1,
            rule="must be a number in [0, 1]",
            fix="The default is 0.2.",
        )

    def learn(self, nodes: PublicNodes) -> Trained:
        return Trained(score_functions=edge_free_scorers(self._encoder(nodes).probabilities, self.inference_restart))


@dataclass(frozen=True, kw_only=True)
class MomentsWithoutEdges(EdgeFreeMethod):
    """The control of `Moments`: the same pipeline with the private statistics left out."""

    name = "moments-without-edges"
    about = "Reads no edge in training; every node's answer is computed from its own edges."

    def learn(self, nodes: PublicNodes) -> Trained:
        free = learn_without_edges(nodes, seed=self.seed)
        homophily, labels = usual_homophily(free.neighbours_agree), torch.where(nodes.train_mask, nodes.labels, -1)
        way, rows = owners_way(free.answers, labels, None, homophily)
        scorer = AnswersScorer(
            answers=free.answers,
            published=free.answers,
            student=train_student(nodes.features, free.answers),
            way=way,
            rows=rows[:],
            homophily=homophily,
            training_nodes=nodes.fingerprint,
        )
        known = score_functions(scorer)
        del known["cached"]  # nothing is released
        return Trained(score_functions=known)


def edge_free_scorers(probabilities: Callable[[Tensor], Tensor], restart: float) -> dict[Access, ScoreFunction]:
    """How a model without edges is used: with one hop over own edges (T = D^-1 (A + I)), or without.

    Args:
        probabilities: class probabilities from features.
        restart: weight of a node itself in the hop; 1 leaves the edges out.
    """

    def own_edges(features: Tensor, opened: Edges | None) -> Tensor:
        assert opened is not None
        return _scores(propagate(opened, probabilities(features), Schemes(restart=restart, steps=(1,))))

    def without_edges(features: Tensor, _: Edges | None) -> Tensor:
        return _scores(probabilities(features))

    return {"own-edges": own_edges, "none": without_edges}


def _scores(probabilities: Tensor) -> Tensor:
    return torch.log(probabilities.to(torch.float64).clamp_min(1e-12))


def _check_whole(name: str, value: object, least: int, most: int, *, fix: str) -> None:
    rule = f"must be a whole number in [{least}, {most}]"
    check_number(name, value, allowed=lambda number: least <= number <= most, rule=rule, fix=fix, whole=True)
