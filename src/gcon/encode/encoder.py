"""The edge-free encoder as a record: public weights, nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from gcon.encode.unit_rows import unit_rows
from gcon.errors import InputError

_BATCH_ROWS = 65_536


@dataclass(frozen=True, eq=False, kw_only=True)
class Encoder:
    """A trained two-layer perceptron, or a linear head on embeddings that the user brings.

    Attributes:
        hidden_weight, hidden_bias: the first layer; None if the features are embeddings already.
        head_weight, head_bias: the classification layer, for probabilities and pseudo-labels.
        unit_input: whether feature rows are scaled to length 1 first.
        centre: the public mean of the hidden rows, subtracted before they are scaled; None to leave it out.

    Privacy:
        Trained on features and labels alone, so it may be published.
    """

    hidden_weight: Tensor | None
    hidden_bias: Tensor | None
    head_weight: Tensor
    head_bias: Tensor
    unit_input: bool
    centre: Tensor | None

    @property
    def num_features(self) -> int:
        """The width that features must have."""
        first = self.head_weight if self.hidden_weight is None else self.hidden_weight
        return int(first.shape[0])

    def hidden(self, features: Tensor) -> Tensor:
        """The hidden layer: ReLU(x W1 + b1), or the features themselves if they are embeddings."""
        self.check(features)
        return torch.cat([self._hidden(batch) for batch in _batches(features)])

    def encode(self, features: Tensor) -> Tensor:
        """Encoded features: hidden rows, centred, scaled to length 1, float64."""
        self.check(features)
        return torch.cat([unit_rows(self._hidden(batch), self.centre) for batch in _batches(features)])

    def probabilities(self, features: Tensor) -> Tensor:
        """Class probabilities from features alone."""
        self.check(features)
        return torch.cat([torch.softmax(self.head(self._hidden(batch)), dim=1) for batch in _batches(features)])

    def head(self, hidden: Tensor) -> Tensor:
        """Class scores of hidden rows."""
        return hidden.to(self.head_weight.dtype) @ self.head_weight + self.head_bias

    def _hidden(self, features: Tensor) -> Tensor:
        rows = scaled_input(features, unit=self.unit_input)
        if self.hidden_weight is None or self.hidden_bias is None:
            return rows
        return torch.relu(rows @ self.hidden_weight + self.hidden_bias)

    def check(self, features: Tensor) -> None:
        """Raise `InputError` for features that cannot be encoded."""
        if features.dim() != 2 or features.shape[1] != self.num_features:
            width = features.shape[1] if features.dim() == 2 else "no matrix"
            raise InputError(
                "features",
                rule=f"must have the {self.num_features} columns that the encoder was trained on",
                got=width,
                fix="Pass the same features in the same order as in training.",
            )
        if not bool(torch.isfinite(features.to(torch.float32)).all()):
            raise InputError(
                "features",
                rule="must be finite in single precision",
                got="NaN or more than 3e38",
                fix="Scale them down.",
            )


def scaled_input(features: Tensor, *, unit: bool) -> Tensor:
    """Features as float32, rows scaled to length 1 if wanted (zero rows stay zero)."""
    rows = features.to(torch.float32)
    if not unit:
        return rows
    norms = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    scaled: Tensor = rows / norms.masked_fill(norms == 0, 1.0)
    return scaled


def _batches(features: Tensor) -> Iterator[Tensor]:
    return iter(features.split(_BATCH_ROWS))
