"""What the estimators share: scikit-learn's manner, any kind of graph as input, and a named access at prediction."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
from torch import Tensor

from gcon.choose.paid_accuracy import paid_accuracy
from gcon.columns import FeatureColumns, same_features
from gcon.edges.edge_list import EdgeList, private_edges
from gcon.edges.graph import PrivateGraph, PublicGraph
from gcon.errors import AccessRefusedError, InputError, PromiseWarning
from gcon.estimators.node_score import NodeScore
from gcon.estimators.progress import Callback, FitProgress
from gcon.estimators.row_searches import refuse_row_searches
from gcon.files.frames import column_names, frame_features, learn_frame, without
from gcon.files.inputs import (
    as_features,
    as_labels,
    as_private_graph,
    class_numbers,
    edge_index_of,
    labelled_mask,
    read_columns,
)
from gcon.machine import threads_for
from gcon.methods.accuracy import check_scored, micro_f1
from gcon.methods.features_only import FeaturesOnly, onnx_bytes
from gcon.methods.model import Model, ReleasingMethod
from gcon.methods.no_edges import predict_without_edges
from gcon.methods.own_edges import own_edge_answers, predict_from_own_edges
from gcon.methods.predictions import Access, Predictions, audience_of, checked_access, why_no_promise
from gcon.methods.public_graph import predict_on_public_graph, refuse_training_nodes
from gcon.nodes import warn_of_scales
from gcon.pages.model_report import Report, model_report
from gcon.privacy.boundary import Private
from gcon.privacy.detached_ledger import DetachedLedger
from gcon.privacy.frames import without_frames
from gcon.privacy.gates import diagnose
from gcon.privacy.ledger import Ledger, MemoryLedger
from gcon.privacy.randomness import randomness_from
from gcon.privacy.statement import Statement
from gcon.privacy.uncounted import UncountedLedger
from gcon.release.read import load_release
from gcon.writing import write_new


class PrivateClassifier(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """What all estimators share: reading graphs, paying, predicting under a named access.

    Subclasses say how a model is trained. All have the parameters that are named here.
    """

    classes: Sequence[object] | None
    ledger: Ledger | None
    random_state: int | None
    verbose: bool
    callback: Callback | None
    model_: Model
    classes_: NDArray[Any]
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    model_type: ClassVar[type[Model]]
    shares: ClassVar[Mapping[str, float]]

    @abstractmethod
    def _method(self) -> ReleasingMethod:
        """The method with these parameters; `InputError` for wrong ones, before anything is read."""

    @classmethod
    @abstractmethod
    def _settings_of(cls, model: Any) -> dict[str, Any]:
        """Those parameters that a released model tells."""

    @classmethod
    def from_model(cls, model: Model, *, ledger: Ledger | None = None) -> Self:
        """The estimator around a released model; `gcon.load` reads the folder of one, too.

        Parameters that the release does not tell have their defaults; a seed is never told.

        Args:
            model: of this estimator's method.
            ledger: records answers from own edges, and pays if the estimator is fitted again.
        """
        if not isinstance(model, cls.model_type):
            raise InputError(
                "model",
                rule=f"must be a {cls.model_type.__name__} for {cls.__name__}",
                got=type(model).__name__,
                fix="Use gcon.load(folder), which knows every method.",
            )
        estimator = cls(**cls._settings_of(model), ledger=ledger)
        estimator._take(model)
        return estimator

    @classmethod
    def from_release(cls, folder: str | os.PathLike[str], *, ledger: Ledger | None = None) -> Self:
        """The estimator around the model in a release folder; `gcon.load` does it for every method.

        Args:
            folder: what `save_release` or `gcon train` wrote.
            ledger: as for `from_model`.
        """
        return cls.from_model(load_release(folder), ledger=ledger)

    @without_frames
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        edges: Any = None,
        train_mask: Any = None,
        validation_mask: Any = None,
        test_mask: Any = None,
        split: int | None = None,
        drop: Sequence[str] = (),
        categorical: Sequence[str] = (),
        name: str = "unnamed",
    ) -> Self:
        """Train on a graph and release the model.

        Args:
            X: PyG's `Data`, a networkx graph with node attributes `x`, `y`, `split`, a `PrivateGraph`, or a feature matrix.
            y: labels, one per node; only rows inside masks are read. -1, None and NaN mean that there is none.
            edges: with a feature matrix: edge_index, list of pairs, scipy adjacency, networkx graph, or a data frame of two
                columns. The last two name nodes by the index of X, if that is a data frame, else by row. None is a graph
                without edges, which trains and is charged like any other, with a warning if there is a ledger.
            train_mask: the nodes to learn from, as booleans or row numbers; by default all that have a label.
            validation_mask: stops the encoder's training; its labels are public.
            test_mask: never used in training; kept apart by the checks.
            split: which column of masks that hold several splits.
            drop: columns of a data frame to leave out.
            categorical: columns of a data frame that hold categories: one feature per category. Gaps in columns of numbers
                are filled with the mean and marked; prediction does the same again (docs/file-formats.md).
            name: the owner's name for the data, for the ledger.

        Privacy:
            Pays `epsilon` and `delta` from the ledger before any edge is read.
        """
        refuse_row_searches()
        method, randomness = self._method(), randomness_from(self.random_state)
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        masks = {"train_mask": train_mask, "validation_mask": validation_mask, "test_mask": test_mask}
        given = {"labels": y, "edges": edges, **masks, "split": split}
        if (drop or categorical) and not column_names(X):
            rule, fix = "name columns of a data frame", "Pass X as one, with names of columns."
            raise InputError("drop, categorical", rule=rule, got=type(X).__name__, fix=fix)
        if isinstance(X, PrivateGraph):
            twice = [part for part, value in given.items() if value is not None]
            if twice:
                rule = "a PrivateGraph brings its own labels, edges and masks"
                raise InputError("X", rule=rule, got=f"also {', '.join(twice)}", fix="Pass the one or the others.")
            graph = X
        else:
            columns = read_columns(X, **given)
            if columns.edges is None and self.ledger is not None:
                said = "edges: none were given, and the ledger is charged all the same. Pass them, or edges=[] if there are none."
                warnings.warn(said, PromiseWarning, stacklevel=3)
            if y is not None and getattr(y, "name", None) in set(column_names(X) or ()) - {*drop}:
                rule, fix = "must not hold the labels as a feature too", f"Leave it out: drop=[{y.name!r}]."
                raise InputError("X", rule=rule, got=f"the column {y.name!r}", fix=fix)
            if columns.features is X:
                column = np.shape(np.asarray(columns.labels))[1:] == (1,)
                labels = column_or_1d(np.asarray(columns.labels), warn=True) if column else columns.labels
                features, done = self._learn_table(X, drop, categorical)
                columns = replace(columns, features=features, feature_columns=done, labels=labels)
            graph = as_private_graph(columns, classes=self.classes, name=name)
        warn_of_scales(graph.nodes)
        ledger: Ledger = (
            UncountedLedger(graph.name, graph.nodes.fingerprint)
            if self.ledger is None
            else _checked_ledger(self.ledger)
        )
        progress = FitProgress(self.shares, verbose=self.verbose, callback=self.callback)
        with threads_for(*graph.nodes.features.shape):
            trained = method.train(graph.nodes, graph.edges, ledger=ledger, randomness=randomness, progress=progress)
        self._take(replace(trained, feature_columns=graph.nodes.feature_columns))
        progress.finish()
        return self

    @without_frames
    def predictions(self, X: Any, *, access: str = "none", edges: Any = None) -> Predictions:
        """Predict, with the access and its promise named in the result.

        Args:
            X: features, PyG's `Data`, a networkx graph, a `PrivateGraph`, or a `PublicGraph` (gcon.public_graph).
            access: `none` reads no edge; `cached` neither, but uses what was released of every training node;
                `own-edges` answers each node from its own (private) edges; `public-graph` reads all edges of a graph
                whose edges were declared public. `model_.accesses` lists those of a model.
            edges: the edges for `own-edges`, unless X has them.

        Privacy:
            See `Predictions.promise`. Answers from own edges are recorded in the ledger, if there is one.
        """
        check_is_fitted(self)
        kind = self._checked_access(access, edges)
        if kind == "public-graph":
            return self._on_public_graph(X)
        features = self._features(X)
        if kind != "own-edges":
            return predict_without_edges(self.model_, features, access=kind)
        private = self._private_edges(X, edges, num_nodes=int(features.shape[0]))
        return predict_from_own_edges(self.model_, features, private, ledger=self._ledger())

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
            edges: the edges for `own-edges`, unless X has them.
            mask: the nodes to score; by default the test nodes, or all that have a label.
            split: which column of a mask that holds several splits.
            pay: with `own-edges`, epsilon of a noisy count of right answers, which may be published.

        Privacy:
            With `own-edges` and without `pay` this is a diagnostic for the operator of the graph: it depends on private
            edges without noise, is recorded in the ledger, and must not be published. With `pay` it costs (pay, 0) from
            the ledger, charged before an edge is read.
        """
        check_is_fitted(self)
        kind, features = self._checked_access(access, edges), self._features(X)
        if pay is not None and (kind != "own-edges" or self.ledger is None):
            rule, fix = "goes with access='own-edges' and a ledger", "Without private edges nothing is to be paid."
            raise InputError("pay", rule=rule, got=f"access={access!r}, ledger={self.ledger!r}", fix=fix)
        labels, chosen = self._scored_nodes(X, y, mask, split, num_nodes=int(features.shape[0]))
        check_scored(chosen)
        about: dict[str, Any] = {"nodes": int(chosen.sum()), "access": kind}
        if kind != "own-edges":
            share = micro_f1(self.predictions(X, access=kind).classes, labels, chosen)
            audience = audience_of(kind, why_no_promise(self.model_.receipt))
            return NodeScore(micro_f1=share, audience=audience, **about)
        private = self._private_edges(X, edges, num_nodes=int(features.shape[0]))
        if pay is not None:
            randomness = randomness_from(None)
            bought = paid_accuracy(
                self.model_,
                features,
                labels,
                chosen,
                private,
                epsilon=pay,
                ledger=self._paying_ledger(),
                randomness=randomness,
            )
            audience = audience_of("none", why_no_promise(self.model_.receipt) or why_no_promise(bought.receipt))
            paid: dict[str, Any] = {"cost": bought.receipt.budget, "standard_deviation": bought.standard_deviation}
            return NodeScore(micro_f1=bought.micro_f1, audience=audience, **about, **paid)
        answer = own_edge_answers(self.model_, features)
        share = diagnose(
            lambda opened: micro_f1(answer(opened).classes, labels, chosen),
            private,
            ledger=self._paying_ledger(),
            purpose="accuracy with own edges, for the operator",
        )
        return NodeScore(micro_f1=share, audience="operator only", **about)

    def statement(self) -> Statement:
        """The promise of the released model, in words and as data."""
        check_is_fitted(self)
        return self.model_.statement()

    @without_frames
    def report(
        self,
        X: Any = None,
        y: Any = None,
        *,
        train_mask: Any = None,
        validation_mask: Any = None,
        test_mask: Any = None,
        split: int | None = None,
        name: str | None = None,
        control: bool = True,
    ) -> Report:
        """A page about the released model, which a notebook shows and `save("report.html")` writes.

        Args:
            X: public nodes as in `fit`, for accuracy, confusion and calibration; edges that come with them are not read.
            y: their labels.
            train_mask: the nodes that were learned from; the control learns from them too.
            validation_mask: as in `fit`.
            test_mask: the nodes to score, or those of `validation_mask` if there are too few.
            split: which column of masks that hold several splits.
            name: of the data set, for people.
            control: train the same pipeline without any edge, which spends nothing, and show it beside the model.

        Privacy:
            Reads the model, public nodes, and what the ledger was charged: no edge. It may be published if the model keeps
            a promise (`publishable`).
        """
        check_is_fitted(self)
        masks = {"train_mask": train_mask, "validation_mask": validation_mask, "test_mask": test_mask}
        nodes = X.nodes if isinstance(X, PrivateGraph) else None
        if X is not None and nodes is None:
            columns = read_columns(X, labels=y, **masks, split=split)
            columns = replace(columns, features=self._features(X), edges=None, edge_values=())
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
            write_new(Path(path), content)
        except FileExistsError:
            rule, fix = "must not exist yet", "Choose another name."
            raise InputError("path", rule=rule, got=os.fspath(path), fix=fix) from None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Like scikit-learn's, but a seed is never printed: it would let anybody subtract the noise."""
        params: dict[str, Any] = super().get_params(deep)
        seed = params["random_state"]
        if isinstance(seed, int | np.integer) and not isinstance(seed, bool | _HiddenSeed):
            params["random_state"] = _HiddenSeed(seed)
        return params

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

    def _matrix(self, X: Any, *, reset: bool) -> Any:
        """A plain feature matrix under scikit-learn's own checks: names, number and type of the columns."""
        if not reset and not hasattr(self, "feature_names_in_") and hasattr(X, "columns"):
            X = np.asarray(X)  # a loaded model, or one of a graph, knows its columns by their places
        return self._checked(
            X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=False
        )

    def _checked(self, X: Any, **how: Any) -> Any:
        try:
            return validate_data(self, X, **how)
        except ValueError as error:
            raise InputError(
                "features",
                rule="must be a matrix of numbers, one row per node, with the same columns at every call",
                got=f"this complaint of scikit-learn: {str(error).strip().removesuffix('.')}",
                fix="Choose the columns of training: X[list(model.feature_names_in_)]."
                if hasattr(self, "feature_names_in_") and column_names(X)
                else "Pass all columns of training: a matrix, PyG's Data, a networkx graph or a PrivateGraph.",
            ) from error

    def _learn_table(
        self, X: Any, drop: Sequence[str], categorical: Sequence[str]
    ) -> tuple[Any, FeatureColumns | None]:
        """The features to train on; and what was done with the columns, if they have names."""
        names = column_names(X)
        if not names:
            return self._matrix(X, reset=True), None
        lost = [name for name in drop if name not in names]
        if lost:
            fix = "Pass a list of names." if isinstance(drop, str) else f"X has {names[:8]}."
            raise InputError(
                "drop", rule="must name columns of X", got=repr(drop if isinstance(drop, str) else lost[0]), fix=fix
            )
        return learn_frame(without(X, drop), drop=drop, categorical=categorical)

    def _features(self, X: Any) -> Tensor:
        known = self.model_.feature_columns
        if isinstance(X, PrivateGraph):
            if not same_features(known, X.nodes.feature_columns):
                rule, fix = "must have been read with the columns of training", "Read it with model_.feature_columns."
                raise InputError("X", rule=rule, got="other columns or categories", fix=fix)
            return X.nodes.features
        if isinstance(X, PublicGraph):
            return X.features
        features = read_columns(X).features
        if known is not None and features is X and column_names(X):
            kept = without(X, known.drop)
            self._checked(kept, reset=False, skip_check_array=True)
            return as_features(frame_features(kept, known))
        if known is not None and not known.plain:
            return as_features(frame_features(features, known))
        return as_features(self._matrix(X, reset=False) if features is X else features)

    def _take(self, model: Model) -> None:
        """The fitted attributes of a model."""
        self.model_ = model
        self.classes_: NDArray[Any] = np.asarray(model.class_names)
        self.n_features_in_ = model.encoder.num_features
        if model.feature_columns is not None:
            names = model.feature_columns.names
            self.n_features_in_, self.feature_names_in_ = len(names), np.array(names, dtype=object)

    def _private_edges(self, X: Any, edges: Any, *, num_nodes: int) -> Private[EdgeList]:
        if isinstance(X, PrivateGraph):
            return X.edges
        if isinstance(X, PublicGraph):
            raise AccessRefusedError("These edges were declared public: use access='public-graph'.")
        columns = read_columns(X, edges=edges)
        if columns.edges is None:
            raise InputError(
                "edges", rule="are needed for access='own-edges'", got="none", fix="Pass edges=, if only an empty list."
            )
        return private_edges(edge_index_of(columns, num_nodes=num_nodes), num_nodes)[0]

    def _on_public_graph(self, X: Any) -> Predictions:
        if not isinstance(X, PublicGraph):
            raise AccessRefusedError(
                "access='public-graph' needs edges that were declared public: gcon.public_graph(data). Edges count as "
                "private unless somebody says otherwise."
            )
        refuse_training_nodes(self.model_, X.features)
        return predict_on_public_graph(self.model_, X.features, X.edges)

    def _scored_nodes(self, X: Any, y: Any, mask: Any, split: int | None, *, num_nodes: int) -> tuple[Tensor, Tensor]:
        """Class numbers in the order of `classes_` (-1: another class) and the mask of the nodes that count."""
        labels, test = y, mask
        if isinstance(X, PrivateGraph):
            names = np.asarray([*X.nodes.class_names, None], dtype=object)  # -1, unknown, is the last one
            labels = names[X.nodes.labels.numpy()] if y is None else y
            test = X.nodes.test_mask if mask is None else mask
        elif not isinstance(X, PublicGraph):
            columns = read_columns(X, labels=y, test_mask=mask)
            labels, test = columns.labels, columns.test_mask
        found = as_labels(labels, num_nodes)
        chosen = labelled_mask(test, "mask", found, default=True, split=split)
        return class_numbers(found, self.classes_.tolist()), chosen

    def _ledger(self) -> Ledger:
        """For answers to owners, which cost nothing: a stored model gives them too."""
        return self._paying_ledger() if not isinstance(self.ledger, DetachedLedger) else self._new_ledger()

    def _paying_ledger(self) -> Ledger:
        """For what is charged or recorded: the ledger of a stored model refuses."""
        return self.ledger if self.ledger is not None else self._new_ledger()

    def _new_ledger(self) -> Ledger:
        return MemoryLedger(self.model_.receipt.data_set)

    def _checked_access(self, access: str, edges: Any) -> Access:
        kind = checked_access(access, self.model_.accesses)
        if edges is not None and kind != "own-edges":
            rule, fix = "are read with access='own-edges' only", "Choose that access, or leave the edges out."
            raise InputError("edges", rule=rule, got=f"edges with access='{kind}'", fix=fix)
        return kind


class _HiddenSeed(int):
    """A seed as `get_params` gives it: a number to compute with that does not show itself."""

    def __repr__(self) -> str:
        return "<hidden>"

    __str__ = __repr__

    def __format__(self, format_spec: str) -> str:
        return repr(self)


def _in_pandas(values: NDArray[Any], X: Any, *, columns: Any = None) -> Any:
    """Answers with the index that X has."""
    try:
        import pandas as pd  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        rule, fix = "needs pandas", "Install it, or set_output(transform='default')."
        raise InputError("set_output", rule=rule, got="none installed", fix=fix) from None
    index = None if isinstance(X, PrivateGraph | PublicGraph) else read_columns(X).ids
    return pd.Series(values, index=index) if columns is None else pd.DataFrame(values, index=index, columns=columns)


def _checked_ledger(ledger: Ledger) -> Ledger:
    if not hasattr(ledger, "reserve"):
        rule, fix = "must be None or a ledger", "For example gcon.MemoryLedger('friendships')."
        raise InputError("ledger", rule=rule, got=type(ledger).__name__, fix=fix)
    return ledger
