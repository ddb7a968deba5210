"""How a released model scores nodes: one scorer a kind of model, and everything else in this folder is the same for all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcon.edges.fixed_point import Walk, column_units, real_numbers, whole_numbers
from gcon.edges.kernels.multiply import walk_step
from gcon.edges.schemes import Schemes, propagate
from gcon.edges.source import Edges, RowBlock
from gcon.errors import AccessRefusedError, InputError
from gcon.learn.encoder import Encoder
from gcon.mechanisms.losses import loss_by_name
from gcon.methods.evidence import row_scores, scores_on_public_graph, scores_with_own_edges
from gcon.methods.moments_model import MomentsModel
from gcon.methods.objective_model import ReleasedModel
from gcon.methods.predictions import Access
from gcon.methods.published import PublishedModel
from gcon.nodes import BATCH_ROWS, features_fingerprint, mean_row, row_slices

# A node's answer, its neighbours' messages and their mean err together: their sum is too sure of itself. Classes stay the same.
_TRUST = 0.6


class Scorer(ABC):
    """Class scores of nodes, from a start that reads no edge."""

    @abstractmethod
    def start_of_rows(self, features: Tensor, access: Access) -> Callable[[slice], Tensor]:
        """What the scores of some nodes start from; all that concerns the whole table is checked now."""

    def start(self, features: Tensor, access: Access) -> Tensor:
        """What the scores of an access start from: one row a node, from public features and the model alone."""
        of_rows = self.start_of_rows(features, access)
        if len(features) <= BATCH_ROWS:
            return of_rows(slice(0, len(features)))
        first = of_rows(slice(0, 1))
        everything = torch.empty((len(features), *first.shape[1:]), dtype=first.dtype)
        for rows in row_slices(len(features)):
            everything[rows] = of_rows(rows)
        return everything

    @abstractmethod
    def without_edges(self, start: Tensor) -> Tensor:
        """Scores from the start alone."""

    @abstractmethod
    def own_edges_of_rows(self, start: Tensor, edges: Edges) -> Callable[[slice], Tensor]:
        """Scores of some nodes from one step over the edges, all of which are read now.

        Privacy:
            Row i reads the edges of node i only; called inside a gate.
        """

    def own_edges(self, start: Tensor, edges: Edges) -> Tensor:
        """Scores from one step over the edges. Row i reads the edges of node i only; called inside a gate."""
        return self.own_edges_of_rows(start, edges)(slice(0, len(start)))

    @abstractmethod
    def own_edges_of_one(self, start: Tensor) -> Callable[[int, NDArray[Any]], NDArray[np.float64]]:
        """Probabilities of one node at a time, from its row and the rows of its neighbours; the same as `own_edges` gives.

        What concerns all nodes is computed now, without an edge. For a service, where the overhead of a call counts.

        Privacy:
            The function is called inside a gate, or with neighbours that somebody named.
        """

    @abstractmethod
    def public_graph(self, start: Tensor, edges: Edges) -> Tensor:
        """Scores from all edges, which everybody may know."""

    def probabilities(self, scores: Tensor) -> Tensor:
        """Class probabilities that go with scores."""
        return torch.softmax(scores, dim=1)


def scorer_of(model: PublishedModel, restart: float | None = None, *, device: str = "cpu") -> Scorer:
    """The scorer of a model.

    Args:
        model: the released model.
        restart: alpha_I, the weight of a node's own features with own edges; None for the model's own. GCON only.
        device: where to compute: `cpu`, `cuda` or `cuda:NUMBER`.
    """
    if isinstance(model, ReleasedModel):
        return _PaperScorer(model, restart, device)
    if not isinstance(model, MomentsModel):
        raise TypeError(f"{type(model).__name__} is no released model")
    if restart is not None:
        rule = "belongs to models of the paper's mechanism"
        raise InputError("inference_restart", rule=rule, got=restart, fix="Leave it out for this model.")
    return AnswersScorer(
        model.answers,
        model.best_answers,
        student=model.encoder.on(device),
        homophily=model.settings.homophily,
        training_nodes=model.training_nodes,
    )


class _PaperScorer(Scorer):
    """The start is the encoded features; the weights follow after propagation."""

    def __init__(self, model: ReleasedModel, restart: float | None, device: str) -> None:
        weight = model.settings.inference_restart if restart is None else restart
        if not 0 <= weight <= 1:
            raise InputError(
                "inference_restart", rule="must lie in [0, 1]", got=weight, fix="The paper uses 0.1 to 0.9."
            )
        self._encoder, self._weights = model.encoder.on(device), model.weights.to(device)
        self._schemes = model.settings.schemes
        self._one_hop = Schemes(restart=weight, steps=(1,), clip=model.settings.schemes.clip)
        self._loss = loss_by_name(model.settings.loss, model.weights.shape[1])

    def start_of_rows(self, features: Tensor, access: Access) -> Callable[[slice], Tensor]:
        if access == "cached":
            raise AccessRefusedError(
                "access='cached' is not there: the paper's mechanism releases nothing node by node."
            )
        self._encoder.check_width(features)
        return lambda rows: self._encoder.encode(features[rows])

    def without_edges(self, start: Tensor) -> Tensor:
        return self._from_block(start, start)

    def own_edges_of_rows(self, start: Tensor, edges: Edges) -> Callable[[slice], Tensor]:
        block = propagate(edges, self._of_all(start, edges), self._one_hop)
        return lambda rows: self._from_block(block[rows], start[rows])

    def own_edges_of_one(self, start: Tensor) -> Callable[[int, NDArray[Any]], NDArray[np.float64]]:
        units, walk = column_units(start), Walk(restart=self._one_hop.restart, clip=self._one_hop.clip)
        numbers, scale = whole_numbers(start, units), 1 / units

        def shares(row: int, neighbours: NDArray[Any]) -> NDArray[np.float64]:
            columns, moved = torch.from_numpy(neighbours), numbers.new_empty(1, numbers.shape[1])
            block = RowBlock(slice(row, row + 1), torch.tensor([0, len(neighbours)]), columns, len(start))
            walk_step(block, numbers, start, scale, walk=walk, out=moved)
            found: NDArray[np.float64] = self.probabilities(
                self._from_block(real_numbers(moved, units), start[row : row + 1])
            )[0].numpy()
            return found

        return shares

    def public_graph(self, start: Tensor, edges: Edges) -> Tensor:
        return propagate(edges, self._of_all(start, edges), self._schemes) @ self._weights

    def probabilities(self, scores: Tensor) -> Tensor:
        return self._loss.probabilities(scores)

    def _from_block(self, block: Tensor, encoded: Tensor) -> Tensor:
        """Scores from one aggregated block: schemes without steps keep the node's own encoding.

        The factor 1/s of training is applied here too; the paper's inference formula leaves it out, which does not
        change the largest score but would distort the probabilities.
        """
        steps, device = self._schemes.steps, self._weights.device
        parts = [(block if count > 0 else encoded).to(device) for count in steps]
        return torch.cat(parts, dim=1) / len(steps) @ self._weights

    def _of_all(self, start: Tensor, edges: Edges) -> Tensor:
        check_rows(start, edges)
        return start.to(self._weights.device)


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
        self._shares = mean_row(best.split(BATCH_ROWS))

    def start_of_rows(self, features: Tensor, access: Access) -> Callable[[slice], Tensor]:
        """Known answers for the training nodes, the student's for others."""
        self._student.check_width(features)
        if features_fingerprint(features) == self._training_nodes:
            known = self._answers if access == "none" else self._best
            return lambda rows: known[rows].double()
        if access == "cached":
            rule, fix = "must be those of the training for access='cached'", "Use access='none' for other nodes."
            raise InputError("nodes", rule=rule, got="others", fix=fix)
        return lambda rows: self._student.probabilities(features[rows]).double()

    def without_edges(self, start: Tensor) -> Tensor:
        """The logarithms of the answers."""
        return start.clamp_min(1e-12).log()

    def own_edges_of_rows(self, start: Tensor, edges: Edges) -> Callable[[slice], Tensor]:
        """Answers and the evidence of neighbours."""
        check_rows(start, edges)
        scores = scores_with_own_edges(start, edges, self._homophily, self._shares)
        return lambda rows: _TRUST * scores[rows]

    def own_edges_of_one(self, start: Tensor) -> Callable[[int, NDArray[Any]], NDArray[np.float64]]:
        """The same evidence, from the messages of all nodes."""
        of_row = row_scores(start, self._homophily, self._shares)

        def shares(row: int, neighbours: NDArray[Any]) -> NDArray[np.float64]:
            scores = _TRUST * of_row(row, neighbours)
            raised: NDArray[np.float64] = np.exp(scores - scores.max())
            raised /= raised.sum()
            return raised

        return shares

    def public_graph(self, start: Tensor, edges: Edges) -> Tensor:
        """The same, and answers from further away."""
        check_rows(start, edges)
        return _TRUST * scores_on_public_graph(start, edges, self._homophily, self._shares)


def check_rows(start: Tensor, edges: Edges) -> None:
    """The features must be those of the nodes of the graph."""
    if len(start) != edges.num_nodes:
        raise InputError(
            "features", rule=f"must have one row a node ({edges.num_nodes})", got=len(start), fix="Pass all nodes."
        )
