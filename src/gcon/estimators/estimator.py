"""What the estimators share: scikit-learn's manner, any kind of graph to train on, and a model that answers."""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from html import escape
from traceback import walk_stack
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import DataConversionWarning

from gcon.edges.graph import PrivateGraph
from gcon.errors import InputError, PromiseWarning, warn_caller
from gcon.estimators.fitted import FittedClassifier, checked_table
from gcon.files.frames import column_names, learn_frame, without
from gcon.files.inputs import as_private_graph, read_columns
from gcon.machine import threads_for
from gcon.methods.model import Model, ReleasingMethod
from gcon.nodes import warn_of_scales
from gcon.privacy.account import telling_charges
from gcon.privacy.boundary import without_frames
from gcon.privacy.ledger import Ledger, MemoryLedger
from gcon.privacy.randomness import randomness_from
from gcon.release.read import load_release

Callback = Callable[[str, float], None]  # is told the name of a stage that begins, and about which share is done


class PrivateClassifier(FittedClassifier, ABC):
    """What all estimators share: reading graphs, paying, training.

    Subclasses say how a model is trained. All have the parameters that are named here.
    """

    classes: Sequence[object] | None
    random_state: int | None
    verbose: bool
    callback: Callback | None
    model_type: ClassVar[type[Model]]
    shares: ClassVar[Mapping[str, float]]

    @abstractmethod
    def _method(self, given: Mapping[str, Any]) -> ReleasingMethod:
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
        estimator.model_ = model
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
                without edges, which trains and is charged like any other, with a warning.
            train_mask: the nodes to learn from, as booleans or row numbers; by default all that have a label and are in
                no other mask.
            validation_mask: the nodes by whose labels choices are made; they do not teach.
            test_mask: never used in training; kept apart by the checks.
            split: which column of masks that hold several splits.
            drop: columns of a data frame to leave out.
            categorical: columns of a data frame that hold categories: one feature per category. Gaps in columns of numbers
                are filled with the mean and marked; prediction does the same again (docs/file-formats.md).
            name: the owner's name for the data, for the ledger.

        Privacy:
            Pays `epsilon` and `delta` from the ledger before any edge is read.
        """
        # Searches and cross-validations give rows, and no sign that these are a part of a table: whoever called is looked at.
        callers = (str(frame.f_globals.get("__name__", "")) for frame, _ in walk_stack(None))
        if any(caller.startswith("sklearn.model_selection") for caller in callers):
            raise InputError(
                "X",
                rule="must be the rows of a whole graph",
                got="a part of them, from scikit-learn's cross-validation or search",
                fix="Rows cut off lose their edges, and every fit is a release that is paid for. Keep the graph whole: "
                "gcon.model_selection has masks for fit (split_nodes, node_folds); model.node_score says what a score costs.",
            )
        given = {  # as Python's own numbers: a search over settings passes NumPy's
            parameter: value.tolist() if isinstance(value, np.ndarray | np.generic) else value
            for parameter, value in self.__dict__.items()
        }
        method, randomness = self._method(given), randomness_from(self.random_state)
        masks = {"train_mask": train_mask, "validation_mask": validation_mask, "test_mask": test_mask, "split": split}
        graph = self._graph(X, {"labels": y, "edges": edges, **masks}, drop=drop, categorical=categorical, name=name)
        warn_of_scales(graph.nodes)
        ledger = MemoryLedger(graph.name, uncounted=graph.nodes.fingerprint) if self.ledger is None else self.ledger
        if not hasattr(ledger, "reserve"):
            rule, fix = "must be None or a ledger", "For example gcon.MemoryLedger('friendships')."
            raise InputError("ledger", rule=rule, got=type(ledger).__name__, fix=fix)
        known, share, bar = {**self.shares, "done": 1.0}, 0.0, None

        def progress(stage: str) -> None:
            """Show or tell which stage begins, and about which share of the fit is done."""
            nonlocal share, bar
            share = known.get(stage, share)
            if self.verbose:
                bar = _show(stage, share, bar)
            if self.callback is not None:
                self.callback(stage, share)

        with telling_charges(), threads_for(*graph.nodes.features.shape):
            trained = method.train(graph.nodes, graph.edges, ledger=ledger, randomness=randomness, progress=progress)
        self.model_ = replace(trained, feature_columns=graph.nodes.feature_columns)
        progress("done")
        return self

    def _graph(
        self, X: Any, given: dict[str, Any], *, drop: Sequence[str], categorical: Sequence[str], name: str
    ) -> PrivateGraph:
        """The graph to train on, of whatever was passed. Args: those of `fit`; `given` has labels, edges, masks and split."""
        names = column_names(X)
        if (drop or categorical) and not names:
            rule, fix = "name columns of a data frame", "Pass X as one, with names of columns."
            raise InputError("drop, categorical", rule=rule, got=type(X).__name__, fix=fix)
        if isinstance(X, PrivateGraph):
            twice = [part for part, value in given.items() if value is not None]
            if twice:
                rule = "a PrivateGraph brings its own labels, edges and masks"
                raise InputError("X", rule=rule, got=f"also {', '.join(twice)}", fix="Pass the one or the others.")
            return X
        columns, label = read_columns(X, **given), getattr(given["labels"], "name", None)
        if columns.edges is None:
            said = "edges: none were given, so the graph counts as one without any, and epsilon is spent on it all the same."
            warn_caller(f"{said} Pass them, or edges=[] if there are none.", PromiseWarning)
        if label in set(names) - {*drop}:
            rule, fix = "must not hold the labels as a feature too", f"Leave it out: drop=[{label!r}]."
            raise InputError("X", rule=rule, got=f"the column {label!r}", fix=fix)
        if columns.features is X:
            labels = columns.labels
            if np.shape(np.asarray(labels))[1:] == (1,):
                words = "A column-vector y was passed when a 1d array was expected: one label per node, y.ravel(), is meant."
                warn_caller(words, DataConversionWarning)
                labels = np.asarray(labels).ravel()
            lost = [each for each in drop if each not in names]
            if not names:
                features, done = checked_table(None, X), None
            elif lost:
                rule, got = "must name columns of X", repr(drop if isinstance(drop, str) else lost[0])
                fix = "Pass a list of names." if isinstance(drop, str) else f"X has {names[:8]}."
                raise InputError("drop", rule=rule, got=got, fix=fix)
            else:
                features, done = learn_frame(without(X, drop), drop=drop, categorical=categorical)
            columns = replace(columns, features=features, feature_columns=done, labels=labels)
        return as_private_graph(columns, classes=self.classes, name=name)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Like scikit-learn's, but a seed is never printed: it would let anybody subtract the noise."""
        params: dict[str, Any] = super().get_params(deep)
        seed = params["random_state"]
        if isinstance(seed, int | np.integer) and not isinstance(seed, bool | _HiddenSeed):
            params["random_state"] = _HiddenSeed(seed)
        return params


class _HiddenSeed(int):
    """A seed as `get_params` gives it: a number to compute with that does not show itself."""

    def __repr__(self) -> str:
        return "<hidden>"

    __str__ = __repr__

    def __format__(self, format_spec: str) -> str:
        return repr(self)


def _show(stage: str, share: float, bar: Any) -> Any:
    """A line, or in a notebook a bar, which is returned to be moved next time."""
    show = _notebook()
    if show is None:
        with suppress(OSError):  # that nobody can hear it loses no paid fit
            sys.stderr.write(f"gcon: {share:4.0%} {stage}\n")
        return None
    now = show.HTML(f'<progress value="{share:.2f}" max="1"></progress> gcon: {escape(stage)}')
    if bar is None:
        return show.display(now, display_id=True)
    bar.update(now)
    return bar


def _notebook() -> Any:
    """What a notebook shows things with; None elsewhere. A shell of IPython in a terminal has no kernel."""
    shell = sys.modules.get("IPython")
    if shell is None or not hasattr(shell.get_ipython(), "kernel"):
        return None
    from IPython import display  # type: ignore[import-not-found]

    return display
