"""The one face of all competitors: settings, `fit`, then `predict` under a named access."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcon.errors import AccessRefusedError, InputError
from gcon.evaluate.accuracy import check_scored, micro_f1
from gcon.graphs.edges import EdgeList
from gcon.graphs.graph import PrivateGraph, PublicGraph
from gcon.graphs.nodes import PublicNodes
from gcon.predict.predictions import Access, Predictions, checked_access
from gcon.privacy.boundary import Private
from gcon.privacy.budget import checked_budget, public_delta
from gcon.privacy.ledger import Ledger, MemoryLedger
from gcon.privacy.randomness import Randomness, SystemRandomness
from gcon.privacy.receipt import Receipt
from gcon.release.gate import answer_owners, diagnose

# Class scores of all nodes from public features and edges: opened inside a gate (own-edges), public (public-graph), or
# None (none, cached, full).
Scorer = Callable[[Tensor, EdgeList | None], Tensor]


@dataclass(frozen=True, eq=False, kw_only=True)
class Trained:
    """What a method's training gives back.

    Attributes:
        scorers: for every access that the method knows, how it scores. They hold public and released values only.
        receipts: what was paid.
    """

    scorers: Mapping[Access, Scorer]
    receipts: tuple[Receipt, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedMethod:
    """A trained competitor.

    Attributes:
        method: its settings.
        class_names: what the columns of the scores stand for.
        trained: scorers and receipts.
        ledger: records what is read at prediction.
        training_nodes: checksum of the public feature table that the method was trained on.
    """

    method: Method
    class_names: tuple[object, ...]
    trained: Trained
    ledger: Ledger = field(repr=False)
    training_nodes: str

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """What was paid."""
        return self.trained.receipts

    def predictions(self, graph: PrivateGraph | PublicGraph, *, access: str | None = None) -> Predictions:
        """Predict for all nodes of a graph, with the access and its promise named in the result.

        Args:
            graph: the training graph, or for `public-graph` a graph whose edges are public.
            access: one of the method's accesses; None for its first.

        Privacy:
            See `Predictions.promise`. Answers from own edges are recorded in the ledger.
        """
        kind, scorer = self._scorer(access)
        private = _private_parts(graph) if kind == "own-edges" else None
        self._check_nodes(graph, kind)
        if private is not None:
            features, edges = private
            purpose = f"answers to node owners ({self.method.name})"
            scores = answer_owners(lambda opened: scorer(features, opened), edges, ledger=self.ledger, purpose=purpose)
        elif kind == "public-graph":
            if not isinstance(graph, PublicGraph):
                raise AccessRefusedError(
                    "access='public-graph' needs a graph whose edges were declared public: gcon.public_graph(...)."
                )
            scores = scorer(graph.features, graph.edges)
        else:
            features = graph.nodes.features if isinstance(graph, PrivateGraph) else graph.features
            scores = scorer(features, None)
        return Predictions(
            classes=scores.argmax(dim=1),
            probabilities=torch.softmax(scores, dim=1),
            class_names=self.class_names,
            access=kind,
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
        """Quantities of training nodes, noisy or exact, belong to that node table only."""
        keeps_rows = kind in ("cached", "full") or (kind == "own-edges" and "cached" in self.trained.scorers)
        nodes = graph.nodes if isinstance(graph, PrivateGraph) else None
        if keeps_rows and (nodes is None or nodes.fingerprint != self.training_nodes):
            raise InputError(
                "graph",
                rule="must be the graph that the method was trained on",
                got="another one",
                fix="Only the accesses none and public-graph answer for other nodes.",
            )

    def _scorer(self, access: str | None) -> tuple[Access, Scorer]:
        known = self.trained.scorers
        kind = next(iter(known)) if access is None else checked_access(access, tuple(known))
        return kind, known[kind]


@dataclass(frozen=True, kw_only=True)
class Method(ABC):
    """Settings of a competitor: public numbers.

    Attributes:
        seed: of initial weights and dropout; it has nothing to do with the noise and may be public.
    """

    name: ClassVar[str]
    about: ClassVar[str]  # what is released and promised, in one sentence
    private: ClassVar[bool] = True  # whether it keeps a promise about edges

    seed: int = 0

    def fit(
        self, graph: PrivateGraph, *, ledger: Ledger | None = None, randomness: Randomness | None = None
    ) -> FittedMethod:
        """Train on a graph.

        Args:
            graph: public nodes and private edges.
            ledger: pays before any edge is read; None for one in memory.
            randomness: the source of the noise; None for the operating system.

        Privacy:
            Edges leave only through gates that pay the ledger.
        """
        books = MemoryLedger(graph.name) if ledger is None else ledger
        noise = SystemRandomness() if randomness is None else randomness
        trained = self._train(graph.nodes, graph.edges, ledger=books, randomness=noise)
        return FittedMethod(
            method=self,
            class_names=graph.nodes.class_names,
            trained=trained,
            ledger=books,
            training_nodes=graph.nodes.fingerprint,
        )

    @abstractmethod
    def _train(
        self, nodes: PublicNodes, edges: Private[EdgeList], *, ledger: Ledger, randomness: Randomness
    ) -> Trained:
        """Train, paying the ledger for whatever is computed from edges."""


@dataclass(frozen=True, kw_only=True)
class PrivateMethod(Method):
    """Settings of a competitor that spends a budget.

    Attributes:
        epsilon: the budget; infinity leaves the noise out and promises nothing.
        delta: None means min(1e-5, 1/(10 n)) with n nodes; methods with pure epsilon do not use it.
    """

    epsilon: float
    delta: float | None = None

    def __post_init__(self) -> None:
        checked_budget(self.epsilon, 0.5 if self.delta is None else self.delta)

    def delta_for(self, nodes: PublicNodes) -> float:
        """The delta that is paid."""
        return public_delta(nodes.num_nodes) if self.delta is None else self.delta


def _private_parts(graph: PrivateGraph | PublicGraph) -> tuple[Tensor, Private[EdgeList]]:
    if not isinstance(graph, PrivateGraph):
        raise AccessRefusedError(
            "access='own-edges' answers from private edges. For edges that everybody may know use access='public-graph'."
        )
    return graph.nodes.features, graph.edges
