"""The Python face, in scikit-learn's manner: `GCON(epsilon=1.0).fit(data).predict(data)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from gcon.encode.mlp import EncoderSettings
from gcon.errors import AccessRefusedError, InputError
from gcon.evaluate.accuracy import micro_f1
from gcon.graphs.edges import EdgeList, private_edges
from gcon.graphs.graph import PrivateGraph, PublicGraph
from gcon.graphs.nodes import features_fingerprint
from gcon.interop.edges import as_edge_index
from gcon.interop.inputs import as_features, as_private_graph, read_columns
from gcon.pipeline import Settings, train
from gcon.predict.no_edges import predict_without_edges
from gcon.predict.own_edges import own_edge_predictions, predict_from_own_edges
from gcon.predict.predictions import Predictions, checked_access
from gcon.predict.public_graph import predict_on_public_graph
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
        classes: the class list; None takes the labels among the training nodes.
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
        inference_restart: float = 0.25,
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
        graph = (
            X
            if isinstance(X, PrivateGraph)
            else self._graph(
                X,
                y,
                edges=edges,
                train_mask=train_mask,
                validation_mask=validation_mask,
                test_mask=test_mask,
                name=name,
            )
        )
        ledger = self.ledger if self.ledger is not None else MemoryLedger(graph.name)
        self.model_: ReleasedModel = train(
            graph, self._settings(), ledger=ledger, randomness=randomness_from(self.random_state)
        )
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
        kind = checked_access(access)
        if kind == "public-graph":
            return self._on_public_graph(X)
        features, private = self._parts(X, edges, read_edges=kind == "own-edges")
        if kind == "none" or private is None:
            return predict_without_edges(self.model_, features)
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
        features, labels, chosen = self._scored_nodes(X, y, mask)
        if checked_access(access) != "own-edges":
            return micro_f1(self.predictions(X, access=access).classes, labels, chosen)
        _, private = self._parts(X, edges, read_edges=True)
        if private is None:
            raise InputError("edges", rule="are needed for own-edges", got="none", fix="Pass edges=.")
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

    def _settings(self) -> Settings:
        return Settings(
            epsilon=self.epsilon,
            delta=self.delta,
            encoder=EncoderSettings(
                hidden=self.hidden,
                dropout=self.dropout,
                weight_decay=self.weight_decay,
                learning_rate=self.learning_rate,
                epochs=self.epochs,
                patience=self.patience,
                unit_input=self.unit_input,
                centre=self.centre,
                seed=self.encoder_seed,
            ),
            schemes=Schemes(restart=self.restart, steps=as_steps(self.steps), clip=self.clip),
            influence=self.influence,  # type: ignore[arg-type]  # checked where it is used
            expand=self.expand,  # type: ignore[arg-type]
            loss=self.loss,
            ridge=self.ridge,
            noise_share=self.noise_share,
            margin=self.margin,
            inference_restart=self.inference_restart,
        )

    def _graph(self, X: Any, y: Any, *, name: str, **given: Any) -> PrivateGraph:
        columns = read_columns(X, labels=y, **given)
        if columns.features is X:
            # A plain matrix: scikit-learn's own checks and messages.
            if y is None:
                validate_data(self, X, y)
            matrix, labels = validate_data(self, X, y, dtype=[np.float64, np.float32], ensure_all_finite=False)
            check_classification_targets(labels)
            columns = read_columns(matrix, labels=labels, **given)
        return as_private_graph(columns, classes=self.classes, name=name)

    def _parts(self, X: Any, edges: Any, *, read_edges: bool) -> tuple[Tensor, Private[EdgeList] | None]:
        if isinstance(X, PrivateGraph):
            return X.nodes.features, X.edges
        if isinstance(X, PublicGraph):
            if read_edges:
                raise AccessRefusedError("These edges were declared public: use access='public-graph'.")
            return X.features, None
        columns = read_columns(X, edges=edges)
        if columns.features is X:
            columns = read_columns(validate_data(self, X, reset=False, dtype=[np.float64, np.float32]), edges=edges)
        features = as_features(columns.features)
        if not read_edges:
            return features, None
        if columns.edges is None:
            raise InputError("edges", rule="are needed for access='own-edges'", got="none", fix="Pass edges=.")
        index = as_edge_index(columns.edges, num_nodes=int(features.shape[0]))
        return features, private_edges(index, int(features.shape[0]))[0]

    def _on_public_graph(self, X: Any) -> Predictions:
        if not isinstance(X, PublicGraph):
            raise AccessRefusedError(
                "access='public-graph' needs edges that were declared public: gcon.public_graph(data). Edges count as "
                "private unless somebody says otherwise."
            )
        if features_fingerprint(X.features) == self.model_.settings.training_nodes:
            raise AccessRefusedError(
                "access='public-graph' is refused for the node table that the model was trained on: its edges are "
                "private. Use access='own-edges' or 'none'. For an experiment on edges that are truly public, call "
                "gcon.predict.public_graph.predict_on_public_graph, which takes your word for it."
            )
        return predict_on_public_graph(self.model_, X.features, X.edges)

    def _scored_nodes(self, X: Any, y: Any, mask: Any) -> tuple[Tensor, Tensor, Tensor]:
        if isinstance(X, PrivateGraph):
            nodes = X.nodes
            chosen = nodes.test_mask if mask is None else torch.as_tensor(np.asarray(mask))
            return nodes.features, nodes.labels, chosen
        if isinstance(X, PublicGraph):
            features, found, test = X.features, y, mask
        else:
            columns = read_columns(X, labels=y, test_mask=mask)
            features, found, test = as_features(columns.features), columns.labels, columns.test_mask
        if found is None:
            raise InputError("y", rule="labels are needed for a score", got="none", fix="Pass y.")
        known = np.asarray(found)
        numbers = np.full(known.shape, -1)
        for number, name in enumerate(self.classes_):
            numbers[known == name] = number
        chosen = torch.ones(len(known), dtype=torch.bool) if test is None else torch.as_tensor(np.asarray(test))
        return features, torch.from_numpy(numbers), chosen

    def _ledger(self) -> Ledger:
        return self.ledger if self.ledger is not None else MemoryLedger(self.model_.receipt.data_set)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Like scikit-learn's, but a seed is never printed: it would let anybody subtract the noise."""
        if self.random_state is None:
            return str(super().__repr__(N_CHAR_MAX))
        shown = GCON(**{**self.get_params(deep=False), "random_state": None})
        body = BaseEstimator.__repr__(shown, N_CHAR_MAX).removesuffix(")")
        return f"{body}{'' if body.endswith('(') else ', '}random_state=<hidden>)"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": repr(self)}

    _repr_html_ = None
