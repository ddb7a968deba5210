"""Learned link stealing (He et al. 2021): a small model on distances, taught by edges that the attacker knows already.

The known edges are some of the graph's own, or those of a shadow graph with a model of the attacker's own: `taught` takes
the view that they were seen in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from gcon_lab.attacks.similarity import distance_columns
from gcon_lab.attacks.view import View

Kind = Literal["logistic", "boosting"]


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
