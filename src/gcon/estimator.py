"""The Python face, in scikit-learn's manner: `GCON(epsilon=1.0).fit(data).predict(data)`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
from torch import Tensor

from gcon.encode.mlp import EncoderSettings
from gcon.errors import AccessRefusedError, InputError
from gcon.evaluate.accuracy import check_scored, micro_f1
from gcon.graphs.edges import EdgeList, private_edges
from gcon.graphs.graph import PrivateGraph, PublicGraph
from gcon.interop.edges import as_edge_index
from gcon.interop.inputs import (
    as_features,
    as_labels,
    as_mask,
    as_private_graph,
    class_numbers,
    plain_settings,
    read_columns,
)
from gcon.pipeline import Settings, train
from gcon.predict.no_edges import predict_without_edges
from gcon.predict.own_edges import own_edge_predictions, predict_from_own_edges
from gcon.predict.predictions import Access, Predictions, checked_access
from gcon.predict.public_graph import predict_on_public_graph, refuse_training_nodes
from gcon.privacy.boundary import Private
from gcon.privacy.ledger import Ledger, MemoryLedger
from gcon.privacy.randomness import randomness_from
from gcon.privacy.statement import Statement
from gcon.propagate.schemes import Schemes, as_steps
from gcon.release.gate import diagnose
from gcon.release.model import ReleasedModel


class GCON(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A node classifier that is differentially private for every edge of its training graph.

    Args:
        epsilon: the privacy budget, greater than 0; infinity trains without noise and promises nothing.
        delta: in (0, 1); None means min(1e-5, 1/(10 n)) for n nodes. Never derive it from the number of edges.
        restart: alpha in [0, 1], the weight of a node's own features in every step; larger needs less noise.
        steps: how many steps features travel: a number, `inf`, or several for features side by side.
        loss: `soft-margin` or `pseudo-huber:WEIGHT`.
        ridge: Lambda > 0; the privacy proof may raise it.
        noise_share: omega in (0, 1).
        expand: `all` nodes are in the loss, with pseudo-labels, or only the `labelled` ones.
        hidden: width of the encoder; None takes the features as ready-made edge-free embeddings.
        inference_restart: alpha_I in [0, 1], the weight of a node's own features when it asks with its own edges. Low for
            graphs whose neighbours agree (0.1), high where they do not (0.9).
        influence: `auto`, `paper`, `simple` or `sharp`: which proven bound on an edge's influence.
        clip: largest off-diagonal transition weight, in (0, 1/2].
        margin: xi, added to the floor of the ridge; None is the recommended rule.
        centre: centre encoded features before scaling them to length 1.
        unit_input: scale raw feature rows to length 1 before encoding.
        dropout, weight_decay, learning_rate, epochs, patience: how the encoder is trained.
        encoder_seed: of the encoder's initial weights; public, and unrelated to the noise.
        device: where propagation and the solver run: `auto` (a GPU if there is one), `cpu`, `cuda` or `cuda:NUMBER`.
        classes: the class list; None takes the labels among the training nodes. A `PrivateGraph` brings its own.
        ledger: pays for every fit on its data set. None accounts for each fit alone.
        random_state: None for secure noise. A seed is for experiments: such a model carries no promise.

    Attributes:
        model_: the `ReleasedModel`: weights, encoder, settings, receipt. All of it may be published.
        classes_: class labels.
        n_features_in_: width of the features.

    Example:
        >>> import gcon
        >>> graph = gcon.datasets.social_circles(300, seed=1)
        >>> model = gcon.GCON(epsilon=2.0, epochs=20).fit(graph)
        >>> model.predict(graph).shape
        (300,)

    Privacy:
        `fit` reads all edges and releases `model_` once, paying epsilon and delta. `predict` reads no edge unless
        `access` says so. Fitted attributes hold nothing else that depends on edges: no iteration counts, no losses.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        restart: float = 0.8,
        steps: float | str | Sequence[float | str] = 2,
        loss: str = "soft-margin",
        ridge: float = 1.0,
        noise_share: float = 0.9,
        expand: str = "all",
        hidden: int | None = 16,
        inference_restart: float = 0.3,
        influence: str = "auto",
        clip: float = 0.5,
        margin: float | None = None,
        centre: bool = True,
        unit_input: bool = True,
        dropout: float = 0.5,
        weight_decay: float | None = None,
        learning_rate: float = 0.01,
        epochs: int = 300,
        patience: int = 60,
        encoder_seed: int = 0,
        device: str = "auto",
        classes: Sequence[object] | None = None,
        ledger: Ledger | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.restart = restart
        self.steps = steps
        self.loss = loss
        self.ridge = ridge
        self.noise_share = noise_share
        self.expand = expand
        self.hidden = hidden
        self.inference_restart = inference_restart
        self.influence = influence
        self.clip = clip
        self.margin = margin
        self.centre = centre
        self.unit_input = unit_input
        self.dropout = dropout
        self.weight_decay = weight_decay
        self.learning_rate = learning_rate
        self.epochs = epochs
        self.patience = patience
        self.encoder_seed = encoder_seed
        self.device = device
        self.classes = classes
        self.ledger = ledger
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        edges: Any = None,
        train_mask: Any = None,
        validation_mask: Any = None,
        test_mask: Any = None,
        name: str = "unnamed",
    ) -> Self:
        """Train on a graph and release the model.

        Args:
            X: PyG's `Data`, a networkx graph with node attributes `x`, `y`, `split`, a `PrivateGraph`, or a feature matrix.
            y: labels, one a node; only rows inside masks are read.
            edges: with a feature matrix: edge_index, list of pairs, scipy adjacency or networkx graph. None is a graph
                without edges, which trains like any other.
            train_mask: the labelled nodes; by default all.
            validation_mask: stops the encoder's training; its labels are public.
            test_mask: never used in training; kept apart by the checks.
            name: the owner's name for the data, for the ledger.

        Privacy:
            Pays `epsilon` and `delta` from the ledger before any edge is read.
        """
        settings = self._settings()
        randomness = randomness_from(self.random_state)
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        masks = {"train_mask": train_mask, "validation_mask": validation_mask, "test_mask": test_mask}
        graph = self._graph(X, name=name, labels=y, edges=edges, **masks)
        ledger = MemoryLedger(graph.name) if self.ledger is None else _checked_ledger(self.ledger)
        self.model_: ReleasedModel = train(graph, settings, ledger=ledger, randomness=randomness)
        self.classes_: NDArray[Any] = np.asarray(graph.nodes.class_names)
        self.n_features_in_ = int(graph.nodes.features.shape[1])
        return self

    def predictions(self, X: Any, *, access: str = "none", edges: Any = None) -> Predictions:
        """Predict, with the access and its promise named in the result.

        Args:
            X: features, PyG's `Data`, a networkx graph, a `PrivateGraph`, or a `PublicGraph` (gcon.public_graph).
            access: `none` reads no edge; `own-edges` answers each node from its own (private) edges; `public-graph`
                propagates over a graph whose edges were declared public.
            edges: the edges for `own-edges`, unless X has them.

        Privacy:
            See `Predictions.promise`. Answers from own edges are recorded in the ledger, if there is one.
        """
        check_is_fitted(self)
        kind = _checked_access(access, edges)
        if kind == "public-graph":
            return self._on_public_graph(X)
        features = self._features(X)
        if kind == "none":
            return predict_without_edges(self.model_, features)
        private = self._private_edges(X, edges, num_nodes=int(features.shape[0]))
        return predict_from_own_edges(self.model_, features, private, ledger=self._ledger())

    def predict(self, X: Any, *, access: str = "none", edges: Any = None) -> NDArray[Any]:
        """Predicted labels of all nodes; see `predictions` for the arguments and the promise."""
        found = self.predictions(X, access=access, edges=edges)
        labels: NDArray[Any] = self.classes_[found.classes.numpy()]
        return labels

    def predict_proba(self, X: Any, *, access: str = "none", edges: Any = None) -> NDArray[np.float64]:
        """Class probabilities of all nodes, columns in the order of `classes_`."""
        result: NDArray[np.float64] = self.predictions(X, access=access, edges=edges).probabilities.numpy()
        return result

    def score(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        access: str = "none",
        edges: Any = None,
        mask: Any = None,
    ) -> float:
        """Micro-F1 on the test nodes (all nodes of a bare matrix, or those of `mask`).

        Privacy:
            With access `own-edges` this is a diagnostic for the operator of the graph: it depends on private edges
            without noise, is recorded in the ledger, and must not be published.
        """
        check_is_fitted(self)
        if sample_weight is not None:
            raise InputError("sample_weight", rule="is not supported", got="weights", fix="Leave it out.")
        kind, features = _checked_access(access, edges), self._features(X)
        labels, chosen = self._scored_nodes(X, y, mask, num_nodes=int(features.shape[0]))
        if kind != "own-edges":
            return micro_f1(self.predictions(X, access=kind).classes, labels, chosen)
        check_scored(chosen)
        private = self._private_edges(X, edges, num_nodes=int(features.shape[0]))
        encoded = self.model_.encoder.encode(features)
        return diagnose(
            lambda opened: micro_f1(own_edge_predictions(self.model_, encoded, opened).classes, labels, chosen),
            private,
            ledger=self._ledger(),
            purpose="accuracy with own edges, for the operator",
        )

    def statement(self) -> Statement:
        """The promise of the released model, in words and as data."""
        check_is_fitted(self)
        return self.model_.statement()

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Like scikit-learn's, but a seed is never printed: it would let anybody subtract the noise."""
        params: dict[str, Any] = super().get_params(deep)
        seed = params["random_state"]
        if isinstance(seed, int | np.integer) and not isinstance(seed, bool | _HiddenSeed):
            params["random_state"] = _HiddenSeed(seed)
        return params

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _settings(self) -> Settings:
        given = plain_settings(self.get_params(deep=False))
        encoder = {field.name: given[field.name] for field in fields(EncoderSettings) if field.name in given}
        others = {field.name: given[field.name] for field in fields(Settings) if field.name in given}
        return Settings(
            encoder=EncoderSettings(**encoder, seed=given["encoder_seed"]),
            schemes=Schemes(restart=given["restart"], steps=as_steps(given["steps"]), clip=given["clip"]),
            **others,
        )

    def _graph(self, X: Any, *, name: str, **given: Any) -> PrivateGraph:
        if isinstance(X, PrivateGraph):
            twice = [part for part, value in given.items() if value is not None]
            if twice:
                rule = "a PrivateGraph brings its own labels, edges and masks"
                raise InputError("X", rule=rule, got=f"also {', '.join(twice)}", fix="Pass the one or the others.")
            return X
        columns = read_columns(X, **given)
        if columns.features is X:
            column = np.shape(np.asarray(columns.labels))[1:] == (1,)
            labels = column_or_1d(np.asarray(columns.labels), warn=True) if column else columns.labels
            columns = replace(columns, features=self._matrix(X, reset=True), labels=labels)
        return as_private_graph(columns, classes=self.classes, name=name)

    def _matrix(self, X: Any, *, reset: bool) -> Any:
        """A plain feature matrix under scikit-learn's own checks: names, number and type of the columns."""
        try:
            return validate_data(
                self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=False
            )
        except ValueError as error:
            raise InputError(
                "features",
                rule="must be a matrix of numbers, one row a node, with the same columns at every call",
                got=f"this complaint of scikit-learn: {str(error).strip().removesuffix('.')}",
                fix="Pass the matrix X, PyG's Data, a networkx graph or a PrivateGraph.",
            ) from error

    def _features(self, X: Any) -> Tensor:
        if isinstance(X, PrivateGraph):
            return X.nodes.features
        if isinstance(X, PublicGraph):
            return X.features
        features = read_columns(X).features
        return as_features(self._matrix(X, reset=False) if features is X else features)

    def _private_edges(self, X: Any, edges: Any, *, num_nodes: int) -> Private[EdgeList]:
        if isinstance(X, PrivateGraph):
            return X.edges
        if isinstance(X, PublicGraph):
            raise AccessRefusedError("These edges were declared public: use access='public-graph'.")
        found = read_columns(X, edges=edges).edges
        if found is None:
            raise InputError(
                "edges", rule="are needed for access='own-edges'", got="none", fix="Pass edges=, if only an empty list."
            )
        return private_edges(as_edge_index(found, num_nodes=num_nodes), num_nodes)[0]

    def _on_public_graph(self, X: Any) -> Predictions:
        if not isinstance(X, PublicGraph):
            raise AccessRefusedError(
                "access='public-graph' needs edges that were declared public: gcon.public_graph(data). Edges count as "
                "private unless somebody says otherwise."
            )
        refuse_training_nodes(self.model_, X.features)
        return predict_on_public_graph(self.model_, X.features, X.edges)

    def _scored_nodes(self, X: Any, y: Any, mask: Any, *, num_nodes: int) -> tuple[Tensor, Tensor]:
        """Class numbers in the order of `classes_` (-1: another class) and the mask of the nodes that count."""
        labels, test = y, mask
        if isinstance(X, PrivateGraph):
            names = np.asarray([*X.nodes.class_names, None], dtype=object)  # -1, unknown, is the last one
            labels = names[X.nodes.labels.numpy()] if y is None else y
            test = X.nodes.test_mask if mask is None else mask
        elif not isinstance(X, PublicGraph):
            columns = read_columns(X, labels=y, test_mask=mask)
            labels, test = columns.labels, columns.test_mask
        numbers = class_numbers(as_labels(labels, num_nodes), self.classes_.tolist())
        return numbers, as_mask(test, "mask", num_nodes, default=True)

    def _ledger(self) -> Ledger:
        return self.ledger if self.ledger is not None else MemoryLedger(self.model_.receipt.data_set)


class _HiddenSeed(int):
    """A seed as `get_params` gives it: a number to compute with that does not show itself."""

    def __repr__(self) -> str:
        return "<hidden>"

    __str__ = __repr__

    def __format__(self, format_spec: str) -> str:
        return repr(self)


def _checked_access(access: str, edges: Any) -> Access:
    kind = checked_access(access)
    if edges is not None and kind != "own-edges":
        rule, fix = "are read with access='own-edges' only", "Choose that access, or leave the edges out."
        raise InputError("edges", rule=rule, got=f"edges with access='{kind}'", fix=fix)
    return kind


def _checked_ledger(ledger: Ledger) -> Ledger:
    if not hasattr(ledger, "reserve"):
        rule, fix = "must be None or a ledger", "For example gcon.MemoryLedger('friendships')."
        raise InputError("ledger", rule=rule, got=type(ledger).__name__, fix=fix)
    return ledger
