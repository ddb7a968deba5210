"""How a released model scores nodes: one scorer a kind of model, and everything else in this folder is the same for all."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from gcon.encode.encoder import Encoder
from gcon.errors import AccessRefusedError, InputError
from gcon.graphs.edges import EdgeList
from gcon.graphs.nodes import features_fingerprint
from gcon.losses.convex import loss_by_name
from gcon.predict.evidence import scores_on_public_graph, scores_with_own_edges
from gcon.predict.predictions import Access
from gcon.propagate.schemes import Schemes, propagate
from gcon.release.model import ReleasedModel
from gcon.release.moments_model import MomentsModel
from gcon.release.published import PublishedModel

# A node's answer, its neighbours' messages and their mean err together: their sum is too sure of itself. Classes stay the same.
_TRUST = 0.6


class Scorer(ABC):
    """Class scores of nodes, from a start that reads no edge."""

    @abstractmethod
    def start(self, features: Tensor, access: Access) -> Tensor:
        """What the scores of an access start from: one row a node, from public features and the model alone."""

    @abstractmethod
    def without_edges(self, start: Tensor) -> Tensor:
        """Scores from the start alone."""

    @abstractmethod
    def own_edges(self, start: Tensor, edges: EdgeList) -> Tensor:
        """Scores from one step over the edges. Row i reads the edges of node i only; called inside a gate."""

    @abstractmethod
    def public_graph(self, start: Tensor, edges: EdgeList) -> Tensor:
        """Scores from all edges, which everybody may know."""

    def probabilities(self, scores: Tensor) -> Tensor:
        """Class probabilities that go with scores."""
        return torch.softmax(scores, dim=1)


def scorer_of(model: PublishedModel, restart: float | None = None) -> Scorer:
    """The scorer of a model.

    Args:
        model: the released model.
        restart: alpha_I, the weight of a node's own features with own edges; None for the model's own. GCON only.
    """
    if isinstance(model, ReleasedModel):
        return _PaperScorer(model, restart)
    if not isinstance(model, MomentsModel):
        raise TypeError(f"{type(model).__name__} is no released model")
    if restart is not None:
        rule = "belongs to models of the paper's mechanism"
        raise InputError("inference_restart", rule=rule, got=restart, fix="Leave it out for this model.")
    return AnswersScorer(
        model.answers,
        model.best_answers,
        student=model.encoder,
        homophily=model.settings.homophily,
        training_nodes=model.training_nodes,
    )


class _PaperScorer(Scorer):
    """The start is the encoded features; the weights follow after propagation."""

    def __init__(self, model: ReleasedModel, restart: float | None) -> None:
        weight = model.settings.inference_restart if restart is None else restart
        if not 0 <= weight <= 1:
            raise InputError(
                "inference_restart", rule="must lie in [0, 1]", got=weight, fix="The paper uses 0.1 to 0.9."
            )
        self._model = model
        self._one_hop = Schemes(restart=weight, steps=(1,), clip=model.settings.schemes.clip)
        self._loss = loss_by_name(model.settings.loss, model.weights.shape[1])

    def start(self, features: Tensor, access: Access) -> Tensor:
        if access == "cached":
            raise AccessRefusedError(
                "access='cached' is not there: the paper's mechanism releases nothing node by node."
            )
        return self._model.encoder.encode(features)

    def without_edges(self, start: Tensor) -> Tensor:
        return self._from_block(start, start)

    def own_edges(self, start: Tensor, edges: EdgeList) -> Tensor:
        return self._from_block(propagate(edges, start, self._one_hop), start)

    def public_graph(self, start: Tensor, edges: EdgeList) -> Tensor:
        return propagate(edges, start, self._model.settings.schemes) @ self._model.weights

    def probabilities(self, scores: Tensor) -> Tensor:
        return self._loss.probabilities(scores)

    def _from_block(self, block: Tensor, encoded: Tensor) -> Tensor:
        """Scores from one aggregated block: schemes without steps keep the node's own encoding.

        The factor 1/s of training is applied here too; the paper's inference formula leaves it out, which does not
        change the largest score but would distort the probabilities.
        """
        steps = self._model.settings.schemes.steps
        features = torch.cat([block if count > 0 else encoded for count in steps], dim=1) / len(steps)
        return features @ self._model.weights


class AnswersScorer(Scorer):
    """The start is class probabilities: known answers of the training nodes, the student's for other nodes.

    Args:
        answers: of the training nodes, for access `none`.
        best: of the training nodes, for all other accesses.
        student: answers for nodes never seen.
        homophily: the share of edges inside a class.
        training_nodes: checksum of the feature table that the answers belong to.
    """

    def __init__(
        self, answers: Tensor, best: Tensor, *, student: Encoder, homophily: float, training_nodes: str
    ) -> None:
        self._answers, self._best, self._student = answers, best, student
        self._homophily, self._training_nodes = homophily, training_nodes
        self._shares = best.double().mean(dim=0)

    def start(self, features: Tensor, access: Access) -> Tensor:
        """Known answers for the training nodes, the student's for others."""
        self._student.check(features)
        if features_fingerprint(features) == self._training_nodes:
            return (self._answers if access == "none" else self._best).double()
        if access == "cached":
            rule, fix = "must be those of the training for access='cached'", "Use access='none' for other nodes."
            raise InputError("nodes", rule=rule, got="others", fix=fix)
        return self._student.probabilities(features).double()

    def without_edges(self, start: Tensor) -> Tensor:
        """The logarithms of the answers."""
        return start.clamp_min(1e-12).log()

    def own_edges(self, start: Tensor, edges: EdgeList) -> Tensor:
        """Answers and the evidence of neighbours."""
        return _TRUST * scores_with_own_edges(start, edges, self._homophily, self._shares)

    def public_graph(self, start: Tensor, edges: EdgeList) -> Tensor:
        """The same, and answers from further away."""
        return _TRUST * scores_on_public_graph(start, edges, self._homophily, self._shares)
