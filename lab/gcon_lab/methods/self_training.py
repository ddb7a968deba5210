"""Self-training without edges, then one hop over own edges: the strongest model here that costs nothing.

1. Views of the public features: principal directions, as they are and smoothed over the graph of nearest features.
2. Members: the encoder, and softmax regressions on every view. Each is calibrated by validation labels (temperature, and
   class shares like those of the validation labels), and an average is chosen greedily by validation loss.
3. Twice: the nodes on which this average is surest get its labels, and members trained with them join the choice.

A node's neighbours are asked at inference only if feature neighbours share their labels, judged by public labels: where
likeness says nothing about the class (heterophily), averaging would hurt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Tensor
from torch.nn.functional import normalize

from gcon.errors import InputError
from gcon.learn.ensemble import Ensemble
from gcon.learn.feature_graph import feature_graph, principal_directions
from gcon.learn.perceptron import EncoderSettings, train_encoder
from gcon.methods.controls import edge_free_scorers
from gcon.methods.method import Trained
from gcon.nodes import PublicNodes, features_fingerprint
from gcon_lab.methods.competitor import CompetitorMethod, PaidEdges

_WIDTH, _GRAPH_WIDTH = 200, 100  # principal directions that are learned from, and that nodes are compared in
_RESTARTS = (0.1, 0.2, 0.4, 1.0)  # of smoothing; 1 is none
_PENALTIES = (1.0, 0.1)  # on the squared weights of a regression


@dataclass(frozen=True, kw_only=True)
class SelfTraining(CompetitorMethod):
    """An edge-free ensemble, retrained on its own surest answers. One set of settings serves all graphs.

    Attributes:
        inference_restart: the weight a of a node itself in (1 - a) T + a I; fixed in advance, never chosen with edges.
        least_agreement: one hop only if feature neighbours share their labels so much more often than chance (0 is chance,
            1 always).
        neighbours: how many nearest nodes are joined in the public graph.
        rounds: of self-training.
        taught_share: share of the unlabelled nodes that get pseudo-labels, the surest ones.
        validation_shares: correct for training labels whose class shares differ from those of the validation labels.
    """

    name = "self-training"
    about = "Reads no edge in training; every node's answer is computed from its own edges."

    inference_restart: float = 0.2
    least_agreement: float = 0.2
    neighbours: int = 20
    rounds: int = 2
    taught_share: float = 0.5
    validation_shares: bool = True

    def learn(self, nodes: PublicNodes, edges: PaidEdges) -> Trained:
        rows = principal_directions(nodes.features, _WIDTH).rows
        graph = feature_graph(rows[:, :_GRAPH_WIDTH], self.neighbours)
        views = [normalize(each, dim=1) for each in graph.smoothed(normalize(rows, dim=1), _RESTARTS)]
        answers = self._answers(nodes, views)
        known = nodes.train_mask | nodes.validation_mask
        agree = graph.label_agreement(nodes.labels, known) >= self.least_agreement

        def probabilities(features: Tensor) -> Tensor:
            if features_fingerprint(features) != nodes.fingerprint:
                raise InputError(
                    "graph",
                    rule="must have the nodes of the training",
                    got="others",
                    fix="Train on all nodes together.",
                )
            return answers

        return Trained(score_functions=edge_free_scorers(probabilities, self.inference_restart if agree else 1.0))

    def _answers(self, nodes: PublicNodes, views: Sequence[Tensor]) -> Tensor:
        """Class probabilities of all nodes."""
        ensemble = Ensemble(nodes=nodes, validation_shares=self.validation_shares)
        answers = []
        for lesson in ensemble.lessons:
            encoder = train_encoder(replace(nodes, train_mask=lesson.mask), EncoderSettings(seed=self.seed))
            answers.append([encoder.probabilities(nodes.features).double()])
        ensemble = ensemble.joined_by(answers, ensemble.lessons).taught(views, _PENALTIES)
        for _ in range(self.rounds):
            ensemble = ensemble.taught(views, _PENALTIES, ensemble.surest(self.taught_share))
        return ensemble.answers
