"""The one face of all competitors: settings, `fit`, then `predict` under a named access."""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from types import NoneType
from typing import Any, ClassVar, Literal, get_args, get_origin, get_type_hints

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcon.edges.edge_list import EdgeList
from gcon.edges.graph import PrivateGraph, PublicGraph
from gcon.errors import AccessRefusedError, InputError
from gcon.methods.accuracy import check_scored, micro_f1
from gcon.methods.predictions import NOT_PRIVATE, Access, Predictions, checked_access, why_no_promise
from gcon.nodes import PublicNodes, features_fingerprint
from gcon.privacy.boundary import Private
from gcon.privacy.budget import checked_budget, public_delta
from gcon.privacy.gates import answer_owners, diagnose
from gcon.privacy.ledger import Ledger, MemoryLedger
from gcon.privacy.randomness import Randomness, SystemRandomness
from gcon.privacy.receipt import Receipt

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

    def _public_parts(self, graph: PrivateGraph | PublicGraph) -> tuple[Tensor, EdgeList]:
        if not isinstance(graph, PublicGraph):
            raise AccessRefusedError(
                "access='public-graph' needs a graph whose edges were declared public: gcon.public_graph(...)."
            )
        if self.method.private and features_fingerprint(graph.features) == self.training_nodes:
            raise AccessRefusedError(
                "access='public-graph' is refused for the node table that the method was trained on: its edges are private. "
                f"What there is for it: {', '.join(kind for kind in self.trained.scorers if kind != 'public-graph')}."
            )
        return graph.features, graph.edges

    def _scorer(self, access: str | None) -> tuple[Access, Scorer]:
        known = self.trained.scorers
        kind = next(iter(known)) if access is None else checked_access(access, tuple(known))
        return kind, known[kind]


@dataclass(frozen=True)
class Range:
    """The numbers that a setting may be."""

    least: float
    most: float
    least_too: bool = True
    most_too: bool = True

    def __contains__(self, number: Any) -> bool:
        above = number >= self.least if self.least_too else number > self.least
        below = number <= self.most if self.most_too else number < self.most
        return bool(above and below)

    def __str__(self) -> str:
        return f"in {'[' if self.least_too else '('}{self.least}, {self.most}{']' if self.most_too else ')'}"


_SHARE, _WEIGHT, _EPOCHS = Range(0, 1, most_too=False), Range(0, 1), Range(1, 10**6)
RANGES: Mapping[str, Range] = {
    "seed": Range(0, 2**62),
    "hidden": Range(1, 4096),
    "layers": Range(1, 16),
    "base_layers": Range(1, 16),
    "hops": Range(1, 100),
    "depth": Range(1, 100),
    "stacked": Range(1, 2),
    "steps": Range(1, 10**5),
    "epochs": _EPOCHS,
    "patience": _EPOCHS,
    "window": _EPOCHS,
    "dropout": _SHARE,
    "score_dropout": _SHARE,
    "learning_rate": Range(0, 10**6, least_too=False),
    "weight_decay": Range(0, 1000),
    "clip": Range(1e-6, 1e6),
    "sampling": Range(0, 1, least_too=False),
    "restart": _WEIGHT,
    "inference_restart": _WEIGHT,
    "taught_share": _WEIGHT,
    "least_agreement": Range(-1, 1),
    "neighbours": Range(1, 1000),
    "rounds": Range(0, 100),
    "most_pairs": Range(1, 5 * 10**9),
}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a setting of a method may be: its annotation says the kind, its name the range.

    Attributes:
        name: of the field.
        kind: bool, int, float or str.
        optional: whether it may be None.
        choices: of a str.
        default: of the field.
    """

    name: str
    kind: type
    optional: bool
    choices: tuple[str, ...]
    default: object

    def check(self, value: object) -> None:
        """Raise `InputError` unless the value is allowed."""
        if not (self.optional and value is None) and not self._allows(value):
            raise self.refusal(value)

    def read(self, text: str) -> bool | int | float | str | None:
        """The value that a text stands for; its range is checked by the method. `1e2` is a whole number too."""
        if self.optional and text.lower() == "none":
            return None
        if self.kind is str:
            return text
        if self.kind is bool:
            if text.lower() in ("true", "false"):
                return text.lower() == "true"
            raise self.refusal(text)
        try:
            if self.kind is int and text.strip().lstrip("+-").isdigit():
                return int(text)
            number = float(text)
        except ValueError:
            raise self.refusal(text) from None
        if self.kind is float:
            return number
        if not (math.isfinite(number) and number.is_integer()):
            raise self.refusal(text)
        return int(number)

    def refusal(self, got: object) -> InputError:
        """What is said of a wrong value."""
        return InputError(self.name, rule=self.rule, got=repr(got), fix=f"The default is {self.default}.")

    @property
    def rule(self) -> str:
        """In words."""
        if self.kind is bool:
            words = "must be true or false"
        elif self.kind is str:
            words = f"must be one of {', '.join(self.choices)}"
        else:
            words = f"must be a {'whole ' if self.kind is int else ''}number {self._range}"
        return f"{words}, or none" if self.optional else words

    def _allows(self, value: object) -> bool:
        if self.kind is bool or isinstance(value, bool):
            return self.kind is bool and isinstance(value, bool)
        if self.kind is str:
            return isinstance(value, str) and value in self.choices
        number = numbers.Integral if self.kind is int else numbers.Real
        return isinstance(value, number) and value in self._range

    @property
    def _range(self) -> Range:
        return RANGES.get(self.name, Range(-math.inf, math.inf))


@cache
def settings_of(method: type[Method]) -> Mapping[str, Setting]:
    """All settings of a method but its budget, by name."""
    hints = get_type_hints(method)
    found = {}
    for entry in fields(method):
        if entry.name in ("epsilon", "delta"):
            continue
        hint = hints[entry.name]
        parts = [hint] if get_origin(hint) is Literal else list(get_args(hint)) or [hint]
        (kind,) = (part for part in parts if part is not NoneType)
        choices = get_args(kind) if get_origin(kind) is Literal else ()
        found[entry.name] = Setting(
            name=entry.name,
            kind=str if choices else kind,
            optional=NoneType in parts,
            choices=choices,
            default=None if entry.default is MISSING else entry.default,
        )
    return found


@dataclass(frozen=True, kw_only=True)
class Method(ABC):
    """Settings of a competitor: public numbers, all checked when it is built, before anything is read or paid.

    Attributes:
        seed: of initial weights and dropout; it has nothing to do with the noise and may be public.
    """

    name: ClassVar[str]
    about: ClassVar[str]  # what is released and promised, in one sentence
    private: ClassVar[bool] = True  # whether it keeps a promise about edges

    seed: int = 0

    def __post_init__(self) -> None:
        for name, setting in settings_of(type(self)).items():
            setting.check(getattr(self, name))

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
        super().__post_init__()
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
