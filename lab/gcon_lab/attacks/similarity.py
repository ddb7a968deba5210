"""Posterior similarity (He et al. 2021): linked nodes get similar answers. Eight distances, none of them learned.

Similar people are linked, so a model without any edge is beaten by this attack too: it is the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from gcon.errors import InputError
from gcon_lab.attacks.view import View

_TINY = 1e-12
Distance = Callable[[Tensor, Tensor], Tensor]


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
