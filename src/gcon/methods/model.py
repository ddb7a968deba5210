"""What every released model is, whichever method made it: it scores nodes under named accesses, and keeps itself in a folder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcon.columns import FeatureColumns
from gcon.edges.source import Edges
from gcon.learn.encoder import Encoder
from gcon.methods.method import PrivateMethod, Progress, ScoreFunction, silent
from gcon.methods.predictions import Access, Predictions, why_no_promise
from gcon.methods.record import Common, Layout, Record
from gcon.nodes import BATCH_ROWS, PublicNodes, nothing_known, row_slices
from gcon.privacy.boundary import Private
from gcon.privacy.budget import STATED_EDGES, Budget, protected_change
from gcon.privacy.ledger import Ledger
from gcon.privacy.randomness import Randomness
from gcon.privacy.receipt import Receipt
from gcon.privacy.statement import ACCESS_PROMISES, Statement, statement


@dataclass(frozen=True, kw_only=True)
class ReleasingMethod(PrivateMethod):
    """A method whose training gives a model that may be published."""

    @abstractmethod
    def train(
        self,
        nodes: PublicNodes,
        edges: Private[Edges],
        *,
        ledger: Ledger,
        randomness: Randomness,
        progress: Progress = silent,
        purpose: str = "node classification",
    ) -> Model: ...


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Model(ABC):
    """A model that may be published: public tensors, public settings, and a receipt.

    Attributes:
        method: the name of the method that made it.
        accesses: what it can be asked under.
        record_type: what its settings look like in a file.
        class_names: what the class numbers stand for.
        training_nodes: checksum of the public feature table that the model was trained on.
        training_rows: digests of its rows (`gcon.nodes.known_rows`).
        encoder: turns features of any node into what prediction starts from.
        receipt: what was paid and what is promised.
        feature_columns: what was done with the columns of the training table, to do it again; None if there were only
            numbers.
    """

    method: ClassVar[str]
    accesses: ClassVar[tuple[str, ...]]
    record_type: ClassVar[type[Record]]
    class_names: tuple[object, ...]
    training_nodes: str
    training_rows: Tensor = field(default_factory=nothing_known)
    encoder: Encoder
    receipt: Receipt
    feature_columns: FeatureColumns | None = None

    @property
    @abstractmethod
    def choices(self) -> str:
        """How its settings were chosen, and whether that was public, free or paid."""

    @abstractmethod
    def description(self) -> str:
        """What it is, for the model card."""

    @abstractmethod
    def scorer(self, *, restart: float | None = None, device: str = "cpu") -> Scorer:
        """How it scores nodes.

        Args:
            restart: alpha_I, the weight of a node's own features with own edges; None for the model's own.
            device: where to compute: `cpu`, `cuda` or `cuda:NUMBER`.
        """

    @property
    def score_functions(self) -> Mapping[Access, ScoreFunction]:
        """Every access as a function of features and edges."""
        known = score_functions(self.scorer())
        return {access: known[access] for access in known if access in self.accesses}

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        return (self.receipt,)

    @abstractmethod
    def by_edges(self, numbers: Sequence[int] = STATED_EDGES) -> Mapping[int, Budget | None]:
        """What is promised for so many edges that change together; None for nothing, no entries without a promise."""

    def __repr__(self) -> str:
        budget, edges = self.receipt.budget, protected_change(record=self.receipt.plan).edges
        promise = (
            f"({budget.epsilon}, {budget.delta})-differentially private for {edges} edge{'s' if edges > 1 else ''}"
        )
        reason = why_no_promise(self.receipt)
        said = promise if reason is None else f"no promise: {reason}"
        return f"<{type(self).__name__}: {said}; {self.encoder.num_features} features, {len(self.class_names)} classes>"

    def statement(self) -> Statement:
        """The promise in words and as data."""
        return statement(self.receipt, self.access_words, self.choices, self.by_edges())

    def taught(self, nodes: PublicNodes, mask: Tensor) -> int:
        """How many nodes of a mask are known to have taught it by their labels: answers for them measure nothing."""
        return 0

    @property
    def best_public_access(self) -> Access:
        """What gives the nodes of the training table the best answers that may be published."""
        return "none"

    @property
    def access_words(self) -> dict[str, str]:
        """What each access reads, and who may see its answers."""
        return {access: ACCESS_PROMISES[access] for access in self.accesses}

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """All of its tensors but the encoder's, by the name that they have in a file."""

    @abstractmethod
    def record(self) -> Record:
        """Its settings as plain numbers and words, of its `record_type`."""

    @classmethod
    @abstractmethod
    def layout(cls, record: Any, *, width: int, num_classes: int) -> Layout:
        """Type and shape of its tensors but the encoder's, from its record, which is checked, and the encoder's width."""

    @classmethod
    @abstractmethod
    def from_parts(cls, record: Any, tensors: Mapping[str, Tensor], common: Common) -> Self:
        """The model again."""


class Scorer(ABC):
    """Class scores of nodes, from a start that reads no edge."""

    @abstractmethod
    def start_of_rows(self, features: Tensor, access: Access) -> Callable[[slice], Tensor]:
        """What the scores of some nodes start from; all that concerns the whole table is checked now."""

    def start(self, features: Tensor, access: Access) -> Tensor:
        """What the scores of an access start from: one row per node, from public features and the model alone."""
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


def predictions_from(model: Model, scorer: Scorer, scores: Tensor, *, access: Access) -> Predictions:
    """The classes with the largest scores, and their probabilities."""
    return Predictions(
        classes=scores.argmax(dim=1).cpu(),
        probabilities=scorer.probabilities(scores).cpu(),
        class_names=model.class_names,
        access=access,
        no_promise=why_no_promise(model.receipt),
        words=model.access_words[access],
    )


def joined(batches: Iterable[Predictions]) -> Predictions:
    """Predictions of consecutive nodes, batch by batch, as one table."""
    parts = list(batches)
    if len(parts) == 1:
        return parts[0]
    classes = torch.cat([part.classes for part in parts])
    return replace(parts[0], classes=classes, probabilities=torch.cat([part.probabilities for part in parts]))


def score_functions(scorer: Scorer) -> dict[Access, ScoreFunction]:
    """Every access of a released model, as scorers of opened edges."""

    def own_edges(features: Tensor, opened: Edges | None) -> Tensor:
        assert opened is not None
        return scorer.own_edges(scorer.start(features, "own-edges"), opened)

    def public_graph(features: Tensor, edges: Edges | None) -> Tensor:
        assert edges is not None
        return scorer.public_graph(scorer.start(features, "public-graph"), edges)

    def fixed(access: Access) -> ScoreFunction:
        return lambda features, _: scorer.without_edges(scorer.start(features, access))

    return {"own-edges": own_edges, "none": fixed("none"), "cached": fixed("cached"), "public-graph": public_graph}
