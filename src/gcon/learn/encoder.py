"""The edge-free encoder as a record: public weights, nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, overload

import torch
from scipy.sparse import csr_matrix
from torch import Tensor
from torch.linalg import vector_norm

from gcon.errors import InputError
from gcon.learn.sparse_rows import SparseRows, compact, with_rows_divided
from gcon.learn.unit_rows import no_longer, unit_rows
from gcon.nodes import BATCH_ROWS, row_slices

_BATCH_ROWS = BATCH_ROWS

Scale = Literal["length", "sum", "nothing"]


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
        return len(self.head_weight if self.hidden_weight is None else self.hidden_weight)

    def on(self, device: str) -> Encoder:
        """The same encoder with its weights on a device: batches of rows go there, and results come back to the processor."""
        return replace(
            self,
            hidden_weight=None if self.hidden_weight is None else self.hidden_weight.to(device),
            hidden_bias=None if self.hidden_bias is None else self.hidden_bias.to(device),
            head_weight=self.head_weight.to(device),
            head_bias=self.head_bias.to(device),
            centre=None if self.centre is None else self.centre.to(device),
        )

    def encode(self, features: Tensor, *, dtype: torch.dtype = torch.float64) -> Tensor:
        """Encoded features: hidden rows, centred, scaled to length 1 (never above).

        Args:
            features: n x k, in memory or in a file; read a batch of rows at a time.
            dtype: float64, or float32 for half the memory: numbers are rounded towards zero, so that no row is longer.
        """
        if dtype not in (torch.float64, torch.float32):
            raise InputError("dtype", rule="must be torch.float64 or torch.float32", got=dtype, fix="Use float64.")
        rows = torch.empty(len(features), len(self.head_weight), dtype=dtype)
        for batch, hidden in self._hidden(features):
            rows[batch] = no_longer(unit_rows(hidden, self.centre), dtype).cpu()
        return rows

    def probabilities(self, features: Tensor | SparseRows, *, scaled: bool = False) -> Tensor:
        """Class probabilities from features alone.

        Args:
            features: n x k; sparse ones only if they are scaled.
            scaled: they are rows as they were learned from, and no more than fit into memory at once.
        """
        weight, bias = self.head_weight, self.head_bias
        if scaled or isinstance(features, SparseRows):
            hidden: Tensor | SparseRows = features
            if self.hidden_weight is not None and self.hidden_bias is not None:
                hidden = torch.relu(features @ self.hidden_weight + self.hidden_bias)
            return torch.softmax(hidden @ weight + bias, dim=1)
        found = torch.empty(len(features), len(bias), dtype=weight.dtype)
        for batch, hidden in self._hidden(features):
            found[batch] = torch.softmax(hidden.to(weight.dtype) @ weight + bias, dim=1).cpu()
        return found

    def classes(self, features: Tensor) -> Tensor:
        """The most probable classes from features alone."""
        slices = row_slices(max(len(features), 1), _BATCH_ROWS)  # probabilities of all rows at once may be too many
        return torch.cat([self.probabilities(features[rows]).argmax(dim=1) for rows in slices])

    def mean_hidden(self, features: Tensor) -> Tensor:
        """The mean hidden row, float64."""
        nothing = torch.zeros(len(self.head_weight), dtype=torch.float64)
        return sum((hidden.double().sum(dim=0).cpu() for _, hidden in self._hidden(features)), nothing) / len(features)

    def check(self, features: Tensor) -> None:
        """Raise `InputError` for features that cannot be encoded: of another width, or not finite."""
        first = self.head_weight if self.hidden_weight is None else self.hidden_weight
        if features.dim() != 2 or features.shape[1] != len(first):
            raise InputError(
                "features",
                rule=f"must have the {len(first)} columns that the encoder was trained on",
                got=features.shape[1] if features.dim() == 2 else "no matrix",
                fix="Pass the same features in the same order as in training.",
            )
        for rows in row_slices(len(features), width=features.shape[1]):
            if not all(torch.isfinite(extreme) for extreme in features[rows].to(torch.float32).aminmax()):
                raise InputError(
                    "features",
                    rule="must be finite in single precision",
                    got="NaN or more than 3e38",
                    fix="Scale them down.",
                )

    def _hidden(self, features: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """ReLU(x W1 + b1), where the weights are, a batch at a time; the features themselves if they are embeddings."""
        for batch in row_slices(max(len(features), 1), _BATCH_ROWS):  # no rows must have the right width too
            self.check(features[batch])
            rows = features[batch].to(self.head_weight.device)
            rows = scaled_rows(rows, by="length" if self.unit_input else "nothing")
            if self.hidden_weight is not None and self.hidden_bias is not None:
                rows = torch.relu(rows @ self.hidden_weight + self.hidden_bias)
            yield batch, rows


@overload
def scaled_rows(features: Tensor, *, by: Scale) -> Tensor: ...
@overload
def scaled_rows(features: Tensor | csr_matrix, *, by: Scale, sparse: bool) -> Tensor | SparseRows: ...
def scaled_rows(features: Tensor | csr_matrix, *, by: Scale, sparse: bool = False) -> Tensor | SparseRows:
    """Features as float32, every row divided by its length, or by the sum of its absolute values; zero rows stay zero.

    Bags of words are divided by their sum in GCN.

    Args:
        features: n x k.
        by: what rows are divided by.
        sparse: whether rows that are mostly zeros, as bags of words are, may come as such: far faster to learn from.
    """
    if not isinstance(features, Tensor):
        return SparseRows.of(with_rows_divided(features, by))
    entries = compact(features) if sparse else None
    if entries is not None:
        return SparseRows.of(with_rows_divided(entries, by), features.device)
    rows = features.to(torch.float32)
    if by != "nothing":
        sizes = rows.abs().sum(dim=1, keepdim=True) if by == "sum" else vector_norm(rows, dim=1, keepdim=True)
        rows = rows / sizes.masked_fill(sizes == 0, 1.0)
    return rows
