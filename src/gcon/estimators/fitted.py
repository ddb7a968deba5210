"""What a fitted estimator does with its model: it answers under a named access, scores, reports and exports."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Self, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from gcon.columns import same_features
from gcon.edges.edge_list import EdgeList, private_edges
from gcon.edges.graph import PrivateGraph, PublicGraph
from gcon.errors import AccessRefusedError, InputError
from gcon.estimators.node_score import NodeScore, own_edge_score
from gcon.files.edges import as_edge_index
from gcon.files.frames import column_names, frame_features, without
from gcon.files.inputs import Columns, Masks, as_features, as_labels, as_private_graph, labelled_mask, read_columns
from gcon.methods.accuracy import check_scored, micro_f1
from gcon.methods.features_only import FeaturesOnly, onnx_bytes
from gcon.methods.model import Model
from gcon.methods.no_edges import predict_without_edges
from gcon.methods.own_edges import predict_from_own_edges
from gcon.methods.predictions import Access, Predictions, audience_of, checked_access, why_no_promise
from gcon.methods.public_graph import predict_on_public_graph, refuse_training_nodes
from gcon.pages.model_report import Report, model_report
from gcon.privacy.boundary import Private, without_frames
from gcon.privacy.ledger import DetachedLedger, Ledger, MemoryLedger
from gcon.privacy.statement import Statement

MATRIX = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_all_finite": False}


class FittedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator around a released model, in scikit-learn's manner."""

    ledger: Ledger | None
    model_: Model

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, in the order of the model."""
        return np.asarray(self.model_.class_names)

    @property
    def n_features_in_(self) -> int:
        """How many columns a table must have."""
        columns = self.model_.feature_columns
        return self.model_.encoder.num_features if columns is None else len(columns.names)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Their names, of a model that was trained on a table with names; of others there is no such attribute."""
        columns = self.model_.feature_columns
        if columns is None:
            raise AttributeError("feature_names_in_: the model was not trained on a table with names")
        return np.array(columns.names, dtype=object)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """scikit-learn's, and of a fitted or loaded estimator what its model promises."""
        settings: str = super().__repr__(N_CHAR_MAX)
        return f"{settings}, fitted: {self.model_!r}" if hasattr(self, "model_") else settings

    @without_frames
    def predictions(self, X: Any, *, access: str = "none", edges: Any = None) -> Predictions:
        """Predict, with the access and its promise named in the result.

        Args:
            X: features, PyG's `Data`, a networkx graph, a `PrivateGraph`, or a `PublicGraph` (gcon.public_graph).
            access: `none` reads no edge; `cached` neither, but uses what was released of every node of the training table;
                `own-edges` answers each node from its own (private) edges; `public-graph` reads all edges of a graph
                whose edges were declared public. `model_.accesses` lists those of a model.
            edges: the edges for `own-edges`, private; if X has some too, these are read instead.

        Privacy:
            See `Predictions.promise`. Answers from own edges are recorded in the ledger, if there is one.
        """
        check_is_fitted(self)
        kind = self._checked_access(access, edges)
        if kind == "public-graph":
            if not isinstance(X, PublicGraph):
                raise AccessRefusedError(
                    "access='public-graph' needs edges that were declared public: gcon.public_graph(data). Edges count as "
                    "private unless somebody says otherwise."
                )
            refuse_training_nodes(self.model_, X.features)
            return predict_on_public_graph(self.model_, X.features, X.edges)
        columns = known_columns(self, X, edges=edges)
        if kind != "own-edges":
            return predict_without_edges(self.model_, columns.features, access=kind)
        books = self._books(stored_too=True)  # owners' answers cost nothing: a stored model gives them too
        return predict_from_own_edges(self.model_, columns.features, _private_edges(columns), ledger=books)

    @without_frames
    def predict(self, X: Any, *, access: str = "none", edges: Any = None) -> NDArray[Any]:
        """Predicted labels of all nodes; see `predictions` for the arguments and the promise."""
        found = self.predictions(X, access=access, edges=edges)
        labels: NDArray[Any] = self.classes_[found.classes.numpy()]
        return labels if self._output == "default" else _in_pandas(labels, X)

    @without_frames
    def predict_proba(self, X: Any, *, access: str = "none", edges: Any = None) -> NDArray[np.float64]:
        """Class probabilities of all nodes, columns in the order of `classes_`."""
        result: NDArray[np.float64] = self.predictions(X, access=access, edges=edges).probabilities.numpy()
        return result if self._output == "default" else _in_pandas(result, X, columns=self.classes_)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Let `predict` and `predict_proba` give pandas objects with the index of X: "pandas"; arrays again: "default"."""
        if transform not in (None, "default", "pandas"):
            raise InputError(
                "transform", rule="must be 'default' or 'pandas'", got=repr(transform), fix="Use 'pandas'."
            )
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}  # by this name scikit-learn's clone keeps it
        return self

    @property
    def _output(self) -> str:
        return str(getattr(self, "_sklearn_output_config", {}).get("transform", "default"))

    @without_frames
    def score(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        access: str = "none",
        edges: Any = None,
        mask: Any = None,
        split: int | None = None,
    ) -> float:
        """Micro-F1 on the test nodes (all nodes with a label of a bare matrix, or those of `mask`).

        `split` chooses a column of a mask that holds several splits. `node_score` also says what it cost.

        Privacy:
            With access `own-edges` this is a diagnostic for the operator of the graph: it depends on private edges
            without noise, is recorded in the ledger, and must not be published.
        """
        if sample_weight is not None:
            raise InputError("sample_weight", rule="is not supported", got="weights", fix="Leave it out.")
        return self.node_score(X, y, access=access, edges=edges, mask=mask, split=split).micro_f1

    @without_frames
    def node_score(
        self,
        X: Any,
        y: Any = None,
        *,
        access: str,
        edges: Any = None,
        mask: Any = None,
        split: int | None = None,
        pay: float | None = None,
    ) -> NodeScore:
        """Micro-F1 on held-out nodes with what it cost and who may see it.

        Args:
            X: as for `predictions`, with labels and masks or without.
            y: labels, if X has none.
            access: which edges may be read; it must be named.
            edges: the edges for `own-edges`, private; if X has some too, these are read instead.
            mask: the nodes to score; by default the test nodes, or all that have a label.
            split: which column of a mask that holds several splits.
            pay: with `own-edges`, epsilon of a noisy count of right answers, which may be published.

        Privacy:
            With `own-edges` and without `pay` this is a diagnostic for the operator of the graph: it depends on private
            edges without noise, is recorded in the ledger, and must not be published. With `pay` it costs (pay, 0) from
            the ledger, charged before an edge is read.
        """
        check_is_fitted(self)
        kind = self._checked_access(access, edges)
        if y is None and isinstance(X, PrivateGraph):
            y = np.asarray([*X.nodes.class_names, None], dtype=object)[
                X.nodes.labels.numpy()
            ]  # -1, unknown: the last one
        columns = known_columns(self, X, labels=y, edges=edges, test_mask=mask)
        if pay is not None and (kind != "own-edges" or self.ledger is None):
            rule, fix = "goes with access='own-edges' and a ledger", "Without private edges nothing is to be paid."
            raise InputError("pay", rule=rule, got=f"access={access!r}, ledger={self.ledger!r}", fix=fix)
        named = as_labels(columns.labels, len(columns.features))
        chosen = labelled_mask(columns.test_mask, "mask", named, default=True, split=split)
        check_scored(chosen)
        places = {name: number for number, name in enumerate(self.classes_.tolist())}
        labels = torch.tensor(
            [places.get(label, -1) for label in named[0].tolist()], dtype=torch.int64
        )  # -1: another class
        if kind == "own-edges":
            private, books = _private_edges(columns), self._books()
            return own_edge_score(self.model_, columns.features, labels, chosen, private, pay=pay, ledger=books)
        return NodeScore(
            micro_f1=micro_f1(self.predictions(X, access=kind).classes, labels, chosen),
            nodes=int(chosen.sum()),
            access=kind,
            audience=audience_of(kind, why_no_promise(self.model_.receipt)),
        )

    def statement(self) -> Statement:
        """The promise of the released model, in words and as data."""
        check_is_fitted(self)
        return self.model_.statement()

    @without_frames
    def report(
        self, X: Any = None, y: Any = None, *, name: str | None = None, control: bool = True, **masks: Unpack[Masks]
    ) -> Report:
        """A page about the released model, which a notebook shows and `save("report.html")` writes.

        Args:
            X: public nodes as in `fit`, for accuracy, confusion and calibration; edges that come with them are not read.
            y: their labels.
            name: of the data set, for people.
            control: train the same pipeline without any edge, which spends nothing, and show it beside the model.
            masks: train_mask, validation_mask, test_mask and split as in `fit`. The control learns from train_mask;
                the test nodes are scored, or those of validation_mask if there are too few.

        Privacy:
            Reads the model, public nodes, and what the ledger was charged: no edge. It may be published if the model keeps
            a promise (`publishable`).
        """
        check_is_fitted(self)
        nodes = X.nodes if isinstance(X, PrivateGraph) else None
        if X is not None and nodes is None:
            columns = replace(known_columns(self, X, labels=y, **masks), edges=None, edge_values=())
            nodes = as_private_graph(columns, classes=self.classes_.tolist(), name="").nodes
        books = self.ledger
        return model_report(
            self.model_,
            nodes,
            name=name,
            control_seed=self.get_params().get("encoder_seed", 0) if control else None,
            entries=books.entries() if books is not None and books.data_set == self.model_.receipt.data_set else (),
        )

    def to_torch(self) -> FeaturesOnly:
        """The part that reads features only, as a `torch.nn.Module`: what `predict_proba` gives for nodes never seen."""
        check_is_fitted(self)
        return FeaturesOnly(self.model_)

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """The same as an ONNX file, which must not exist yet: input `features`, output `probabilities`."""
        check_is_fitted(self)
        content = onnx_bytes(self.model_)
        try:
            with open(path, "xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except FileExistsError:
            rule, fix = "must not exist yet", "Choose another name."
            raise InputError("path", rule=rule, got=os.fspath(path), fix=fix) from None

    def __getstate__(self) -> dict[str, Any]:
        """A fitted estimator is stored without its ledger, which stays with the data; one to be fitted is not separated."""
        state: dict[str, Any] = super().__getstate__()
        if "model_" in state and self.ledger is not None:
            return state | {"ledger": DetachedLedger(self.ledger.data_set)}
        return state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _books(self, *, stored_too: bool = False) -> Ledger:
        """The ledger to charge or to record in; that of a stored model refuses both, unless it need not be asked."""
        if self.ledger is None or (stored_too and isinstance(self.ledger, DetachedLedger)):
            return MemoryLedger(self.model_.receipt.data_set)
        return self.ledger

    def _checked_access(self, access: str, edges: Any) -> Access:
        kind = checked_access(access, self.model_.accesses)
        if edges is not None and kind != "own-edges":
            rule, fix = "are read with access='own-edges' only", "Choose that access, or leave the edges out."
            raise InputError("edges", rule=rule, got=f"edges with access='{kind}'", fix=fix)
        return kind


def _private_edges(columns: Columns) -> Private[EdgeList]:
    if isinstance(columns.edges, Private):
        return columns.edges
    if isinstance(columns.edges, EdgeList):
        raise AccessRefusedError("These edges were declared public: use access='public-graph'.")
    if columns.edges is None:
        raise InputError(
            "edges", rule="are needed for access='own-edges'", got="none", fix="Pass edges=, if only an empty list."
        )
    num_nodes = len(columns.features)
    index = as_edge_index(columns.edges, num_nodes=num_nodes, ids=columns.ids, values=columns.edge_values)
    return private_edges(index, num_nodes)[0]


def _in_pandas(values: NDArray[Any], X: Any, *, columns: Any = None) -> Any:
    """Answers with the index that X has."""
    try:
        import pandas as pd  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        rule, fix = "needs pandas", "Install it, or set_output(transform='default')."
        raise InputError("set_output", rule=rule, got="none installed", fix=fix) from None
    index = None if isinstance(X, PrivateGraph | PublicGraph) else read_columns(X).ids
    return pd.Series(values, index=index) if columns is None else pd.DataFrame(values, index=index, columns=columns)


def known_columns(estimator: Any, X: Any, **given: Any) -> Columns:
    """The parts of a graph for a fitted estimator, with features as in its training; named arguments win."""
    given = {name: value for name, value in given.items() if value is not None}
    if isinstance(X, PrivateGraph):
        if not same_features(estimator.model_.feature_columns, X.nodes.feature_columns):
            rule, fix = "must have been read with the columns of training", "Read it with model_.feature_columns."
            raise InputError("X", rule=rule, got="other columns or categories", fix=fix)
        return Columns(**{"features": X.nodes.features, "edges": X.edges, "test_mask": X.nodes.test_mask, **given})
    if isinstance(X, PublicGraph):
        return Columns(**{"features": X.features, "edges": X.edges, **given})
    columns = read_columns(X, **given)
    return replace(
        columns, features=as_features(_known_features(estimator, columns.features, is_table=columns.features is X))
    )


def _known_features(estimator: Any, features: Any, *, is_table: bool) -> Any:
    """The features by the columns of training; scikit-learn has its say about a table, not about a part of a graph."""
    known = estimator.model_.feature_columns
    if known is not None and is_table and column_names(features):
        kept = without(features, known.drop)
        checked_table(estimator, kept, skip_check_array=True)
        return frame_features(kept, known)
    if known is not None and not known.plain:
        return frame_features(features, known)
    if not is_table:
        return features
    if not hasattr(estimator, "feature_names_in_") and hasattr(features, "columns"):
        features = np.asarray(features)  # a loaded model, or one of a graph, knows its columns by their places
    return checked_table(estimator, features, **MATRIX)


def checked_table(estimator: Any, X: Any, **how: Any) -> Any:
    """A table under scikit-learn's own checks: type of the columns, and names and number where an estimator is fitted."""
    try:
        return check_array(X, **MATRIX) if estimator is None else validate_data(estimator, X, reset=False, **how)
    except ValueError as error:
        raise InputError(
            "features",
            rule="must be a matrix of numbers, one row per node, with the same columns at every call",
            got=f"this complaint of scikit-learn: {str(error).strip().removesuffix('.')}",
            fix="Choose the columns of training: X[list(model.feature_names_in_)]."
            if hasattr(estimator, "feature_names_in_") and column_names(X)
            else "Pass all columns of training: a matrix, PyG's Data, a networkx graph or a PrivateGraph.",
        ) from error
