"""A method trained on a whole graph, to be asked at once under a named access: for comparisons."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcon.edges.graph import PrivateGraph, PublicGraph
from gcon.edges.source import Edges
from gcon.errors import AccessRefusedError, InputError
from gcon.machine import threads_for
from gcon.methods.accuracy import check_scored, micro_f1
from gcon.methods.method import Method, Predictor, ScoreFunction
from gcon.methods.predictions import NOT_PRIVATE, Access, Predictions, checked_access, why_no_promise
from gcon.nodes import features_fingerprint, known_rows, nothing_known, recognises
from gcon.privacy.boundary import Private
from gcon.privacy.gates import answer_owners, diagnose
from gcon.privacy.ledger import Ledger, MemoryLedger
from gcon.privacy.randomness import Randomness, SystemRandomness
from gcon.privacy.receipt import Receipt


def fit(
    method: Method, graph: PrivateGraph, *, ledger: Ledger | None = None, randomness: Randomness | None = None
) -> FittedMethod:
    """Train a method on a graph.

    Args:
        method: its settings.
        graph: public nodes and private edges.
        ledger: pays before any edge is read; None: nobody counts, which the statement says.
        randomness: the source of the noise; None for the operating system.

    Privacy:
        Edges leave only through an account or a gate that pays the ledger.
    """
    books = MemoryLedger(graph.name, uncounted=graph.nodes.fingerprint) if ledger is None else ledger
    noise = SystemRandomness() if randomness is None else randomness
    with threads_for(*graph.nodes.features.shape):
        trained = method.train(graph.nodes, graph.edges, ledger=books, randomness=noise)
    return FittedMethod(
        method=method,
        class_names=graph.nodes.class_names,
        trained=trained,
        ledger=books,
        training_nodes=graph.nodes.fingerprint,
        training_rows=known_rows(graph.nodes.features),
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedMethod:
    """A trained method, and the ledger that its owner pays.

    Attributes:
        method: its settings.
        class_names: what the columns of the scores stand for.
        trained: how it scores, and receipts.
        ledger: records what is read at prediction.
        training_nodes: checksum of the public feature table that the method was trained on.
        training_rows: digests of its rows.
    """

    method: Method
    class_names: tuple[object, ...]
    trained: Predictor
    ledger: Ledger = field(repr=False)
    training_nodes: str
    training_rows: Tensor = field(default_factory=nothing_known, repr=False)

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """What was paid."""
        return self.trained.receipts

    @property
    def no_promise(self) -> str | None:
        """Why nothing is promised about the training edges; None if all that was released keeps its promise.

        A private method without receipts reads no edge in training and keeps every promise.
        """
        if not self.method.private:
            return NOT_PRIVATE
        return next((why for why in map(why_no_promise, self.receipts) if why is not None), None)

    def predictions(self, graph: PrivateGraph | PublicGraph, *, access: str | None = None) -> Predictions:
        """Predict for all nodes of a graph, with the access and its promise named in the result.

        Args:
            graph: the training graph; for `public-graph` another one, whose edges are public. A private method refuses the
                training nodes there: their edges are private, whatever the caller says.
            access: one of the method's accesses; None for its first.

        Privacy:
            See `Predictions.promise`. Answers from own edges are recorded in the ledger.
        """
        kind, scorer = self._scorer(access)
        self._check_nodes(graph, kind)
        if kind == "own-edges":
            features, edges = _private_parts(graph)
            purpose = f"answers to node owners ({self.method.name})"
            scores = answer_owners(lambda opened: scorer(features, opened), edges, ledger=self.ledger, purpose=purpose)
        elif kind == "public-graph":
            scores = scorer(*self._public_parts(graph))
        else:
            features = graph.nodes.features if isinstance(graph, PrivateGraph) else graph.features
            scores = scorer(features, None)
        return Predictions(
            classes=scores.argmax(dim=1),
            probabilities=torch.softmax(scores, dim=1),
            class_names=self.class_names,
            access=kind,
            no_promise=self.no_promise,
        )

    def predict(self, graph: PrivateGraph | PublicGraph, *, access: str | None = None) -> NDArray[Any]:
        """The predicted class names of all nodes."""
        return np.asarray(self.predictions(graph, access=access).labels)

    def score(self, graph: PrivateGraph, mask: Tensor, *, access: str | None = None) -> float:
        """Micro-F1 on the nodes of a mask; with own edges a diagnostic, recorded and not for publication."""
        kind, scorer = self._scorer(access)
        self._check_nodes(graph, kind)
        check_scored(mask)
        nodes = graph.nodes
        if kind != "own-edges":
            return micro_f1(self.predictions(graph, access=kind).classes, nodes.labels, mask)
        return diagnose(
            lambda opened: micro_f1(scorer(nodes.features, opened).argmax(dim=1), nodes.labels, mask),
            graph.edges,
            ledger=self.ledger,
            purpose=f"accuracy with own edges ({self.method.name}), for the operator",
        )

    def _check_nodes(self, graph: PrivateGraph | PublicGraph, kind: Access) -> None:
        """What is kept of training nodes belongs to that node table only, and the ledger to its private edges only."""
        if kind in ("none", "public-graph"):
            return
        if kind == "own-edges":
            _private_parts(graph)
        if not isinstance(graph, PrivateGraph) or graph.nodes.fingerprint != self.training_nodes:
            raise InputError(
                "graph",
                rule="must be the graph that the method was trained on",
                got="another one",
                fix="Only the accesses none and public-graph answer for other nodes.",
            )

    def _public_parts(self, graph: PrivateGraph | PublicGraph) -> tuple[Tensor, Edges]:
        if not isinstance(graph, PublicGraph):
            raise AccessRefusedError(
                "access='public-graph' needs a graph whose edges were declared public: gcon.public_graph(...)."
            )
        same = features_fingerprint(graph.features) == self.training_nodes
        if self.method.private and (same or recognises(self.training_rows, graph.features)):
            raise AccessRefusedError(
                "access='public-graph' is refused for the node table that the method was trained on, in any order, and for parts "
                "of it: its edges are private. "
                f"What there is for it: {', '.join(kind for kind in self.trained.score_functions if kind != 'public-graph')}."
            )
        return graph.features, graph.edges

    def _scorer(self, access: str | None) -> tuple[Access, ScoreFunction]:
        known = self.trained.score_functions
        kind = next(iter(known)) if access is None else checked_access(access, tuple(known))
        return kind, known[kind]


def _private_parts(graph: PrivateGraph | PublicGraph) -> tuple[Tensor, Private[Edges]]:
    if not isinstance(graph, PrivateGraph):
        raise AccessRefusedError(
            "access='own-edges' answers from private edges. For edges that everybody may know use access='public-graph'."
        )
    return graph.nodes.features, graph.edges
