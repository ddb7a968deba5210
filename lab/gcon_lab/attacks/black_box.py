"""Attacks on answers alone: how alike two nodes' answers are, a model learned on that, and what changed features move.

Posterior similarity (He et al. 2021): linked nodes get similar answers. Similar people are linked, so a model without any edge
is beaten by this attack too: it is the reference. Learned link stealing (the same) is a small model on distances, taught by edges
that the attacker knows already: some of the graph's own, or those of a shadow graph with a model of the attacker's own; `taught`
takes the view that they were seen in.

The influence attack (LinkTeller, Wu et al. 2022) changes one node's features and watches the others' answers: only a model whose
answers travel over edges lets a node's features reach another node. The features of a node are moved towards the mean of all
nodes, not scaled: models that scale rows to one length would not notice that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from gcon.errors import AccessRefusedError, InputError
from gcon_lab.attacks.view import View

_TINY = 1e-12
Distance = Callable[[Tensor, Tensor], Tensor]
Kind = Literal["logistic", "boosting"]
# Two changed tables are compared, never a changed one with the true one: a model may know the true one by heart.
_STEPS = (0.25, 0.75)
_SMALLEST = 1e-300


def _cosine(left: Tensor, right: Tensor) -> Tensor:
    lengths = torch.linalg.vector_norm(left, dim=1) * torch.linalg.vector_norm(right, dim=1)
    product: Tensor = (left * right).sum(dim=1) / lengths.clamp_min(_TINY)
    return 1 - product


def _correlation(left: Tensor, right: Tensor) -> Tensor:
    return _cosine(left - left.mean(dim=1, keepdim=True), right - right.mean(dim=1, keepdim=True))


def _bray_curtis(left: Tensor, right: Tensor) -> Tensor:
    return (left - right).abs().sum(dim=1) / (left + right).abs().sum(dim=1).clamp_min(_TINY)


def _canberra(left: Tensor, right: Tensor) -> Tensor:
    sizes = left.abs() + right.abs()
    shares = (left - right).abs() / sizes.clamp_min(_TINY)
    return torch.where(sizes > 0, shares, 0.0).sum(dim=1)


DISTANCES: Mapping[str, Distance] = {
    "cosine": _cosine,
    "euclidean": lambda left, right: torch.linalg.vector_norm(left - right, dim=1),
    "correlation": _correlation,
    "chebyshev": lambda left, right: (left - right).abs().amax(dim=1),
    "bray-curtis": _bray_curtis,
    "canberra": _canberra,
    "cityblock": lambda left, right: (left - right).abs().sum(dim=1),
    "squared-euclidean": lambda left, right: (left - right).square().sum(dim=1),
}


@dataclass(frozen=True)
class Similarity:
    """The score is minus the distance of the two nodes' answers."""

    distance: str = "cosine"

    def __post_init__(self) -> None:
        if self.distance not in DISTANCES:
            rule = f"must be one of {', '.join(DISTANCES)}"
            raise InputError("distance", rule=rule, got=repr(self.distance), fix="Use cosine.")

    @property
    def name(self) -> str:
        return f"similarity-{self.distance}"

    def scores(self, view: View, pairs: Tensor) -> Tensor:
        rows = view.posteriors.double()
        return -DISTANCES[self.distance](rows[pairs[:, 0]], rows[pairs[:, 1]])


def distance_columns(view: View, pairs: Tensor) -> Tensor:
    """All eight distances of the answers, then of the features, then how sure the two answers are: one row per pair."""
    columns = []
    for rows in (view.posteriors.double(), view.features.double()):
        left, right = rows[pairs[:, 0]], rows[pairs[:, 1]]
        columns += [distance(left, right) for distance in DISTANCES.values()]
    sureness = -(view.posteriors.double().clamp_min(_TINY).log() * view.posteriors.double()).sum(dim=1)
    first, second = sureness[pairs[:, 0]], sureness[pairs[:, 1]]
    return torch.stack([*columns, first + second, (first - second).abs()], dim=1)


@dataclass(frozen=True, eq=False)
class Supervised:
    """A taught attack; `taught` makes one."""

    kind: Kind
    model: Any = field(repr=False)

    @property
    def name(self) -> str:
        return f"supervised-{self.kind}"

    def scores(self, view: View, pairs: Tensor) -> Tensor:
        """The log-odds of a link."""
        return torch.from_numpy(np.asarray(self.model.decision_function(distance_columns(view, pairs).numpy())))


def taught(view: View, pairs: Tensor, linked: Tensor, *, kind: Kind = "logistic") -> Supervised:
    """Learn from pairs that the attacker knows.

    Args:
        view: where the pairs were seen: the attacked one, or that of a shadow graph.
        pairs: k x 2.
        linked: k booleans, both values among them.
        kind: `logistic` regression, or gradient `boosting`.
    """
    model: Any
    if kind == "logistic":
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    else:
        model = HistGradientBoostingClassifier(max_iter=50, max_leaf_nodes=7, early_stopping=False, random_state=0)
    return Supervised(kind, model.fit(distance_columns(view, pairs).numpy(), linked.numpy()))


@dataclass(frozen=True)
class InfluenceAttack:
    """The score of (u, v) is how far the logarithms of v's answer move when u's features do: sure answers count as well."""

    name: str = "influence"

    def scores(self, view: View, pairs: Tensor) -> Tensor:
        """Two queries for every distinct first node."""
        if view.query is None:
            raise AccessRefusedError("The influence attack needs answers to changed features.")
        middle = view.features.mean(dim=0)
        found = torch.zeros(len(pairs), dtype=torch.float64)
        for node in pairs[:, 0].unique().tolist():
            answers = [view.query(_moved(view.features, node, middle, step)).double() for step in _STEPS]
            near, far = (each.clamp_min(_SMALLEST).log() for each in answers)
            mine = pairs[:, 0] == node
            found[mine] = torch.linalg.vector_norm((far - near)[pairs[mine, 1]], dim=1)
        return found


def _moved(features: Tensor, node: int, middle: Tensor, step: float) -> Tensor:
    changed = features.clone()
    changed[node] = (1 - step) * features[node] + step * middle
    return changed
