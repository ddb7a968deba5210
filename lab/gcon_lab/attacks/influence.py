"""The influence attack on query access (LinkTeller, Wu et al. 2022): change one node's features, watch the others' answers.

Only a model whose answers travel over edges lets a node's features reach another node. The features of a node are moved
towards the mean of all nodes, not scaled: models that scale rows to one length would not notice that.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gcon.errors import AccessRefusedError
from gcon_lab.attacks.view import View

# Two changed tables are compared, never a changed one with the true one: a model may know the true one by heart.
_STEPS = (0.25, 0.75)
_SMALLEST = 1e-300


@dataclass(frozen=True)
class Influence:
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
